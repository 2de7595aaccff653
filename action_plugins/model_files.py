# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls the module of this name again and again, each time for a slice of the download, and says in between how far it is.

It runs on the controller, calls modules and knows nothing else: hundreds of gigabytes without a word look like a hang.
"""

from __future__ import annotations

import time
import typing as t

from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

# Short at first, so that somebody who looks on soon knows the speed. Between two slices connections are made anew.
FIRST_SECONDS = 10
LONGEST_SECONDS = 60
# Where nothing came, the next slice is longer than a download takes to give up by itself, and then it says why.
PATIENCE_SECONDS = 600

display = Display()


class ActionModule(ActionBase):
    """The action of the task ``model_files``."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """The module's result once the folder is whole, with what the first slice found to be fetched; or its failure."""
        super().run(tmp, task_vars)
        arguments, host = dict(self._task.args), (task_vars or {}).get("inventory_hostname", "")
        if self._task.check_mode or arguments.get("slice_seconds"):
            return self._module(arguments, task_vars)
        seconds, first = FIRST_SECONDS, None
        while True:
            began = time.monotonic()
            result = self._module({**arguments, "slice_seconds": seconds}, task_vars)
            if result.get("failed") or "left_bytes" not in result:
                return result
            first = first or result
            if result["finished"]:
                told: dict[str, t.Any] = {name: first[name] for name in ("files", "diff") if name in first}
                return {**result, **told, "changed": result["changed"] or first["changed"]}
            # What was damaged is known now: to hash all of it in each slice would never end.
            arguments["verify"] = "quick"
            display.display(f"[{host}] {_words(arguments, result, time.monotonic() - began)}")
            seconds = min(seconds * 2, LONGEST_SECONDS) if result["fetched_bytes"] else PATIENCE_SECONDS

    def _module(self, arguments: dict[str, t.Any], task_vars: dict[str, t.Any] | None) -> dict[str, t.Any]:
        return self._execute_module(module_name="model_files", module_args=arguments, task_vars=task_vars)


def _words(arguments: dict[str, t.Any], result: dict[str, t.Any], seconds: float) -> str:
    """How far it is, how fast, and how long it will take at that pace."""
    total, left = result["total_bytes"], result["left_bytes"]
    speed = result["fetched_bytes"] / seconds
    pace = f"{speed / 1e6:.1f} MB/s, {_duration(left / speed)} left" if speed > 0 else "nothing came since"
    return f"fetching {arguments.get('repository')}: {(total - left) / 1e9:.2f} of {total / 1e9:.2f} GB, {pace}"


def _duration(seconds: float) -> str:
    minutes = round(seconds / 60)
    return (
        f"{minutes // 60} h {minutes % 60} min"
        if minutes >= 60
        else f"{minutes} min"
        if minutes
        else "less than a minute"
    )
