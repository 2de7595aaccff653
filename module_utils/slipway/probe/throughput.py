# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed at given numbers of streams. Prefill and decode are told apart, and tokens are those that the server counted.

Nothing is divided by a time that holds prefill: for a long prompt that gives a third of the speed that a reader sees
(rtx6kpro documents it: 9 in place of 30 to 35 tokens a second).
"""

from __future__ import annotations

import math
import typing as t
from collections import Counter
from dataclasses import replace

from ..findings import Finding, finding
from . import load
from .client import Client, Unreachable
from .load import Shape, Stream

Row = dict[str, t.Any]
# Figures of a load that a threshold may name: where they are, and whether more is better.
JUDGED = {
    "output_tokens_per_second": True,
    "time_to_first_token_seconds": False,
    "time_per_output_token_seconds": False,
}


def measure(
    client: Client, shape: Shape, concurrency: t.Sequence[int], timeout_seconds: float
) -> tuple[Row | None, list[Finding]]:
    """Run each load, fewest streams first; ``None`` where the first gave no figure."""
    try:
        fixed = load.takes_fixed_length(client, shape, timeout_seconds)
    except Unreachable as error:
        return None, [finding("THROUGHPUT_UNKNOWN", client.endpoint, str(error))]
    shape = replace(shape, fixed=fixed)
    loads: list[Row] = []
    findings: list[Finding] = []
    for streams in sorted(set(concurrency)):
        ran = load.run(client, shape, streams, timeout_seconds)
        row = figures(ran, streams)
        loads.append(row)
        findings += _errors(row, client.endpoint)
        if row["output_tokens_per_second"] is None:  # more streams would not fare better
            break
    if loads[0]["output_tokens_per_second"] is None:
        return None, findings
    first = loads[0]
    one = {
        "output_tokens": round(first["output_tokens"] / (first["requests"] - first["failed"])),
        "seconds": first["one_seconds"],
        "time_to_first_token_seconds": first["time_to_first_token_seconds"]["p50"],
        "output_tokens_per_second": first["stream_tokens_per_second"]["p50"],
    }
    return {
        **one,
        "prompt_tokens_wanted": shape.prompt_tokens,
        "output_tokens_wanted": shape.output_tokens,
        "fixed_length": fixed,
        "loads": [{name: value for name, value in row.items() if name != "one_seconds"} for row in loads],
    }, findings


def figures(streams: t.Sequence[Stream], concurrency: int) -> Row:
    """What a load came to. Rates of all streams together are over the time in which at least one was past its first token."""
    good = [one for one in streams if not one.error]
    errors = Counter(one.error for one in streams if one.error)
    after_first = sum(one.output_tokens - 1 for one in good)
    decode = covered([(one.first, one.last) for one in good])
    alone = concurrency == 1 and all(one.prompt_tokens for one in good)
    prefill = sum(one.first - one.started for one in good)
    return {
        "concurrency": concurrency,
        "requests": len(streams),
        "failed": len(streams) - len(good),
        "errors": [{"error": error, "count": count} for error, count in errors.most_common()],
        "prompt_tokens": sum(one.prompt_tokens for one in good),
        "output_tokens": sum(one.output_tokens for one in good),
        "seconds": round(max(one.last for one in good) - min(one.started for one in good), 3) if good else 0.0,
        "one_seconds": percentiles([one.last - one.started for one in good])["p50"],
        "decode_seconds": round(decode, 3),
        "output_tokens_per_second": round(after_first / decode, 2) if decode else None,
        # Of several, one waits while another is read: how long the reading of one took cannot be seen.
        "prompt_tokens_per_second": round(sum(one.prompt_tokens for one in good) / prefill, 1)
        if alone and prefill
        else None,
        "stream_tokens_per_second": percentiles(
            [(one.output_tokens - 1) / (one.last - one.first) for one in good], more_is_better=True
        ),
        "time_to_first_token_seconds": percentiles([one.first - one.started for one in good]),
        "time_per_output_token_seconds": percentiles(
            [(one.last - one.first) / (one.output_tokens - 1) for one in good]
        ),
        "threshold": None,
        "baseline": None,
    }


def covered(spans: t.Iterable[tuple[float, float]]) -> float:
    """How long at least one of these is going on."""
    whole, reached = 0.0, -math.inf
    for begin, end in sorted(spans):
        whole += max(0.0, end - max(begin, reached))
        reached = max(reached, end)
    return whole


def percentiles(values: t.Sequence[float], more_is_better: bool = False) -> dict[str, float | None]:
    """``p90``: nine of ten are at least this good (nearest rank). ``worst`` is the last."""
    ranked = sorted(values, reverse=more_is_better)
    shares = {"p50": 0.5, "p90": 0.9, "p99": 0.99, "worst": 1.0}
    if not ranked:
        return dict.fromkeys(shares)
    return {name: round(ranked[math.ceil(share * len(ranked)) - 1], 5) for name, share in shares.items()}


def compare(speed: Row, thresholds: t.Mapping[str, t.Any], subject: str) -> list[Finding]:
    """Findings about what is slower than a threshold, which are put beside the figures."""
    findings = []
    for row in speed["loads"]:
        wanted = wanted_of(thresholds, row["concurrency"])
        row["threshold"] = wanted.get("output_tokens_per_second")
        for name, more_is_better in JUDGED.items():
            limit, got = wanted.get(name), row[name]
            got = got if more_is_better else got["p90"]
            if limit is None or got is None or (got >= limit if more_is_better else got <= limit):
                continue
            bound = "at least" if more_is_better else "at most"
            what = name.replace("_", " ") + ("" if more_is_better else " (p90)")
            detail = f"{row['concurrency']} at a time: {what} {got}, {bound} {limit} is expected"
            findings.append(finding("THROUGHPUT_LOW", subject, detail))
    return findings


def wanted_of(thresholds: t.Mapping[str, t.Any], concurrency: int) -> dict[str, t.Any]:
    """The thresholds at a number of streams; those without one are of a single stream."""
    wanted = {name: thresholds.get(name) for name in JUDGED} if concurrency == 1 else {}
    for row in thresholds.get("by_concurrency") or []:
        if row["concurrency"] == concurrency:
            wanted.update({name: row[name] for name in JUDGED if row.get(name) is not None})
    return wanted


def not_measured(thresholds: t.Mapping[str, t.Any], concurrency: t.Iterable[int]) -> list[int]:
    """Numbers of streams that have a threshold and are not measured."""
    named = {row["concurrency"] for row in thresholds.get("by_concurrency") or []}
    if any(thresholds.get(name) is not None for name in JUDGED):
        named.add(1)
    return sorted(named - set(concurrency))


def _errors(row: Row, subject: str) -> list[Finding]:
    told = "; ".join(f"{one['error']} ({one['count']})" for one in row["errors"])
    if not told:
        return []
    if row["output_tokens_per_second"] is None:
        return [finding("THROUGHPUT_UNKNOWN", subject, f"{row['concurrency']} at a time: {told}")]
    detail = f"{row['concurrency']} at a time, {row['failed']} of {row['requests']} requests failed: {told}"
    return [finding("LOAD_ERRORS", subject, detail)]
