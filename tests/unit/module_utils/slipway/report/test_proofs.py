# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import report_facts as facts
from ansible.module_utils.slipway.report import content, proofs, write


def states(gathered: dict[str, t.Any]) -> dict[str, str]:
    return {row["what"]: row["state"] for row in content.compose("infer1", gathered, facts.run(), [])["proofs"]}


@pytest.mark.parametrize(
    ("state", "verdict", "said"),
    [
        ("holds", "ok", "proven 2026-12-01 13:00 UTC"),
        ("holds", "corrupt", "measured and found bad, which is let pass, 2026-12-01 13:00 UTC"),
        ("failed", "corrupt", "measured and found bad 2026-12-01 13:00 UTC"),
        ("stale", "ok", "no longer proven, measured 2026-12-01 13:00 UTC"),
    ],
)
def test_only_what_was_good_is_called_proven(state: str, verdict: str, said: str) -> None:
    links = facts.kept(facts.links_result(verdict=verdict), "3 hours", state, ["boot: was a, is b"])
    told = proofs.words(links)
    assert told.startswith(f"{said} (3 hours ago)")
    assert ("and since then changed: boot: was a, is b" in told) is (state == "stale")


def test_a_host_on_which_all_was_measured() -> None:
    assert set(states(facts.healthy()).values()) == {"proven"}


@pytest.mark.parametrize(
    ("state", "verdict", "told"),
    [
        ("failed", "corrupt", "bad"),
        ("stale", "ok", "stale"),
        ("holds", "corrupt", "let pass"),
        ("absent", "ok", "not proven"),
    ],
)
def test_what_is_kept_has_the_state_that_it_has(state: str, verdict: str, told: str) -> None:
    gathered = facts.healthy()
    for key in ("links", "all_reduce", "speed"):
        gathered["acceptance"][key] = facts.kept({"verdict": verdict}, "3 hours", state)
    found = states(gathered)
    assert [found[what] for what in ("Links between GPUs", "All-reduce over the GPUs", "Speed")] == [told] * 3


def test_nothing_is_proven_where_nothing_was_looked_at() -> None:
    report = content.compose("infer1", {"directory": "/reports", "engine": "sglang 0.5.9"}, facts.run(), [])
    assert {row["state"] for row in report["proofs"]} == {"not proven"}
    assert "The profile brings no evidence: nobody has written down where it ran before." in report["unproven"]
    assert "Memory: whether the model fits into the GPUs was not computed." in report["unproven"]


def test_wrong_answers_and_a_changed_file_are_no_proof() -> None:
    gathered = facts.many_findings()
    gathered["audit"]["findings"] = [facts.finding("FILE_CHANGED", "fail", "x.py", "It differs.")]
    report = content.compose("infer1", gathered, facts.run(), [])
    rows = {row["what"]: row for row in report["proofs"]}
    assert (rows["Answers"]["state"], rows["Answers"]["text"]) == ("bad", "1 of 4 are wrong: loops.")
    assert rows["Files of the environment"]["state"] == "bad"
    assert "Answers: 1 of 4 are wrong: loops." in report["unproven"]


def test_a_speed_of_this_run_alone_is_told_as_such() -> None:
    gathered = facts.healthy()
    gathered["acceptance"]["speed"] = None
    rows = {row["what"]: row for row in content.compose("infer1", gathered, facts.run(), [])["proofs"]}
    assert rows["Speed"] == {
        "what": "Speed", "state": "proven", "when": "2026-12-01T16-07-12Z", "rests_on": ["this run"],
        "text": "44.8 tokens a second for one request, measured in this run.",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("state", "told"), [("holds", " They stand proven since 2026-12-01 13:00 UTC."), ("stale", "")]
)
def test_answers_are_this_runs_and_an_earlier_proof_is_only_told(state: str, told: str) -> None:
    gathered = facts.healthy()
    gathered["acceptance"]["answers_proof"] = facts.kept({}, "3 hours", state)
    rows = {row["what"]: row for row in content.compose("infer1", gathered, facts.run(), [])["proofs"]}
    assert rows["Answers"]["text"] == f"All 3 were asked and answered as expected in this run.{told}"
    assert rows["Answers"]["when"] == "2026-12-01T16-07-12Z"


def test_an_all_reduce_that_was_skipped_is_none(tmp_path: Path) -> None:
    gathered = facts.healthy(str(tmp_path))
    gathered["acceptance"]["all_reduce"] = {
        "changed": False,
        "skipped": True,
        "skip_reason": "Conditional result was False",
    }
    assert states(gathered)["All-reduce over the GPUs"] == "not proven"
    assert write.reports({"infer1": gathered}, facts.run())[0]["fit"] is True
