# SPDX-License-Identifier: GPL-3.0-or-later
"""From what the ranks came to to findings and one verdict: pure. What was not seen is never good, and data comes before speed."""

from __future__ import annotations

import typing as t

from ..findings import Finding, finding
from . import causes
from .plan import Plan
from .record import Record
from .thresholds import Thresholds

Row = t.Mapping[str, t.Any]
SUBJECT = "all-reduce"
_DEGRADED = frozenset({"ALL_REDUCE_SLOW"})
# (release, compute capability): what users have shown to fail.
BROKEN = {("2.26.2", 120): "illegal memory access from 512 KiB on, gone in 2.31.2"}


def verdict(findings: t.Sequence[Finding]) -> str:
    """The worst of ``corrupt hung could_not_run degraded ok``. Only what fails or is unknown counts."""
    bad = {found.id for found in findings if found.severity in ("fail", "unknown")}
    if "ALL_REDUCE_CORRUPT" in bad:
        return "corrupt"
    if bad & {"ALL_REDUCE_HUNG", "CUDA_HUNG"}:
        return "hung"
    if bad - _DEGRADED:
        return "could_not_run"
    return "degraded" if bad else "ok"


def judge(plan: Plan, record: Record, thresholds: Thresholds, python: str) -> list[Finding]:
    """All findings about a run."""
    found = [*_corrupt(record), *_ended(record, python), *_misplaced(record)]
    whole = all(row["ended"] == "done" for row in record.ranks)
    if whole and not found:
        found += _not_all(plan, record)
    return (
        found
        + _version(record, whole)
        + _transport(record)
        + _speed(plan, record, thresholds)
        + _latency(plan, record, thresholds)
    )


def _name(row: Row) -> str:
    return f"rank {row['rank']} ({row['bus_id']})"


def _corrupt(record: Record) -> list[Finding]:
    found = []
    for result in record.results:
        if result["faults"]:
            worst = max(result["faults"], key=lambda fault: fault["wrong"])
            kinds = [f"{worst[kind]} {kind}" for kind in ("zeros", "unchanged") if worst[kind]]
            ranks = sorted({fault["rank"] for fault in result["faults"]})
            detail = (
                f"{result['wrong']} of {result['checked']} sums are wrong, on ranks {', '.join(map(str, ranks))}; worst on "
                f"{_name(record.ranks[worst['rank']])}: {worst['wrong']} of {worst['checked']} in {worst['dtype']}"
                f"{' (' + ', '.join(kinds) + ')' if kinds else ''}, the first at {worst['offset']}: {_number(worst['got'])} "
                f"where {_number(worst['expected'])} is right"
            )
            found.append(finding("ALL_REDUCE_CORRUPT", f"{result['size']} bytes", detail))
    return found


def _number(value: float | None) -> str:
    return "no number" if value is None else f"{value:g}"


def _ended(record: Record, python: str) -> list[Finding]:
    """What kept ranks from their end: one finding, about the rank that failed first by what it says."""
    open_ranks = [row for row in record.ranks if row["ended"] == "open"]
    # One that said what is wrong and then did not even end has failed, too.
    failed = [row for row in record.ranks if row["ended"] == "failed" or (row["ended"] == "open" and row["error"])]
    if failed:
        return [_failed(record, failed, python)]
    if not open_ranks:
        return []
    if record.died:
        return [finding("ALL_REDUCE_NOT_RUN", SUBJECT, f"the process that runs the ranks died ({record.died})")]
    if record.cut:
        return [finding("ALL_REDUCE_NOT_RUN", SUBJECT, f"the time was over: {_where(record.ranks)}")]
    return [finding("ALL_REDUCE_HUNG", SUBJECT, _hung(record))]


def _failed(record: Record, failed: t.Sequence[Row], python: str) -> Finding:
    warnings = record.log["warnings"]
    known = [(row, causes.find(row["error"], row["tail"], warnings, row["status"])) for row in failed]
    # A rank that lost another says so; the one that failed by itself is the cause.
    row, cause = next(((row, cause) for row, cause in known if cause.kind != causes.FOLLOWS), known[0])
    said = causes.short(row["error"]) if row["error"] else _death(row)
    told = f"{_name(row)} in phase '{row['phase']}': {said}{'; ' + cause.clause if cause.clause else ''}"
    others = [other for other in record.ranks if other is not row and other["ended"] != "done"]
    told += f"; {len(others)} other ranks did not end well either" if others else ""
    if cause.kind == causes.MISSING:
        return finding("ALL_REDUCE_NOT_RUN", python, told)
    return finding("ALL_REDUCE_FAILED", SUBJECT, told)


def _death(row: Row) -> str:
    status = row["status"]
    how = "without a word" if status == 0 else f"with status {status}" if status > 0 else f"by signal {-status}"
    return f"it ended {how}" + (f" ({row['tail'][-1][:300]})" if row["tail"] else "")


def _hung(record: Record) -> str:
    log = record.log
    told = f"nothing came back for {record.hung or 0:.0f} seconds: {_where(record.ranks)}"
    if any("bytes" in row["phase"] or row["phase"] == "first all-reduce" for row in record.ranks):
        ways = sorted({way["via"] for way in log["transport"]})
        complete = (
            "NCCL's communicator was complete"
            if log["complete"] >= len(record.ranks)
            else "NCCL's communicator was not complete"
        )
        told += f"; {complete}, by way of {', '.join(ways) or 'nothing that it told'}"
    if record.survivors:
        told += f"; processes {', '.join(map(str, record.survivors))} cannot be killed, so the node needs a reboot"
    return told


def _where(ranks: t.Sequence[Row]) -> str:
    """Ranks by the phase in which they were last heard of."""
    phases: dict[str, list[Row]] = {}
    for row in ranks:
        phases.setdefault("done" if row["ended"] == "done" else row["phase"], []).append(row)
    if len(phases) == 1:
        return f"all ranks were last heard of in phase '{next(iter(phases))}'"
    parts = []
    for phase, rows in sorted(phases.items(), key=lambda item: len(item[1])):
        names = ", ".join(_name(row) for row in rows) if len(rows) <= 2 else f"{len(rows)} others"
        parts.append(f"{names} in phase '{phase}'")
    return "; ".join(parts)


def _misplaced(record: Record) -> list[Finding]:
    """Ranks whose GPU is another than planned, where torch tells: then all that is said of GPUs here would be wrong."""
    moved = [row for row in record.ranks if row["seen_bus_id"] and row["seen_bus_id"] != row["bus_id"]]
    told = ", ".join(f"rank {row['rank']} has {row['seen_bus_id']} in place of {row['bus_id']}" for row in moved)
    return [finding("ALL_REDUCE_NOT_RUN", SUBJECT, f"{told}; see CUDA_VISIBLE_DEVICES")] if moved else []


def _not_all(plan: Plan, record: Record) -> list[Finding]:
    by_size = {result["size"]: result for result in record.results}
    missing = [size.bytes for size in plan.sizes if by_size.get(size.bytes, {}).get("ranks") != len(plan.gpus)]
    missing += [size for size, result in by_size.items() if not result["checked"] and size not in missing]
    if not missing:
        return []
    listed = ", ".join(str(size) for size in missing)
    return [finding("ALL_REDUCE_NOT_RUN", SUBJECT, f"not all ranks told of the sizes {listed}")]


def _version(record: Record, whole: bool) -> list[Finding]:
    version = nccl_version(record)
    for sm in sorted({row["sm"] for row in record.ranks if row["sm"]}):
        known = BROKEN.get((version or "", sm))
        if known:
            detail = f"NCCL {version} on compute capability {sm // 10}.{sm % 10}: {known}"
            return [finding("NCCL_VERSION_BROKEN", f"NCCL {version}", detail, severity="warn" if whole else None)]
    return []


def nccl_version(record: Record) -> str | None:
    """What NCCL's log says, else what torch says."""
    said = record.log["version"] or next((row["nccl"] for row in record.ranks if row["nccl"]), None)
    return str(said) if said else None


def _transport(record: Record) -> list[Finding]:
    """Ways that do not use peer access although the driver offers it. Some serve faster without it, so this never fails by itself."""
    lost = []
    for way in record.log["transport"]:
        reachable = way["target"] in record.peers.get(way["source"], ()) or way["source"] in record.peers.get(
            way["target"], ()
        )
        if not way["via"].startswith("P2P") and reachable:
            lost.append(way)
    if not lost:
        return []
    settings = record.log["settings"]
    asked = [f"{name}={settings[name]}" for name in ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL") if name in settings]
    first = lost[0]
    more = f" and {len(lost) - 1} other ways" if len(lost) > 1 else ""
    detail = (
        f"rank {first['source']} -> {first['target']} via {first['via']}{more}, although the driver offers peer access"
    )
    detail += (
        f"; {', '.join(asked)} is set"
        if asked
        else "; NCCL uses it below a common switch only, unless NCCL_P2P_LEVEL says otherwise"
    )
    off = settings.get("NCCL_P2P_DISABLE", "0") not in ("0", "")
    return [finding("ALL_REDUCE_VIA_SHM", SUBJECT, detail, severity="info" if off else None)]


def _speed(plan: Plan, record: Record, thresholds: Thresholds) -> list[Finding]:
    largest = plan.sizes[-1].bytes
    result = next((one for one in record.results if one["size"] == largest), None)
    if result is None or result["ranks"] != len(plan.gpus):
        return []  # what is missing has been said
    speed = result["busbw_gbps"]
    if speed is None:
        return [finding("ALL_REDUCE_NOT_RUN", SUBJECT, f"the clock gave no time for {largest} bytes")]
    if speed >= thresholds.bus_gbps * thresholds.warn_ratio:
        return []
    severity = "fail" if speed < thresholds.bus_gbps * thresholds.fail_ratio else "warn"
    detail = f"{speed:.1f} GB/s bus bandwidth with {largest >> 20} MiB on {len(plan.gpus)} GPUs; {thresholds.bus_gbps:g} is the reference"
    return [finding("ALL_REDUCE_SLOW", SUBJECT, detail, severity=severity)]


def _latency(plan: Plan, record: Record, thresholds: Thresholds) -> list[Finding]:
    """Copies can go directly where what kernels write is staged through the host, which only this shows."""
    smallest = plan.sizes[0].bytes
    result = next((one for one in record.results if one["size"] == smallest and one["seconds"]), None)
    if result is None or result["seconds"] * 1e6 <= thresholds.latency_us:
        return []
    detail = f"{result['seconds'] * 1e6:.0f} us for {smallest} bytes, more than {thresholds.latency_us:g}"
    return [finding("ALL_REDUCE_LATENCY_HIGH", SUBJECT, detail)]
