# SPDX-License-Identifier: GPL-3.0-or-later
"""What the role `report` hands over, as its expressions have it, wherever a run has come to."""

from __future__ import annotations

import typing as t
from pathlib import Path

from evaluate import evaluate

HANDED_OVER = "{{ __report_asked_for | combine(__report_came_out) }}"
PROFILE = {
    "summary": "A model", "engine": "llamacpp", "engine_version": "1.2", "model": {"repository": "one/model", "revision": "abc"},
    "server": {"tensor_parallel": 8, "context_length": 2048, "kv_cache_dtype": "auto"}, "patches": ["a", "b"],
    "evidence": [{"what": "It ran.", "where": "here", "by": "me", "when": "2026-12-01"}], "expected": [],
}  # fmt: skip
OWN = {
    "profile": "mine", "gpu_container_node": "node1", "gpu_container_vmid": 101, "gpu_container_gpus": ["0000:03:00.0", "0000:04:00.0"],
    "gpu_container_allow_restart": True, "gpu_container_allow_adopt": "false",
}  # fmt: skip


def handed_over(root: Path, own: dict[str, t.Any], **known: t.Any) -> dict[str, t.Any]:
    """``own`` is what the inventory says of the host, ``known`` what roles have made besides."""
    node = {"pve_host_driver_version": "580.105.08", "pve_host_allow_reboot": True}
    variables = {
        "inventory_hostname": "infer1", "hostvars": {"infer1": own, "node1": node}, "report_directory": "/reports", **own, **known,
    }  # fmt: skip
    return evaluate(HANDED_OVER, variables, root / "roles/report")


def test_nothing_is_known_yet(root: Path) -> None:
    told = handed_over(root, {})
    assert told["directory"] == "/reports"
    assert [told[key] for key in ("node", "vmid", "profile", "summary", "engine", "environment", "audit")] == [None] * 7
    assert [told[key] for key in ("asked", "consents", "evidence", "findings", "acceptance", "memory", "argv")] == [
        [],
        [],
        [],
        [],
        {},
        {},
        [],
    ]


def test_what_was_asked_and_who_decided_it(root: Path) -> None:
    told = handed_over(root, OWN, slipway_profile=PROFILE, inference_server_port=8000)
    assert [(row["what"], row["value"], row["by"]) for row in told["asked"]] == [
        ("Profile", "mine", "the inventory"),
        ("Model", "one/model at abc", "the profile"),
        ("Tensor parallel size", 8, "the profile"),
        ("Tokens for one request", 2048, "the profile"),
        ("Keys and values are kept as", "auto", "the profile"),
        ("Patches", "a, b", "the profile"),
        ("Node", "node1", "the inventory"),
        ("Guest", 101, "the inventory"),
        ("GPUs", "0000:03:00.0, 0000:04:00.0", "the inventory"),
        ("Driver", "580.105.08", "the inventory"),
        ("Port", "8000", "Slipway's default"),
    ]
    assert (told["engine"], told["summary"], len(told["evidence"])) == ("llamacpp 1.2", "A model", 1)


def test_consents_are_those_that_are_given(root: Path) -> None:
    assert handed_over(root, OWN)["consents"] == ["gpu_container_allow_restart", "pve_host_allow_reboot"]


def test_findings_of_all_roles_are_there_once(root: Path) -> None:
    one, two, three = ({"id": name, "severity": "warn"} for name in ("ONE", "TWO", "THREE"))
    told = handed_over(
        root,
        OWN,
        preflight_inventory={"findings": [one]},
        gpu_container_node_facts={"findings": [two]},
        inference_server_model={"findings": [three], "fit": {"verdict": "fits"}},
        acceptance_result={"findings": [two]},
    )
    assert [found["id"] for found in told["findings"]] == ["ONE", "TWO", "THREE"]
    assert told["memory"] == {"verdict": "fits"}
