# SPDX-License-Identifier: GPL-3.0-or-later
"""A model's folder in the store: what is there, what is whole, and the record of it.

Servers see ``<store>/<path>``. What is not whole yet, and a revision that was served before, lie in ``<store>/.slipway/<path>/<commit>``, on
the same file system, so that a folder comes to its place by one rename. The record is a file of the folder and goes with it.
"""

from __future__ import annotations

import json
import os
import typing as t
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path

from .. import files
from . import digest
from .published import File, Listing

RECORD = ".slipway.json"
WORK = ".slipway"
MISSING = "it is not there"


@dataclass(frozen=True)
class Wanted:
    """What the record must agree with, so that it says which files there are to be without asking anybody."""

    kind: str
    repository: str
    revision: str
    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()


@dataclass(frozen=True)
class Known:
    """A file that was hashed once: as long as its size and its time are these, it has this digest."""

    size: int
    mtime_ns: int
    digest: str


@dataclass(frozen=True)
class Record:
    """What a folder holds, and since when (UTC, ISO 8601)."""

    wanted: Wanted
    listing: Listing
    known: dict[str, Known] = field(default_factory=dict)
    when: str = ""


@dataclass(frozen=True)
class Place:
    """A model's folder, and the one beside it where it is made."""

    folder: Path

    @property
    def record(self) -> Path:
        """The record of what is served."""
        return self.folder / RECORD

    @property
    def work(self) -> Path:
        """Where it is made, and where revisions of before lie."""
        return self.folder.parent / WORK / self.folder.name

    def aside(self, commit: str) -> Path:
        """The folder of a revision that is not the one that is served."""
        return self.work / commit

    def part(self, file: File) -> Path:
        """What has come of a file so far."""
        return self.work / "parts" / file.key

    @property
    def memory(self) -> Path:
        """What was hashed before all of it was there."""
        return self.work / "hashed.json"

    @property
    def lock(self) -> Path:
        """Held by whoever changes something here."""
        return self.work / "lock"


def read_record(path: Path) -> Record | None:
    """A record; ``None`` where there is none that can be read: then more is looked at, never less."""
    with suppress(OSError, ValueError, KeyError, TypeError):
        content = json.loads(files.read(path))
        listing = Listing(content["commit"], tuple(File(**entry) for entry in content["files"]))
        wanted = content["wanted"]
        lists = {name: tuple(wanted[name]) for name in ("include", "exclude")}
        return Record(Wanted(**{**wanted, **lists}), listing, _known(content["known"]), content["when"])
    return None


def write_record(path: Path, record: Record) -> None:
    """Keep a record. Raises ``OSError``."""
    content = {
        "wanted": asdict(record.wanted),
        "commit": record.listing.commit,
        "when": record.when,
        "files": [asdict(file) for file in record.listing.files],
        "known": {name: asdict(known) for name, known in record.known.items()},
    }
    files.replace(path, json.dumps(content, indent=1) + "\n", 0o444)


def read_memory(path: Path) -> dict[str, Known]:
    """What an earlier run hashed, by the path of the file on this machine; empty where nothing can be read."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        return _known(json.loads(files.read(path)))
    return {}


def write_memory(path: Path, known: t.Mapping[str, Known]) -> None:
    """Keep that. Raises ``OSError``."""
    files.replace(path, json.dumps({name: asdict(one) for name, one in known.items()}) + "\n", 0o600)


def _known(table: dict[str, dict[str, t.Any]]) -> dict[str, Known]:
    return {name: Known(**entry) for name, entry in table.items()}


def fault(path: Path, file: File, known: Known | None, how: str = "known") -> tuple[str, Known | None]:
    """What is wrong with a file in words, empty where nothing is; and what is known of it now. Raises ``OSError``.

    ``how``: ``known`` hashes it where it is not known in its size and time, ``all`` in any case, ``size`` never.
    """
    try:
        stat = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        return MISSING, None
    if stat.st_size != file.size:
        return f"it has {stat.st_size} bytes, and {file.size} are right", None
    same = known is not None and (known.size, known.mtime_ns) == (stat.st_size, stat.st_mtime_ns)
    # Of a source without digests the first copy is what later looks are held against.
    meant = file.digest or (known.digest if known else "")
    if how == "size" or (same and known and known.digest == meant and how != "all"):
        return "", known
    found = digest.of(path, meant or "sha256:")
    if meant and found != meant:
        return f"its {digest.words(found)} is not {digest.words(meant).split()[-1]}, which is right", None
    return "", Known(stat.st_size, stat.st_mtime_ns, found)
