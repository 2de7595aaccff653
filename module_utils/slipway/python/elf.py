# SPDX-License-Identifier: GPL-3.0-or-later
"""What a library of machine code asks of others and offers them: its ELF file (System V gABI, "Object Files"). Reads, never loads."""

from __future__ import annotations

import os
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
    head = _read(file, 0, 64)
    if not head.startswith(MAGIC):
        return []
    offset = struct.unpack_from("<Q", head, 40)[0]
    size, count, names = struct.unpack_from("<HHH", head, 58)
    if size != SECTION.size or names >= count:
        return []
    rows = list(SECTION.iter_unpack(_read(file, offset, size * count)))
    texts = _read(file, rows[names][4], rows[names][5]) if rows else b""
    return [Section(_text(texts, row[0]).decode("ascii", "replace"), row[1], row[4], row[5], row[6]) for row in rows]


def symbols(path: str) -> Symbols:
    """The dynamic symbols of a file; none for what is no ELF file or is torn. Raises ``OSError``."""
    with open(path, "rb") as file:
        found = sections(file)
        table = next((one for one in found if one.kind == DYNSYM), None)
        if table is None or table.link >= len(found):
            return Symbols(frozenset(), frozenset())
        entries = _read(file, table.offset, table.size - table.size % SYMBOL.size)
        texts = _read(file, found[table.link].offset, found[table.link].size)
    needed, offered = set(), set()
    for name, info, _other, section, _value, _size in SYMBOL.iter_unpack(entries):
        if section != UNDEFINED:
            if info >> 4 != LOCAL:
                offered.add(_text(texts, name))
        elif info >> 4 == GLOBAL:
            needed.add(_text(texts, name))
    return Symbols(frozenset(needed), frozenset(offered))


def _read(file: t.BinaryIO, offset: int, size: int) -> bytes:
    """A part of the file; empty where the file does not have all of it, whatever its headers say."""
    if offset + size > os.fstat(file.fileno()).st_size:
        return b""
    file.seek(offset)
    return file.read(size)


def _text(texts: bytes, start: int) -> bytes:
    return texts[start : texts.find(b"\0", start)]
