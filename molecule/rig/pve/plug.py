# SPDX-License-Identifier: GPL-3.0-or-later
"""Bind a device node or a folder of the node into a running container: ``python3 -m pve.plug PID SOURCE TARGET [ro]``.

A program of its own, because a process can only enter another mount namespace while it has no threads.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from pathlib import Path

OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442  # the same numbers on all architectures
AT_FDCWD = -100
OPEN_TREE_CLONE = 1
MOVE_MOUNT_F_EMPTY_PATH = 4
AT_EMPTY_PATH = 0x1000
MOUNT_ATTR_RDONLY = 1

libc = ctypes.CDLL(None, use_errno=True)


def _call(number: int, *arguments: int | bytes) -> int:
    result = libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def plug(pid: int, source: str, target: str, read_only: bool = False) -> None:
    """Take a copy of the mount that SOURCE is on, enter the container, and put it on TARGET there."""
    owner = os.stat(f"/proc/{pid}").st_uid
    tree = _call(OPEN_TREE, AT_FDCWD, source.encode(), OPEN_TREE_CLONE)
    if read_only:
        attributes = struct.pack("QQQQ", MOUNT_ATTR_RDONLY, 0, 0, 0)
        _call(MOUNT_SETATTR, tree, b"", AT_EMPTY_PATH, attributes, len(attributes))
    is_folder = os.path.isdir(source)
    with open(f"/proc/{pid}/ns/mnt") as namespace:
        os.setns(namespace.fileno(), os.CLONE_NEWNS)
    # Files on the container's own file systems can only be made by an ID that it knows.
    os.setegid(owner)
    os.seteuid(owner)
    path = Path(target)
    path.parent.mkdir(parents=True, exist_ok=True)
    if is_folder:
        path.mkdir(exist_ok=True)
    else:
        path.touch()
    os.seteuid(0)
    os.setegid(0)
    _call(MOVE_MOUNT, tree, b"", AT_FDCWD, target.encode(), MOVE_MOUNT_F_EMPTY_PATH)


if __name__ == "__main__":
    plug(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:] == ["ro"])
