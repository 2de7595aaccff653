# SPDX-License-Identifier: GPL-3.0-or-later
"""The board's IOMMU: what the kernel's command line makes of it, and how sysfs shows that.

An AMD board, whose IOMMU is on and translates unless the kernel is told otherwise
(Documentation/admin-guide/kernel-parameters.txt: amd_iommu, iommu, iommu.passthrough, iommu.strict).
"""

from __future__ import annotations

import os
from pathlib import Path

IDENTITY, TRANSLATED, STRICT = "identity", "DMA-FQ", "DMA"
GROUPS = "sys/kernel/iommu_groups"


def domain(line: str) -> str | None:
    """The type of the groups' domains that a command line gives; None where it turns the IOMMU off."""
    found: str = TRANSLATED
    for word in line.split():
        name, _equals, value = word.partition("=")
        words = value.split(",")
        if name in ("amd_iommu", "iommu") and "off" in words:
            return None
        if (name == "iommu" and "pt" in words) or (name, value) == ("iommu.passthrough", "1"):
            found = IDENTITY
        elif (name == "iommu" and "nopt" in words) or (name, value) == ("iommu.passthrough", "0"):
            found = TRANSLATED
        elif (name, value) == ("iommu.strict", "1") and found == TRANSLATED:
            found = STRICT
    return found


def write(root: Path, kind: str | None) -> None:
    """Show it: the units, and a group for each PCI device below ``root``, whose ports keep their devices apart (ACS).

    The folders are there and empty. ``kind`` is None where the IOMMU is off.
    """
    if kind is None:
        return
    devices = root / "sys/bus/pci/devices"
    for number in range(4):
        (root / f"sys/class/iommu/ivhd{number}").mkdir()
    for number, device in enumerate(sorted(devices.iterdir(), key=lambda path: path.name), 8):
        group = root / GROUPS / str(number)
        (group / "devices").mkdir(parents=True)
        (group / "type").write_text(f"{kind}\n")
        (group / "reserved_regions").write_text("0x00000000fee00000 0x00000000feefffff msi\n")
        (group / "devices" / device.name).symlink_to(f"../../../../bus/pci/devices/{device.name}")
        # Where the device really lies, seen from /sys.
        folder = Path("/sys/bus/pci/devices") / os.readlink(device)
        up = len(Path(os.path.normpath(folder)).parts) - 2
        (device / "iommu_group").symlink_to(f"{'../' * up}kernel/iommu_groups/{number}")
