# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import ctypes
import os

import pytest
from ansible.module_utils.slipway.p2p import pattern
from ansible.module_utils.slipway.p2p.classify import Wrong, compare
from ansible.module_utils.slipway.p2p.pattern import SENTINEL, TILE_BYTES

SIZES = (4, 4096, 65536, TILE_BYTES, 2 * 1024 * 1024, 8 * 1024 * 1024)


def filled(seed: str, size: int) -> bytearray:
    """What a buffer holds after its tile was put there and doubled."""
    tile = pattern.tile(seed, size)
    buffer = bytearray(tile) + bytearray(size - len(tile))
    for offset, count in pattern.doublings(size):
        buffer[offset : offset + count] = buffer[:count]
    return buffer


def judged(got: bytearray, seed: str, earlier: tuple[str, ...] = ()) -> Wrong | None:
    held = (ctypes.c_char * len(got)).from_buffer(got)
    return compare(ctypes.addressof(held), len(got), seed, earlier)


@pytest.mark.parametrize("size", SIZES)
def test_what_was_sent_is_intact(size: int) -> None:
    assert judged(filled("a", size), "a") is None


@pytest.mark.parametrize("size", SIZES)
def test_each_fault_of_all_bytes(size: int) -> None:
    assert judged(bytearray([SENTINEL]) * size, "a") == Wrong("dropped", 0, size, size)
    assert judged(bytearray(size), "a") == Wrong("zeros", 0, size, size)
    stale = judged(filled("b", size), "a", ("c", "b"))
    assert stale is not None
    assert (stale.kind, stale.offset) == ("stale", 0)
    garbage = judged(filled("b", size), "a", ("c",))
    assert garbage is not None
    assert garbage.kind == "garbage"


@pytest.mark.parametrize("rest", [SENTINEL, 0])
def test_a_part_that_was_not_written_is_counted(rest: int) -> None:
    got = filled("a", 8 * 1024 * 1024)
    got[5_000_000:] = bytes([rest]) * (len(got) - 5_000_000)
    assert judged(got, "a") == Wrong("partial", 5_000_000, len(got) - 5_000_000, len(got))


def test_a_part_that_is_stale_is_stale() -> None:
    got, old = filled("a", 65536), filled("b", 65536)
    got[32768:] = old[32768:]
    wrong = judged(got, "a", ("b",))
    assert wrong is not None
    assert (wrong.kind, wrong.offset) == ("stale", 32768)


def test_one_wrong_byte_is_found_where_it_is() -> None:
    got = filled("a", 8 * 1024 * 1024)
    got[7_654_321] ^= 0x10
    assert judged(got, "a") == Wrong("garbage", 7_654_321, 1, len(got))


@pytest.mark.parametrize("page", [4096, 65536, 2 * 1024 * 1024])
def test_pages_in_each_others_place_show(page: int) -> None:
    got = filled("a", 8 * 1024 * 1024)
    got[:page], got[page : 2 * page] = got[page : 2 * page], got[:page]
    wrong = judged(got, "a")
    assert wrong is not None
    assert (wrong.kind, wrong.offset) == ("garbage", 0)
    assert wrong.count > 2 * page * 0.98


def test_one_wrong_byte_is_no_data_of_before() -> None:
    got, old = filled("a", 65536), filled("b", 65536)
    same = next(place for place in range(65536) if got[place] != old[place])
    got[same] = old[same]
    wrong = judged(got, "a", ("b",))
    assert wrong is not None
    assert (wrong.kind, wrong.count) == ("garbage", 1)


def test_bytes_of_much_garbage_are_counted_in_part() -> None:
    size = 20 * TILE_BYTES
    wrong = judged(filled("b", size), "a")
    assert wrong is not None
    assert (wrong.kind, wrong.offset, wrong.exact) == ("garbage", 0, False)
    assert 15 * TILE_BYTES < wrong.count <= 16 * TILE_BYTES
    zeros = judged(bytearray(size), "a")
    assert zeros == Wrong("zeros", 0, size, size)


def test_noise_is_garbage() -> None:
    wrong = judged(bytearray(os.urandom(65536)), "a", ("b", "c"))
    assert wrong is not None
    assert wrong.kind == "garbage"


def test_patterns_are_their_own_and_hold_no_word_of_a_fault() -> None:
    seeds = {
        pattern.seed(source, target, size, way, number)
        for source, target in (("a", "b"), ("b", "a"))
        for size in (4, 4096)
        for way in ("source", "target")
        for number in (0, 1)
    }
    tiles = {seed: pattern.tile(seed, 65536) for seed in seeds}
    assert len(seeds) == len(set(tiles.values())) == 16
    for tile in tiles.values():
        assert not {0x00, 0xFF, SENTINEL} & set(tile)
        assert len(set(tile)) == 253
