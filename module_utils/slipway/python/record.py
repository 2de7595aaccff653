# SPDX-License-Identifier: GPL-3.0-or-later
"""RECORD: what an installer says that it put into an environment (packaging.python.org, "Recording installed projects"). Pure: text in, entries out."""

from __future__ import annotations

import base64
import binascii
import csv
import dataclasses
import hashlib
import io

# Those of a length of their own.
CHECKED = frozenset(name for name in hashlib.algorithms_guaranteed if not name.startswith("shake_"))


@dataclasses.dataclass(frozen=True)
class Entry:
    """One file. ``path`` is relative to site-packages (or absolute, or climbs out of it), as it stands there.

    ``digest`` is in hex, as ``sha256sum`` prints it, and ``algorithm`` has the name that ``hashlib`` knows; both are empty where
    the installer wrote no hash, or one that nobody can check. ``size`` is in bytes, ``None`` where it is not told.
    """

    path: str
    algorithm: str
    digest: str
    size: int | None


def parse(text: str) -> list[Entry]:
    """The entries of a RECORD, in its order. A line without a path is left out. Raises ``ValueError`` where it is no such table."""
    if "\0" in text:  # what a file system may leave of a file that was not synced when the power went
        raise ValueError("it is no table of files: it has zero bytes in it")
    try:
        return [_entry([*row, "", ""]) for row in csv.reader(io.StringIO(text, newline="")) if row and row[0]]
    except csv.Error as error:
        raise ValueError(f"it is no table of files: {error}") from None


def _entry(row: list[str]) -> Entry:
    algorithm, _equals, encoded = row[1].partition("=")
    digest = _hex(encoded) if algorithm in CHECKED else ""
    size = int(row[2]) if row[2].isascii() and row[2].isdigit() else None
    return Entry(row[0], algorithm if digest else "", digest, size)


def _hex(encoded: str) -> str:
    """The digest in hex; RECORD has it in base64 for addresses, without the padding. Empty where it is none."""
    try:
        return base64.b64decode(encoded + "=" * (-len(encoded) % 4), altchars=b"-_", validate=True).hex()
    except (binascii.Error, ValueError):
        return ""
