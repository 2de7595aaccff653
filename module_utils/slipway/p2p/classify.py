# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with data that came over a link: compared with what was sent, counted, and given a name. Pure."""

from __future__ import annotations

import ctypes
import typing as t
from dataclasses import asdict, dataclass

from .pattern import SENTINEL, TILE_BYTES, tile

# A machine on which all data is garbage must still be done within its time. Of parts (of 2 MiB) that differ here and there: in how
# many bytes are counted, in how many data of earlier copies is looked for, and in how much of each.
_COUNTED, _EXAMINED, _SAMPLE_BYTES = 16, 4, 65536
_ZERO, _NOT_ZERO = b"\1" + bytes(255), b"\0" + b"\1" * 255
_LIBC = ctypes.CDLL(None)
_LIBC.memcmp.argtypes = (ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)


@dataclass(frozen=True)
class Wrong:
    """``count`` of ``size`` bytes differ (at least, where it is not ``exact``), the first at ``offset``.

    ``kind``: ``dropped`` (nothing was written), ``zeros``, ``partial`` (a part is right and the rest was not written or is
    zeros), ``stale`` (data of an earlier copy), ``garbage`` (anything else).
    """

    kind: str
    offset: int
    count: int
    size: int
    exact: bool = True

    def as_dict(self) -> dict[str, t.Any]:
        """As plain values."""
        return asdict(self)


def intact(address: int, size: int, sent: str) -> bool:
    """Whether the ``size`` bytes at ``address`` in this process are the pattern of seed ``sent``."""
    return next(_differing(address, size, tile(sent, size)), None) is None


def _differing(address: int, size: int, expected: bytes) -> t.Iterator[int]:
    """Offsets of the parts that are not as expected."""
    image = ctypes.create_string_buffer(expected, len(expected))
    for offset in range(0, size, TILE_BYTES):
        if _LIBC.memcmp(address + offset, image, min(TILE_BYTES, size - offset)) != 0:
            yield offset


def compare(address: int, size: int, sent: str, earlier: t.Sequence[str] = ()) -> Wrong | None:
    """What is wrong with ``size`` bytes at ``address`` in this process, which should be the pattern of seed ``sent``; or ``None``.

    ``earlier`` are seeds whose patterns were in one of the two buffers before.
    """
    expected = tile(sent, size)
    differing = list(_differing(address, size, expected))
    if not differing:
        return None
    first, counts, examined = size, dict.fromkeys(("wrong", "dropped", "zeros", "stale"), 0), 0
    for offset in differing:
        got = ctypes.string_at(address + offset, min(TILE_BYTES, size - offset))
        whole = _whole(got, earlier, size)
        if whole:
            first = min(first, offset)
            counts["wrong"] += len(got)
            counts[whole] += len(got)
            continue
        examined += 1
        if examined > _COUNTED:
            continue
        difference = _xor(got, expected)
        at = len(difference) - len(difference.lstrip(b"\0"))
        first = min(first, offset + at)
        wrong = len(got) - difference.count(0)
        counts["wrong"] += wrong
        counts["dropped"] += got.count(SENTINEL)
        counts["zeros"] += got.count(0)
        sample = slice(at, at + _SAMPLE_BYTES)
        if examined <= _EXAMINED and _is_stale(
            got[sample], difference[sample], [tile(one, size)[sample] for one in earlier]
        ):
            counts["stale"] += wrong
    return Wrong(_kind(counts, size), first, counts["wrong"], size, examined <= _COUNTED)


def _whole(got: bytes, earlier: t.Sequence[str], size: int) -> str | None:
    """What a part is from end to end, which is the common case and found at the speed of memory."""
    for kind, image in (("dropped", bytes((SENTINEL,))), ("zeros", b"\0")):
        if got == image * len(got):
            return kind
    return "stale" if any(got == tile(seed, size)[: len(got)] for seed in earlier) else None


def _is_stale(got: bytes, difference: bytes, before: t.Sequence[bytes]) -> bool:
    """Whether what is wrong here is mostly data of an earlier copy. By chance one byte in 253 is."""
    blank = got.count(SENTINEL) + got.count(0)
    held = max((_among(difference, _xor(got, old)) for old in before), default=0)
    return held > blank and held > (len(got) - difference.count(0)) / 100 + 1


def _among(wrong: bytes, against: bytes) -> int:
    """How many of the wrong places hold what was there before: zero in the second where the first is not."""
    marks = int.from_bytes(wrong.translate(_NOT_ZERO), "little") & int.from_bytes(against.translate(_ZERO), "little")
    return marks.to_bytes(len(wrong), "little").count(1)


def _kind(counts: dict[str, int], size: int) -> str:
    """Most of what is wrong decides; with data of an earlier copy among it, that."""
    wrong, blank = counts["wrong"], counts["dropped"] + counts["zeros"]
    if counts["stale"] > blank:
        return "stale"
    if blank <= wrong / 2:
        return "garbage"
    if wrong < size:
        return "partial"
    return "dropped" if counts["dropped"] >= counts["zeros"] else "zeros"


def _xor(one: bytes, other: bytes) -> bytes:
    """Zeros where the first is as the second from its beginning. Through one big number: ten times faster than byte by byte."""
    size = min(len(one), len(other))
    both = int.from_bytes(one[:size], "little") ^ int.from_bytes(other[:size], "little")
    return both.to_bytes(size, "little") + b"\1" * (len(one) - size)
