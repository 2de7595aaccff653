# SPDX-License-Identifier: GPL-3.0-or-later
"""What systemd knows of a server's unit: its state, the log of one of its runs, and what its processes are at."""

from __future__ import annotations

import json
import os
import subprocess
import typing as t
from pathlib import Path

from ..errors import cannot, here
from .startup import Line

_PROPERTIES = (
    "LoadState",
    "ActiveState",
    "SubState",
    "Result",
    "NRestarts",
    "InvocationID",
    "ControlGroup",
    "ExecMainStartTimestampMonotonic",
    "ExecMainCode",
    "ExecMainStatus",
    "Job",
)
ABSENT = "does not exist"
_TIMEOUT_SECONDS = 30
# A start of eight ranks is some thousand lines; of one that has served for weeks the end is enough.
_MOST_LINES = 20000
# As in wait(2): CLD_EXITED, CLD_KILLED, CLD_DUMPED.
_HOW = {"1": "exit code", "2": "signal", "3": "signal"}


def state(unit: str) -> dict[str, str]:
    """Properties of the unit by their names in systemd. Raises ``SlipwayError`` where systemd cannot be asked."""
    shown = _run(unit, ["systemctl", "show", "-p", ",".join(_PROPERTIES), "--", unit])
    return dict(line.split("=", 1) for line in shown.splitlines() if "=" in line)


def ended(now: t.Mapping[str, str], restarts: int | None, invocation: str) -> str:
    """How the unit died, in words; empty where it lives. ``restarts`` and ``invocation`` are those of an earlier look."""
    if now.get("LoadState") == "not-found":
        return ABSENT
    result = now.get("Result", "unknown")
    how = f"result {result}"
    if now.get("ExecMainCode") in _HOW:
        how += f", {_HOW[now['ExecMainCode']]} {now.get('ExecMainStatus', '')}"
    if now.get("ActiveState") in ("failed", "inactive") and now.get("Job", "0") in ("", "0"):  # no start is waiting
        return f"is not running, {how}"
    count = int(now.get("NRestarts") or 0)
    # Between two starts the result is that of the last; after a restart only the count and the invocation tell.
    if now.get("SubState") == "auto-restart":
        return f"died and is restarted by systemd, {how}"
    if (restarts is not None and count > restarts) or (invocation and now.get("InvocationID") not in ("", invocation)):
        return "died and was restarted by systemd"
    return ""


def started(now: t.Mapping[str, str]) -> float:
    """When the main process was started, in seconds of the monotonic clock; 0 where it never was."""
    return int(now.get("ExecMainStartTimestampMonotonic") or 0) / 1e6


def journal(unit: str, invocation: str) -> list[Line]:
    """What one run of the unit wrote and what systemd said of it, with seconds of the monotonic clock; of all runs without an ``invocation``.

    Lines of a process that died at once lack the run's id, since journald looks it up after them: they are of the run that systemd spoke of last.
    """
    argv = ["journalctl", "-o", "json", "-a", "--output-fields=MESSAGE,_SYSTEMD_INVOCATION_ID,INVOCATION_ID"]
    argv += ["--no-pager", "-n", str(_MOST_LINES), "-b", "-u", unit]
    lines, run = [], invocation
    for text in _run(unit, argv).splitlines():
        entry = json.loads(text)
        # What systemd itself writes has the unit's as INVOCATION_ID, and may have one of its own.
        run = entry.get("INVOCATION_ID") or entry.get("_SYSTEMD_INVOCATION_ID") or run
        if invocation and run != invocation:
            continue
        message = entry.get("MESSAGE") or ""
        if isinstance(message, list):  # bytes, where it holds control characters
            message = bytes(message).decode("utf-8", errors="replace")
        seconds = int(entry.get("__MONOTONIC_TIMESTAMP") or 0) / 1e6
        lines += [Line(seconds, part) for part in message.split("\n")]
    return lines


def processes(control_group: str, root: str = "/") -> str:
    """What the unit's processes are at, in words: how many, and who waits without being interruptible (state D), and where."""
    folder = Path(root, "sys/fs/cgroup", control_group.lstrip("/"))
    if not control_group or not folder.is_dir():
        return ""
    count, running, waiting = 0, 0, []
    for file in sorted(folder.rglob("cgroup.procs")):
        for pid in _read(file).split():
            stat = _read(Path(root, "proc", pid, "stat"))
            name, _bracket, rest = stat.partition("(")[2].rpartition(")")
            if not rest:
                continue
            count += 1
            running += rest.split()[0] == "R"
            if rest.split()[0] == "D":
                where = _read(Path(root, "proc", pid, "wchan")).strip("0 \n")
                waiting.append(f"{name} (pid {pid})" + (f" in {where}" if where else ""))
    words = f"of its {count} processes {running} are running"
    if waiting:
        words += f" and {len(waiting)} in uninterruptible sleep (D): {', '.join(waiting[:4])}"
    return words if count else ""


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:  # it has ended
        return ""


def _run(unit: str, argv: list[str]) -> str:
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT_SECONDS,
            check=False,
            env={**os.environ, "LC_ALL": "C.UTF-8"},
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise cannot("look at", f"unit '{unit}'", here(), str(error), "See whether systemd answers there") from None
    if done.returncode:
        raise cannot("look at", f"unit '{unit}'", here(), done.stderr.strip()[-300:], "Run as root") from None
    return done.stdout
