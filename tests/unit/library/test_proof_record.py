# SPDX-License-Identifier: GPL-3.0-or-later
"""The module: what it keeps, what it finds again, and what it refuses."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.errors import SlipwayError
from ansible.module_utils.slipway.findings import finding
from ansible.modules import proof_record

RESTS_ON = {"boot": "b1"}
CORRUPT = finding("P2P_CORRUPT", "a -> b", "zeros").as_dict()


def run(tmp_path: Path, check_mode: bool = False, now: float = 100.0, **given: t.Any) -> dict[str, t.Any]:
    params = {
        "name": "links",
        "path": str(tmp_path / "proofs.json"),
        "required": True,
        "rests_on": RESTS_ON,
        "result": None,
    }
    return proof_record.run({**params, **given}, check_mode, now)


def test_nothing_is_there_at_first(tmp_path: Path) -> None:
    told = run(tmp_path)
    assert (told["changed"], told["state"], told["age_seconds"], told["result"]) == (False, "absent", None, None)
    assert [(one["id"], one["severity"]) for one in told["findings"]] == [("PROOF_ABSENT", "unknown")]


def test_what_was_kept_is_found_again_with_its_age(tmp_path: Path) -> None:
    kept = run(tmp_path, result={"findings": [], "verdict": "ok"})
    assert (kept["changed"], kept["state"]) == (True, "holds")
    found = run(tmp_path, now=160.0)
    assert (found["changed"], found["state"], found["age_seconds"]) == (False, "holds", 60)
    assert found["proven_at"] == "1970-01-01T00:01:40+00:00"
    assert found["result"]["verdict"] == "ok"


def test_a_bad_one_is_kept_and_told_with_its_cause(tmp_path: Path) -> None:
    run(tmp_path, result={"findings": [CORRUPT]})
    told = run(tmp_path)
    assert told["state"] == "failed"
    assert [one["id"] for one in told["findings"]] == ["PROOF_FAILED", "P2P_CORRUPT"]


def test_what_is_not_required_only_warns(tmp_path: Path) -> None:
    assert [one["severity"] for one in run(tmp_path, required=False)["findings"]] == ["warn"]
    run(tmp_path, result={"findings": [CORRUPT]})
    assert {one["severity"] for one in run(tmp_path, required=False)["findings"]} == {"warn"}


def test_a_bad_one_that_need_not_be_good_is_never_called_proven(tmp_path: Path) -> None:
    run(tmp_path, required=False, result={"findings": [{**CORRUPT, "severity": "warn"}], "verdict": "corrupt"})
    told = run(tmp_path, required=False)
    assert told["state"] == "holds"  # so that it is not measured anew at each deploy
    assert [(one["id"], one["severity"]) for one in told["findings"]] == [
        ("PROOF_FAILED", "warn"),
        ("P2P_CORRUPT", "warn"),
    ]
    assert told["findings"][0]["detail"].startswith(
        "verdict corrupt, which is let pass and not measured anew; measured 0 seconds ago"
    )


def test_findings_of_a_stale_one_are_not_told(tmp_path: Path) -> None:
    run(tmp_path, result={"findings": [CORRUPT]})
    told = run(tmp_path, rests_on={"boot": "b2"})
    assert told["state"] == "stale"
    assert told["differences"] == ["boot: was b1, is b2"]
    assert [one["id"] for one in told["findings"]] == ["PROOF_STALE"]


def test_another_name_stays_as_it_is(tmp_path: Path) -> None:
    run(tmp_path, result={"findings": []})
    run(tmp_path, name="answers", result={"findings": [CORRUPT]})
    assert run(tmp_path)["state"] == "holds"


def test_check_mode_keeps_nothing(tmp_path: Path) -> None:
    told = run(tmp_path, check_mode=True, result={"findings": []})
    assert (told["changed"], told["state"]) == (True, "absent")
    assert told["diff"]["after"] == "boot: b1\n"
    assert not (tmp_path / "proofs.json").exists()


def test_a_file_that_is_broken_is_replaced_by_a_new_proof(tmp_path: Path) -> None:
    (tmp_path / "proofs.json").write_text("{")
    assert run(tmp_path)["state"] == "absent"
    assert "holds no proofs" in run(tmp_path)["findings"][0]["detail"]
    assert run(tmp_path, result={"findings": []})["state"] == "holds"


@pytest.mark.parametrize(
    ("given", "says"),
    [({"rests_on": {}}, "rests_on is empty"), ({"result": {"verdict": "ok"}}, "its result has no findings")],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, given: dict[str, t.Any], says: str) -> None:
    with pytest.raises(SlipwayError, match=says):
        run(tmp_path, **given)


def test_a_place_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(SlipwayError, match=r"Cannot keep proof 'links' on .*proofs.json: File exists"):
        run(tmp_path, path=str(tmp_path / "file" / "proofs.json"), result={"findings": []})
    assert os.listdir(tmp_path) == ["file"]
