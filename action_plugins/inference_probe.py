# SPDX-License-Identifier: GPL-3.0-or-later
"""Waits for an inference server and says meanwhile what the server says; the looking is done by modules.

It runs on the controller, calls modules and knows nothing else: a wait of minutes without a word looks like a hang. ``inference_probe`` says
whether the server answers, ``server_log_info`` how far its start is, whether it died or hangs, and why.
"""

from __future__ import annotations

import time
import typing as t

from ansible.errors import AnsibleActionFail
from ansible.module_utils.parsing.convert_bool import boolean
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display

PAUSE_SECONDS = 1.0
# Between two lines about the same phase: some engines load several shards a second.
SAME_PHASE_SECONDS = 5.0
# As documented in the module.
DEFAULT_TIMEOUT_SECONDS = 300
# Of the log, in a message; the result has more.
TOLD_LINES = 6
# Findings that leave the reader to the log.
UNEXPLAINED = ("SERVER_DIED", "SERVER_HUNG", "WORKER_DIED", "NCCL_HUNG")

display = Display()


class ActionModule(ActionBase):
    """The action of the task ``inference_probe``."""

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """The module's result; with ``wait`` after the server has become ready, or with the reason why it did not."""
        super().run(tmp, task_vars)
        task_vars = task_vars or {}
        arguments = dict(self._task.args)
        watched = {
            "unit": arguments.pop("unit", None),
            "engine": arguments.pop("engine", None),
            "limits": arguments.pop("phase_limits", None) or {},
        }
        waiting = boolean(arguments.pop("wait", False), strict=False)
        if waiting and not self._task.check_mode:
            failure = self._wait(arguments, {name: value for name, value in watched.items() if value}, task_vars)
            if failure:
                return failure
        return self._probe(arguments, task_vars)

    def _wait(
        self, arguments: dict[str, t.Any], watched: dict[str, t.Any], task_vars: dict[str, t.Any]
    ) -> dict[str, t.Any] | None:
        """Probe until the server is ready, and return nothing; or return how the task fails."""
        try:
            given = arguments.get("timeout_seconds")
            limit = DEFAULT_TIMEOUT_SECONDS if given is None else float(given)
        except ValueError as error:
            raise AnsibleActionFail(f"timeout_seconds is no number: {error}") from error
        started = time.monotonic()
        told: dict[str, t.Any] = {}
        before: dict[str, t.Any] = {}
        while True:
            result = self._probe({**arguments, "checks": ["ready"]}, task_vars)
            if result.get("failed") or result.get("ready"):
                return result if result.get("failed") else None
            waited = time.monotonic() - started
            asked = {**watched, **before, "waited_seconds": waited}
            log = self._log(asked, task_vars) if "unit" in watched else {}
            if log.get("failed"):
                return log
            before = {name: log[name] for name in ("run_id", "restarts") if log.get(name) not in (None, "")}
            words = _words(result)
            if log.get("phase"):
                words = f"ready by its log, {words}" if log["phase"] == "ready" else log["words"]
            if log.get("died"):
                # Whatever answers at its address now, if anything does, is not this server.
                at = f" while {log['words']}" if log.get("words") else ""
                return self._failure(result, log, f"{watched['unit']} {log['died']}{at}", task_vars)
            if log.get("hung"):
                return self._failure(result, log, f"{watched['unit']} hangs while {log['words']}", task_vars)
            if result.get("final"):
                return self._failure(result, {}, words, task_vars)
            if waited >= limit:
                cause = f"it is not ready after {waited:.0f} s: {words}"
                return self._failure(result, log, cause, task_vars)
            self._tell(arguments, words, log.get("phase"), waited, told, task_vars)
            time.sleep(PAUSE_SECONDS)

    def _tell(
        self,
        arguments: dict[str, t.Any],
        words: str,
        phase: str | None,
        waited: float,
        told: dict[str, t.Any],
        task_vars: dict[str, t.Any],
    ) -> None:
        """A line where something changed; that the wait goes on is said by the output (callback_plugins/slipway.py)."""
        if words == told.get("words"):
            return
        if phase and phase == told.get("phase") and waited - told["waited"] < SAME_PHASE_SECONDS:
            return
        host = task_vars.get("inventory_hostname", "")
        display.display(f"[{host}] waiting for {arguments.get('endpoint')}: {waited:.0f} s, {words}")
        told.update(words=words, phase=phase, waited=waited)

    def _probe(self, arguments: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        return self._execute_module(module_name="inference_probe", module_args=arguments, task_vars=task_vars)

    def _log(self, arguments: dict[str, t.Any], task_vars: dict[str, t.Any]) -> dict[str, t.Any]:
        return self._execute_module(module_name="server_log_info", module_args=arguments, task_vars=task_vars)

    def _failure(
        self, result: dict[str, t.Any], log: dict[str, t.Any], cause: str, task_vars: dict[str, t.Any]
    ) -> dict[str, t.Any]:
        """The task's failure: the finding that explains it leads, and the log is quoted only where none does."""
        of_log, of_probe = log.get("findings") or [], result.get("findings") or []
        endpoint = self._task.args.get("endpoint")
        message = f"Cannot use server '{endpoint}' on {task_vars.get('inventory_hostname', '')}: {cause}."
        if of_log:
            first = of_log[0]
            parts = [part.strip().rstrip(".") for part in (first["summary"], first["detail"]) if part]
            message += f" {first['id']}, {first['subject']}: {'. '.join(parts)}."
        lines = log.get("log") or []
        if lines and (not of_log or of_log[0]["id"] in UNEXPLAINED):
            message += f" The last lines of its log: {' | '.join(lines[-TOLD_LINES:])}".rstrip(".") + "."
        remedies = [found["remedy"] for found in [*of_log, *of_probe] if found.get("remedy")]
        remedy = (remedies or ["Read the server's log"])[0].rstrip(".")
        return {
            **result,
            "failed": True,
            "msg": f"{message} {remedy}.",
            "log": lines,
            "phase": log.get("phase"),
            "findings": [*of_log, *of_probe],
        }


def _words(result: dict[str, t.Any]) -> str:
    """What the first finding says, in a few words."""
    findings = result.get("findings") or []
    return (findings[0].get("detail") or findings[0].get("summary")) if findings else "not ready"
