# SPDX-License-Identifier: GPL-3.0-or-later
"""Misspelt variables and clashing guests."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway import inventory

KNOWN = {
    "pve_host": {"pve_host_driver_version", "pve_host_allow_reboot"},
    "gpu_container": {"gpu_container_vmid", "gpu_container_cores", "gpu_container_gpus"},
    "report": {"report_directory"},
    "": {"profile"},
}


@pytest.mark.parametrize(
    ("variable", "severity", "detail"),
    [
        ("pve_host_alow_reboot", "fail", "the nearest right name is pve_host_allow_reboot"),
        ("gpu_container_vm_id", "fail", "the nearest right name is gpu_container_vmid"),
        ("gpu_contianer_vmid", "fail", "the nearest right name is gpu_container_vmid"),
        ("profil", "fail", "the nearest right name is profile"),
        ("gpu_container_favourite_colour", "warn", "role gpu_container has nothing like it"),
        ("report_to", "warn", "role report has nothing like it"),
    ],
)
def test_a_variable_that_no_role_reads_is_told(variable: str, severity: str, detail: str) -> None:
    (found,) = inventory.misspelt([variable, "gpu_container_vmid", "profile"], KNOWN)
    assert (found.id, found.subject, found.severity, found.detail) == ("VARIABLE_UNKNOWN", variable, severity, detail)


@pytest.mark.parametrize(
    "variable",
    [
        *("gpu_container_vmid", "profile", "__gpu_container_node", "ansible_host", "vault_token", "colour"),
        *("my_gpu_container_vmid", "profiles", "driver_version", "site_profile"),
    ],
)
def test_what_is_right_or_the_users_own_is_not(variable: str) -> None:
    assert inventory.misspelt([variable], KNOWN) == []


def guest(name: str, **changes: t.Any) -> dict[str, t.Any]:
    return {"name": name, "node": "pve1", "vmid": name[-3:], "address": f"192.0.2.{name[-3:]}", "gpus": [], **changes}


@pytest.mark.parametrize(
    ("mine", "other", "detail"),
    [
        ({"vmid": "101"}, {"vmid": 101}, "b102 has vmid 101 on pve1 too"),
        ({"address": "192.0.2.9"}, {"address": "192.0.2.9", "node": "pve2"}, "b102 has address 192.0.2.9 too"),
        ({"gpus": "all"}, {"gpus": "all"}, "b102 has all GPUs of pve1 too"),
        ({"gpus": "all"}, {"gpus": ["0000:03:00.0"]}, "b102 has GPU 0000:03:00.0 of pve1 too"),
        (
            {"gpus": ["0000:0A:00.0"]},
            {"gpus": ["0000:0a:00.0", "0000:0b:00.0"]},
            "b102 has GPU 0000:0a:00.0 of pve1 too",
        ),
        ({"gpus": ["0000:03:00.0", "0000:03:00.0"]}, {}, "0000:03:00.0 is named twice in its gpu_container_gpus"),
    ],
)
def test_what_two_guests_claim_is_told(mine: dict[str, t.Any], other: dict[str, t.Any], detail: str) -> None:
    (found,) = inventory.clashes("a101", [guest("a101", **mine), guest("b102", **other)])
    assert (found.id, found.severity, found.subject, found.detail) == ("GUEST_CLASH", "fail", "a101", detail)


@pytest.mark.parametrize(
    ("mine", "other"),
    [
        ({"gpus": ["0000:03:00.0"]}, {"gpus": ["0000:04:00.0"]}),
        ({"gpus": "all"}, {"gpus": "all", "node": "pve2"}),
        ({"gpus": "all"}, {"gpus": []}),
        ({"vmid": "101"}, {"vmid": "101", "node": "pve2"}),  # two clusters, perhaps: their API tells
        ({"address": ""}, {"address": ""}),  # another check says that it has none
    ],
)
def test_what_differs_is_no_clash(mine: dict[str, t.Any], other: dict[str, t.Any]) -> None:
    assert inventory.clashes("a101", [guest("a101", **mine), guest("b102", **other)]) == []


def test_a_host_that_is_no_guest_clashes_with_nothing() -> None:
    assert inventory.clashes("pve1", [guest("a101"), guest("b101")]) == []
