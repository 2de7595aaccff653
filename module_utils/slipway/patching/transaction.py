# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing files of an environment so that it is in one state or the other, whenever it is cut off.

First the contents that go are kept, then the new ones are written beside their places and synced; only then do they get their names.
A new file gets its name by a rename, so that a hard link into a cache is broken and no other environment changes.
"""

from __future__ import annotations

import os
import typing as t
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from .. import files
from ..findings import Finding, finding
from . import journal, record, tree
from .journal import Journal, Recovery, Step
from .manifest import ABSENT, sha256


@dataclass(frozen=True)
class Write:
    """A file that changes: its new content (``None`` takes it away) with mode and owner, and the content that it has now."""

    path: str
    content: bytes | None
    before: bytes | None
    mode: int
    uid: int
    gid: int


@dataclass(frozen=True)
class Place:
    """An environment's site-packages and the folder of its record."""

    site: Path
    where: Path


def change(
    place: Place, writes: t.Sequence[Write], originals: t.Iterable[bytes], new_record: str, versions: dict[str, str]
) -> None:
    """Make the change, with its record. ``originals`` are contents that the new record needs to be taken back.

    Raises ``OSError``; then either nothing has changed, or the next run completes or undoes it.
    """
    (place.where / "originals").mkdir(parents=True, exist_ok=True)
    kept = [*originals, *(write.before for write in writes if write.before is not None)]
    if not writes:
        _keep_all(place.where, kept)
        _replace(place.where / "record.json", new_record)
        _tidy(place.where)
        return
    steps = tuple(_step(write) for write in writes)
    planned = Journal("preparing", versions, steps, tuple(_missing_folders(place.site, writes)), new_record)
    _replace(place.where / journal.NAME, journal.text(planned))
    try:
        _keep_all(place.where, kept)
        _prepare(place.site, planned, writes)
        _replace(place.where / journal.NAME, journal.text(replace(planned, phase="committing")))
    except BaseException:
        with suppress(OSError):
            _discard(place, planned)
        raise
    try:
        _commit(place, planned)
    except OSError:
        # Best done now; if that fails too, the journal is there for the next run.
        with suppress(OSError):
            recovery = journal.look(place.where, place.site, versions)
            if recovery:
                recover(place, recovery)
        raise


def recover(place: Place, recovery: Recovery) -> Finding:
    """Complete or undo a change that was cut off. Raises ``OSError``."""
    told = {
        "complete": "a change that was cut off has been completed",
        "undo": "a change that was cut off has been undone",
        "discard": "what was left of a change that was cut off before it began has been removed",
    }
    cut_off = recovery.journal
    if recovery.way == "complete":
        _commit(place, cut_off)
    elif recovery.way == "undo":
        _undo(place, recovery)
    else:
        _discard(place, cut_off)
    return finding("PATCH_INTERRUPTED", str(place.site), told[recovery.way])


def _prepare(site: Path, planned: Journal, writes: t.Sequence[Write]) -> None:
    """Write the new contents beside their places."""
    for folder in planned.folders:
        os.mkdir(site / folder)
        above, made = (site / folder).parent.stat(), (site / folder).stat()
        if (above.st_uid, above.st_gid) != (made.st_uid, made.st_gid):
            os.chown(site / folder, above.st_uid, above.st_gid)
        os.chmod(site / folder, above.st_mode & 0o7777)  # whatever this process's umask is
    for step, write in zip(planned.steps, writes):
        if write.content is not None:
            with suppress(FileNotFoundError):  # left by a run whose journal is lost
                os.unlink(site / step.temporary)
            _write(site / step.temporary, write.content, write)
    _sync_folders(site, planned.steps)
    for write in writes:
        if tree.read(site, write.path).content != write.before:
            raise OSError(f"{write.path} was changed by somebody else meanwhile")


def _commit(place: Place, planned: Journal) -> None:
    """Give the new contents their names, where they do not have them yet."""
    for step in planned.steps:
        target = place.site / step.path
        if step.after == ABSENT:
            with suppress(FileNotFoundError):
                os.unlink(target)
        elif os.path.lexists(place.site / step.temporary):
            os.replace(place.site / step.temporary, target)
    _sync_folders(place.site, planned.steps)
    _finish(place, planned, planned.record)


def _undo(place: Place, recovery: Recovery) -> None:
    """Put the old contents back where the new ones have their names already."""
    for step in recovery.journal.steps:
        if step.path not in recovery.contents:
            continue
        target, old = place.site / step.path, recovery.contents[step.path]
        if old is None:
            os.unlink(target)
            continue
        facts = target.stat() if target.exists() else target.parent.stat()
        mode = facts.st_mode & 0o7777 if target.exists() else 0o644
        with suppress(FileNotFoundError):
            os.unlink(place.site / step.temporary)
        _write(place.site / step.temporary, old, Write(step.path, old, None, mode, facts.st_uid, facts.st_gid))
        os.replace(place.site / step.temporary, target)
    _sync_folders(place.site, recovery.journal.steps)
    _finish(place, recovery.journal, None)


def _finish(place: Place, planned: Journal, new_record: str | None) -> None:
    """Bytecode, stamp, record; the journal goes last."""
    for step in planned.steps:
        for compiled in tree.bytecode(place.site, step.path):
            with suppress(FileNotFoundError):
                os.unlink(compiled)
        if step.after == ABSENT:
            _remove_empty(place.site, (place.site / step.path).parent)
    _replace(place.where / "changed", "")
    if new_record is not None:
        _replace(place.where / "record.json", new_record)
    _discard(place, planned)


def _discard(place: Place, planned: Journal) -> None:
    """Take away what waited under other names, folders that were made for it, and the journal."""
    for step in planned.steps:
        with suppress(FileNotFoundError, NotADirectoryError):
            os.unlink(place.site / step.temporary)
    for folder in reversed(planned.folders):
        with suppress(OSError):  # it is not empty, and so it stays
            os.rmdir(place.site / folder)
    with suppress(FileNotFoundError):
        os.unlink(place.where / journal.NAME)
    _sync(place.where)
    _tidy(place.where)


def _tidy(where: Path) -> None:
    """Take away originals that no patch needs any more, and what a killed run left."""
    for left in where.glob("*.slipway.*"):  # by ``files.replace`` in a run that was killed
        os.unlink(left)
    needed = {file.before for one in record.read(where).patches for file in one.files}
    for kept in (where / "originals").iterdir():
        if kept.name not in needed:
            os.unlink(kept)


def _remove_empty(site: Path, folder: Path) -> None:
    """Take away a folder whose last file went, as pip does when it uninstalls."""
    with suppress(OSError):
        os.rmdir(folder / "__pycache__")
    while folder != site:
        try:
            os.rmdir(folder)
        except OSError:
            return
        folder = folder.parent


def _step(write: Write) -> Step:
    return Step(write.path, sha256(write.before), sha256(write.content), waiting(write.path))


def waiting(path: str) -> str:
    """Where the new content of a file waits: the same each time, so that what a killed run left is overwritten and never forgotten."""
    folder, _slash, name = path.rpartition("/")
    return f"{folder}/.{name}.slipway" if folder else f".{name}.slipway"


def _missing_folders(site: Path, writes: t.Sequence[Write]) -> list[str]:
    """The folders that have to be made, each after the one that it lies in."""
    missing: dict[str, None] = {}
    for write in writes:
        parts = write.path.split("/")[:-1]
        for depth in range(1, len(parts) + 1):
            folder = "/".join(parts[:depth])
            if write.content is not None and not (site / folder).is_dir():
                missing[folder] = None
    return list(missing)


def _keep_all(where: Path, contents: t.Iterable[bytes]) -> None:
    """Keep contents, each under its sha256."""
    for content in contents:
        digest = sha256(content)
        if record.original(where, digest) is not None:
            continue
        target = where / "originals" / digest
        part = target.with_name(f"{digest}.part")
        with suppress(FileNotFoundError):
            os.unlink(part)
        _write(part, content, None)
        os.replace(part, target)
    _sync(where / "originals")


def _write(path: Path, content: bytes, like: Write | None) -> None:
    """Write a new file with mode and owner, and sync it."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(handle, view) :]
        facts = os.fstat(handle)
        if like and (facts.st_uid, facts.st_gid) != (like.uid, like.gid):
            os.fchown(handle, like.uid, like.gid)
        os.fchmod(handle, like.mode if like else 0o644)
        os.fsync(handle)
    except BaseException:
        with suppress(OSError):
            os.unlink(path)
        raise
    finally:
        os.close(handle)


def _replace(path: Path, content: str) -> None:
    files.replace(path, content)
    _sync(path.parent)


def _sync_folders(site: Path, steps: t.Sequence[Step]) -> None:
    for folder in dict.fromkeys((site / step.path).parent for step in steps):
        if folder.is_dir():
            _sync(folder)


def _sync(folder: Path) -> None:
    """Let a rename in a folder outlive a loss of power."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
