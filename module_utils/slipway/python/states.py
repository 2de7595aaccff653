# SPDX-License-Identifier: GPL-3.0-or-later
"""What state a file of an environment is in, by what is known of it. Pure."""

from __future__ import annotations

import dataclasses
import typing as t
from dataclasses import dataclass

from .record import Entry

PRISTINE, PATCHED, MODIFIED, MISSING, EXTRA, UNHASHED = STATES = (
    "pristine",
    "patched",
    "modified",
    "missing",
    "extra",
    "unhashed",
)
# Of a file that is there and was not hashed at the depth that was asked for.
UNREAD = "unread"
ABSENT = "absent"
SOURCES = (".py", ".pyw", ".pyx", ".pxd", ".pxi", ".pth", ".egg-link", ".sh", ".jinja", ".jinja2")
# Compiled on the machine that serves: kernels that are made when they are first needed.
COMPILED_HERE = (".c", ".cc", ".cpp", ".cu", ".cuh", ".h", ".hpp", ".inl", ".ptx", ".cl", ".s")
# RECORD cannot have its own hash, and its signatures come after it (packaging.python.org, "Recording installed projects").
UNHASHABLE = (".dist-info/RECORD", ".dist-info/RECORD.jws", ".dist-info/RECORD.p7s")
CODE = (*SOURCES, *COMPILED_HERE)
LEFTOVERS = (".orig", ".rej", ".bak", ".swp", ".swo", ".old", "~")


# What patches make of one path: their ids by the sha256 that it then has, ``absent`` where it is gone.
Patches = t.Mapping[str, "tuple[str, ...]"]


@dataclass(frozen=True)
class File:
    """A file that is told of: its path as it is shown, its package (empty: nobody's), its state, and by whose patches."""

    path: str
    package: str
    state: str
    patches: tuple[str, ...] = ()
    sha256: str = ""
    expected_sha256: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {**dataclasses.asdict(self), "patches": list(self.patches)}


def of_recorded(
    owners: t.Sequence[tuple[int, Entry]], there: bool, digests: t.Mapping[str, str] | None, patches: Patches
) -> str:
    """The state of a file that a RECORD names.

    ``digests`` are its own, by algorithm; ``None`` where it was not hashed. One with several owners is good if it matches any:
    nvidia/__init__.py has eleven, and two packages of one stack were seen to bring a different build_backend.py.
    """
    if not there:
        return PATCHED if ABSENT in patches else MISSING
    if digests is None:
        return UNREAD
    for _number, entry in owners:
        if entry.digest and digests.get(entry.algorithm) == entry.digest:
            return PRISTINE
    if digests.get("sha256") in patches:
        return PATCHED
    return MODIFIED if any(entry.digest for _number, entry in owners) else UNHASHED


def is_code(path: str) -> bool:
    """Whether a file says what is run, by its name: Python, and sources that are compiled on this machine."""
    return path.endswith(CODE)


def is_run(path: str) -> bool:
    """Whether a file takes part by lying there: code, a library of machine code, bytecode in the place of a source."""
    return is_code(path) or path.endswith((".so", ".pyc")) or ".so." in path.rpartition("/")[2]


def is_bytecode(path: str) -> bool:
    """Whether a file is what Python made of a source; it is judged against that source, not against RECORD."""
    return path.endswith(".pyc") and "__pycache__/" in path


def is_no_file_of_its_own(path: str) -> bool:
    """Whether a file is judged otherwise: bytecode against its source, RECORD by what it says."""
    return is_bytecode(path) or path.endswith(UNHASHABLE)


def is_leftover(path: str) -> bool:
    """Whether a file is what editors, patch and pip leave lying."""
    name = path.rpartition("/")[2]
    return name.endswith(LEFTOVERS) or name.startswith((".#", ".nfs")) or "/~" in path


def differs_in_size(owners: t.Sequence[tuple[int, Entry]], size: int) -> bool:
    """Whether a file cannot be what any of its owners brought."""
    return all(entry.size not in (None, size) for _number, entry in owners)
