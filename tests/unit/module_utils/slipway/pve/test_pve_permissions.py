# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may set what: every verdict that Proxmox's own code gave, and the rules that a lone verdict does not show."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from ansible.module_utils.slipway.pve import permissions

NESTING_ONLY = "changing feature flags (except nesting) is only allowed for root@pam"


def test_every_recorded_verdict(shared_data: Path) -> None:
    cases = json.loads((shared_data / "pve-permissions.json").read_text())
    assert len(cases) == 182
    for case in cases:
        value = None if case.get("delete") else case["value"]
        found = permissions.verdict(case["identity"], case["key"], value, bool(case["unprivileged"]))
        assert found.allowed == case["allowed"], case
        assert list(found.privileges) == case["privileges_checked"], case
        assert case.get("error", "") == (f"403 Permission check failed ({found.reason})" if found.reason else ""), case


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
