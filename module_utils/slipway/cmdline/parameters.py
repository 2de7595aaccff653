# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters of a kernel command line: read as the kernel reads them, and changed without touching the others. Pure.

The kernel's rules (Documentation/admin-guide/kernel-parameters.rst, lib/cmdline.c): words are parted by blanks, double quotes
keep blanks together, ``-`` and ``_`` in a name are the same, and what follows ``--`` is for init.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

_WORD = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_END = "--"
# The shell that reads /etc/default/grub, GRUB's own language and the boot loader specification each read some of these as
# something else; no parameter of the kernel needs them.
_UNSAFE = re.compile(r"[^ -~]|[$`\\';&|<>]")
# A boot loader adds these by itself.
_LOADERS_OWN = ("BOOT_IMAGE", "initrd")


@dataclass(frozen=True)
class Parameter:
    """One word. ``value`` is without quotes, and ``None`` for a flag without ``=``."""

    text: str
    name: str
    value: str | None

    @property
    def key(self) -> str:
        """The name as the kernel compares it."""
        return self.name.replace("-", "_")

    @property
    def meaning(self) -> tuple[str, str | None]:
        """What two words have in common that mean the same."""
        return self.key, self.value


@dataclass(frozen=True)
class Wanted:
    """What is declared: by key the parameters of that name, all of them and in their order; and what must not be there."""

    present: t.Mapping[str, tuple[Parameter, ...]]
    absent: tuple[Parameter, ...]


def parameter(word: str) -> Parameter:
    """One word of a command line."""
    name, separator, value = word.replace('"', "").partition("=")
    return Parameter(word, name, value if separator else None)


def parse(line: str) -> list[Parameter]:
    """The kernel's parameters of a line, in their order, without what is for init."""
    found = []
    for word in _WORD.findall(line):
        if word == _END:
            break
        found.append(parameter(word))
    return found


def wanted(present: t.Iterable[str], absent: t.Iterable[str]) -> Wanted:
    """Read declared parameters. Raises ValueError for a word that is none, or that is declared both ways."""
    groups: dict[str, tuple[Parameter, ...]] = {}
    for word in present:
        declared = _declared(word)
        groups[declared.key] = (*groups.get(declared.key, ()), declared)
    gone = tuple(_declared(word) for word in absent)
    both = sorted({one.name for one in gone if one.key in groups})
    if both:
        raise ValueError(f"'{both[0]}' is declared as present and as absent")
    return Wanted(groups, gone)


def _declared(word: str) -> Parameter:
    found = parameter(word)
    whole = _WORD.fullmatch(word) and word.count('"') % 2 == 0
    if not whole or not found.name or word == _END or found.name in _LOADERS_OWN:
        raise ValueError(f'{word!r} is not one parameter, such as iommu=pt or dyndbg="file a.c +p"')
    if unsafe := _UNSAFE.search(word):
        raise ValueError(f"{word!r} has the character {unsafe[0]!r}, which boot loaders read as their own")
    return found


def change(lines: t.Sequence[str], declared: Wanted, target: int = 0) -> list[str]:
    """The lines with what is declared. Several lines are one command line, in their order (GRUB's two variables).

    A name that is declared is there as declared: what is there of it is replaced in its place, the rest removed, or added at
    the end of the line with the number ``target`` (before what is for init). Everything else stays, blanks included.
    """
    flat = [found for line in lines for found in _pieces(line)]
    ends = next((at for at, piece in enumerate(flat) if piece.word == _END), len(flat))
    mine, init = flat[:ends], flat[ends:]
    left = {}
    for key, group in declared.present.items():
        there = [piece.parameter for piece in mine if piece.parameter.key == key]
        if [one.meaning for one in there] != [one.meaning for one in group]:
            left[key] = list(group)
    for piece in mine:
        found = piece.parameter
        if found.key in left:
            piece.word = left[found.key].pop(0).text if left[found.key] else ""
        elif _is_absent(found, declared):
            piece.word = ""
    added = [one.text for group in left.values() for one in group]
    return _joined(lines, [*mine, *init], len(mine), added, target)


def differs(line: str, declared: Wanted) -> bool:
    """Whether a line is not as declared."""
    there = parse(line)
    for key, group in declared.present.items():
        if [one.meaning for one in there if one.key == key] != [one.meaning for one in group]:
            return True
    return any(_is_absent(one, declared) for one in there)


def without_the_loaders(line: str) -> str:
    """A running kernel's line without what its boot loader has added."""
    return " ".join(one.text for one in parse(line) if one.name not in _LOADERS_OWN)


def _is_absent(found: Parameter, declared: Wanted) -> bool:
    """A name alone stands for every value that it may have."""
    return any(one.key == found.key and one.value in (None, found.value) for one in declared.absent)


@dataclass
class _Piece:
    """A word with the blanks before it; ``word`` is empty where it is to go."""

    before: str
    word: str

    @property
    def parameter(self) -> Parameter:
        return parameter(self.word)


def _pieces(line: str) -> list[_Piece]:
    pieces, at = [], 0
    for found in _WORD.finditer(line):
        pieces.append(_Piece(line[at : found.start()], found[0]))
        at = found.end()
    return pieces


def _joined(lines: t.Sequence[str], pieces: list[_Piece], inits: int, added: list[str], target: int) -> list[str]:
    """``pieces`` are those of ``lines``; from ``inits`` on they are for init, and what is added comes before these."""
    result = []
    start = 0
    for number, line in enumerate(lines):
        end = start + len(_pieces(line))
        own = pieces[start:end]
        words = [piece.word for piece in own]
        first = own[0].before if own else ""
        if added and (number == target if inits == len(pieces) else start <= inits < end):
            at = min(inits, end) - start
            own = [*own[:at], *(_Piece(" ", word) for word in added), *own[at:]]
        kept = [piece for piece in own if piece.word]
        if [piece.word for piece in kept] == words and words == _WORD.findall(line):
            result.append(line)
        else:
            # The line begins and ends as it did, whatever was taken from its front or put there.
            tail = line[len(line.rstrip()) :] if words else ""
            spaced = [piece.before or " " for piece in kept]
            spaced[:1] = [first] if kept else []
            result.append("".join(blanks + piece.word for blanks, piece in zip(spaced, kept)) + tail)
        start = end
    return result
