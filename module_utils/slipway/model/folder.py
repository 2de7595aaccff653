# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of this machine as a source of a model's files. Reads only."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

from ..errors import SlipwayError
from ..findings import finding
from . import digest
from .published import File, Listing, commit_of
from .store import RECORD

# What huggingface_hub keeps beside the files that it downloads to a folder.
CACHE = ".cache"


def check(folder: Path) -> None:
    """Raise ``SlipwayError`` with a finding where there is no such folder."""
    if not folder.is_dir():
        cause = f"{folder}, where its files are to come from, is {'no folder' if folder.exists() else 'not there'}"
        raise SlipwayError(cause, [finding("MODEL_SOURCE_MISSING", str(folder), cause)])


def listing(folder: Path, hashed: bool = False) -> Listing:
    """Its files, with what their sizes and times come to in the place of a commit; or their hashes. Raises as ``check``, and ``OSError``."""
    check(folder)
    files = []
    for above, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name not in (CACHE, ".git")]
        for name in names:
            path = Path(above) / name
            stat = path.stat()
            if name != RECORD:
                told: dict[str, t.Any] = {"digest": digest.of(path)} if hashed else {"mtime_ns": stat.st_mtime_ns}
                files.append(File(str(path.relative_to(folder)), stat.st_size, **told))
    return Listing(commit_of(files), tuple(files))
