# SPDX-License-Identifier: GPL-3.0-or-later
"""What was found in an environment, and what is to be done about it, as data. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from .record import Record

if t.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ..findings import Finding
    from .tree import Held


@dataclass(frozen=True)
class Situation:
    """What was found. ``held`` has every path that a declared or recorded patch touches.

    ``versions`` has the version of each installed package, ``ambiguous`` those that are there in several; ``owned`` the paths that
    installed packages say are theirs; ``original`` the content that a patch replaced, by its sha256.
    """

    record: Record
    held: Mapping[str, Held]
    versions: Mapping[str, str]
    ambiguous: frozenset[str]
    owned: frozenset[str]
    original: Callable[[str], bytes | None]


@dataclass
class Brought:
    """What wheels bring: all paths, the contents of those that differ from what is there, and which of these are programs."""

    paths: set[str] = field(default_factory=set)
    differing: dict[str, bytes] = field(default_factory=dict)
    programs: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class PatchState:
    """A patch, the state that it was found in, and the one that the plan brings it to."""

    id: str
    package: str
    version: str
    before: str
    state: str
    files: tuple[str, ...]


@dataclass
class Plan:
    """What is to be done. ``result`` has the new content of each file that changes; ``None`` takes it away."""

    patches: list[PatchState] = field(default_factory=list)
    result: dict[str, bytes | None] = field(default_factory=dict)
    record: Record = field(default_factory=Record)
    findings: list[Finding] = field(default_factory=list)
    # By the new name of a file the one that it had, and which new files are programs.
    origins: dict[str, str] = field(default_factory=dict)
    executables: set[str] = field(default_factory=set)
    # By path the patches that were applied to it or taken back.
    ids: dict[str, list[str]] = field(default_factory=dict)
    # Contents that the record needs so that its patches can be taken back.
    originals: list[bytes] = field(default_factory=list)
