# SPDX-License-Identifier: GPL-3.0-or-later
"""Proofs that hold, that have grown stale, that were bad, and files that hold none."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway import proof
from ansible.module_utils.slipway.findings import finding

RESTS_ON = {"boot": "b1", "driver": "580.105.08", "nodes": ["/dev/nvidia0 195:0"]}
GOOD = {"findings": [finding("P2P_NO_PAIRS", "0000:03:00.0").as_dict()]}
BAD = {"findings": [finding("P2P_CORRUPT", "a -> b", "zeros").as_dict()]}


@pytest.mark.parametrize(
    ("result", "now_on", "state", "fault"),
    [
        (GOOD, RESTS_ON, "holds", "PROOF_HOLDS"),
        (BAD, RESTS_ON, "failed", "PROOF_FAILED"),
        (GOOD, {**RESTS_ON, "boot": "b2"}, "stale", "PROOF_STALE"),
        # Bad links that were measured under another driver say nothing of those of today either.
        (BAD, {**RESTS_ON, "driver": "595.58.03"}, "stale", "PROOF_STALE"),
        (GOOD, {"boot": "b1", "driver": "580.105.08"}, "stale", "PROOF_STALE"),
        (GOOD, {**RESTS_ON, "new": 1}, "stale", "PROOF_STALE"),
    ],
)
def test_a_proof_is_as_good_as_what_it_rests_on(
    result: dict[str, t.Any], now_on: dict[str, t.Any], state: str, fault: str
) -> None:
    made = proof.make(result, RESTS_ON, 1000.0)
    assert proof.state(made, now_on) == state
    assert [one.id for one in proof.judge("links", made, now_on, 1060.0, "")] == [fault]


def test_what_changed_is_told_with_both_values() -> None:
    made = proof.make(GOOD, RESTS_ON, 0.0)
    (told,) = proof.judge("links", made, {**RESTS_ON, "boot": "b2", "nodes": []}, 7 * 3600.0, "")
    assert told.severity == "unknown"
    assert told.detail == "measured 7 hours ago; boot: was b1, is b2; nodes: was /dev/nvidia0 195:0, is "


def test_one_that_holds_says_since_when_and_on_what() -> None:
    (told,) = proof.judge("links", proof.make(GOOD, RESTS_ON, 0.0), RESTS_ON, 3 * 86400.0, "")
    assert told.detail.startswith("measured 3 days ago, resting on boot b1, driver 580.105.08")


def test_what_was_never_proven_is_unknown() -> None:
    (told,) = proof.judge("links", None, RESTS_ON, 0.0, "")
    assert (told.id, told.severity) == ("PROOF_ABSENT", "unknown")


def test_it_comes_back_from_its_file(tmp_path: Path) -> None:
    path = tmp_path / "made" / "proofs.json"
    # Tuples and numbers as keys come back as lists and strings: what is compared must be what a file can hold.
    rests_on = {"boot": "b1", "pair": (1, 2), "by number": {0: "x"}}
    proof.save(path, {"links": proof.make(GOOD, rests_on, 5.5)})
    loaded, unusable = proof.load(path)
    assert unusable == ""
    assert proof.state(loaded["links"], rests_on) == "holds"


@pytest.mark.parametrize(
    "content",
    ["", "[]", "{", '{"format": 2, "proofs": {}}', '{"format": 1, "proofs": {"links": {"proven_at": "x"}}}',
     '{"format": 1, "proofs": {"links": {"proven_at": 1, "rests_on": {}, "findings": [{"id": "X"}]}}}'],
)  # fmt: skip
def test_a_file_that_holds_none_proves_nothing(tmp_path: Path, content: str) -> None:
    path = tmp_path / "proofs.json"
    path.write_text(content)
    proofs, unusable = proof.load(path)
    assert proofs == {}
    assert str(path) in unusable


def test_no_file_is_no_fault(tmp_path: Path) -> None:
    assert proof.load(tmp_path / "proofs.json") == ({}, "")
