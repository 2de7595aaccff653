# SPDX-License-Identifier: GPL-3.0-or-later
"""What is written across a link to prove it: a pattern in which each place is its own, and the sentinel below it.

A buffer holds one tile again and again. The tile's length is four times a prime, so that no two places which differ by
pages hold the same bytes in any buffer below 2 GiB: data that lands in the wrong page shows, whatever the page's size.
"""

from __future__ import annotations

import functools
import hashlib
import typing as t

SENTINEL = 0xA5
TILE_BYTES = 4 * 524287
# Zeros are what an unmapped page gives and 0xFF what a dead device gives: neither they nor the sentinel are in a pattern.
_FORBIDDEN = bytes((0x00, 0xFF, SENTINEL))
_ALLOWED = bytes.maketrans(_FORBIDDEN, bytes((0x3C, 0xC3, 0x5A)))


def seed(source: str, target: str, size: int, issued_by: str, number: int | str) -> str:
    """What makes the pattern of one copy different from that of every other."""
    return f"{source}>{target}/{size}/{issued_by}/{number}"


@functools.lru_cache(maxsize=16)
def tile(seed_text: str, size: int) -> bytes:
    """The first ``size`` bytes of the tile of a seed, at most ``TILE_BYTES``."""
    return hashlib.shake_128(seed_text.encode()).digest(min(size, TILE_BYTES)).translate(_ALLOWED)


def doublings(size: int) -> t.Iterator[tuple[int, int]]:
    """Copies that fill a buffer of ``size`` bytes which begins with its tile: (to offset, bytes) from its beginning."""
    have = min(size, TILE_BYTES)
    while have < size:
        count = min(have, size - have)
        yield have, count
        have += count
