# SPDX-License-Identifier: GPL-3.0-or-later
"""Starting and stopping a container, to the end: a task that ended well is believed when the guest is in the state."""

from __future__ import annotations

import re
import time
import typing as t
from dataclasses import dataclass, field

from ..findings import Finding, finding
from . import api, tasks
from .client import ApiError

if t.TYPE_CHECKING:
    from collections.abc import Iterable

    from .client import Client

# What a container gets to shut down in. More than Proxmox's own 60: a server in it may use the whole stop time of its unit.
SHUTDOWN_SECONDS = 180
REASON_LINES_SHOWN = 20
# What stands before the level in LXC's log (lxc's log.c); Proxmox takes it away where it sees it (PVE/LXC.pm).
_STAMP = re.compile(r"^(?:lxc-start:?\s+\d+:?\s+)?(?:\d{14}\.\d+\s+)?(?=(?:TRACE|DEBUG|INFO|NOTICE|WARN|ERROR)\s)")
_CHATTER = re.compile(r"(?:TRACE|DEBUG|INFO|NOTICE)\s")
# Proxmox's own hook before the start finds most of what is wrong, and what it says comes at the level of chatter.
_HOOK_SAID = re.compile(r"produced output: (.*)")


@dataclass(frozen=True)
class Done:
    """What was done: the task, the guest's ``status/current`` after it, and what there is to say about it."""

    task: tasks.Task
    row: dict[str, t.Any]
    findings: list[Finding] = field(default_factory=list)


def start(client: Client, node: str, vmid: int, timeout_seconds: float) -> Done:
    """Start a guest that is stopped. Raises ApiError with the reason that ``pct start --debug`` shows.

    A start that fails is tried once more, with LXC's debug log: Proxmox's own check of a device node can fail for no reason
    (reference: ``get_device_mode_and_rdev`` takes a stale errno), and without that log "startup failed" is all there is.
    """
    findings: list[Finding] = []
    try:
        task = _started(client, node, vmid, timeout_seconds, debug=False)
    except tasks.TaskFailed as first:
        task = _with_debug(client, node, vmid, timeout_seconds, first)
        detail = f"The first attempt: {first.cause}. It was started with LXC's debug log, until its next start."
        findings.append(finding("PVE_START_REPEATED", f"container '{vmid}'", detail))
    return Done(task, until(client, node, vmid, "running", timeout_seconds), findings)


def shut_down(client: Client, node: str, vmid: int, timeout_seconds: float) -> Done:
    """Shut a guest down that runs, and stop it hard where it does not end in three minutes. Raises ApiError."""
    patience = int(min(SHUTDOWN_SECONDS, timeout_seconds))
    worked = tasks.look_up(client, node, vmid, "vzshutdown", lambda: _is(client, node, vmid, "stopped"))
    task = tasks.run(client, lambda: api.shutdown(client, node, vmid, patience, worked), timeout_seconds)
    return Done(task, until(client, node, vmid, "stopped", timeout_seconds))


def stop(client: Client, node: str, vmid: int, timeout_seconds: float) -> tasks.Task:
    """Stop a guest hard. Raises ApiError."""
    worked = tasks.look_up(client, node, vmid, "vzstop", lambda: _is(client, node, vmid, "stopped"))
    return tasks.run(client, lambda: api.stop(client, node, vmid, worked), timeout_seconds)


def reboot(client: Client, node: str, vmid: int, timeout_seconds: float) -> Done:
    """Shut a guest down that runs, and start it again. Raises ApiError."""
    patience = int(min(SHUTDOWN_SECONDS, timeout_seconds))
    begun = time.monotonic()

    def has_begun_anew() -> bool:
        row = api.status(client, node, vmid)
        # In whole seconds, cut off: one that was up for less before is none that was restarted.
        return row.get("status") == "running" and int(row.get("uptime") or 0) + 1 < time.monotonic() - begun

    worked = tasks.look_up(client, node, vmid, "vzreboot", has_begun_anew)
    task = tasks.run(client, lambda: api.reboot(client, node, vmid, patience, worked), timeout_seconds)
    return Done(task, until(client, node, vmid, "running", timeout_seconds))


def until(client: Client, node: str, vmid: int, wanted: str, timeout_seconds: float) -> dict[str, t.Any]:
    """Wait until a guest has a status, and return what Proxmox then says of it.

    A reboot's task ends when the guest is down, and the node's hook starts it again after that; under high availability a
    task of the node only asks for what is done later (c.general PR #6773).
    """
    deadline = time.monotonic() + timeout_seconds
    pause = tasks.FIRST_PAUSE_SECONDS
    while True:
        row = api.status(client, node, vmid)
        if row.get("status") == wanted:
            return row
        if time.monotonic() >= deadline:
            managed = str((row.get("ha") or {}).get("managed", 0)) == "1"
            raise ApiError(
                f"its task ended well, but it is not {wanted} after {timeout_seconds:g} seconds"
                + ("; high availability manages it" if managed else ""),
                "Look at 'ha-manager status' on the node"
                if managed
                else f"Look at 'pct start {vmid} --debug' on the node",
            )
        time.sleep(pause)
        pause = min(pause * 1.5, tasks.LONGEST_PAUSE_SECONDS)


def reasons(lines: Iterable[str]) -> list[str]:
    """The lines of a start's log that say why it failed: of LXC's own below a warning only what hooks said. Pure."""
    kept = []
    for line in lines:
        text = _STAMP.sub("", line.strip())
        if said := _HOOK_SAID.search(text):
            kept.append(said[1].strip())
        elif text and not _CHATTER.match(text):
            kept.append(text)
    return list(dict.fromkeys(kept))[-REASON_LINES_SHOWN:]


def _is(client: Client, node: str, vmid: int, status: str) -> bool:
    return api.status(client, node, vmid).get("status") == status


def _started(client: Client, node: str, vmid: int, timeout_seconds: float, debug: bool) -> tasks.Task:
    worked = tasks.look_up(client, node, vmid, "vzstart", lambda: _is(client, node, vmid, "running"))
    return tasks.run(client, lambda: api.start(client, node, vmid, worked, debug), timeout_seconds)


def _with_debug(client: Client, node: str, vmid: int, timeout_seconds: float, first: tasks.TaskFailed) -> tasks.Task:
    """The second attempt. Raises ApiError with what was said by the first one, and by LXC in this one."""
    cause = first.cause
    try:
        return _started(client, node, vmid, timeout_seconds, debug=True)
    except tasks.TaskFailed as second:
        log = api.task_log(client, tasks.upid_of(second.cause))
        if said := reasons(str(line.get("t", "")) for line in log):
            cause += "\nWhat 'pct start --debug' shows:\n" + "\n".join(f"  {line}" for line in said)
    except ApiError:
        # That there was no second attempt takes nothing away from the first.
        pass
    raise ApiError(
        cause, f"Correct the cause and run again; 'pct start {vmid} --debug' on {node} shows the whole of it"
    ) from first
