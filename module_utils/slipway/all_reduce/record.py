# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the ranks said to rows: one a rank, one a size. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ..gpu.child import Outcome
from . import log
from .plan import Plan, factor

# What a rank says of itself when its GPU is up.
FACTS = ("torch", "nccl", "name", "sm")


@dataclass
class Record:
    """``ranks`` and ``results`` as the module returns them, ``log`` as ``log.read`` gives it, and ``peers``, the ordinals that a rank's GPU can access.

    ``hung`` is for how many seconds nothing was heard from the ranks that were given up, ``None`` if none were. ``cut`` says that the time was over
    while they still worked, ``died`` why the process that watches them ended. ``survivors`` are processes of ranks that could not be killed.
    """

    ranks: list[dict[str, t.Any]]
    results: list[dict[str, t.Any]] = field(default_factory=list)
    log: dict[str, t.Any] = field(default_factory=dict)
    peers: dict[int, list[int]] = field(default_factory=dict)
    hung: float | None = None
    cut: bool = False
    died: str = ""
    pids: list[int] = field(default_factory=list)
    survivors: list[int] = field(default_factory=list)


def fold(plan: Plan, outcome: Outcome, silence_seconds: float) -> Record:
    """What a run came to.

    A rank has ``rank bus_id phase`` (where it was last heard of), ``ended`` (``done``, ``failed``, ``killed`` because another failed, or ``open``), ``status``,
    ``error`` (its own words, or how it died), ``tail`` (its last lines, where it failed) and what it said of its GPU. A size has ``size seconds`` (of the slowest rank)
    ``algbw_gbps busbw_gbps checked wrong ranks`` (how many told) and ``faults``, each with its rank.
    """
    record = Record([_rank(number, bus_id) for number, bus_id in enumerate(plan.gpus)])
    told: dict[int, dict[int, dict[str, t.Any]]] = {}
    lines: list[str] = []
    for message in outcome.messages:
        row = record.ranks[message["rank"]]
        if "line" in message:
            lines.append(message["line"])
        elif "pid" in message:
            record.pids.append(message["pid"])
        elif "status" in message:
            _end(row, message)
        else:
            said = message["said"]
            row["phase"] = said.get("phase", row["phase"])
            row.update({name: said[name] for name in FACTS if name in said})
            row["seen_bus_id"] = said.get("bus_id") or row["seen_bus_id"]
            if "peers" in said:
                record.peers[row["rank"]] = said["peers"]
            if "error" in said:
                row["error"] = f"{said['error']}: {said.get('text', '')}".strip(": ")
            if "size" in said:
                told.setdefault(said["size"], {})[row["rank"]] = said
            if said.get("done"):
                row["ended"] = "done"
    record.log = log.read(lines)
    record.results = [_size(size, by_rank, len(plan.gpus)) for size, by_rank in told.items()]
    if outcome.ended == "hung":
        if outcome.quiet_seconds >= silence_seconds / 2:
            record.hung = outcome.quiet_seconds
        else:
            record.cut = True
    elif outcome.ended == "died":
        record.died = outcome.cause
    return record


def _rank(number: int, bus_id: str) -> dict[str, t.Any]:
    return {
        "rank": number,
        "bus_id": bus_id,
        "seen_bus_id": None,
        "phase": "start",
        "ended": "open",
        "status": None,
        "error": "",
        "tail": [],
        **dict.fromkeys(FACTS),
    }


def _end(row: dict[str, t.Any], message: t.Mapping[str, t.Any]) -> None:
    row["status"] = message["status"]
    if row["ended"] == "done":
        return
    row["ended"] = "killed" if message["killed"] else "failed"
    row["tail"] = message["tail"]


def _size(size: int, by_rank: t.Mapping[int, t.Mapping[str, t.Any]], ranks: int) -> dict[str, t.Any]:
    times = [said["seconds"] for said in by_rank.values()]
    # With a rank missing the slowest is not known.
    seconds = max(times) if len(times) == ranks and all(times) else None
    algorithm = size / seconds / 1e9 if seconds else None
    faults = [{"rank": rank, **fault} for rank, said in sorted(by_rank.items()) for fault in said["faults"]]
    return {
        "size": size,
        "seconds": seconds,
        "algbw_gbps": _rounded(algorithm),
        "busbw_gbps": _rounded(algorithm * factor(ranks) if algorithm else None),
        "checked": sum(said["checked"] for said in by_rank.values()),
        "wrong": sum(fault["wrong"] for fault in faults),
        "ranks": len(by_rank),
        "faults": faults,
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
