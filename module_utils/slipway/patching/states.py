# SPDX-License-Identifier: GPL-3.0-or-later
"""What state patches are in, by hash alone. Pure.

Patches that touch one file lie on each other: what the lower one leaves is what the upper one was made from. So a file's hash says of
each of them whether it is in there.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .manifest import Patch
    from .record import Applied

PRISTINE, APPLIED, UPSTREAM, EQUIVALENT, FOREIGN, MIXED = (
    "pristine",
    "applied",
    "upstream",
    "equivalent",
    "foreign",
    "mixed",
)


@dataclass(frozen=True)
class Side:
    """What a patch knows of one file: its hashes before and after, and those of contents that have the change in another way."""

    before: str
    after: str
    upstream: tuple[str, ...] = ()
    equivalents: tuple[str, ...] = ()

    def state(self, found: str) -> str:
        """The state of the file for this patch, seen for itself."""
        for state, hashes in (
            (PRISTINE, (self.before,)),
            (APPLIED, (self.after,)),
            (UPSTREAM, self.upstream),
            (EQUIVALENT, self.equivalents),
        ):
            if found in hashes:
                return state
        return FOREIGN


@dataclass(frozen=True)
class Layer:
    """A patch among others: declared, or known from the record."""

    id: str
    sides: Mapping[str, Side]


def declared(patch: Patch) -> Layer:
    """The layer of a declared patch."""
    return Layer(
        patch.id,
        {one.path: Side(one.before, one.after, one.upstream, tuple(one.equivalents)) for one in patch.files},
    )


def recorded(patch: Applied) -> Layer:
    """The layer of a patch in the record."""
    return Layer(patch.id, {one.path: Side(one.before, one.after) for one in patch.files})


def of_files(layers: Sequence[Layer], found: Mapping[str, str]) -> list[dict[str, str]]:
    """For each layer the state of each of its files. ``layers`` from the bottom up; ``found`` has the hash by path."""
    states: list[dict[str, str]] = [{} for _ in layers]
    for path in {path for layer in layers for path in layer.sides}:
        involved = [number for number, layer in enumerate(layers) if path in layer.sides]
        sides = [layers[number].sides[path] for number in involved]
        for number, state in zip(involved, _of_file(sides, found[path])):
            states[number][path] = state
    return states


def _of_file(sides: Sequence[Side], found: str) -> list[str]:
    """The state of one file for each of the patches on it, from the bottom up."""
    own = [side.state(found) for side in sides]
    # Up to here they are in the file: the topmost whose result it is, or all below the one that was made from it.
    position = next((n + 1 for n in range(len(sides) - 1, -1, -1) if own[n] == APPLIED), None)
    if position is None:
        position = next((n for n in range(len(sides)) if own[n] == PRISTINE), None)
    if position is None:
        return own
    states = list(own)
    for below in range(position - 2, -1, -1):
        if sides[below].after != sides[below + 1].before:
            break
        states[below] = APPLIED
    if position and position < len(sides) and sides[position - 1].after == sides[position].before:
        states[position - 1] = APPLIED
    for above in range(max(position, 1), len(sides)):
        if sides[above].before != sides[above - 1].after:
            break
        states[above] = PRISTINE
    return states


def of_patch(files: Mapping[str, str]) -> str:
    """The state of a patch from those of its files."""
    found = set(files.values())
    if FOREIGN in found:
        return FOREIGN
    if len(found) == 1:
        return found.pop()
    if PRISTINE in found:
        return MIXED
    return EQUIVALENT if EQUIVALENT in found else UPSTREAM
