# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with data that came over a link: compared with what was sent, counted, and given a name. Pure."""

from __future__ import annotations

import ctypes
import typing as t
from dataclasses import asdict, dataclass

from .pattern import SENTINEL, TILE_BYTES, tile

KINDS = ("dropped", "zeros", "partial", "stale", "garbage")
_LIBC = ctypes.CDLL(None)
_LIBC.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@dataclass(frozen=True)
class Wrong:
    """``count`` of ``size`` bytes differ, the first at ``offset``.

    ``kind``: ``dropped`` (nothing was written), ``zeros``, ``partial`` (a part is right and the rest was not written or is
    zeros), ``stale`` (data of an earlier copy), ``garbage`` (anything else).
    """

    kind: str
    offset: int
    count: int
    size: int

    def as_dict(self) -> dict[str, t.Any]:
        """As plain values."""
        return asdict(self)


def compare(address: int, size: int, sent: str, earlier: t.Sequence[str] = ()) -> Wrong | None:
    """Compare ``size`` bytes at ``address`` in this process with the pattern of seed ``sent``; ``None`` if they are the same.

    ``earlier`` are seeds whose patterns were in one of the two buffers before.
    """
    expected = tile(sent, size)
    image = ctypes.create_string_buffer(expected, len(expected))
    differing = [
        offset
        for offset in range(0, size, TILE_BYTES)
        if _LIBC.memcmp(address + offset, image, min(TILE_BYTES, size - offset)) != 0
    ]
    if not differing:
        return None
    before = [tile(seed, size) for seed in earlier]
    first, counts = size, {"wrong": 0, "dropped": 0, "zeros": 0, "stale": 0}
    for offset in differing:
        got = ctypes.string_at(address + offset, min(TILE_BYTES, size - offset))
        difference = _xor(got, expected[: len(got)])
        first = min(first, offset + len(difference) - len(difference.lstrip(b"\0")))
        counts["wrong"] += len(got) - difference.count(0)
        counts["dropped"] += got.count(SENTINEL)
        counts["zeros"] += got.count(0)
        counts["stale"] += max((_xor(got, old[: len(got)]).count(0) for old in before), default=0)
    return Wrong(_kind(counts, size), first, counts["wrong"], size)


def _kind(counts: dict[str, int], size: int) -> str:
    """Most of what is wrong decides. By chance one byte in 253 is that of an earlier pattern."""
    wrong = counts["wrong"]
    if counts["stale"] > wrong / 2 and counts["stale"] > counts["dropped"] + counts["zeros"]:
        return "stale"
    if counts["dropped"] + counts["zeros"] <= wrong / 2:
        return "garbage"
    if wrong < size:
        return "partial"
    return "dropped" if counts["dropped"] >= counts["zeros"] else "zeros"


def _xor(one: bytes, other: bytes) -> bytes:
    """Zeros where both are the same. Through one big number: ten times faster than byte by byte."""
    size = min(len(one), len(other))
    both = int.from_bytes(one[:size], "little") ^ int.from_bytes(other[:size], "little")
    return both.to_bytes(size, "little") + b"\1" * (len(one) - size)
