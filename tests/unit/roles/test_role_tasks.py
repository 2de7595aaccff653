# SPDX-License-Identifier: GPL-3.0-or-later
"""Parts of roles, run by ansible-playbook on this machine: what they say, and that they ask nothing of a host that they need not."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from role_part import Part

VERSION = "580.105.08"
ADDRESS = f"https://mirror.invalid/NVIDIA-Linux-x86_64-{VERSION}.run"


@pytest.fixture
def part(tmp_path: Path, root: Path) -> Part:
    return Part(tmp_path, root)


def test_the_login_of_an_address_is_not_shown_where_its_version_is_another(part: Part) -> None:
    code, said = part(
        "pve_host",
        "preflight_source",
        pve_host_driver_version="595.58.03",
        pve_host_driver_runfile=ADDRESS.replace("://", "://reader:hunter2@"),
        __pve_host_change_driver=True,
        __pve_host_install_driver=True,
    )
    assert code == 2
    assert f"pve_host_driver_runfile is '{ADDRESS}'" in said.replace("\n", " ")
    assert "hunter2" not in said


def test_check_mode_does_not_copy_an_installer_that_it_has_not_fetched(part: Part) -> None:
    code, said = part(
        "slipway",
        "runfile",
        "--check",
        slipway_runfile_path=ADDRESS,
        slipway_runfile_options=[],
        slipway_runfile_purpose="install the driver",
    )
    assert (code, "Would install the driver." in said) == (0, True), said


def test_a_host_without_declared_parameters_may_boot_by_what_it_likes(part: Part) -> None:
    code, said = part(
        "pve_host",
        "verify",
        pve_host_driver_version=VERSION,
        pve_host_result={"findings": [], "driver": {"kernel_version": VERSION}, "acs": {"redirect": False}},
    )
    assert (code, "See whether the kernel has its parameters" in said) == (0, False), said


def test_a_node_that_starts_no_guests_is_told(part: Part) -> None:
    systemctl = part.folder / "systemctl"
    systemctl.write_text("#!/bin/sh\n[ \"$1\" != show ] || printf 'LoadState=loaded\\nActiveState=inactive\\n'\n")
    systemctl.chmod(0o755)
    part.environment["PATH"] = f"{part.folder}:{part.environment['PATH']}"
    code, said = part("pve_host", "reboot_guests", pve_host_reboot_timeout_seconds=5)
    assert (code, "pve-guests.service, by which Proxmox starts them, is inactive." in said.replace("\n", " ")) == (
        2,
        True,
    ), said


@pytest.mark.parametrize("given", ["0000:03:00.0", ["0000:C1:00.0"]])
def test_a_gpu_is_named_alone_or_in_a_list(part: Part, given: t.Any) -> None:
    assert part("pve_host", "preflight_gpus", **before(given))[0] == 0


def test_an_address_without_quotes_which_yaml_has_made_a_number_is_told(part: Part) -> None:
    code, said = part("pve_host", "preflight_gpus", **before(180.0))
    assert (code, "each in quotes: YAML takes some for numbers." in said) == (2, True), said


def before(named: t.Any) -> dict[str, t.Any]:
    """What was read of a host with two GPUs, of which these are declared as its own."""
    gpus: list[dict[str, t.Any]] = [
        {"bus_id": bus_id, "pci_driver": "nvidia", "machines": []} for bus_id in ("0000:03:00.0", "0000:c1:00.0")
    ]
    return {"pve_host_gpus": named, "__pve_host_before": {"gpus": gpus, "acs": {"redirect": False}}}
