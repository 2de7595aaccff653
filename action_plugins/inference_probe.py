# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for an inference server and says meanwhile what the server says; the looking is done by the module of this name.

It runs on the controller, calls modules and knows nothing else: a wait of minutes without a word looks like a hang.
"""

from __future__ import annotations

import re
import time
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

PAUSE_SECONDS = 1.0
# As documented in the module.
DEFAULT_TIMEOUT_SECONDS = 300
LOG_LINES = 20
# What systemd says at each start and end of a unit, whatever the cause.
ROUTINE = re.compile(
    r"^(Starting|Started|Stopping|Stopped) |: (Scheduled restart job|Main process exited|Failed with result|Consumed )"
)

display = Display()


class ActionModule(ActionBase):
    """The action of the task ``inference_probe``."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """The module's result; with ``wait`` after the server has become ready, or with the reason why it did not."""
        super().run(tmp, task_vars)
        task_vars = task_vars or {}
        arguments = dict(self._task.args)
        unit = arguments.pop("unit", None)
        waiting = boolean(arguments.pop("wait", False), strict=False)
        if waiting and not self._task.check_mode:
            failure = self._wait(arguments, unit, task_vars)
            if failure:
                return failure
        return self._probe(arguments, task_vars)

    def _wait(
        self, arguments: dict[str, t.Any], unit: str | None, task_vars: dict[str, t.Any]
    ) -> dict[str, t.Any] | None:
        """Probe until the server is ready, and return nothing; or return how the task fails."""
        try:
            given = arguments.get("timeout_seconds")
            limit = DEFAULT_TIMEOUT_SECONDS if given is None else float(given)
        except ValueError as error:
            raise AnsibleActionFail(f"timeout_seconds is no number: {error}") from error
        host = task_vars.get("inventory_hostname", "")
        started = time.monotonic()
        restarts, said = None, ""
        while True:
            result = self._probe({**arguments, "checks": ["ready"]}, task_vars)
            if result.get("failed") or result.get("ready"):
                return result if result.get("failed") else None
            waited = time.monotonic() - started
            words = _words(result)
            if unit:
                death, restarts = self._death(unit, restarts, task_vars)
                if death:
                    # Whatever answers at its address now, if anything does, is not this server.
                    return self._failure(
                        result, unit, f"{unit} {death}", task_vars, "Mend the cause and run this again"
                    )
            if result.get("final"):
                return self._failure(result, None, words, task_vars)
            if waited >= limit:
                return self._failure(result, unit, f"it is not ready after {waited:.0f} s: {words}", task_vars)
            if words != said:  # that the wait goes on is said by the output (callback_plugins/slipway.py)
                display.display(f"[{host}] waiting for {arguments.get('endpoint')}: {waited:.0f} s, {words}")
                said = words
            time.sleep(PAUSE_SECONDS)

    def _probe(self, arguments: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        return self._execute_module(module_name="inference_probe", module_args=arguments, task_vars=task_vars)

    def _command(self, argv: list[str], task_vars: dict[str, t.Any]) -> str:
        """What a command on the target prints; empty where it cannot be run."""
        result = self._execute_module(
            module_name="ansible.builtin.command", module_args={"argv": argv}, task_vars=task_vars
        )
        return "" if result.get("failed") else str(result.get("stdout", ""))

    def _death(self, unit: str, restarts: int | None, task_vars: dict[str, t.Any]) -> tuple[str, int | None]:
        """How the unit died, in words or empty, and how often systemd has restarted it so far."""
        argv = ["systemctl", "show", "-p", "LoadState,ActiveState,SubState,Result,NRestarts", "--", unit]
        shown = self._command(argv, task_vars)
        state = dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)
        if not state:
            return "", restarts
        if state.get("LoadState") == "not-found":
            return "does not exist", restarts
        count = int(state.get("NRestarts") or 0)
        how = state.get("Result", "unknown")
        if state.get("ActiveState") in ("failed", "inactive"):
            return f"is not running, result {how}", count
        # Between two starts the result is that of the last; after a restart only the count tells.
        if state.get("SubState") == "auto-restart" or (restarts is not None and count > restarts):
            return f"died and was restarted by systemd, result {how}", count
        return "", count

    def _failure(
        self, result: dict[str, t.Any], unit: str | None, cause: str, task_vars: dict[str, t.Any], remedy: str = ""
    ) -> dict[str, t.Any]:
        """The task's failure, with the findings of the last look and the last lines of the unit's log."""
        findings = result.get("findings") or [{}]
        remedy = remedy or findings[0].get("remedy") or "Read the server's log"
        endpoint = self._task.args.get("endpoint")
        message = f"Cannot use server '{endpoint}' on {task_vars.get('inventory_hostname', '')}: {cause}."
        log: list[str] = []
        if unit:
            argv = ["journalctl", "-u", unit, "-n", str(LOG_LINES), "-o", "cat", "--no-pager"]
            log = self._command(argv, task_vars).splitlines()
            if log:
                told = [line.strip() for line in log if line.strip()]
                told = [line for line in told if not ROUTINE.search(line)] or told
                message += " The last lines of its log: " + " | ".join(told[-6:])
                message = message.rstrip(".") + "."
        return {**result, "failed": True, "msg": f"{message} {remedy}.", "log": log}


def _words(result: dict[str, t.Any]) -> str:
    """What the first finding says, in a few words."""
    findings = result.get("findings") or []
    return (findings[0].get("detail") or findings[0].get("summary")) if findings else "not ready"
