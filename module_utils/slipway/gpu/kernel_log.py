# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of NVIDIA's driver (Xid) in the kernel's log, read from its ring buffer without waiting and within bounds."""

from __future__ import annotations

import errno
import os
import re
import time
import typing as t

from .tree import Tree

PATH = "/dev/kmsg"
# Of what NVIDIA's list (docs.nvidia.com/deploy/xid-errors) has as faults of the GPU, its memory, its link or its firmware. The
# others, such as 13, 31, 43 and 45, are most often the fault of a program.
HARDWARE = frozenset({48, 62, 64, 74, 79, 92, 94, 95, 109, 119, 120, 121, 140, 143, 154})

_MOST_BYTES, _MOST_SECONDS, _RECORD_BYTES = 16 << 20, 2.0, 8192
# "4,1234,5678901,-;NVRM: Xid (PCI:0000:06:00): 79, pid=1234, name=python, GPU has fallen off the bus."
_RECORD = re.compile(r"^\d+,\d+,(?P<microseconds>\d+),[^;]*;(?P<text>.*)$")
_XID = re.compile(
    r"NVRM: Xid \(PCI:(?P<bus>[0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2})(?:\.[0-7])?\): (?P<code>\d+)"
)


def read(tree: Tree) -> str | None:
    """The log as ``/dev/kmsg`` gives it (Documentation/ABI/testing/dev-kmsg); ``None`` where it cannot be read.

    ``tree`` remembers why, also where the log is so long that it was not read to its end.
    """
    try:
        handle = os.open(tree.path(PATH), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        tree.remember(PATH, error)
        return None
    parts, size = [], 0
    deadline = time.monotonic() + _MOST_SECONDS
    try:
        while True:
            if size >= _MOST_BYTES or time.monotonic() >= deadline:
                tree.remember(PATH, OSError(errno.EFBIG, ""))
                break
            try:
                part = os.read(handle, _RECORD_BYTES)
            except BlockingIOError:
                break  # its end
            except BrokenPipeError:
                continue  # the record that came next was overwritten while we read; the one after it comes next
            if not part:
                break
            parts.append(part)
            size += len(part)
    except OSError as error:
        tree.remember(PATH, error)
        return None
    finally:
        os.close(handle)
    return b"".join(parts).decode("utf-8", errors="replace")


def xids(log: str, uptime_seconds: float | None) -> list[dict[str, t.Any]]:
    """The Xids of a log: ``bus_id code age_seconds text``, the oldest first. Records of the log have microseconds since boot."""
    found = []
    for line in log.splitlines():
        record = _RECORD.match(line)
        xid = _XID.search(record["text"]) if record else None
        if record and xid:
            domain, rest = xid["bus"].lower().split(":", 1)
            since_boot = int(record["microseconds"]) / 1e6
            found.append(
                {
                    "bus_id": f"{int(domain, 16):04x}:{rest}.0",
                    "code": int(xid["code"]),
                    "age_seconds": None if uptime_seconds is None else max(0, round(uptime_seconds - since_boot)),
                    "text": record["text"],
                }
            )
    return found


def uptime_seconds(text: str | None) -> float | None:
    """Read ``/proc/uptime``."""
    first = (text or "").split()[:1]
    try:
        return float(first[0]) if first else None
    except ValueError:
        return None
