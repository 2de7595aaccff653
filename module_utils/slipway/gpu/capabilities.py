# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's capability nodes (``/dev/nvidia-caps``), which MIG and the fabric need. Looked at, never opened."""

from __future__ import annotations

import os
import stat
import typing as t

from .tree import Tree

FOLDER = "/dev/nvidia-caps"
_DRIVER = "nvidia-caps"


def nodes(tree: Tree, majors: t.Mapping[str, int] | None) -> list[dict[str, t.Any]]:
    """``path major minor mode expected_major`` of each; the major is given out anew at each load of the driver."""
    found = []
    for name in tree.names(FOLDER) or []:
        path = f"{FOLDER}/{name}"
        try:
            seen = os.stat(tree.path(path))
        except OSError:
            continue  # taken away since
        device = stat.S_ISCHR(seen.st_mode)
        found.append(
            {
                "path": path,
                "major": os.major(seen.st_rdev) if device else None,
                "minor": os.minor(seen.st_rdev) if device else None,
                "mode": f"{stat.S_IMODE(seen.st_mode):04o}",
                "expected_major": (majors or {}).get(_DRIVER),
            }
        )
    return found
