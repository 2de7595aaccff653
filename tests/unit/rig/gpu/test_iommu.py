# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from boot import loader
from gpu import firmware, hardware, iommu


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        ("quiet", "DMA-FQ"),
        ("quiet iommu.strict=1", "DMA"),
        ("amd_iommu=on iommu=pt", "identity"),
        ("iommu.passthrough=1", "identity"),
        ("iommu=pt iommu=nopt", "DMA-FQ"),
        ("amd_iommu=off iommu=pt", None),
        ("iommu=off", None),
        ("intel_iommu=off", "DMA-FQ"),
    ],
)
def test_the_command_line_decides(line: str, kind: str | None) -> None:
    assert iommu.domain(line) == kind


def test_each_device_is_in_a_group_of_its_own(machine: Path) -> None:
    hardware.power_on(machine, 2, loader.Boot("grub", "6.14", "ro iommu=pt"))
    devices = sorted((machine / "sys/bus/pci/devices").iterdir())
    groups = [(device / "iommu_group").readlink().name for device in devices]
    assert len(set(groups)) == len(devices) == 6
    assert {(machine / "sys/kernel/iommu_groups" / group / "type").read_text() for group in groups} == {"identity\n"}
    # As seen in the node, where the folder lies at /sys/bus/pci.
    assert (devices[0] / "iommu_group").resolve() == machine / "sys/kernel/iommu_groups" / groups[0]
    assert len(list((machine / "sys/class/iommu").iterdir())) == 4


def test_power_on_shows_what_was_started(machine: Path) -> None:
    hardware.power_on(machine, 1, loader.Boot("systemd-boot", "6.14", "root=ZFS=rpool amd_iommu=off"))
    assert (machine / "proc/cmdline").read_text() == "root=ZFS=rpool amd_iommu=off\n"
    assert (machine / "proc/osrelease").read_text() == "6.14\n"
    shown = (machine / firmware.VARIABLES / firmware.LOADER).read_bytes()
    assert shown[4:].decode("utf-16-le") == "systemd-boot 257.7-1\0"
    assert not list((machine / "sys/kernel/iommu_groups").iterdir())
