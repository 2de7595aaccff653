# SPDX-License-Identifier: GPL-3.0-or-later
"""Who runs from an environment, and so goes on with the code that it has read, until it starts again. Reads ``/proc``."""

from __future__ import annotations

import os
from pathlib import Path


def units(venv: Path, proc: Path = Path("/proc")) -> list[str]:
    """The systemd services whose processes were started by the environment's interpreter or scripts; ``process 123`` where one is in none.

    Links are followed on both sides, so that a server that was started through ``current`` is found.
    """
    programs = os.path.realpath(venv / "bin")
    found = set()
    for folder in proc.iterdir():
        if (
            folder.name.isdigit()
            and int(folder.name) not in (os.getpid(), os.getppid())
            and _runs_from(folder, programs)
        ):
            found.add(_service(folder) or f"process {folder.name}")
    return sorted(found)


def _runs_from(process: Path, programs: str) -> bool:
    """By its command line: the executable itself is the interpreter that the environment only links to."""
    try:
        words = (process / "cmdline").read_bytes().split(b"\0")[:2]
    except OSError:
        return False
    return any(
        word.startswith(b"/") and os.path.realpath(os.path.dirname(os.fsdecode(word))) == programs for word in words
    )


def _service(process: Path) -> str:
    """The unit of a process by its control group (cgroups(7))."""
    try:
        lines = (process / "cgroup").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    parts = [part for line in lines for part in line.rpartition(":")[2].split("/")]
    return next((part for part in reversed(parts) if part.endswith(".service")), "")
