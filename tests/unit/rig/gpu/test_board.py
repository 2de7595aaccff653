# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults of a board that are there again after each start."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from boot import loader
from gpu import board, hardware

GPU, PORT = "0000:03:00.0", "0000:00:01.1"


def control(machine: Path, address: str, at: int) -> int:
    (value,) = struct.unpack_from("<H", (machine / "sys/bus/pci/devices" / address / "config").read_bytes(), at)
    return int(value)


def test_what_is_said_of_all_and_of_one(machine: Path) -> None:
    text = f"# the board\nbar1 mib=256 device={GPU}\nlink device={PORT} width=8 generation=4\nacs control=0x1d\npayload bytes=128\n"
    hardware.power_on(machine, 4, faults=text)
    devices = machine / "sys/bus/pci/devices"
    sizes = []
    for address in (GPU, "0000:04:00.0"):
        first, last, _flags = (devices / address / "resource").read_text().splitlines()[1].split()
        sizes.append((int(last, 16) - int(first, 16) + 1) >> 20)
    assert sizes == [256, 131072]
    assert (devices / PORT / "current_link_width").read_text() == "8\n"
    assert (devices / PORT / "current_link_speed").read_text() == "16.0 GT/s PCIe\n"
    assert [control(machine, PORT, 0x106), control(machine, GPU, 0x106)] == [0x1D, 0]
    # Bits 5 to 7 of the control register of PCI Express; the largest read request beside them stays.
    assert [control(machine, address, 0x68) for address in (PORT, GPU)] == [0x2000, 0x2000]
    hardware.power_on(machine, 4)
    assert (control(machine, PORT, 0x106), control(machine, PORT, 0x68)) == (0x11, 0x2020)


def test_with_an_iommu_the_kernel_redirects_at_every_port(machine: Path) -> None:
    hardware.power_on(machine, 4, loader.Boot("grub", "6.17", "iommu=pt"))
    ports = [path.name for path in (machine / "sys/bus/pci/devices").iterdir() if path.name[8:] != "00.0"]
    assert {control(machine, port, 0x106) for port in ports} == {0x1D}
    assert control(machine, GPU, 0x106) == 0


@pytest.mark.parametrize(
    "line", ["heat", "bar1", "bar1 mib", "link lanes=8", "acs control=yes", "payload bytes=128 device=0000:99:00.0"]
)
def test_a_line_that_makes_no_sense_is_refused(machine: Path, line: str) -> None:
    with pytest.raises(ValueError, match=r"/etc/rig/board: .*board"):
        hardware.power_on(machine, 1, faults=line)


def test_no_line_no_fault() -> None:
    assert board.parse("\n# nothing\n") == []
