# SPDX-License-Identifier: GPL-3.0-or-later
"""From rows to findings and one verdict: pure. What was not measured is never good, and integrity comes before speed."""

from __future__ import annotations

import statistics
import typing as t

from ..findings import Finding, finding
from . import paths
from .thresholds import LINE_RATE_GBPS, Thresholds

Row = t.Mapping[str, t.Any]
_CODES = {205: "P2P_MAP_FAILED", 217: "P2P_UNSUPPORTED", 711: "P2P_TOO_MANY_PEERS", 2: "GPU_BUSY"}
_ENDS = {"hung": "P2P_HUNG", "died": "P2P_ERROR"}
_SPEEDS = {"write_gbps": "pushed by the source", "read_gbps": "pulled by the target"}
_CORRUPT = frozenset({"P2P_CORRUPT", "P2P_IMPLAUSIBLE", "GPU_MEMORY_WRONG"})
_SPEED_FAULTS = frozenset(
    {"P2P_SLOW", "P2P_LINK_SLOW", "P2P_STAGED", "P2P_COLLAPSE", "P2P_BELOW_BASELINE", "P2P_BIDIRECTIONAL_LOW"}
)


def verdict(findings: t.Sequence[Finding]) -> str:
    """The worst of ``corrupt hung could_not_run degraded ok``. Only what fails or is unknown counts."""
    bad = {found.id for found in findings if found.severity in ("fail", "unknown")}
    if bad & _CORRUPT:
        return "corrupt"
    if bad & {"P2P_HUNG", "CUDA_HUNG"}:
        return "hung"
    if bad - _SPEED_FAULTS:
        return "could_not_run"
    return "degraded" if bad else "ok"


def pair(row: Row) -> str:
    """How a pair is called in findings."""
    return f"{row['source']} -> {row['target']}"


def judge(
    rows: t.Sequence[Row],
    sets: t.Sequence[Row],
    tests: t.Sequence[str],
    thresholds: Thresholds,
    places: t.Mapping[str, paths.Place],
) -> list[Finding]:
    """All findings about these rows, of which the shapes are those of ``results``."""
    found = [finding for row in rows for finding in [*_errors(row), *_integrity(row, tests)]]
    found += _not_made(rows, sets)
    slow_links, explained = _links(rows, places)
    found += slow_links
    unclassed = sorted({row["source"] for row in rows if row["path_class"] is None})
    if unclassed and "bandwidth" in tests:
        found.append(finding("P2P_PATH_UNKNOWN", "PCI tree", f"of {', '.join(unclassed)}"))
    for row in rows:
        found += _implausible(row, thresholds, places)
        found += [] if pair(row) in explained else _slow(row, thresholds)
        found += _staged(row, tests, thresholds)
        found += _both_ways(row, rows, thresholds)
    slow = {one.subject for one in found if one.id == "P2P_SLOW"} | explained
    return found + _outliers(rows, thresholds, slow) + [one for row in sets for one in _set(row, thresholds)]


def _errors(row: Row) -> list[Finding]:
    """The first error of each kind; that later steps were left out for it has been said by it."""
    found: dict[str, Finding] = {}
    for error in row["errors"]:
        if error["kind"] == "not made":
            continue
        fault = _CODES.get(error.get("code"), "P2P_ERROR") if error["kind"] == "call" else _ENDS[error["kind"]]
        said = " (the driver says that it has peer access)" if row["can_access"] and fault != "GPU_BUSY" else ""
        found.setdefault(fault, finding(fault, pair(row), f"{error['test']}: {error['detail']}{said}"))
    return list(found.values())


def _integrity(row: Row, tests: t.Sequence[str]) -> list[Finding]:
    if row["integrity"] != "faulty":
        missing = "integrity" in tests and row["integrity"] == "unknown" and not row["errors"]
        return [finding("P2P_NOT_MEASURED", pair(row), "integrity")] if missing else []
    own = [fault for fault in row["faults"] if fault["source_wrong"]]
    if len(own) == len(row["faults"]):
        return [finding("GPU_MEMORY_WRONG", row["source"], _fault(own[0]))]
    linked = [fault for fault in row["faults"] if not fault["source_wrong"]]
    worst = max(linked, key=lambda fault: fault["count"])
    kinds = sorted({fault["kind"] for fault in linked})
    load = "; only with all pairs at once" if all(fault["together"] for fault in linked) else ""
    late = "; the data was there a moment later" if any(fault["late"] for fault in linked) else ""
    told = (
        f"{', '.join(kinds)}: {row['faulty_copies']} of {row['copies']} copies are wrong{load}{late}; {_fault(worst)}"
    )
    said = "; the driver says that it has peer access" if row["can_access"] else ""
    return [finding("P2P_CORRUPT", pair(row), told + said)]


def _fault(fault: Row) -> str:
    at_least = "" if fault["exact"] else "at least "
    where = f"{at_least}{fault['count']} of {fault['size']} bytes from offset {fault['offset']} on"
    return f"{fault['kind']}, {where}, issued by the {fault['issued_by']}"


def _not_made(rows: t.Sequence[Row], sets: t.Sequence[Row]) -> list[Finding]:
    """What was not made, told once a reason. It is no finding where it follows from an error that is one."""
    reasons: dict[str, list[str]] = {}
    for row in rows:
        own = any(error["kind"] != "not made" for error in row["errors"])
        for error in [] if own else [error for error in row["errors"] if not error.get("follows")][:1]:
            reasons.setdefault(error["detail"], []).append(pair(row))
    for row in sets:
        if row["error"] and row["error"]["kind"] == "not made" and not row["error"].get("follows"):
            reasons.setdefault(row["error"]["detail"], []).append(_set_name(row))
    found = []
    for reason, names in reasons.items():
        subject = names[0] if len(names) == 1 else f"{len(names)} measurements"
        listed = "" if len(names) == 1 else f": {', '.join(names)}"
        found.append(finding("P2P_NOT_MEASURED", subject, f"{reason}{listed}"))
    return found


def _links(rows: t.Sequence[Row], places: t.Mapping[str, paths.Place]) -> tuple[list[Finding], set[str]]:
    """Links that stay slow under load, and the pairs which they explain.

    Any pair that was faster over a link than it claims to be proves that the figure was not taken under load.
    """
    found: dict[str, Finding] = {}
    explained = set()
    fastest: dict[str, float] = {}
    for row in rows:
        for name in row["links"]:
            fastest[name] = max([fastest.get(name, 0.0), *(row[speed] for speed in _SPEEDS if row[speed])])
    for row in rows:
        full = min(places[row[end]].line_rate_gbps or LINE_RATE_GBPS for end in ("source", "target"))
        for name, (speed, lanes) in row["links"].items():
            rate = paths.line_rate_gbps(speed, lanes) or full
            if rate < full * 0.99 and 0 < fastest[name] <= rate:
                detail = f"{speed:g} GT/s x{lanes} with data on the way, {rate:.1f} of {full:.1f} GB/s"
                found.setdefault(name, finding("P2P_LINK_SLOW", name, f"{detail}; measured between {pair(row)}"))
                explained.add(pair(row))
    return list(found.values()), explained


def _limit(row: Row, thresholds: Thresholds, places: t.Mapping[str, paths.Place]) -> float:
    """The line rate of a pair: as set, else that of its narrowest link, else that of PCIe 5.0 x16."""
    rates = [places[row[end]].line_rate_gbps or LINE_RATE_GBPS for end in ("source", "target")]
    return thresholds.implausible_gbps or min(rates)


def _implausible(row: Row, thresholds: Thresholds, places: t.Mapping[str, paths.Place]) -> list[Finding]:
    limit = _limit(row, thresholds, places)
    above = [f"{row[name]:.1f} GB/s {how}" for name, how in _SPEEDS.items() if (row[name] or 0) > limit * 1.001]
    if (row["bidirectional_gbps"] or 0) > 2 * limit * 1.001:
        above.append(f"{row['bidirectional_gbps']:.1f} GB/s both ways")
    return [finding("P2P_IMPLAUSIBLE", pair(row), f"{', '.join(above)}; a way holds {limit:.1f}")] if above else []


def _slow(row: Row, thresholds: Thresholds) -> list[Finding]:
    reference = thresholds.reference(row["path_class"])
    worst, told = 1.0, []
    for name, how in _SPEEDS.items():
        if row[name] and row[name] < reference * thresholds.warn_ratio:
            worst = min(worst, row[name] / reference)
            told.append(f"{row[name]:.1f} GB/s {how}")
    if not told:
        return []
    severity = "fail" if worst < thresholds.fail_ratio else "warn"
    detail = f"{', '.join(told)}; {row['path_class'] or 'such'} pairs reach {reference:.0f}"
    return [finding("P2P_SLOW", pair(row), detail, severity=severity)]


def _staged(row: Row, tests: t.Sequence[str], thresholds: Thresholds) -> list[Finding]:
    """Copies that go through the host although peer access is on: by their latency, or as fast as without it."""
    told = []
    best = max((row[name] or 0 for name in _SPEEDS), default=0)
    effective = bool(best and row["staged_gbps"]) and best >= row["staged_gbps"] * thresholds.staged_ratio
    if row["latency_us"] is not None and row["latency_us"] > thresholds.latency_us:
        told.append(f"a small copy takes {row['latency_us']:.1f} us, more than {thresholds.latency_us:g}")
    if best and row["staged_gbps"] and not effective:
        told.append(f"{best:.1f} GB/s with peer access, {row['staged_gbps']:.1f} without")
    if told:
        return [finding("P2P_STAGED", pair(row), "; ".join(told))]
    missing = []
    if not row["errors"]:
        missing = [name for name in _SPEEDS if "bandwidth" in tests and not row[name]]
        missing += ["latency"] if "latency" in tests and row["latency_us"] is None else []
    # That a link is not staged can be told by either; without the gate there is no latency.
    severity = "info" if missing == ["latency"] and effective else None
    return [finding("P2P_NOT_MEASURED", pair(row), ", ".join(missing), severity=severity)] if missing else []


def _both_ways(row: Row, rows: t.Sequence[Row], thresholds: Thresholds) -> list[Finding]:
    if row["source"] > row["target"] or not row["bidirectional_gbps"]:
        return []
    back = next(other for other in rows if (other["source"], other["target"]) == (row["target"], row["source"]))
    alone = [one["write_gbps"] for one in (row, back)]
    if None in alone or row["bidirectional_gbps"] >= min(alone) * thresholds.bidirectional_ratio:
        return []
    detail = f"{row['bidirectional_gbps']:.1f} GB/s both ways, {min(alone):.1f} one way"
    return [finding("P2P_BIDIRECTIONAL_LOW", pair(row), detail)]


def _outliers(rows: t.Sequence[Row], thresholds: Thresholds, slow: t.Container[str]) -> list[Finding]:
    found = []
    for path_class in {row["path_class"] for row in rows}:
        of_class = [row for row in rows if row["path_class"] == path_class and row["write_gbps"]]
        if len(of_class) < 3:
            continue
        median = statistics.median(row["write_gbps"] for row in of_class)
        for row in of_class:
            if pair(row) not in slow and row["write_gbps"] < median * thresholds.outlier_ratio:
                detail = f"{row['write_gbps']:.1f} GB/s, the median of {path_class or 'all'} is {median:.1f}"
                found.append(finding("P2P_OUTLIER", pair(row), detail))
    return found


def _set_name(row: Row) -> str:
    kind = "integrity of all pairs at once" if row["kind"] == "integrity" else row["kind"].replace("_", " ")
    return f"{kind} ({row['name']})"


def _set(row: Row, thresholds: Thresholds) -> list[Finding]:
    error = row["error"]
    if error:
        if error["kind"] == "not made":
            return []
        return [finding(_ENDS.get(error["kind"], "P2P_ERROR"), _set_name(row), error["detail"])]
    if row["ratio"] is None:
        return [finding("P2P_NOT_MEASURED", _set_name(row), "the clock gave no time for a copy")]
    low = [one for one in row["flows"] if one["gbps"] < one["ideal_gbps"] * thresholds.concurrent_fail_ratio]
    failed = bool(low) or row["ratio"] < thresholds.concurrent_fail_ratio
    if not failed and row["ratio"] >= thresholds.concurrent_warn_ratio:
        return []
    named = "".join(f"; {pair(one)} {one['gbps']:.1f} of {one['ideal_gbps']:.1f}" for one in low[:8])
    detail = f"{row['gbps']:.1f} of {row['ideal_gbps']:.1f} GB/s together{named}"
    return [finding("P2P_COLLAPSE", _set_name(row), detail, severity="fail" if failed else "warn")]
