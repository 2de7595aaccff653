# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of files in the two forms that a hub gives: sha256 of the content, and the name that git has for it. Reads only."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

CHUNK_BYTES = 4 * 2**20
PREFIXES = ("sha256:", "blob:")


def of(path: Path, like: str = "sha256:") -> str:
    """The digest of a file in the form of ``like``. Raises ``OSError``, and ``ValueError`` for a form that there is not."""
    kind = like.partition(":")[0]
    with path.open("rb") as file:
        if kind == "sha256":
            value = hashlib.sha256()
        elif kind == "blob":
            # Git's own hash; that nobody forged a file is not what it is compared for.
            value = hashlib.sha1(f"blob {os.fstat(file.fileno()).st_size}\0".encode(), usedforsecurity=False)
        else:
            raise ValueError(f"'{like}' is no digest of a known form")
        while chunk := file.read(CHUNK_BYTES):
            value.update(chunk)
    return f"{kind}:{value.hexdigest()}"


def words(digest: str) -> str:
    """As a person calls it: ``sha256 ...`` or ``git hash ...``."""
    kind, _colon, value = digest.partition(":")
    return f"{'git hash' if kind == 'blob' else kind} {value}"
