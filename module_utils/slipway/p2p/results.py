# SPDX-License-Identifier: GPL-3.0-or-later
"""From how the steps ended to one row a pair and one a set: the plain values that the module returns. Pure."""

from __future__ import annotations

import itertools
import typing as t

from . import paths
from .plan import Flow, Plan, shares
from .supervise import Record
from .thresholds import Thresholds

# At most this many faults of a pair are listed; all are counted.
_LISTED = 20


def pairs(plan: Plan, record: Record, places: t.Mapping[str, paths.Place]) -> list[dict[str, t.Any]]:
    """A row for each ordered pair, in the order of the addresses.

    ``source target path_class can_access``; ``integrity`` (``intact``, ``faulty`` or ``unknown``), ``copies`` that were checked,
    ``faulty_copies`` and ``faults``; ``write_gbps read_gbps staged_gbps bidirectional_gbps latency_us staged_latency_us``, ``None`` where not
    measured; ``links`` under load; ``errors``, each with ``test kind detail`` and, for a call, ``call code name``.
    """
    said = {(one, other): word for one, other, word in record.results.get(0, {}).get("can_access", [])}
    rows: dict[Flow, dict[str, t.Any]] = {}
    for source, target in itertools.permutations(plan.gpus, 2):
        rows[(source, target)] = {
            "source": source,
            "target": target,
            "path_class": paths.path_class(places[source], places[target]),
            "can_access": said.get((source, target)),
            "integrity": "unknown",
            "copies": 0,
            "faulty_copies": 0,
            "faults": [],
            **dict.fromkeys(("write_gbps", "read_gbps", "staged_gbps", "bidirectional_gbps")),
            **dict.fromkeys(("latency_us", "staged_latency_us")),
            "links": {},
            "errors": [],
        }
    alone: set[Flow] = set()
    for number, step in enumerate(plan.steps):
        result, error = record.results.get(number), record.errors.get(number)
        if error and not step.is_set:
            for flow in step.flows:
                rows[flow]["errors"].append({"test": step.test, **error})
        elif result and step.test == "integrity":
            alone |= set(step.flows) if step.kind == "pair" else set()
            made = [(one, other) for one, other in result.get("flows", step.flows)]
            _take_integrity(rows, made, result)
        elif result and step.kind == "both_ways":
            speeds = result["gbps"]
            for flow in step.flows:
                rows[flow]["bidirectional_gbps"] = _rounded(sum(speeds)) if None not in speeds else None
        elif result and step.kind == "pair":
            row = rows[step.flows[0]]
            row.update({key: value if key == "links" else _rounded(value) for key, value in result.items()})
    for flow in alone:
        rows[flow]["integrity"] = "faulty" if rows[flow]["faulty_copies"] else "intact"
    for row in rows.values():
        row["integrity"] = "faulty" if row["faulty_copies"] else row["integrity"]
    return list(rows.values())


def _take_integrity(rows: dict[Flow, dict[str, t.Any]], flows: t.Sequence[Flow], result: dict[str, t.Any]) -> None:
    for flow in flows:
        rows[flow]["copies"] += result["copies"] // len(flows)
    for fault in result["faults"]:
        named = {"source": flows[0][0], "target": flows[0][1], "together": "source" in fault, **fault}
        row = rows[(named.pop("source"), named.pop("target"))]
        row["faulty_copies"] += 1
        row["faults"] += [named] if len(row["faults"]) < _LISTED else []


def concurrent(
    plan: Plan,
    record: Record,
    pair_rows: t.Sequence[dict[str, t.Any]],
    places: t.Mapping[str, paths.Place],
    thresholds: Thresholds,
) -> list[dict[str, t.Any]]:
    """A row for each set of flows: ``kind name flows`` (each ``source target gbps ideal_gbps``), ``gbps`` of all together, and ``error``.

    ``ideal_gbps`` is what they would reach if nothing but the links of the PCI tree that they share held them up: each as fast as it
    is alone (or by reference, where that was not measured), divided by the flows on its busiest link. ``ratio`` is the one over the other; ``None`` is not known.
    """
    alone = {
        (row["source"], row["target"]): row["write_gbps"] or thresholds.reference(row["path_class"])
        for row in pair_rows
    }
    rows = []
    for number, step in enumerate(plan.steps):
        if not step.is_set:
            continue
        result, error = record.results.get(number), record.errors.get(number)
        if step.test == "integrity" and not error:
            continue
        flows = [(one, other) for one, other in (result or {}).get("flows", [])]
        speeds = (result or {}).get("gbps", [])
        shared = shares(flows, places)
        known = bool(flows) and None not in speeds
        ideal = {flow: alone[flow] / shared[flow] for flow in flows}
        total = sum(speeds) if known else None
        whole = sum(ideal.values()) if known else None
        rows.append(
            {
                "kind": "integrity" if step.test == "integrity" else step.kind,
                "name": step.name,
                "flows": [
                    {"source": flow[0], "target": flow[1], "gbps": _rounded(gbps), "ideal_gbps": _rounded(ideal[flow])}
                    for flow, gbps in zip(flows, speeds)
                ],
                "gbps": _rounded(total),
                "ideal_gbps": _rounded(whole),
                "ratio": round(total / whole, 3) if total and whole else None,
                "error": error,
            }
        )
    return rows


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 3)
