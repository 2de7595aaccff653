# SPDX-License-Identifier: GPL-3.0-or-later
"""What a change of an environment is about to do, written down before it does it; and what to make of one that was cut off.

``preparing``: the new contents are being written under other names, so nothing has changed yet. ``committing``: they are all there,
and get their names one by one. So a change that was cut off is completed where its new contents are whole, and undone from the
originals where they are not.
"""

from __future__ import annotations

import json
import typing as t
from dataclasses import asdict, dataclass
from pathlib import Path

from ..errors import SlipwayError
from ..findings import finding
from . import record, tree
from .manifest import ABSENT, sha256

NAME = "journal.json"


@dataclass(frozen=True)
class Step:
    """One file: its sha256 before and after (or ``absent``), and the name, beside it, under which the new content waits."""

    path: str
    before: str
    after: str
    temporary: str


@dataclass(frozen=True)
class Journal:
    """A change. ``versions`` are those of the packages that it is about, ``record`` is the text of the record after it."""

    phase: str
    versions: dict[str, str]
    steps: tuple[Step, ...]
    folders: tuple[str, ...]
    record: str


@dataclass(frozen=True)
class Recovery:
    """What to do about a change that was cut off: ``complete`` it, ``undo`` it, or ``discard`` what is left of it."""

    journal: Journal
    way: str
    contents: dict[str, bytes | None]


def text(journal: Journal) -> str:
    """The journal as it is written."""
    return json.dumps(asdict(journal), indent=2) + "\n"


def read(where: Path) -> Journal | None:
    """The journal in a record's folder. Raises ``SlipwayError`` (the cause) for one that cannot be read."""
    path = where / NAME
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        steps = tuple(Step(**step) for step in content["steps"])
        return Journal(content["phase"], dict(content["versions"]), steps, tuple(content["folders"]), content["record"])
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (ValueError, KeyError, TypeError):
        cause = f"a change was cut off, and {path} does not say any more which"
        raise SlipwayError(cause, [finding("PATCH_MIXED", str(path), cause)]) from None


def look(where: Path, site: Path, versions: t.Mapping[str, str]) -> Recovery | None:
    """What a change that was cut off needs. ``None`` where there is none.

    Raises ``SlipwayError`` (the cause) where its files have been changed by somebody since.
    """
    journal = read(where)
    if journal is None:
        return None
    if journal.phase == "preparing" or any(versions.get(name) != one for name, one in journal.versions.items()):
        return Recovery(journal, "discard", {})
    found = {step.path: sha256(_content(site, step.path)) for step in journal.steps}
    foreign = [step.path for step in journal.steps if found[step.path] not in (step.before, step.after)]
    if foreign:
        cause = f"a change was cut off, and {', '.join(foreign)} is neither what it was nor what it was to become"
        raise SlipwayError(cause, [finding("PATCH_FOREIGN", path, cause) for path in foreign])
    waiting = [step for step in journal.steps if found[step.path] == step.before]
    if all(step.after == ABSENT or sha256(_waiting(site, step)) == step.after for step in waiting):
        new = {step.path: _waiting(site, step) for step in waiting}
        return Recovery(journal, "complete", new)
    old = {step.path: record.original(where, step.before) for step in journal.steps if step not in waiting}
    lost = [step.path for step in journal.steps if step not in waiting and sha256(old[step.path]) != step.before]
    if lost:
        cause = f"a change was cut off, and neither the old nor the new content of {', '.join(lost)} is kept"
        raise SlipwayError(cause, [finding("PATCH_ORIGINAL_LOST", path, cause) for path in lost])
    return Recovery(journal, "undo", old)


def _content(site: Path, path: str) -> bytes | None:
    try:
        return tree.read(site, path).content
    except tree.Unsafe:
        return b""  # nothing of ours: no sha256 of a journal is that of a link or a folder


def _waiting(site: Path, step: Step) -> bytes | None:
    if step.after == ABSENT:
        return None
    try:
        path = site / step.temporary
        return path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    except OSError:
        return b""
