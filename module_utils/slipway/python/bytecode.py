# SPDX-License-Identifier: GPL-3.0-or-later
"""Bytecode that does not belong to the source beside it (docs.python.org, "py_compile"; PEP 3147, PEP 552). Reads, never writes.

Python takes a ``.pyc`` whose header has the source's size and the second of its last change, so that an edit with the same size in
the same second, or with the old time put back, goes on running the old code (python/cpython#121376).
"""

from __future__ import annotations

import _imp
import json
import re
import struct
import subprocess
import typing as t
from datetime import datetime, timezone

from .site import Seen

HEADER = struct.Struct("<4sII4s")
# So many are compiled again at most: an environment that was copied gives reason to doubt all of them.
DOUBTED = 300
COMPARE = """
import importlib.util, json, marshal, sys
told = []
for cached, source in json.load(sys.stdin):
    try:
        with open(cached, "rb") as file:
            fits = file.read(16)[:4] == importlib.util.MAGIC_NUMBER
            code = marshal.load(file) if fits else None
        with open(source, "rb") as file:
            text = file.read()
        level = 2 if ".opt-2." in cached else 1 if ".opt-1." in cached else 0
        same = not fits or compile(text, code.co_filename, "exec", dont_inherit=True, optimize=level) == code
    except Exception:
        same = True
    told.append(same)
json.dump(told, sys.stdout)
"""
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

    ``seen`` is the source, ``None`` where there is none. That a header fits does not say that the code does; see ``doubted``.
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


def doubted(
    files: t.Mapping[str, Seen], pairs: t.Mapping[str, str], changed: t.Collection[str]
) -> list[tuple[str, str]]:
    """Bytecode, with its source, whose header fits and whose code may not: the source was changed later, whatever its time says.

    Nobody can set when a file really changed, but another name for it (a hard link into a cache) changes that too. ``changed`` are
    sources that are not as their wheels have them.
    """
    found = []
    for path, source in pairs.items():
        text, cached = files.get(source), files[path]
        if text and (source in changed or (text.links == 1 and text.ctime > cached.ctime)) and "-pytest-" not in path:
            found.append((path, source))
    return found if len(found) <= DOUBTED else [(path, source) for path, source in found if source in changed][:DOUBTED]


def differing(python: str, pairs: t.Sequence[tuple[str, str]], timeout_seconds: int = 120) -> list[str]:
    """Of such bytecode that which this Python, whose it is, makes otherwise from the source. None where it does not run."""
    if not pairs:
        return []
    try:
        done = subprocess.run(
            [python, "-I", "-S", "-B", "-W", "ignore", "-c", COMPARE],
            check=True,
            input=json.dumps(pairs),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            encoding="utf-8",
            timeout=timeout_seconds,
        )
        told = json.loads(done.stdout)
    except (OSError, subprocess.SubprocessError, ValueError):
        return []
    return [path for (path, _source), same in zip(pairs, told) if not same]


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, timezone.utc).strftime("%Y-%m-%d %H:%M:%S UTC")
