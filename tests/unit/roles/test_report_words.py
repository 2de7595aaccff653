# SPDX-License-Identifier: GPL-3.0-or-later
"""What the report says of the links, as the role's expression has it."""

from __future__ import annotations

from pathlib import Path

import pytest
from evaluate import evaluate


@pytest.mark.parametrize(
    ("state", "verdict", "said"),
    [
        ("holds", "ok", "proven 2026-12-01"),
        ("holds", "corrupt", "measured and found bad, which is let pass, 2026-12-01"),
        ("failed", "corrupt", "measured and found bad 2026-12-01"),
        ("stale", "ok", "no longer proven, measured 2026-12-01"),
    ],
)
def test_only_what_was_good_is_called_proven(root: Path, state: str, verdict: str, said: str) -> None:
    links = {"state": state, "proven_at": "2026-12-01", "age": "3 hours", "rests_on": {"boot": "b1"}, "differences": []}
    given = {"acceptance_result": {"links": {**links, "result": {"verdict": verdict}}}}
    told = evaluate("{{ __report_links }}", given, root / "roles/report")
    assert told.startswith(f"{said} (3 hours ago)")


@pytest.mark.parametrize(
    ("state", "said"), [("holds", "ok with NCCL"), ("stale", "No longer proven. It was ok with NCCL")]
)
def test_an_all_reduce_that_is_no_longer_proven_is_told_as_such(root: Path, state: str, said: str) -> None:
    whole = (root / "roles/report/templates/report.md.j2").read_text()
    part = whole[whole.index("## All-reduce") : whole.index("## Answers")]
    result = {"verdict": "ok", "nccl_version": "2.27.3", "ranks": [], "results": []}
    given = {"proof": {"all_reduce": {"state": state, "proven_at": "2026-12-01", "result": result}}}
    told = evaluate(part, given)
    assert f"\n{said} 2.27.3 over 0 GPUs, measured 2026-12-01.\n" in told
