# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has the GPUs that a server is to get: pid, command, unit and state of each, and what that means for the server."""

from __future__ import annotations

import os
import pwd
import re
import time
import typing as t

from ..findings import Finding, finding
from . import processes
from .tree import Tree

_GPU = re.compile(r"^/dev/nvidia\d+$")
# Who computes has it open; who only watches (NVML: nvidia-smi, exporters) does not.
_UVM = "/dev/nvidia-uvm"
_UNIT = re.compile(r"/([^/]+\.(?:service|scope))(?:/|$)")
_PAUSE_SECONDS = 0.5


def look(tree: Tree, devices: t.Collection[str], unit: str, running: bool) -> list[dict[str, t.Any]] | None:
    """``pid name command unit user state devices computes`` of each process that has one of the ``devices`` (or any GPU) open, by pid.

    Left out are NVIDIA's persistence daemon and, where it is ``running``, the ``unit`` itself. ``None`` where not all could be looked at.
    """
    using = processes.look(tree)
    if using is None:
        return None
    found = []
    for process in using:
        held = [path for path in process["devices"] if (path in devices if devices else _GPU.match(path))]
        if not held or process["name"] == processes.PERSISTENCE:
            continue
        of_unit = _unit(tree, process["pid"])
        if running and of_unit == unit:
            continue
        found.append(
            {
                "pid": process["pid"],
                "name": process["name"],
                "command": _command(tree, process["pid"]) or process["name"],
                "unit": of_unit,
                "user": _user(tree, process["pid"]),
                "state": _state(tree, process["pid"]),
                "devices": held,
                "computes": _UVM in process["devices"],
            }
        )
    return found


def left(tree: Tree, unit: str) -> list[dict[str, t.Any]]:
    """``pid command state`` of each process that is still in the control group of a service that was stopped."""
    folder = f"/sys/fs/cgroup/system.slice/{unit}"
    found = []
    for above, _folders, _files in os.walk(tree.path(folder)):
        for pid in (tree.attribute(f"/{os.path.relpath(above, tree.root)}/cgroup.procs") or "").split():
            found.append({"pid": int(pid), "command": _command(tree, int(pid)), "state": _state(tree, int(pid))})
    return found


def wait(
    tree: Tree, devices: t.Collection[str], unit: str, running: bool, seconds: float
) -> tuple[list[dict[str, t.Any]] | None, list[dict[str, t.Any]]]:
    """``look`` and ``left``, again for so long as somebody is there: a process that is ending gives its GPUs back within seconds."""
    deadline = time.monotonic() + seconds
    while True:
        found = look(tree, devices, unit, running), [] if running else left(tree, unit)
        if not any(found) or time.monotonic() >= deadline:
            return found
        time.sleep(_PAUSE_SECONDS)


def judge(found: list[dict[str, t.Any]] | None, remain: list[dict[str, t.Any]], unit: str, user: str) -> list[Finding]:
    """``GPU_LEFT_IN_USE`` for what is of the server's ``unit`` or ``user``, ``GPU_IN_USE`` for others, who only warn where they do not compute.

    ``SERVER_LEFT_RUNNING`` for what ``left`` found beside them.
    """
    if found is None:
        return [finding("FACT_UNREADABLE", "/proc", "who has the GPUs open could not be read")]
    pids = {process["pid"] for process in found}
    findings = [
        finding("SERVER_LEFT_RUNNING", unit, f"pid {one['pid']} ({one['command'][:120]}), state {one['state']}")
        for one in remain
        if one["pid"] not in pids
    ]
    for process in found:
        detail = f"pid {process['pid']} ({process['command'][:120]})"
        detail += f" of unit {process['unit']}" if process["unit"] else " of no unit"
        detail += f", user {process['user']}, state {process['state']}"
        subject = ", ".join(process["devices"])
        if process["unit"] == unit or (user and process["user"] == user):
            findings.append(finding("GPU_LEFT_IN_USE", subject, detail))
        else:
            findings.append(finding("GPU_IN_USE", subject, detail, None if process["computes"] else "warn"))
    return findings


def _unit(tree: Tree, pid: int) -> str:
    """The innermost service or scope of its control group."""
    names = _UNIT.findall(tree.attribute(f"/proc/{pid}/cgroup") or "")
    return names[-1] if names else ""


def _command(tree: Tree, pid: int) -> str:
    return " ".join((tree.attribute(f"/proc/{pid}/cmdline") or "").split("\0")).strip()


def _state(tree: Tree, pid: int) -> str:
    rest = (tree.attribute(f"/proc/{pid}/stat") or "").rpartition(")")[2].split()
    return rest[0] if rest else "unknown"


def _user(tree: Tree, pid: int) -> str:
    match = re.search(r"^Uid:\s+(\d+)", tree.text(f"/proc/{pid}/status") or "", re.MULTILINE)
    if not match:
        return ""
    try:
        return pwd.getpwuid(int(match[1])).pw_name
    except KeyError:
        return match[1]
