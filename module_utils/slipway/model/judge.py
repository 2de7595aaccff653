# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a model's folder is what the profile names, by its record alone: nobody is asked, nothing is changed."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ..findings import Finding, finding
from . import keep, store
from .hub import COMMIT
from .published import File
from .store import Place


def folder(place: Place, repository: str, revision: str, how: str) -> tuple[store.Record | None, list[Finding]]:
    """The record, and what is wrong with the folder of a repository; ``how`` as for ``store.fault``. Raises ``OSError``."""
    record = store.read_record(place.record)
    if record is None:
        if not place.folder.is_dir():
            return None, [finding("MODEL_FILE_MISSING", str(place.folder), "the folder of the model is not there")]
        cause = "no record says what it holds; deploy.yml compares it with its source, and takes it over"
        return None, [finding("MODEL_REVISION_OTHER", str(place.folder), cause)]
    had = record.wanted
    if had.repository != repository or revision not in (had.revision, record.listing.commit):
        cause = f"it holds {had.repository} at {had.revision} ({record.listing.commit}), and the profile names {repository} at {revision}"
        return record, [finding("MODEL_REVISION_OTHER", str(place.folder), cause)]
    findings = _files(place.folder, [(file, record.known.get(file.path)) for file in record.listing.files], how)
    survey = keep.Survey(record.listing, place.folder, record)
    findings += [*keep.strangers(survey), *keep.kept(place, record.listing.commit)]
    if had.kind == "hub" and not COMMIT.fullmatch(revision):
        findings.append(finding("MODEL_REVISION_MOVES", repository, f"'{revision}' came to {record.listing.commit}"))
    return record, findings


def digests(folder: Path, wanted: t.Mapping[str, str]) -> list[Finding]:
    """What is wrong with files whose sha256 is known from elsewhere, by path in the folder. Raises ``OSError``."""
    findings = []
    for path, sha256 in wanted.items():
        there = folder / path
        size = there.stat().st_size if there.is_file() else 0
        findings += _files(folder, [(File(path, size, f"sha256:{sha256}"), None)], "all")
    return findings


def _files(folder: Path, files: t.Iterable[tuple[File, store.Known | None]], how: str) -> list[Finding]:
    findings = []
    for file, known in files:
        words = store.fault(folder / file.path, file, known, how)[0]
        if words:
            fault = "MODEL_FILE_MISSING" if words == store.MISSING else "MODEL_FILE_DAMAGED"
            findings.append(finding(fault, str(folder / file.path), words))
    return findings
