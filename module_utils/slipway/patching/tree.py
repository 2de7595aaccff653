# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of an environment as patches see them: read without following links, and nothing written."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from ..python import environment, record
from ..python.lock import normalise
from . import paths


class Unsafe(Exception):
    """Why a path is not touched, as the rest of a sentence."""


@dataclass(frozen=True)
class Held:
    """A file's content, mode and owner; ``content`` is ``None`` where there is no file, and the rest says nothing then."""

    content: bytes | None
    mode: int = 0
    uid: int = -1
    gid: int = -1


def site_packages(venv: Path) -> Path:
    """Where a virtual environment keeps its packages, links followed. Raises ``FileNotFoundError`` with words.

    Any environment with a ``pyvenv.cfg`` will do, whoever made it, also where its interpreter does not run any more.
    """
    if not environment.read_settings(venv):
        raise FileNotFoundError(f"{venv} is no virtual environment: it has no pyvenv.cfg")
    found = sorted({path.resolve() for path in venv.glob("lib/python*/site-packages") if path.is_dir()})
    version = environment.read_settings(venv).get("version_info") or environment.read_settings(venv).get("version", "")
    meant = [path for path in found if path.parent.name == f"python{'.'.join(version.split('.')[:2])}"]
    chosen = meant or found
    if len(chosen) != 1:
        names = ", ".join(str(path) for path in found) or "none"
        raise FileNotFoundError(f"{venv} should have one folder site-packages, and these are there: {names}")
    return chosen[0]


def read(site: Path, path: str) -> Held:
    """A file below site-packages. Raises ``Unsafe`` for what is no plain file there, and ``OSError``."""
    if cause := paths.fault(path):
        raise Unsafe(cause)
    above = site
    parts = path.split("/")
    for part in parts[:-1]:
        above = above / part
        kind = _kind(above)
        if kind == "absent":
            return Held(None)
        if kind != "folder":
            raise Unsafe(f"lies below {above}, which is a {kind} and not a folder")
    kind = _kind(site / path)
    if kind == "absent":
        return Held(None)
    if kind != "file":
        raise Unsafe(f"is a {kind}: what is written through it would change something else, or is no file")
    handle = os.open(site / path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(handle, "rb") as file:
        facts = os.fstat(handle)
        return Held(file.read(), stat.S_IMODE(facts.st_mode), facts.st_uid, facts.st_gid)


def _kind(path: Path) -> str:
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "absent"
    if stat.S_ISLNK(mode):
        return "symbolic link"
    return "file" if stat.S_ISREG(mode) else "folder" if stat.S_ISDIR(mode) else "special file"


def bytecode(site: Path, path: str) -> list[Path]:
    """The compiled forms of a module, which Python would go on using where size and second of a change are the same (bpo-31772)."""
    if not path.endswith(".py"):
        return []
    source = site / path
    cache = source.parent / "__pycache__"
    # By name and not by pattern: a module's name may hold what a pattern would read otherwise.
    return sorted(one for one in _listed(cache) if one.name.startswith(f"{source.stem}.") and one.suffix == ".pyc")


def _listed(folder: Path) -> list[Path]:
    try:
        return list(folder.iterdir()) if not folder.is_symlink() else []
    except (FileNotFoundError, NotADirectoryError):
        return []


def installed(site: Path) -> dict[str, list[str]]:
    """Versions by normalised name."""
    return environment.read_installed(site)


def recorded(site: Path, package: str) -> dict[str, str]:
    """What the RECORD of a package says of its files below site-packages: sha256 in hex by path, empty where it has none.

    Empty where there is no RECORD that can be read.
    """
    for folder in sorted(site.glob("*.dist-info")):
        if normalise(folder.name[: -len(".dist-info")].split("-")[0]) == package:
            try:
                entries = record.parse((folder / "RECORD").read_text(encoding="utf-8"))
            except (OSError, ValueError):
                return {}
            return {
                one.path: one.digest if one.algorithm == "sha256" else ""
                for one in entries
                if not one.path.startswith(("/", "../"))
            }
    return {}
