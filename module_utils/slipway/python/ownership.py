# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose each file of an environment is. Pure: metadata in, owners out."""

from __future__ import annotations

import os
import typing as t
from dataclasses import dataclass, field

from . import states
from .record import Entry
from .site import Distribution

# A distribution, by its number, and what its RECORD says of a file.
Owner = tuple[int, Entry]


@dataclass
class Owners:
    """By absolute path: distributions (by their number) and what their RECORD says; by folder, and by name at the top, the first owner."""

    files: dict[str, list[Owner]] = field(default_factory=dict)
    folders: dict[str, int] = field(default_factory=dict)
    claimed: dict[str, int] = field(default_factory=dict)

    def of(self, path: str) -> int:
        """The distribution that a file belongs to, recorded or by where it lies; -1 where it is nobody's."""
        if path in self.files:
            return self.files[path][0][0]
        folder = os.path.dirname(path)
        while folder not in self.folders:
            parent = os.path.dirname(folder)
            if parent == folder:
                return -1
            folder = parent
        return self.folders[folder]


def owners(site: str, distributions: t.Sequence[Distribution]) -> Owners:
    """The owners of what lies in one site-packages. Bytecode and RECORD itself have none: they are judged otherwise."""
    found = Owners()
    for number, distribution in enumerate(distributions):
        for name in distribution.claims:
            found.claimed.setdefault(os.path.join(site, name), number)
        for entry in distribution.entries or ():
            if states.is_bytecode(entry.path):
                continue
            path = f"{site}/{entry.path}"
            if entry.path.startswith("/") or ".." in entry.path or "//" in entry.path or "./" in entry.path:
                path = os.path.normpath(os.path.join(site, entry.path))
            folder = path.rpartition("/")[0]
            if folder != site:
                found.folders.setdefault(folder, number)
            if not entry.path.endswith(states.UNHASHABLE):
                found.files.setdefault(path, []).append((number, entry))
    found.folders[site] = -1
    return found


def claimant(found: Owners, site: str, path: str) -> int:
    """The distribution without a RECORD that says of a file's topmost name that it is its own; -1 where there is none."""
    if not found.claimed or not path.startswith(f"{site}/"):
        return -1
    top = path[len(site) + 1 :].partition("/")[0]
    for name in (top, top.partition(".")[0]):
        number = found.claimed.get(f"{site}/{name}")
        if number is not None:
            return number
    return -1
