# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may set what: every verdict that Proxmox's own code gave, and the rules that a lone verdict does not show."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.pve import permissions

NESTING_ONLY = "changing feature flags (except nesting) is only allowed for root@pam"


# Read at collection, so that each verdict is a test of its own; there are none where the reference data is not.
VERDICTS_FILE = Path(__file__).resolve().parents[6] / "shared" / "data" / "pve-permissions.json"
VERDICTS: list[dict[str, t.Any]] = json.loads(VERDICTS_FILE.read_text()) if VERDICTS_FILE.is_file() else []


def _name(case: dict[str, t.Any]) -> str:
    kind = "unprivileged" if case["unprivileged"] else "privileged"
    value = "deleted" if case.get("delete") else case["value"]
    return f"{case['identity']} {kind} {case['key']} {value}"


@pytest.mark.parametrize("case", VERDICTS, ids=_name)
def test_a_verdict_of_proxmox(case: dict[str, t.Any]) -> None:
    value = None if case.get("delete") else case["value"]
    unprivileged = bool(case["unprivileged"])
    found = permissions.verdict(case["identity"], case["key"], value, unprivileged)
    assert found.allowed == case["allowed"]
    assert list(found.privileges) == case["privileges_checked"]
    assert case.get("error", "") == (f"403 Permission check failed ({found.reason})" if found.reason else "")
    told = permissions.sentence(case["identity"], {case["key"]: value}, unprivileged)
    if case["allowed"]:
        assert told is None
    else:
        reason = case["error"].removeprefix("403 Permission check failed (")[:-1]
        assert told == f"'{case['identity']}' may not set {case['key']} ({case['key']}: {reason})"


def test_every_verdict_was_tried(shared_data: Path) -> None:
    assert len(VERDICTS) == len(json.loads((shared_data / "pve-permissions.json").read_text())) == 182


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        # What is there already is no change, so a token may put nesting beside it.
        ("keyctl=1", "keyctl=1,nesting=1", True),
        ("keyctl=1,nesting=1", "nesting=1", False),
        ("nesting=1", None, True),
        ("fuse=1", None, False),
        ("", "nesting=0", False),
    ],
)
def test_features_are_judged_by_their_change(old: str, new: str | None, allowed: bool) -> None:
    found = permissions.verdict("deploy@pve!tok", "features", new, True, {"features": old} if old else {})
    assert found.allowed == allowed
    assert found.reason == ("" if allowed else NESTING_ONLY)


def test_refused_names_only_what_is_refused() -> None:
    changes = {"dev0": "/dev/nvidia0", "cores": 4, "mp1": "/srv,mp=/srv", "mp2": None, "net0": "name=eth0"}
    assert permissions.refused("root@pam!tok", changes, True) == {
        "dev0": "configuring device passthrough is only allowed for root@pam",
        "mp1": "mount point type bind is only allowed for root@pam",
    }
    assert permissions.refused("root@pam", changes, False) == {}


def test_one_sentence_names_all_that_is_refused() -> None:
    changes = {"hookscript": None, "dev0": "/dev/nvidia0", "cores": 4, "features": "keyctl=1"}
    assert permissions.sentence("root@pam!tok", changes, True, {"features": "nesting=1"}) == (
        "'root@pam!tok' may not set dev0, features, hookscript "
        "(dev0: configuring device passthrough is only allowed for root@pam; "
        f"features: {NESTING_ONLY}; hookscript: changing the hookscript is only allowed for root@pam)"
    )
    assert permissions.sentence("root@pam", changes, True) is None
