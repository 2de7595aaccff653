# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytecode that does not belong to the source beside it (docs.python.org, "py_compile"; PEP 3147, PEP 552). Reads, never writes.

Python takes a ``.pyc`` whose header has the source's size and the second of its last change, so that an edit with the same size in
the same second, or with the old time put back, goes on running the old code (python/cpython#121376).
"""

from __future__ import annotations

import _imp
import re
import struct
import typing as t
from datetime import datetime, timezone

from .site import Seen

HEADER = struct.Struct("<4sII4s")
NAME = re.compile(r"(?P<module>.+)\.(?P<tag>cpython-\d+)(?:\.opt-\w+|-pytest-[\w.]+)?\.pyc")


def sources(files: t.Mapping[str, Seen]) -> dict[str, str]:
    """For each bytecode file in a ``__pycache__`` the path of its source, which need not exist."""
    found = {}
    for path in files:
        if path.endswith(".pyc"):
            folder, _slash, name = path.rpartition("/")
            match = NAME.fullmatch(name)
            if match and folder.endswith("/__pycache__"):
                found[path] = f"{folder[: -len('__pycache__')]}{match['module']}.py"
    return found


def fault(path: str, source: str, seen: Seen | None) -> str:
    """What is wrong with a bytecode file, as the rest of a sentence; empty where it fits its source. Raises ``OSError``.

    ``seen`` is the source, ``None`` where there is none. That a header fits does not say that the code does: where the source
    has changed, both are told.
    """
    if seen is None:
        return f"its source {source.rpartition('/')[2]} is not there"
    with open(path, "rb") as file:
        head = file.read(HEADER.size)
    if len(head) < HEADER.size:
        return "it is torn: it has no whole header"
    magic, flags, mtime, rest = HEADER.unpack(head)
    if flags & ~0b11:
        return "its header is none"
    if not flags:
        return _by_time(seen, mtime, struct.unpack("<I", rest)[0])
    return _by_hash(source, magic, head[8:16], checked=bool(flags & 0b10))


def _by_time(seen: Seen, mtime: int, size: int) -> str:
    if size != seen.size & 0xFFFFFFFF:
        return f"it was made from a source of {size} bytes, and the source has {seen.size}"
    if mtime != seen.mtime & 0xFFFFFFFF:
        return f"it was made from a source of {_time(mtime)}, and the source is of {_time(seen.mtime)}"
    return ""


def _by_hash(source: str, magic: bytes, told: bytes, checked: bool) -> str:
    with open(source, "rb") as file:
        text = file.read()
    # The hash is keyed with the magic number of the Python that made it.
    if _imp.source_hash(int.from_bytes(magic, "little"), text) == told:
        return ""
    never = "" if checked else ", and it says that Python should never compare"
    return f"it was made from another source{never}"


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
