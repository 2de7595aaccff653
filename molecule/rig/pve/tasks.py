# SPDX-License-Identifier: GPL-3.0-or-later
"""Tasks: work that outlives its request. Each has a UPID, a log file and an end that the last line of the log tells."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
import threading
import time
import typing as t
from pathlib import Path

from .errors import ApiError, died, refused

if t.TYPE_CHECKING:
    from .node import Node

Say = t.Callable[[str], None]
Work = t.Callable[..., None]  # (node, say, vmid, **arguments)

UPID = re.compile(
    r"UPID:(?P<node>[a-zA-Z0-9-]+):(?P<pid>[0-9A-Fa-f]{8}):(?P<pstart>[0-9A-Fa-f]{8,9}):(?P<starttime>[0-9A-Fa-f]{8}):"
    r"(?P<type>[^:\s]+):(?P<id>[^:\s]*):(?P<user>[^:\s]+):"
)
UNEXPECTED = "unexpected status"  # of a task that is gone without having closed its log


def process_start(pid: int) -> int | None:
    """When a process started, in clock ticks since boot; None if there is none or it is only waiting to be reaped."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else int(fields[19])


@dataclasses.dataclass(frozen=True)
class Task:
    """A task by its UPID, whether it runs, ended, or never was."""

    node: Node
    upid: str

    @property
    def parts(self) -> dict[str, str]:
        found = UPID.fullmatch(self.upid)
        if not found:
            raise refused({"upid": f"unable to parse worker upid '{self.upid}'"})
        return found.groupdict()

    @property
    def log_path(self) -> Path:
        return self.node.task_logs / self.parts["starttime"][-1].upper() / self.upid

    def status(self) -> dict[str, t.Any]:
        """What GET .../status says."""
        parts = self.parts
        if not self.log_path.exists():
            raise ApiError(400, "no such task", {"upid": "no such task"})
        numbers = {key: int(parts.pop(key), 16) for key in ("pid", "pstart", "starttime")}
        # A task of this process ends before the process does.
        running = process_start(numbers["pid"]) == numbers["pstart"] and self.exit_status() == UNEXPECTED
        status: dict[str, t.Any] = {
            **parts,
            **numbers,
            "upid": self.upid,
            "status": "running" if running else "stopped",
        }
        user, _, token = parts["user"].partition("!")
        status["user"] = user
        if token:
            status["tokenid"] = token
        if not running:
            status["exitstatus"] = self.exit_status()
        return status

    def exit_status(self) -> str:
        """OK, ``WARNINGS: n``, the text of the error, or ``unexpected status`` where the log has no end."""
        lines = self.log_path.read_text().splitlines()
        last = re.fullmatch(r"TASK (?:(OK)|ERROR: (.*)|(WARNINGS: \d+))", lines[-1] if lines else "")
        return next((part for part in last.groups() if part is not None), "") if last else UNEXPECTED

    def lines(self, start: int, limit: int) -> list[dict[str, t.Any]]:
        """Lines of the log with their numbers; a limit of 0 means all of them."""
        if not self.log_path.exists():
            raise ApiError(400, "no such task", {"upid": "no such task"})
        lines = self.log_path.read_text().splitlines()
        end = start + limit if limit else len(lines)
        wanted = [{"n": number, "t": text} for number, text in enumerate(lines[start:end], start + 1)]
        return wanted or [{"n": start + 1, "t": "no content"}]


def every(node: Node) -> list[Task]:
    """All tasks whose logs exist, newest first."""
    found = [Task(node, path.name) for path in node.task_logs.glob("?/UPID:*")]
    return sorted(found, key=lambda task: int(task.parts["starttime"], 16), reverse=True)


def _new(node: Node, pid: int, kind: str, vmid: int, user: str) -> Task:
    """A task with a log of its own; a process that begins two in a second counts on, as its number does not tell them apart."""
    at, began = int(time.time()), process_start(pid) or 0
    while True:
        task = Task(node, f"UPID:{node.name}:{pid:08X}:{began:08X}:{at:08X}:{kind}:{vmid}:{user}:")
        task.log_path.parent.mkdir(parents=True, exist_ok=True)
        try:
            task.log_path.touch(0o640, exist_ok=False)
        except FileExistsError:
            at += 1
        else:
            return task


def start(
    node: Node,
    kind: str,
    vmid: int,
    user: str,
    work: Work,
    arguments: dict[str, t.Any],
    fault: dict[str, t.Any] | None = None,
) -> str:
    """Begin a task and return its UPID: in a process of its own, or here and to its end for the command line tools."""
    if node.synchronous:
        task = _new(node, os.getpid(), kind, vmid, user)
        perform(task, work, vmid, arguments, fault or {}, echo=True)
        return task.upid
    worker = subprocess.Popen([sys.executable, "-m", "pve.worker"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    task = _new(node, worker.pid, kind, vmid, user)
    threading.Thread(target=worker.wait, daemon=True).start()  # reaps it
    order = {"upid": task.upid, "work": [work.__module__, work.__name__], "vmid": vmid, "arguments": arguments}
    with t.cast("t.IO[bytes]", worker.stdin) as pipe:
        pipe.write(json.dumps({**order, "fault": fault or {}}).encode())
    return task.upid


def perform(
    task: Task, work: Work, vmid: int, arguments: dict[str, t.Any], fault: dict[str, t.Any], echo: bool
) -> None:
    """Do the work of a task and write its log to the last line, whatever happens; ``fault`` is an entry of faults.py."""
    with task.log_path.open("a", buffering=1) as log:

        def say(text: str) -> None:
            log.write(text + "\n")
            if echo:
                print(text, flush=True)

        try:
            warnings = _struck(task.node, say, vmid, work, arguments, fault)
        except Exception as error:  # a log without an end would leave its readers waiting
            why = error.message if isinstance(error, ApiError) else f"{type(error).__name__}: {error}"
            why = why.strip().replace("\n", " ")
            log.write(f"TASK ERROR: {why}\n")
            if echo:
                print(why, file=sys.stderr, flush=True)
        else:
            log.write(f"TASK WARNINGS: {warnings}\n" if warnings else "TASK OK\n")


def _struck(node: Node, say: Say, vmid: int, work: Work, arguments: dict[str, t.Any], fault: dict[str, t.Any]) -> int:
    """Do the work under a fault, if there is one; returns how many warnings it ended with."""
    kind = fault.get("kind")
    if kind == "task_fails":
        raise died(str(fault.get("message", "the task was told to fail")))
    if kind == "task_hangs":
        with node.locked(vmid):
            time.sleep(float(fault.get("seconds", 3600)))
    if kind == "lock_timeout":
        node = dataclasses.replace(node, contended=True)
    work(node, say, vmid, **arguments)
    lines = fault.get("lines", []) if kind == "task_warns" else []
    for line in lines:
        say(f"WARN: {line}")
    return len(lines)
