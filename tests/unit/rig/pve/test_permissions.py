# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from pve import permissions
from pve.errors import ApiError


def _verdict(case: dict[str, t.Any]) -> tuple[str | None, list[str]]:
    """The error, if any, and the privileges that were asked for."""
    asked: list[str] = []
    new, delete = ({}, [case["key"]]) if case.get("delete") else ({case["key"]: case["value"]}, [])
    try:
        permissions.may_change(
            case["identity"], lambda _, wanted: asked.extend(wanted), 101, new, delete,
            unprivileged=bool(case["unprivileged"]),
        )  # fmt: skip
    except ApiError as error:
        return f"{error.status} {error.message}", asked
    return None, asked


def test_verdicts_of_the_real_code(shared_data: Path) -> None:
    cases = json.loads((shared_data / "pve-permissions.json").read_text())
    assert len(cases) == 182
    for case in cases:
        assert (case, *_verdict(case)) == (case, case.get("error"), case["privileges_checked"])


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("nesting=1,keyctl=1", "keyctl=1,nesting=0", None),
        ("nesting=1,keyctl=1", "nesting=1", permissions.ROOT_ONLY_FEATURES),
        ("nesting=1", "nesting=1", None),
    ],
)
def test_only_a_changed_feature_counts(old: str, new: str, why: str | None) -> None:
    error = None
    try:
        permissions.may_change("a@pve", lambda *_: None, 1, {"features": new}, old={"features": old})
    except ApiError as caught:
        error = caught.message
    assert error == (f"Permission check failed ({why})" if why else None)


def test_new_volume_and_new_bridge_need_more() -> None:
    asked: list[tuple[str, list[str]]] = []
    new = {"mp0": "tank:8,mp=/data", "net0": "name=eth0,bridge=vmbr1", "net1": "name=eth1,bridge=vmbr0,tag=7"}
    old = {"net1": "name=eth1,bridge=vmbr0"}
    permissions.may_change("a@pve", lambda path, wanted: asked.append((path, wanted)), 5, new, old=old)
    assert asked == [
        ("/vms/5", ["VM.Config.Disk"]),
        ("/storage/tank", ["Datastore.AllocateSpace"]),
        ("/vms/5", ["VM.Config.Network"]),
        ("/sdn/zones/localnetwork/vmbr1", ["SDN.Use"]),
        ("/vms/5", ["VM.Config.Network"]),
        # The bridge that it has and the one that it gets.
        ("/sdn/zones/localnetwork/vmbr0", ["SDN.Use"]),
        ("/sdn/zones/localnetwork/vmbr0/7", ["SDN.Use"]),
    ]
