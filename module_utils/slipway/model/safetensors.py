# SPDX-License-Identifier: GPL-3.0-or-later
"""A safetensors file by its header: which tensors it holds, and whether the file is as long as they are. Reads no tensor.

The rules are those of the safetensors crate (``tensor.rs``, ``read_metadata`` and ``Metadata::validate``), by which engines
load the file; that no name stands twice is the format's own rule, which the crate does not look at.
"""

from __future__ import annotations

import json
import math
import os
import struct
import typing as t
from collections import Counter
from dataclasses import dataclass

from ..errors import SlipwayError

LENGTH = struct.Struct("<Q")
MOST_HEADER_BYTES = 100_000_000
METADATA = "__metadata__"
# An element's size in bits. Several of the small ones share a byte.
BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E4M3FNUZ": 8,
    "F8_E5M2FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "C64": 64,
    "F64": 64,
    "I64": 64,
    "U64": 64,
}


@dataclass(frozen=True)
class Tensor:
    """Its type as the format names it, its shape, and where its bytes begin and end after the header."""

    dtype: str
    shape: tuple[int, ...]
    offsets: tuple[int, int]

    @property
    def size_bytes(self) -> int:
        """What it takes in the file."""
        return self.offsets[1] - self.offsets[0]


@dataclass(frozen=True)
class Header:
    """Tensors by name and free text by key; the bytes of the header (without the eight of its length) and of all tensors."""

    tensors: dict[str, Tensor]
    metadata: dict[str, str]
    header_bytes: int
    data_bytes: int


def read_header(path: str | os.PathLike[str]) -> Header:
    """The header of a file that is as long as it says.

    Raises ``SlipwayError`` whose message says what is wrong with the file, as in "it is torn: ...", and ``OSError``.
    """
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        head = file.read(LENGTH.size)
        if len(head) < LENGTH.size:
            raise SlipwayError(f"it is torn: it has {size} bytes, too few to say how long its header is")
        length = LENGTH.unpack(head)[0]
        if length > MOST_HEADER_BYTES:
            # Of a file that is something else these are any eight bytes.
            raise SlipwayError(
                f"it is no safetensors file: its header would have {length} bytes, and {MOST_HEADER_BYTES} are the most"
            )
        text = file.read(length)
    if len(text) < length:
        raise SlipwayError(f"it is torn: it ends after {len(text)} of the {length} bytes of its header")
    return parse(text, size - LENGTH.size - length)


def parse(text: bytes, data_bytes: int) -> Header:
    """The header of a file that has so many bytes after it. Raises ``SlipwayError`` as ``read_header``."""
    entries = _entries(text)
    metadata = entries.pop(METADATA, None) or {}
    if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
        raise SlipwayError(f"its header's {METADATA} is no table of texts")
    tensors = {name: _tensor(name, entry) for name, entry in entries.items()}
    end = _end(tensors)
    if end > data_bytes:
        raise SlipwayError(f"it is torn: its tensors take {end} bytes, and {data_bytes} follow its header")
    if end < data_bytes:
        raise SlipwayError(f"{data_bytes - end} bytes follow the last of its tensors, which belong to none")
    return Header(tensors, metadata, len(text), data_bytes)


def _entries(text: bytes) -> dict[str, t.Any]:
    try:
        entries = json.loads(text.decode(), object_pairs_hook=_unique, parse_constant=_refuse)
    except UnicodeDecodeError:
        raise SlipwayError("its header is no text") from None
    except (ValueError, RecursionError) as error:
        raise SlipwayError(f"its header is no JSON ({error})") from None
    if not isinstance(entries, dict):
        raise SlipwayError("its header is no table of tensors")
    return entries


def _unique(pairs: list[tuple[str, t.Any]]) -> dict[str, t.Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        twice = next(name for name, number in Counter(name for name, _value in pairs).items() if number > 1)
        raise SlipwayError(f"its header has '{twice}' twice")
    return table


def _refuse(name: str) -> t.NoReturn:
    raise ValueError(f"{name} is no number")


def _tensor(name: str, entry: t.Any) -> Tensor:
    if not isinstance(entry, dict):
        raise SlipwayError(f"what its header says of tensor '{name}' is no table")
    dtype, shape, offsets = entry.get("dtype"), _counts(entry.get("shape")), _counts(entry.get("data_offsets"))
    if not isinstance(dtype, str) or dtype not in BITS:
        raise SlipwayError(f"tensor '{name}' is of type '{dtype}', which the format does not have")
    if shape is None or offsets is None or len(offsets) != 2:
        raise SlipwayError(f"its header gives tensor '{name}' no shape and offsets that are whole numbers")
    bits = math.prod(shape) * BITS[dtype]
    if bits % 8:
        raise SlipwayError(f"tensor '{name}' of type {dtype} and shape {shape} ends within a byte")
    if offsets[1] - offsets[0] != bits // 8:
        raise SlipwayError(
            f"tensor '{name}' of type {dtype} and shape {shape} takes {bits // 8} bytes, and its offsets are"
            f" {offsets[0]} and {offsets[1]}"
        )
    return Tensor(dtype, tuple(shape), (offsets[0], offsets[1]))


def _counts(values: t.Any) -> list[int] | None:
    counts = isinstance(values, list) and all(type(value) is int and 0 <= value < 2**64 for value in values)
    return values if counts else None


def _end(tensors: dict[str, Tensor]) -> int:
    """Where the last one ends, once each begins where the one before it ends."""
    end = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: item[1].offsets):
        begin = tensor.offsets[0]
        if begin != end:
            what = "lies over the one before it" if begin < end else "leaves a hole before it"
            raise SlipwayError(f"tensor '{name}' begins at byte {begin} of the data, where {end} is next: it {what}")
        end = tensor.offsets[1]
    return end
