# SPDX-License-Identifier: GPL-3.0-or-later
"""What NCCL says with NCCL_DEBUG=INFO: its version, how ranks reach each other, settings that it took, and warnings. Pure.

Lines are as in NVIDIA/nccl#1773, #1817 and #2106: ``host:pid:tid [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM``, with a time in front in newer
releases, and with a file and a line before a warning.
"""

from __future__ import annotations

import re
import typing as t

_VERSION = re.compile(r"NCCL version (\d+\.\d+\.\d+)")
_VIA = re.compile(
    r"(?:Channel|Ring) \d+(?:/\d+)? : (\d+)\[\w+\] -> (\d+)\[\w+\](?: \[(?:send|receive)\])? via (.+?)(?: comm .*)?$"
)
_SETTING = re.compile(r"(NCCL_\w+) set by environment to (.+?)\.?$")
_WARNING = re.compile(r"(?:(\S+\.\w+:\d+) )?NCCL WARN (.+)$")
_FALLBACK = "cuMem host allocations do not appear to be working"
_COMPLETE = "Init COMPLETE"
# Older releases say so of shared memory (NVIDIA/nccl#290).
_OLD_NAMES = {"direct shared memory": "SHM/direct"}


def worth_keeping(line: str) -> bool:
    """Whether anything is read from such a line."""
    return bool(
        _VIA.search(line)
        or _VERSION.search(line)
        or _SETTING.search(line)
        or _WARNING.search(line)
        or _FALLBACK in line
        or _COMPLETE in line
    )


def read(lines: t.Iterable[str]) -> dict[str, t.Any]:
    """``version`` (none if not said), ``transport``, ``settings`` (by name), ``warnings`` (each once, behind its place in NCCL's source), ``complete`` (communicators).

    ``transport`` has a row for each way between two ranks: ``source target via channels``. ``cumem_host`` is false where NCCL found that it
    cannot allocate host memory by cuMem and fell back to /dev/shm.
    """
    found: dict[str, t.Any] = {"version": None, "settings": {}, "complete": 0, "cumem_host": None}
    ways: dict[tuple[int, int, str], int] = {}
    warnings: dict[str, None] = {}
    for line in (line.rstrip() for line in lines):
        if way := _VIA.search(line):
            via = way[3].strip()
            key = (int(way[1]), int(way[2]), _OLD_NAMES.get(via, via))
            ways[key] = ways.get(key, 0) + 1
        elif version := _VERSION.search(line):
            found["version"] = version[1]
        elif setting := _SETTING.search(line):
            found["settings"][setting[1]] = setting[2].strip()
        elif warning := _WARNING.search(line):
            warnings[" ".join(part.strip() for part in warning.groups() if part)] = None
        found["complete"] += _COMPLETE in line
        if _FALLBACK in line:
            found["cumem_host"] = False
    rows = [
        {"source": source, "target": target, "via": via, "channels": count}
        for (source, target, via), count in sorted(ways.items())
    ]
    return {**found, "transport": rows, "warnings": list(warnings)}
