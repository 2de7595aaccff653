# SPDX-License-Identifier: GPL-3.0-or-later
"""The speed that this host once had, in a file of the same form as that of its links: what it is of, and rates by name."""

from __future__ import annotations

import typing as t
from datetime import datetime, timezone
from pathlib import Path

from ..findings import Finding, finding
from ..p2p import baseline as file

WARN_RATIO = 0.9
FAIL_RATIO = 0.75
# More is better for both.
_RATES = ("output_tokens_per_second", "prompt_tokens_per_second")
Row = dict[str, t.Any]


def make(speed: Row, of: t.Mapping[str, t.Any]) -> Row:
    """The baseline of a measurement; ``of`` is what else must be the same for it to be compared with."""
    lengths = {name: speed[name] for name in ("prompt_tokens_wanted", "output_tokens_wanted")}
    speeds = {_name(row, rate): row[rate] for row in speed["loads"] for rate in _RATES if row[rate]}
    return {"format": file.FORMAT, "of": {**of, **lengths}, "speeds": speeds}


def hold_against(
    speed: Row, path: str, of: t.Mapping[str, t.Any], thresholds: t.Mapping[str, t.Any], may_record: bool
) -> tuple[Row, list[Finding]]:
    """Compare with the file, or write it where there is none and ``may_record``; what came of it, and findings.

    The rates of the file are put beside those of ``speed``. Raises ``OSError`` where it cannot be written.
    """
    now = make(speed, of)
    told: Row = {"path": path, "recorded_at": None, "used": False, "recorded": False}
    before, unusable = file.load(path)
    if before and before["of"] != now["of"]:
        unusable = "it is of another model, of other lengths or of other GPUs"
    if unusable:
        return told, [finding("THROUGHPUT_BASELINE_UNUSABLE", path, unusable)]
    if before:
        told.update(used=True, recorded_at=_written_at(path))
        for row in speed["loads"]:
            row["baseline"] = before["speeds"].get(_name(row, _RATES[0]))
        return told, compare(before["speeds"], now["speeds"], thresholds)
    if may_record:
        file.save(path, now)
        told.update(recorded=True, recorded_at=_written_at(path))
    return told, []


def compare(
    before: t.Mapping[str, float], now: t.Mapping[str, float], thresholds: t.Mapping[str, t.Any]
) -> list[Finding]:
    """Findings about rates that became less. What is not in the baseline has nothing to be compared with."""
    found = []
    for name, speed in before.items():
        measured = now.get(name)
        if measured is None or measured >= speed * (thresholds.get("baseline_warn_ratio") or WARN_RATIO):
            continue
        severity = "fail" if measured < speed * (thresholds.get("baseline_fail_ratio") or FAIL_RATIO) else "warn"
        detail = f"{measured:.1f} tokens a second, {speed:.1f} when it was recorded ({measured / speed:.0%})"
        found.append(finding("THROUGHPUT_BELOW_BASELINE", name, detail, severity=severity))
    return found


def _name(row: Row, rate: str) -> str:
    return f"{'output' if rate == _RATES[0] else 'prefill'}, {row['concurrency']} at a time"


def _written_at(path: str) -> str:
    return datetime.fromtimestamp(Path(path).stat().st_mtime, timezone.utc).isoformat(timespec="seconds")
