# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment's site-packages as it lies there: folders, files, and who says that they are his. Reads, never writes.

Any environment will do, whoever made it: uv, pip, conda, ``setup.py``, or a folder that has been copied.
"""

from __future__ import annotations

import json
import os
import stat
import typing as t
from dataclasses import dataclass
from pathlib import Path

from . import record
from .lock import normalise

FOLDERS = ("lib/python*/site-packages", "lib64/python*/site-packages", "lib/python*/dist-packages")


class Seen(t.NamedTuple):
    """A regular file: size in bytes, the second of its last change as its maker set it, when it really changed, and its names."""

    size: int
    mtime: int
    ctime: float = 0
    links: int = 1


@dataclass(frozen=True)
class Tree:
    """What lies below a folder: files by path, and links that lead to folders, with where they lead."""

    files: dict[str, Seen]
    links: dict[str, str]


@dataclass(frozen=True)
class Distribution:
    """An installed distribution by its metadata folder.

    ``entries`` are its RECORD, ``None`` where it has none that can be read; then ``claims`` are the names at the top of
    site-packages that it says are its own. ``source`` is its ``direct_url.json``, empty where it came from an index.
    """

    name: str
    version: str
    folder: str
    entries: tuple[record.Entry, ...] | None
    claims: tuple[str, ...] = ()
    source: t.Mapping[str, t.Any] | None = None

    @property
    def editable(self) -> bool:
        """Whether its code lies elsewhere, where somebody works on it."""
        return bool((self.source or {}).get("dir_info", {}).get("editable")) or self.folder.endswith(".egg-link")


def folders(venv: Path) -> list[Path]:
    """The site-packages of an environment, links followed; the folder itself where it is one. Empty where there is none."""
    if next(venv.glob("*.dist-info"), None):
        return [venv.resolve()]
    return sorted({path.resolve() for pattern in FOLDERS for path in venv.glob(pattern) if path.is_dir()})


def walk(top: str) -> Tree:
    """Every regular file below ``top``. Folders that are links are not entered. Raises ``OSError`` for a folder that cannot be read."""
    files: dict[str, Seen] = {}
    links: dict[str, str] = {}
    pending = [top]
    while pending:
        with os.scandir(pending.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                elif entry.is_symlink() and entry.is_dir():
                    links[entry.path] = os.path.realpath(entry.path)
                elif seen := look(entry.path):
                    files[entry.path] = seen
    return Tree(files, links)


def look(path: str) -> Seen | None:
    """What is to be known of a regular file; ``None`` where there is none, or a link that leads nowhere."""
    try:
        facts = os.stat(path)
    except OSError:
        return None
    if not stat.S_ISREG(facts.st_mode):
        return None
    return Seen(facts.st_size, int(facts.st_mtime), facts.st_ctime, facts.st_nlink)


def distributions(site: Path) -> list[Distribution]:
    """Every distribution that has metadata here, also those that one version left behind of another. Raises ``OSError``."""
    found = []
    for folder in sorted(site.iterdir()):
        if folder.name.startswith("~"):
            continue  # what pip moved aside and failed to take away: a leftover, which no Python imports
        if folder.name.endswith(".dist-info"):
            found.append(_modern(folder))
        elif folder.name.endswith((".egg-info", ".egg-link", ".egg")):
            name, version = _name(folder)
            found.append(Distribution(name, version, str(folder), None, _claims(folder, name)))
    return found


def _modern(folder: Path) -> Distribution:
    name, version = _name(folder)
    try:
        text = (folder / "RECORD").read_text(encoding="utf-8", errors="surrogateescape")
        entries: tuple[record.Entry, ...] | None = tuple(record.parse(text))
    except (OSError, ValueError):
        entries = None
    claims = () if entries else _claims(folder, name)
    return Distribution(name, version, str(folder), entries or None, claims, _source(folder))


def _name(folder: Path) -> tuple[str, str]:
    """Name and version, from a folder's own name (packaging.python.org, "Recording installed projects")."""
    stem = folder.name.rpartition(".")[0]
    name, _hyphen, version = stem.partition("-")
    return normalise(name), version.partition("-py")[0] or "?"


def _source(folder: Path) -> dict[str, t.Any]:
    try:
        told = json.loads((folder / "direct_url.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    if not isinstance(told, dict):
        return {}
    # Anybody can write it: what is no table tells nothing (packaging.python.org, "Direct URL Data Structure").
    return {key: value for key, value in told.items() if isinstance(value, dict) or not key.endswith("_info")}


def _claims(folder: Path, name: str) -> tuple[str, ...]:
    """The names at the top of site-packages that a distribution without a RECORD says are its own; else its own name."""
    try:
        text = (folder / "top_level.txt").read_text(encoding="utf-8", errors="replace")
    except OSError:
        text = ""
    return (*(text.split() or [name.replace("-", "_")]), folder.name)
