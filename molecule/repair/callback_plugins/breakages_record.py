# SPDX-License-Identifier: GPL-3.0-or-later
"""Write down what each task of a run did: one JSON object a line, into the file that BREAKAGES_RECORD names."""

from __future__ import annotations

import json
import os
import typing as t

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
    name: breakages_record
    type: notification
    short_description: what each task of a run did, as JSON lines
    description: For tools/breakages.py, which compares it with what it expects. Without BREAKAGES_RECORD it does nothing.
"""


class CallbackModule(CallbackBase):
    """The callback. Results of tasks with ``no_log`` arrive here censored already."""

    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "notification"
    CALLBACK_NAME = "breakages_record"

    def __init__(self) -> None:
        super().__init__()
        self.disabled = "BREAKAGES_RECORD" not in os.environ

    def _write(self, result: t.Any, status: str) -> None:
        with open(os.environ["BREAKAGES_RECORD"], "a", encoding="utf-8") as file:
            line = {
                "host": result._host.get_name(),
                "task": result._task.get_name().rpartition(" : ")[2],
                "role": result._task._role.get_name() if result._task._role else "",
                "status": status,
                "result": result._result,
            }
            file.write(json.dumps(line, default=str) + "\n")

    def v2_runner_on_ok(self, result: t.Any) -> None:
        self._write(result, "changed" if result._result.get("changed") else "ok")

    def v2_runner_on_failed(self, result: t.Any, ignore_errors: bool = False) -> None:
        self._write(result, "failed")

    def v2_runner_on_unreachable(self, result: t.Any) -> None:
        self._write(result, "unreachable")
