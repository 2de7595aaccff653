# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory of the machine that a model would run on without a GPU."""

from __future__ import annotations

from pathlib import Path

from .server import MIB


def memory_mib(root: Path = Path("/")) -> int | None:
    """The memory that this machine, or the container that it is, may use; ``None`` where nothing tells."""
    limits = []
    try:
        for line in (root / "proc/meminfo").read_text().splitlines():
            if line.startswith("MemTotal:"):
                limits.append(int(line.split()[1]) // 1024)
        limits.append(int((root / "sys/fs/cgroup/memory.max").read_text()) // MIB)
    except (OSError, ValueError):
        pass  # "max", or not a control group of the second version
    return min(limits, default=None)
