# SPDX-License-Identifier: GPL-3.0-or-later
"""What has been patched in an environment, kept outside of it: ``/var/lib/slipway/environments/<its path>/patches/``.

``record.json`` lists the patches in the order in which they were applied; the last one that touches a path is on top.
``originals/`` keeps the contents that were replaced, each under its sha256. ``changed`` is written when files of the environment
have changed: what started before its ctime runs with something else. A lost record means that less is ours, never more, and facts
read from the environment win over it.
"""

from __future__ import annotations

import json
import os
import re
import typing as t
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .manifest import ABSENT, SHA256, sha256

if t.TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = Path("/var/lib/slipway/environments")
FORMAT = 1


@dataclass(frozen=True)
class RecordedFile:
    """One file of an applied patch: sha256 in hex, or ``absent``, and for a file that went its mode and owner."""

    path: str
    before: str
    after: str
    mode: int | None = None
    uid: int | None = None
    gid: int | None = None


@dataclass(frozen=True)
class Applied:
    """A patch that was applied to a version of a package."""

    id: str
    digest: str
    package: str
    version: str
    applied_at: str
    files: tuple[RecordedFile, ...]


@dataclass(frozen=True)
class Expected:
    """What the patches make of one path: the sha256 that it should have (``absent`` where it should not be), and their ids."""

    sha256: str
    ids: tuple[str, ...]


@dataclass(frozen=True)
class Record:
    """The patches of one environment, the first one that was applied first."""

    patches: tuple[Applied, ...] = field(default=())

    def expected(self) -> dict[str, Expected]:
        """By path, as the topmost patch left it."""
        found: dict[str, Expected] = {}
        for patch in self.patches:
            for file in patch.files:
                below = found[file.path].ids if file.path in found else ()
                found[file.path] = Expected(file.after, (*below, patch.id))
        return found


def folder(venv: Path, root: Path = ROOT) -> Path:
    """Where the record of an environment lies. Links are followed, so that each environment has one."""
    return root / os.path.realpath(venv).lstrip("/") / "patches"


def read(where: Path) -> Record:
    """The record in a folder; an empty one where there is none, or none that can be read."""
    try:
        return parse((where / "record.json").read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return Record()


def parse(content: str) -> Record:
    """The record that a text holds; an empty one where it holds none."""
    try:
        told = json.loads(content)
        return Record(tuple(_applied(one) for one in told["patches"]) if told["format"] == FORMAT else ())
    except (ValueError, KeyError, TypeError):
        return Record()


def _applied(one: Mapping[str, t.Any]) -> Applied:
    files = tuple(RecordedFile(**file) for file in one["files"])
    for file in files:
        for value in (file.before, file.after):
            if value != ABSENT and not re.fullmatch(SHA256, value):
                raise ValueError(value)
    return Applied(one["id"], one["digest"], one["package"], one["version"], one["applied_at"], files)


def text(record: Record, venv: Path) -> str:
    """The record as it is written."""
    content = {"format": FORMAT, "venv": str(venv), "patches": [asdict(one) for one in record.patches]}
    return json.dumps(content, indent=2) + "\n"


def original(where: Path, digest: str) -> bytes | None:
    """A content that was replaced, ``None`` where it is not kept or no longer what it was."""
    try:
        content = (where / "originals" / digest).read_bytes()
    except OSError:
        return None
    return content if sha256(content) == digest else None
