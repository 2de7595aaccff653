# SPDX-License-Identifier: GPL-3.0-or-later
"""Which copies prove the links, in which order, and what they cost at the reference speeds. Pure; what runs is this plan."""

from __future__ import annotations

import itertools
import typing as t
from dataclasses import dataclass

from . import paths
from .pattern import TILE_BYTES
from .thresholds import Thresholds

TESTS = ("integrity", "latency", "bandwidth", "concurrent")
# A word, a page, the driver's two page sizes; the buffer's own size comes after them.
SIZES = (4, 4096, 65536, 2 * 1024 * 1024)
WAYS = ("source", "target")  # who issues: the source pushes (write), the target pulls (read)
ROUNDS, ROUNDS_TOGETHER = 2, 3  # what is lost now and then is lost under load
COPIES = 8  # timed, one after the other, behind one that warms up
STAGED_COPIES = 2
CONCURRENT_COPIES = 16
LATENCY_COPIES, LATENCY_BYTES = 100, 16
_MIB = 1024 * 1024

# What the copies are not: the account's other rates, in bytes or seconds. Comparing was measured at 25 GB/s on one core,
# a pinned read-back runs at the link's speed, the pattern is a hash; staging is the usual figure of two copies over a host.
_HOST_GBPS, _FILL_GBPS, _PATTERN_GBPS, _STAGED_GBPS = 10.0, 250.0, 0.3, 12.0
_CALL_SECONDS, _CHECK_SECONDS, _STAGED_LATENCY_SECONDS = 20e-6, 500e-6, 14e-6
_START_SECONDS, _GPU_START_SECONDS = 3.0, 0.75

Flow = tuple[str, str]


@dataclass(frozen=True)
class Step:
    """One thing that the child does and tells the result of. ``flows`` are ordered pairs of PCI addresses.

    ``size`` is the largest copy, ``copies`` and ``bytes`` are all that cross links; ``seconds`` is the whole time of the step
    by the account.
    """

    test: str
    kind: str
    flows: tuple[Flow, ...]
    size: int
    copies: int
    bytes: int
    seconds: float
    name: str = ""

    @property
    def is_set(self) -> bool:
        """Whether it is about many pairs at one time, of which some can be left out."""
        return self.test == "concurrent" or self.kind == "together"


@dataclass(frozen=True)
class Plan:
    """``steps`` in their order for ``gpus``; ``buffer_bytes`` is the largest copy, ``slot_bytes`` one of many at once."""

    gpus: tuple[str, ...]
    buffer_bytes: int
    slot_bytes: int
    steps: tuple[Step, ...]

    def summary(self, took: t.Mapping[int, float] | None = None) -> dict[str, t.Any]:
        """What is returned: ``pairs copies bytes seconds``, and ``parts`` in which the time goes.

        ``took`` are seconds measured, by the number of the step; without it ``took_seconds`` is ``None``.
        """
        parts: dict[tuple[str, str], dict[str, t.Any]] = {}
        for number, step in enumerate(self.steps):
            empty = {"test": step.test, "kind": step.kind, "steps": 0, "copies": 0, "bytes": 0, "seconds": 0.0}
            part = parts.setdefault((step.test, step.kind), {**empty, "took_seconds": None if took is None else 0.0})
            for name, value in (
                ("steps", 1),
                ("copies", step.copies),
                ("bytes", step.bytes),
                ("seconds", step.seconds),
            ):
                part[name] += value
            if took is not None:
                part["took_seconds"] += took.get(number, 0.0)
        listed = list(parts.values())
        for part in listed:
            part["seconds"] = round(part["seconds"], 3)
            part["took_seconds"] = None if took is None else round(part["took_seconds"], 3)
        return {
            "pairs": len(self.gpus) * (len(self.gpus) - 1),
            "copies": sum(part["copies"] for part in listed),
            "bytes": sum(part["bytes"] for part in listed),
            "seconds": round(sum(part["seconds"] for part in listed), 1),
            "took_seconds": None if took is None else round(sum(took.values()), 1),
            "buffer_bytes": self.buffer_bytes,
            "parts": listed,
        }


def make(places: t.Mapping[str, paths.Place], tests: t.Sequence[str], buffer_mib: int, thresholds: Thresholds) -> Plan:
    """Plan ``tests`` for the GPUs of ``places`` (by PCI address), copies up to ``buffer_mib``. Integrity comes first.

    With fewer than two GPUs there is nothing to copy, and the plan has no steps.
    """
    gpus = tuple(sorted(places))
    largest = buffer_mib * _MIB
    slot = max(largest // 4, 64 * 1024)
    if len(gpus) < 2:
        return Plan(gpus, largest, slot, ())
    build = _Builder(places, largest, slot, thresholds)
    steps = [build.start()]
    for test in TESTS:
        if test in tests:
            steps += getattr(build, test)()
    return Plan(gpus, largest, slot, tuple(steps))


def sets(gpus: t.Sequence[str]) -> list[tuple[str, str, tuple[Flow, ...]]]:
    """Copies at one time, as (kind, name, flows): what isolated pairs hide shows only here.

    ``ring``: each to its neighbour, both ways round. ``all_to_one``: one receives from all. ``disjoint``: everyone has one
    partner, both send; over its rounds each meets each. ``all_pairs``: everything at once.
    """
    count = len(gpus)
    around = tuple((gpus[n], gpus[(n + 1) % count]) for n in range(count))
    found = [("ring", "forward", around), ("ring", "backward", tuple((b, a) for a, b in around))]
    if count > 2:
        found += [("all_to_one", f"to {one}", tuple((a, one) for a in gpus if a != one)) for one in gpus]
    else:
        found = found[:1]  # with two GPUs each of the sets is the same
    for number, matched in enumerate(_rounds(gpus) if count > 3 else [], 1):
        found.append(("disjoint", f"round {number}", tuple(flow for a, b in matched for flow in ((a, b), (b, a)))))
    if count > 2:
        found.append(("all_pairs", "all pairs", tuple(itertools.permutations(gpus, 2))))
    return found


def shares(flows: t.Sequence[Flow], places: t.Mapping[str, paths.Place]) -> dict[Flow, int]:
    """With how many flows of the set each flow shares the busiest of its links, itself included.

    Where the tree cannot be seen only the GPUs' own links are known.
    """
    crossed = {}
    for source, target in flows:
        known = paths.links(places[source], places[target])
        crossed[(source, target)] = known | {("up", source), ("down", target)}
    load: dict[tuple[str, str], int] = {}
    for found in crossed.values():
        for link in found:
            load[link] = load.get(link, 0) + 1
    return {flow: max(load[link] for link in found) for flow, found in crossed.items()}


def _rounds(gpus: t.Sequence[str]) -> t.Iterator[list[Flow]]:
    """Rounds of a tournament (circle method): in each everyone meets one other; with an odd number one pauses."""
    circle = [*gpus, *([""] if len(gpus) % 2 else [])]
    half = len(circle) // 2
    for _number in range(len(circle) - 1):
        yield [(a, b) for a, b in zip(circle[:half], reversed(circle[half:])) if a and b]
        circle = [circle[0], circle[-1], *circle[1:-1]]


class _Builder:
    """Knows the speeds of the account; each method makes the steps of one test."""

    def __init__(self, places: t.Mapping[str, paths.Place], largest: int, slot: int, thresholds: Thresholds) -> None:
        self.places, self.largest, self.slot, self.thresholds = places, largest, slot, thresholds
        self.gpus = tuple(sorted(places))
        self.pairs = tuple(itertools.permutations(self.gpus, 2))

    def start(self) -> Step:
        """The driver's own start, once, and that of each GPU."""
        return Step("start", "start", (), 0, 0, 0, _START_SECONDS + _GPU_START_SECONDS * len(self.gpus))

    def integrity(self) -> list[Step]:
        sizes = sizes_up_to(self.largest)
        steps = []
        for flow in self.pairs:
            seconds = sum(self._seconds(flow, size) + _checked(size) for size in sizes)
            many = ROUNDS * len(WAYS)
            copies, crossed = len(sizes) * many, sum(sizes) * many
            steps.append(Step("integrity", "pair", (flow,), self.largest, copies, crossed, seconds * many))
        crossing = max(
            self._seconds(flow, self.slot) * share for flow, share in shares(self.pairs, self.places).items()
        )
        seconds = len(WAYS) * (crossing + len(self.pairs) * _checked(self.slot))
        copies = len(WAYS) * len(self.pairs)
        together = ("integrity", "together", self.pairs, self.slot, copies, copies * self.slot, seconds)
        steps += [Step(*together, f"round {number + 1}") for number in range(ROUNDS_TOGETHER)]
        return steps

    def latency(self) -> list[Step]:
        seconds = LATENCY_COPIES * (_CALL_SECONDS + _STAGED_LATENCY_SECONDS) * 2
        copies = 2 * LATENCY_COPIES
        crossed = copies * LATENCY_BYTES
        return [Step("latency", "pair", (flow,), LATENCY_BYTES, copies, crossed, seconds) for flow in self.pairs]

    def bandwidth(self) -> list[Step]:
        steps = []
        for flow in self.pairs:
            direct = len(WAYS) * (COPIES + 1)
            staged = (STAGED_COPIES + 1) * self.slot
            seconds = direct * self._seconds(flow, self.largest) + staged / _STAGED_GBPS / 1e9
            copies, crossed = direct + STAGED_COPIES + 1, direct * self.largest + staged
            steps.append(Step("bandwidth", "pair", (flow,), self.largest, copies, crossed, seconds))
        for a, b in itertools.combinations(self.gpus, 2):
            seconds = (COPIES + 1) * max(self._seconds(flow, self.largest) for flow in ((a, b), (b, a)))
            copies = 2 * (COPIES + 1)
            flows = ((a, b), (b, a))
            steps.append(Step("bandwidth", "both_ways", flows, self.largest, copies, copies * self.largest, seconds))
        return steps

    def concurrent(self) -> list[Step]:
        steps = []
        for kind, name, flows in sets(self.gpus):
            slowest = max(self._seconds(flow, self.slot) * share for flow, share in shares(flows, self.places).items())
            copies = len(flows) * (CONCURRENT_COPIES + 1)
            seconds = (CONCURRENT_COPIES + 1) * slowest + copies * _CALL_SECONDS
            steps.append(Step("concurrent", kind, flows, self.slot, copies, copies * self.slot, seconds, name))
        return steps

    def _seconds(self, flow: Flow, size: int) -> float:
        source, target = (self.places[name] for name in flow)
        return size / self.thresholds.reference(paths.path_class(source, target)) / 1e9 + _CALL_SECONDS


def sizes_up_to(largest: int) -> list[int]:
    """The sizes that are checked: those of the ladder below the buffer's own, and that."""
    return [size for size in SIZES if size < largest] + [largest]


def _checked(size: int) -> float:
    """Making a pattern, filling two buffers, reading one back and comparing it, in seconds."""
    rates = size / _HOST_GBPS + 2 * size / _FILL_GBPS + min(size, TILE_BYTES) / _PATTERN_GBPS
    return rates / 1e9 + _CHECK_SECONDS
