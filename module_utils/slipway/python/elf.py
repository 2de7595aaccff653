# SPDX-License-Identifier: GPL-3.0-or-later
"""What a library of machine code asks of others and offers them: its ELF file (System V gABI, "Object Files"). Reads, never loads."""

from __future__ import annotations

import struct
import typing as t
from dataclasses import dataclass

# 64 bits, little-endian: what GPUs have drivers for on x86_64 and aarch64.
MAGIC = b"\x7fELF\x02\x01"
SECTION = struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
DYNSYM = 11
UNDEFINED = 0
LOCAL, GLOBAL = 0, 1


@dataclass(frozen=True)
class Section:
    """A part of the file: name, type, offset and size in bytes, and the number of the section that it refers to."""

    name: str
    kind: int
    offset: int
    size: int
    link: int


@dataclass(frozen=True)
class Symbols:
    """Mangled names for the dynamic linker: those that must come from elsewhere, and those that are here.

    A weak name that is not found is no fault, so that weak ones are never ``needed``.
    """

    needed: frozenset[bytes]
    offered: frozenset[bytes]


def sections(file: t.BinaryIO) -> list[Section]:
    """The sections of an ELF file; empty for any other file, and for one that is torn. Raises ``OSError``."""
    file.seek(0)
    head = file.read(64)
    if len(head) < 64 or not head.startswith(MAGIC):
        return []
    offset = struct.unpack_from("<Q", head, 40)[0]
    size, count, names = struct.unpack_from("<HHH", head, 58)
    file.seek(offset)
    table = file.read(size * count)
    if size != SECTION.size or len(table) < size * count or names >= count:
        return []
    rows = list(SECTION.iter_unpack(table))
    file.seek(rows[names][4])
    texts = file.read(rows[names][5])
    return [Section(_text(texts, row[0]).decode("ascii", "replace"), row[1], row[4], row[5], row[6]) for row in rows]


def symbols(path: str) -> Symbols:
    """The dynamic symbols of a file; none for what is no ELF file or is torn. Raises ``OSError``."""
    with open(path, "rb") as file:
        found = sections(file)
        table = next((one for one in found if one.kind == DYNSYM), None)
        if table is None or table.link >= len(found):
            return Symbols(frozenset(), frozenset())
        file.seek(table.offset)
        entries = file.read(table.size - table.size % SYMBOL.size)
        file.seek(found[table.link].offset)
        texts = file.read(found[table.link].size)
    if len(entries) % SYMBOL.size:
        return Symbols(frozenset(), frozenset())
    needed, offered = set(), set()
    for name, info, _other, section, _value, _size in SYMBOL.iter_unpack(entries):
        if section != UNDEFINED:
            if info >> 4 != LOCAL:
                offered.add(_text(texts, name))
        elif info >> 4 == GLOBAL:
            needed.add(_text(texts, name))
    return Symbols(frozenset(needed), frozenset(offered))


def _text(texts: bytes, start: int) -> bytes:
    return texts[start : texts.find(b"\0", start)]
