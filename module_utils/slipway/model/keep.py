# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps a model's folder whole: what its source has is compared with what is there, and only what is missing or damaged is fetched."""

from __future__ import annotations

import fcntl
import os
import time
import typing as t
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from ..errors import SlipwayError
from ..findings import Finding, finding
from . import fetch, folder, store, weights
from .hub import COMMIT, Hub
from .published import File, Listing, choose
from .store import Known, Place, Record, Wanted


@dataclass
class Survey:
    """What there is of a revision, and what separates the folder from it.

    ``target`` is where it is made whole: the folder that is served, or the one beside it. ``faults`` are words by path, for files that
    are to be fetched; ``links`` are files of the served revision that it has too.
    """

    listing: Listing
    target: Path
    record: Record | None
    faults: dict[str, str] = field(default_factory=dict)
    links: list[str] = field(default_factory=list)
    known: dict[str, Known] = field(default_factory=dict)

    @property
    def whole(self) -> bool:
        """Whether the folder that is served is this revision, and nothing is missing."""
        return not self.faults and self.record is not None and self.record.listing.commit == self.listing.commit

    def recorded(self, wanted: Wanted) -> Record:
        """What the record should say."""
        return Record(wanted, self.listing, self.known, self.record.when if self.record else "")

    @property
    def todo(self) -> list[File]:
        """Files that have yet to come."""
        return [file for file in self.listing.files if file.path in self.faults and file.path not in self.links]


@dataclass(frozen=True)
class Source:
    """Where a model comes from: ``hub``, or a folder of this machine, which may have been put beside the store for this alone."""

    wanted: Wanted
    hub: Hub | None = None
    folder: Path | None = None
    beside: bool = False

    def listing(self, record: Record | None) -> Listing:
        """The files that there are to be. A hub is asked only where the record does not say. Raises ``SlipwayError``, ``OSError``."""
        agrees = record is not None and record.wanted == self.wanted
        if self.hub is not None:
            if record is not None and agrees:
                return record.listing  # also of a branch: it was resolved once
            found = self.hub.list(self.wanted.revision)
        elif record is not None and agrees and self.folder is not None and not self.folder.is_dir():
            return record.listing  # it was copied, and need not stay
        else:
            found = folder.listing(t.cast("Path", self.folder), hashed=self.beside)
        return Listing(found.commit, choose(found.files, self.wanted.include, self.wanted.exclude))

    def files(self, place: Place, survey: Survey, python: str, parallel: int, deadline: float) -> t.Iterator[File]:
        """What has yet to come, each file when all of it is in its part."""
        if self.hub is not None:
            return fetch.from_hub(place, survey.todo, self.hub, survey.listing.commit, python, parallel, deadline)
        if self.beside:
            return fetch.from_beside(place, survey.todo, t.cast("Path", self.folder))
        return fetch.from_folder(place, survey.todo, t.cast("Path", self.folder), deadline)


@contextmanager
def alone(place: Place) -> t.Iterator[None]:
    """Wait until nobody else changes this model's folder: several guests share it."""
    place.work.mkdir(parents=True, exist_ok=True)
    with place.lock.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def look(place: Place, source: Source, how: str = "known") -> Survey:
    """Compare the folder with its source; ``how`` as for ``store.fault``. Raises ``SlipwayError``, ``OSError``."""
    record = store.read_record(place.record)
    listing = source.listing(record)
    ours = record is not None and record.listing.commit == listing.commit
    foreign = record is None and place.folder.is_dir() and any(place.folder.iterdir())
    survey = Survey(listing, place.folder if ours or foreign else place.aside(listing.commit), record)
    memory = store.read_memory(place.memory)
    before = record if ours else store.read_record(survey.target / store.RECORD)
    for file in listing.files:
        known = memory.get(f"{listing.commit}/{file.path}") or (before.known.get(file.path) if before else None)
        words, found = store.fault(survey.target / file.path, file, known, how)
        if words:
            survey.faults[file.path] = words
        elif found:
            survey.known[file.path] = found
    if foreign:
        _refuse_foreign(place, survey)
    if survey.target != place.folder and os.path.ismount(place.folder):
        raise SlipwayError("it is a file system of its own, and a whole model comes to its place by a rename")
    if record is not None and not ours:
        survey.links = [file.path for file in listing.files if file.path in survey.faults and _has(place, record, file)]
    return survey


def _refuse_foreign(place: Place, survey: Survey) -> None:
    other = [f"{path}: {words}" for path, words in survey.faults.items() if words != store.MISSING]
    if other:
        cause = f"{other[0]}" + (f"; and {len(other) - 1} more" if len(other) > 1 else "")
        raise SlipwayError(cause, [finding("MODEL_STORE_FOREIGN", str(place.folder), cause)])


def _has(place: Place, record: Record, file: File) -> bool:
    """Whether the served revision has this very file, whole."""
    known = record.known.get(file.path)
    same = known is not None and (known.digest == file.digest if file.digest else file in record.listing.files)
    return bool(same and known and not store.fault(place.folder / file.path, file, known)[0])


def foresee(place: Place, source: Source, survey: Survey) -> None:
    """Stop at what would fail, before the first byte. Raises ``SlipwayError``, ``OSError``."""
    if survey.todo and source.hub is not None:
        # The largest: of a gated repository some small ones are for everybody.
        source.hub.may_fetch(survey.listing.commit, max(survey.todo, key=lambda file: file.size).path)
    elif survey.todo and source.folder is not None:
        folder.check(source.folder)
        _sound(source.folder)
    if not source.beside:
        fetch.room(place, survey.todo)


def _sound(where: Path) -> list[Finding]:
    """What the headers of the weights and their index say, short of a fault. Raises ``SlipwayError``, ``OSError``."""
    _headers, findings = weights.look(where)
    unsound = [found for found in findings if found.severity == "fail"]
    if unsound:
        raise SlipwayError(f"{unsound[0].subject}: {unsound[0].detail}", unsound)
    return findings


def complete(place: Place, source: Source, survey: Survey, python: str, parallel: int, deadline: float) -> bool:
    """Bring what is missing, until the deadline; whether all of it is there. Raises ``SlipwayError``, ``OSError``."""
    place.part(survey.listing.files[0]).parent.mkdir(exist_ok=True)
    store.write_memory(place.memory, _memory(survey))
    for path in survey.links:
        target = _parent_made(survey.target, path)
        target.unlink(missing_ok=True)
        os.link(place.folder / path, target)
        survey.known[path] = t.cast("Record", survey.record).known[path]
        del survey.faults[path]
    survey.links = []
    for file in survey.todo:
        part = place.part(file)
        if part.exists() and part.stat().st_size > file.size:
            part.unlink()
    if survey.todo:
        for file in source.files(place, survey, python, parallel, deadline):
            survey.known[file.path] = _settle(place, survey, file)
            del survey.faults[file.path]
            store.write_memory(place.memory, _memory(survey))
    return not survey.faults


def _memory(survey: Survey) -> dict[str, Known]:
    """What a run that goes on with this knows: also that a file is damaged, whatever the record says of its size and time."""
    table = {**survey.known, **dict.fromkeys(survey.faults, Known(0, 0, ""))}
    return {f"{survey.listing.commit}/{path}": known for path, known in table.items()}


def _settle(place: Place, survey: Survey, file: File) -> Known:
    """Put a file that has come into its place, if it is what its source says."""
    part = place.part(file)
    words, known = store.fault(part, file, None)
    if words or known is None:
        part.unlink()
        cause = f"{file.path}: what came is not what the hub tells: {words}; it was thrown away"
        raise SlipwayError(cause, [finding("MODEL_FILE_DAMAGED", file.path, cause)])
    part.chmod(0o444)
    os.replace(part, _parent_made(survey.target, file.path))
    return known


def _parent_made(target: Path, path: str) -> Path:
    """Where a file goes, with the folders above it, which everybody may read."""
    for above in reversed(Path(path).parents):
        made = target / above
        made.mkdir(parents=True, exist_ok=True)
        made.chmod(0o755)
    return target / path


def finish(place: Place, source: Source, survey: Survey) -> list[Finding]:
    """Look whether the files are sound together, record them, and bring the folder to its place. Raises ``SlipwayError``, ``OSError``."""
    findings = _sound(survey.target)
    if survey.target == place.folder and survey.record == survey.recorded(source.wanted):
        _tidy(place)
        return findings  # writing the same again would look like a new model to who watches the folder
    when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    store.write_record(survey.target / store.RECORD, replace(survey.recorded(source.wanted), when=when))
    if survey.target != place.folder:
        if survey.record is not None:
            os.rename(place.folder, place.aside(survey.record.listing.commit))
        os.rename(survey.target, place.folder)
    _tidy(place)
    return findings


def _tidy(place: Place) -> None:
    """Take away what was needed on the way."""
    parts = place.work / "parts"
    for path in [*parts.glob("*"), place.memory, place.work / "request.json"]:
        path.unlink(missing_ok=True)
    if parts.is_dir():
        parts.rmdir()


def strangers(survey: Survey) -> list[Finding]:
    """Files of the folder that its source does not have. Raises ``OSError``."""
    ours = {file.path for file in survey.listing.files} | {store.RECORD}
    there = [path for path in survey.target.rglob("*") if path.is_file() and folder.CACHE not in path.parts]
    names = sorted({str(path.relative_to(survey.target)) for path in there} - ours)
    return [finding("MODEL_FILE_UNKNOWN", str(survey.target), ", ".join(names[:5]))] if names else []


def kept(place: Place, commit: str) -> list[Finding]:
    """What lies beside the served revision and takes room. Raises ``OSError``."""
    findings = []
    for path in sorted(place.work.glob("*")):
        if COMMIT.fullmatch(path.name) and path.name != commit:
            size = sum(one.stat().st_size for one in path.rglob("*") if one.is_file() and one.stat().st_nlink == 1)
            whole = "of before" if (path / store.RECORD).exists() else "not fetched to its end"
            cause = f"{path} ({whole}) takes {fetch.size_words(size)}: rm -r {path}"
            findings.append(finding("MODEL_REVISION_KEPT", str(place.folder), cause))
    return findings
