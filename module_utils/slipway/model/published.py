# SPDX-License-Identifier: GPL-3.0-or-later
"""The files that a model consists of, as their source tells them. Pure."""

from __future__ import annotations

import fnmatch
import hashlib
import typing as t
from dataclasses import dataclass

from ..errors import SlipwayError

# Of a repository they say how git keeps it, and are no part of the model.
LEFT_OUT = (".gitattributes", ".gitignore")


@dataclass(frozen=True)
class File:
    """One file: its path in the repository and its bytes.

    ``digest`` is ``sha256:...`` of its content or ``blob:...`` as git has it (SHA-1 of "blob", its size and its content); empty where
    the source tells none. Then ``mtime_ns`` of the source's file stands for it.
    """

    path: str
    size: int
    digest: str = ""
    mtime_ns: int = 0

    @property
    def key(self) -> str:
        """A name for what has come of it so far: the same content has the same one, whatever revision it is of."""
        told = self.digest or f"{self.path} {self.size} {self.mtime_ns}"
        return hashlib.sha256(told.encode()).hexdigest()[:32]


@dataclass(frozen=True)
class Listing:
    """A revision as its source tells it: the commit that it comes to, and its files by path."""

    commit: str
    files: tuple[File, ...]

    @property
    def size_bytes(self) -> int:
        """All of them together."""
        return sum(file.size for file in self.files)


def choose(files: t.Iterable[File], include: t.Sequence[str], exclude: t.Sequence[str]) -> tuple[File, ...]:
    """Those that match one of ``include`` (all where it is empty) and none of ``exclude``; shell patterns in which * takes in slashes.

    Raises ``SlipwayError`` whose message is the cause where none is left, or one would lie outside of the model's folder.
    """
    chosen = []
    for file in sorted(files, key=lambda one: one.path):
        if file.path.startswith("/") or {"", ".", ".."} & set(file.path.split("/")):
            raise SlipwayError(f"it names a file '{file.path}', which would lie outside of the model's folder")
        wanted = not include or any(fnmatch.fnmatchcase(file.path, pattern) for pattern in include)
        if wanted and not any(fnmatch.fnmatchcase(file.path, pattern) for pattern in (*exclude, *LEFT_OUT)):
            chosen.append(file)
    if not chosen:
        raise SlipwayError("it has no file" + (f" that matches {', '.join(include)}" if include else ""))
    return tuple(chosen)


def commit_of(files: t.Iterable[File]) -> str:
    """What stands for a commit where there is none: it changes when a file's size and digest do, or its time where it has no digest."""
    lines = [
        f"{file.path} {file.size} {file.digest or file.mtime_ns}\n" for file in sorted(files, key=lambda one: one.path)
    ]
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:40]
