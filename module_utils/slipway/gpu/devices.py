# SPDX-License-Identifier: GPL-3.0-or-later
"""NVIDIA's device nodes: whether they are there, lead to the driver that is loaded, and can be opened from here."""

from __future__ import annotations

import errno
import os
import re
import stat
import typing as t

from . import child
from .tree import Tree

UVM = "/dev/nvidia-uvm"
CONTROL = "/dev/nvidiactl"
_NODE = re.compile(r"^nvidia(\d+|ctl|-modeset|-uvm|-uvm-tools)$")
# What nothing that computes needs: a fault there is told, but stops no one.
OPTIONAL = ("/dev/nvidia-modeset", "/dev/nvidia-uvm-tools")

OK, HUNG, NOT_A_DEVICE, NOT_TRIED = "ok", "hung", "not a device", "not tried"


def expected_major(path: str, majors: t.Mapping[str, int] | None) -> int | None:
    """The major that ``/proc/devices`` (``majors``) has for this node's driver, or ``None`` if it names none.

    Majors are read, never assumed: that of nvidia-uvm is given out anew at each load. The driver that has the GPUs
    itself calls its major ``nvidia-frontend`` before release 545, ``nvidia`` and names of its own for two nodes since.
    """
    if majors is None:
        return None
    name = os.path.basename(path)
    if name.startswith("nvidia-uvm"):
        names = ["nvidia-uvm"]
    elif name in ("nvidiactl", "nvidia-modeset"):
        names = [name, "nvidia", "nvidia-frontend"]
    else:
        names = ["nvidia", "nvidia-frontend"]
    return next((majors[known] for known in names if known in majors), None)


def nodes(
    tree: Tree, majors: t.Mapping[str, int] | None, timeout_seconds: float, user: str | None = None
) -> list[dict[str, t.Any]]:
    """Every NVIDIA node: ``path major minor mode uid gid opens expected_major``, GPUs first and in their order.

    ``opens`` is ``ok``, the name of the errno, ``hung``, ``not a device`` (a plain file where a bind mount did not
    take), or ``not tried`` if an earlier one hung. ``user`` is whom they are opened as: root passes every mode.
    """
    found = [f"/dev/{name}" for name in tree.names("/dev") or [] if _NODE.match(name)]
    found.sort(key=lambda path: (0, int(path[11:]), "") if path[11:].isdigit() else (1, 0, path))
    listed: list[dict[str, t.Any]] = []
    for path in found:
        try:
            seen = os.stat(tree.path(path))
        except OSError:
            continue  # taken away since the folder was read, or a link to nothing
        device = stat.S_ISCHR(seen.st_mode)
        listed.append(
            {
                "path": path,
                "major": os.major(seen.st_rdev) if device else None,
                "minor": os.minor(seen.st_rdev) if device else None,
                "mode": f"{stat.S_IMODE(seen.st_mode):04o}",
                "uid": seen.st_uid,
                "gid": seen.st_gid,
                "opens": NOT_TRIED if device else NOT_A_DEVICE,
                "expected_major": expected_major(path, majors),
            }
        )
    results = _open_all(tree, [node["path"] for node in listed if node["opens"] == NOT_TRIED], timeout_seconds, user)
    for node in listed:
        node["opens"] = results.get(node["path"], node["opens"])
    return listed


def _open_all(tree: Tree, paths: list[str], timeout_seconds: float, user: str | None) -> dict[str, str]:
    """Open each node for reading and writing in one child, so that one that never returns can be named."""
    if not paths:
        return {}

    def work(emit: child.Emit) -> None:
        for path in paths:
            emit([path, HUNG])
            emit([path, _open_one(tree.path(path))])

    return dict(child.run(work, timeout_seconds, user).messages)


def _open_one(path: str) -> str:
    # Without O_NONBLOCK: with it the driver puts off the opening of a GPU that nothing uses yet and says that it went well
    # (nvidia_open_deferred, kernel-open/nvidia/nv.c). So this brings such a GPU up, which takes seconds each. O_NOCTTY: a
    # node that leads to a wrong driver may be a terminal.
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return OK
