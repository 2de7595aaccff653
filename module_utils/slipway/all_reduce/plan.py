# SPDX-License-Identifier: GPL-3.0-or-later
"""Which all-reduces are made, what crosses the links, and how long it takes at the reference speed. Pure; what runs is this plan."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .thresholds import Thresholds
from .worker import DTYPES, WARM_UP

_MIB = 1024 * 1024
# What NCCL does otherwise by size: its three protocols, and the half MiB from which NCCL 2.26.2 fails on SM120 (NVIDIA/nccl#2418); at
# 1 MiB others saw wrong data now and then (NVIDIA/nccl#2001). The buffer's own size comes after them.
SIZES = (4096, 65536, 512 * 1024, _MIB, 16 * _MIB)
# The account's other rates: start of Python and torch for all ranks, of each GPU; a launch; filling and comparing on the GPU.
_START_SECONDS, _GPU_START_SECONDS, _CALL_SECONDS, _CHECK_GBPS, _CHECK_SECONDS = 15.0, 0.75, 50e-6, 50.0, 0.01


@dataclass(frozen=True)
class Size:
    """All-reduces of one size: ``iterations`` are timed, ``made`` are all of them, ``bytes`` of a buffer."""

    bytes: int
    iterations: int

    @property
    def made(self) -> int:
        """The timed ones, those that warm up, and those whose data is checked."""
        return self.iterations + WARM_UP + len(DTYPES) + 1


@dataclass(frozen=True)
class Plan:
    """``gpus`` are PCI addresses by rank, ``sizes`` in their order."""

    gpus: tuple[str, ...]
    sizes: tuple[Size, ...]

    @property
    def factor(self) -> float:
        """What crosses each link, as a multiple of the buffer (nccl-tests, doc/PERFORMANCE.md)."""
        return factor(len(self.gpus))

    def summary(self, thresholds: Thresholds, took_seconds: float | None = None) -> dict[str, t.Any]:
        """What is returned: ``ranks gpus sizes`` (each ``bytes iterations all_reduces link_bytes seconds``), ``bytes`` and ``seconds`` of all, ``took_seconds``."""
        sizes = [
            {
                "bytes": size.bytes,
                "iterations": size.iterations,
                "all_reduces": size.made,
                "link_bytes": round(size.bytes * self.factor * size.made),
                "seconds": round(self._seconds(size, thresholds), 3),
            }
            for size in self.sizes
        ]
        start = _START_SECONDS + _GPU_START_SECONDS * len(self.gpus) if sizes else 0.0
        return {
            "ranks": len(self.gpus),
            "gpus": list(self.gpus),
            "sizes": sizes,
            "bytes": sum(size["link_bytes"] for size in sizes) * len(self.gpus),
            "seconds": round(start + sum(size["seconds"] for size in sizes), 1),
            "took_seconds": None if took_seconds is None else round(took_seconds, 1),
        }

    def _seconds(self, size: Size, thresholds: Thresholds) -> float:
        moved = size.bytes * self.factor / thresholds.bus_gbps / 1e9 + _CALL_SECONDS
        checked = (len(DTYPES) + 1) * (size.bytes * len(DTYPES) / _CHECK_GBPS / 1e9 + _CHECK_SECONDS)
        return size.made * moved + checked


def make(gpus: t.Iterable[str], buffer_mib: int, iterations: int) -> Plan:
    """Plan for these GPUs, in the order of their addresses, with buffers up to ``buffer_mib``. With fewer than two there is nothing to do."""
    ranks = tuple(sorted(gpus))
    largest = buffer_mib * _MIB
    sizes = [size for size in SIZES if size < largest] + [largest]
    return Plan(ranks, tuple(Size(size, iterations) for size in sizes) if len(ranks) > 1 else ())


def factor(ranks: int) -> float:
    """Bus bandwidth over algorithm bandwidth of an all-reduce: 2(n-1)/n."""
    return 2 * (ranks - 1) / ranks if ranks else 0.0
