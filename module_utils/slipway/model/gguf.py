# SPDX-License-Identifier: GPL-3.0-or-later
"""A GGUF file by its header: architecture, context, tensors, and whether the file is as long as they are. Reads no tensor.

The format is ggml's (github.com/ggml-org/ggml, docs/gguf.md); sizes of types are those of ggml.c and of its gguf-py (constants.py).
"""

from __future__ import annotations

import math
import os
import struct
import typing as t
from dataclasses import dataclass

from ..errors import SlipwayError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
ALIGNMENT = 32
# Values that a header may hold at most: what exceeds them is no header but other bytes.
MOST_ENTRIES = 1_000_000
MOST_TEXT = 64 * 1024 * 1024
SCALARS = {0: "B", 1: "b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "?", 10: "<Q", 11: "<q", 12: "<d"}
TEXT, ARRAY = 8, 9
# Elements and bytes of a block, by the number of the type.
BLOCKS = {
    0: (1, 4),
    1: (1, 2),
    2: (32, 18),
    3: (32, 20),
    6: (32, 22),
    7: (32, 24),
    8: (32, 34),
    9: (32, 40),
    10: (256, 84),
    11: (256, 110),
    12: (256, 144),
    13: (256, 176),
    14: (256, 210),
    15: (256, 292),
    16: (256, 66),
    17: (256, 74),
    18: (256, 98),
    19: (256, 50),
    20: (32, 18),
    21: (256, 110),
    22: (256, 82),
    23: (256, 136),
    24: (1, 1),
    25: (1, 2),
    26: (1, 4),
    27: (1, 8),
    28: (1, 8),
    29: (256, 56),
    30: (1, 2),
    34: (256, 54),
    35: (256, 66),
    39: (32, 17),
}


@dataclass(frozen=True)
class Header:
    """What a GGUF file says of itself. ``values`` are its metadata without arrays, ``arrays`` the length of each of these."""

    version: int
    values: t.Mapping[str, t.Any]
    arrays: t.Mapping[str, int]
    tensors: int
    tensor_bytes: int

    @property
    def architecture(self) -> str:
        return str(self.values.get("general.architecture") or "")

    def number(self, name: str) -> int:
        """A number of this architecture, such as ``context_length``; 0 where it is not told, or is a list of one a layer."""
        value = self.values.get(f"{self.architecture}.{name}")
        return value if isinstance(value, int) and not isinstance(value, bool) else 0


def read_header(path: str | os.PathLike[str]) -> Header:
    """The header of a file that is as long as it says.

    Raises ``SlipwayError`` whose message says what is wrong with the file, as in "it is torn: ...", and ``OSError``.
    """
    with open(path, "rb") as file:
        return _Reader(file, os.fstat(file.fileno()).st_size).header()


class _Reader:
    """A place in a file; every read that runs past its end is a torn file."""

    def __init__(self, file: t.BinaryIO, size: int) -> None:
        self.file = file
        self.size = size

    def header(self) -> Header:
        magic = self.file.read(4)
        if len(magic) < 4 or magic != MAGIC:
            raise SlipwayError("it is no GGUF file: it does not begin with GGUF")
        version = self.scalar("<I")
        if version not in VERSIONS:
            raise SlipwayError(f"it is GGUF of version {version}, and {' and '.join(map(str, VERSIONS))} are known")
        tensors, entries = self.count("tensors"), self.count("entries")
        values: dict[str, t.Any] = {}
        arrays: dict[str, int] = {}
        for _number in range(entries):
            key = self.text()
            kind = self.scalar("<I")
            if kind == ARRAY:
                arrays[key] = self.skip_array()
            else:
                values[key] = self.value(kind)
        ends = [self.tensor() for _number in range(tensors)]
        alignment = values.get("general.alignment", ALIGNMENT)
        if not isinstance(alignment, int) or alignment <= 0:
            raise SlipwayError(f"its header has an alignment of {alignment}")
        begin = -(-self.file.tell() // alignment) * alignment
        end = begin + max(ends, default=0)
        if end > self.size:
            raise SlipwayError(f"it is torn: its tensors end at byte {end}, and it has {self.size}")
        return Header(version, values, arrays, tensors, self.size - begin)

    def tensor(self) -> int:
        """Where a tensor ends, counted from where tensors begin."""
        name = self.text()
        dimensions = [self.scalar("<Q") for _number in range(self.scalar("<I"))]
        kind, offset = self.scalar("<I"), self.scalar("<Q")
        if kind not in BLOCKS:
            return int(
                offset
            )  # a type from after this was written: that it begins within the file is all that can be said
        elements, size = BLOCKS[kind]
        count = math.prod(dimensions)
        if count % elements:
            raise SlipwayError(f"tensor '{name}' has {count} elements, which are no whole blocks of {elements}")
        return int(offset + count // elements * size)

    def scalar(self, form: str) -> t.Any:
        size = struct.calcsize(form)
        data = self.file.read(size)
        if len(data) < size:
            raise SlipwayError(f"it is torn: it ends after {self.size} bytes, within its header")
        return struct.unpack(form, data)[0]

    def count(self, what: str) -> int:
        number = int(self.scalar("<Q"))
        if number > MOST_ENTRIES:
            raise SlipwayError(f"its header would have {number} {what}: it is damaged")
        return number

    def text(self) -> str:
        length = self.scalar("<Q")
        if length > MOST_TEXT:
            raise SlipwayError(f"its header would have a text of {length} bytes: it is damaged")
        data = self.file.read(length)
        if len(data) < length:
            raise SlipwayError(f"it is torn: it ends after {self.size} bytes, within its header")
        return data.decode("utf-8", "replace")

    def value(self, kind: int) -> t.Any:
        if kind == TEXT:
            return self.text()
        if kind not in SCALARS:
            raise SlipwayError(f"its header has a value of type {kind}, which the format does not have")
        return self.scalar(SCALARS[kind])

    def skip_array(self) -> int:
        """Its length; vocabularies are among them, so they are passed over, not kept."""
        kind, length = self.scalar("<I"), int(self.scalar("<Q"))
        if kind in SCALARS:
            self.file.seek(struct.calcsize(SCALARS[kind]) * length, os.SEEK_CUR)
            if self.file.tell() > self.size:
                raise SlipwayError(f"it is torn: it ends after {self.size} bytes, within its header")
        elif kind in (TEXT, ARRAY):
            for _number in range(length):
                self.text() if kind == TEXT else self.skip_array()
        else:
            raise SlipwayError(f"its header has a list of type {kind}, which the format does not have")
        return length
