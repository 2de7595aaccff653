# SPDX-License-Identifier: GPL-3.0-or-later
"""Which processes hold NVIDIA's device nodes open, by their open files. A node sees those of its guests too."""

from __future__ import annotations

import os
import re
import time
import typing as t

from .tree import Tree

# A kernel keeps 15 characters of a process's name: this is nvidia-persistenced.
PERSISTENCE = "nvidia-persistenced"[:15]
_MOST_SECONDS = 3.0
_NODE = re.compile(r"^/dev/nvidia(\d+|ctl|-\w+.*)$")
_GUEST = re.compile(r"/lxc(?:\.payload\.|/)(\d+)(?:/|$)", re.MULTILINE)


def look(tree: Tree) -> list[dict[str, t.Any]] | None:
    """``pid name guest devices`` of each, by pid; ``guest`` is the vmid of the container that it runs in.

    ``None`` where not all processes could be looked at: who is not root sees only its own.
    """
    found = []
    deadline = time.monotonic() + _MOST_SECONDS
    for pid in sorted(int(name) for name in tree.names("/proc") or [] if name.isdigit()):
        if time.monotonic() >= deadline:
            return None
        try:
            devices = _devices(tree.path(f"/proc/{pid}/fd"))
        except (FileNotFoundError, ProcessLookupError, NotADirectoryError):
            continue  # it has ended
        except OSError:
            return None
        if devices and pid != os.getpid():
            guest = _GUEST.search(tree.attribute(f"/proc/{pid}/cgroup") or "")
            found.append(
                {
                    "pid": pid,
                    "name": tree.attribute(f"/proc/{pid}/comm"),
                    "guest": int(guest[1]) if guest else None,
                    "devices": sorted(devices),
                }
            )
    return found


def _devices(folder: str) -> set[str]:
    found = set()
    with os.scandir(folder) as entries:
        for entry in entries:
            try:
                target = os.readlink(entry.path)
            except FileNotFoundError:
                continue  # closed since
            if _NODE.match(target):
                found.add(target)
    return found


def persistence(using: t.Sequence[t.Mapping[str, t.Any]] | None) -> dict[str, t.Any]:
    """``daemon``: whether NVIDIA's persistence daemon runs, and the ``devices`` that it keeps up.

    Without it a GPU that nothing uses is brought down; the driver's old persistence mode (nvidia-smi -pm), which does
    without, shows in no file.
    """
    if using is None:
        return {"daemon": None, "devices": None}
    held = [process["devices"] for process in using if process["name"] == PERSISTENCE]
    devices = sorted({device for devices in held for device in devices})
    return {"daemon": bool(held), "devices": devices}
