# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the look at an inventory."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ansible.modules import inventory_check

ROLES = Path(__file__).parents[3] / "roles"
ARGS: dict[str, t.Any] = {"host": "infer1", "roles_path": str(ROLES), "known": ["profile"]}


def test_the_variables_of_the_real_roles_are_known(run_module: t.Callable[..., dict[str, t.Any]]) -> None:
    right = ["gpu_container_vmid", "pve_host_allow_reboot", "slipway_ca_bundle", "slipway_gate_findings", "profile"]
    result = run_module(inventory_check, {**ARGS, "variables": [*right, "ansible_host"]}, check=True)
    assert (result["rc"], result["changed"], result["findings"]) == (0, False, [])
    assert result["variables"] == sorted(right)


def test_a_misspelt_one_and_a_clash_are_told_together(run_module: t.Callable[..., dict[str, t.Any]]) -> None:
    guests = [
        {"name": name, "node": "pve1", "vmid": "101", "address": address, "gpus": []}
        for name, address in (("infer1", "192.0.2.1"), ("infer2", "192.0.2.2"))
    ]
    result = run_module(inventory_check, {**ARGS, "variables": ["gpu_container_core"], "guests": guests})
    assert [(one["id"], one["subject"], one["detail"]) for one in result["findings"]] == [
        ("VARIABLE_UNKNOWN", "gpu_container_core", "the nearest right name is gpu_container_cores"),
        ("GUEST_CLASH", "infer1", "infer2 has vmid 101 on pve1 too"),
    ]


def test_a_folder_without_roles_is_refused(run_module: t.Callable[..., dict[str, t.Any]], tmp_path: Path) -> None:
    result = run_module(inventory_check, {**ARGS, "roles_path": str(tmp_path), "variables": []})
    assert result["rc"] == 1
    assert result["msg"].startswith(f"Cannot read roles '{tmp_path}' on ")
