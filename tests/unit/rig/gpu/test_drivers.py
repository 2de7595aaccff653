# SPDX-License-Identifier: GPL-3.0-or-later
"""Which driver has which GPU, and what writing into the files of sysfs does about it."""

from __future__ import annotations

import errno
import struct
from pathlib import Path

import pytest
from boot import loader
from gpu import busfs, hardware
from gpu.drivers import Drivers
from gpu.kernel import Image, Kernel

ONE, OTHER = "0000:03:00.0", "0000:04:00.0"
OPEN, VFIO = Image("595.58.03", True), Image("0.2", True)


def number_of(error: pytest.ExceptionInfo[OSError]) -> str:
    return errno.errorcode[error.value.errno or 0]


@pytest.fixture
def bus(machine: Path) -> Drivers:
    """A machine with an IOMMU, four GPUs and both drivers; NVIDIA's has the GPUs."""
    hardware.power_on(machine, 4, loader.Boot("grub", "6.17", "iommu=pt"))
    kernel = Kernel(machine)
    kernel.load("nvidia", OPEN, {})
    for module in ("vfio", "vfio_pci_core", "vfio_pci"):
        kernel.load(module, VFIO, {})
    return Drivers(machine)


def override(machine: Path, address: str, driver: str) -> None:
    (machine / "sys/bus/pci/devices" / address / "driver_override").write_text(f"{driver}\n")


def test_a_card_goes_to_vfio_and_comes_back(machine: Path, bus: Drivers) -> None:
    assert (bus.bound(ONE), bus.minor(ONE)) == ("nvidia", "2")
    bus.store("nvidia", "unbind", f"{ONE}\n")
    assert (bus.bound(ONE), bus.minor(ONE)) == (None, None)
    assert not (machine / "proc/driver/nvidia/gpus" / ONE).exists()
    override(machine, ONE, "vfio-pci")
    bus.store("vfio-pci", "bind", ONE)
    assert (machine / "sys/bus/pci/drivers/vfio-pci" / ONE).resolve().name == ONE
    assert bus.bound(ONE) == "vfio-pci"
    bus.store("vfio-pci", "unbind", ONE)
    override(machine, ONE, "")
    bus.store(None, "drivers_probe", ONE)
    assert (bus.bound(ONE), bus.minor(ONE)) == ("nvidia", "2")


def test_a_card_that_comes_gets_the_lowest_free_number(bus: Drivers) -> None:
    for address in (ONE, OTHER):
        bus.store("nvidia", "unbind", address)
    bus.store("nvidia", "bind", OTHER)
    assert (bus.minor(ONE), bus.minor(OTHER)) == (None, "2")


@pytest.mark.parametrize(
    ("driver", "control", "text", "code"),
    [
        ("vfio-pci", "unbind", ONE, "ENODEV"),
        ("vfio-pci", "bind", ONE, "ENODEV"),
        ("nvidia", "bind", ONE, "EBUSY"),
        ("nvidia", "bind", "0000:00:01.1", "ENODEV"),
        ("nvidia", "unbind", "0000:ff:00.0", "ENODEV"),
        ("nvidia", "unbind", "../devices", "ENODEV"),
        (None, "drivers_probe", "", "ENODEV"),
        ("vfio-pci", "new_id", "10de", "EINVAL"),
        ("vfio-pci", "remove_id", "10de 2bb5", "ENODEV"),
    ],
)
def test_what_the_kernel_refuses(bus: Drivers, driver: str | None, control: str, text: str, code: str) -> None:
    with pytest.raises(OSError) as refused:
        bus.store(driver, control, text)
    assert number_of(refused) == code
    assert bus.bound(ONE) == "nvidia"


def test_an_override_keeps_other_drivers_away(machine: Path, bus: Drivers) -> None:
    override(machine, ONE, "vfio-pci")
    bus.store("nvidia", "unbind", ONE)
    with pytest.raises(OSError, match="No such device"):
        bus.store("nvidia", "bind", ONE)
    bus.store(None, "drivers_probe", ONE)
    assert bus.bound(ONE) == "vfio-pci"


def test_new_id_takes_what_is_free(bus: Drivers) -> None:
    bus.store("nvidia", "unbind", ONE)
    bus.store("vfio-pci", "new_id", "10de 2bb5")
    assert (bus.bound(ONE), bus.bound(OTHER)) == ("vfio-pci", "nvidia")


def test_vfio_takes_nothing_without_an_iommu_unless_told(machine: Path) -> None:
    kernel, bus = Kernel(machine), Drivers(machine)
    for module in ("vfio", "vfio_pci_core", "vfio_pci"):
        kernel.load(module, VFIO, {"ids": "10de:2bb5"})
    assert bus.bound(ONE) is None
    assert "probe with driver vfio-pci failed with error -22" in (machine / "dev/kmsg").read_text()
    with pytest.raises(OSError) as refused:
        bus.store("vfio-pci", "bind", ONE)
    assert number_of(refused) == "EINVAL"
    (machine / "sys/module/vfio/parameters/enable_unsafe_noiommu_mode").write_text("Y\n")
    bus.store("vfio-pci", "bind", ONE)
    assert bus.bound(ONE) == "vfio-pci"


def test_the_driver_that_comes_first_has_the_cards(machine: Path) -> None:
    hardware.power_on(machine, 4, loader.Boot("grub", "6.17", "quiet"))
    kernel, bus = Kernel(machine), Drivers(machine)
    for module in ("vfio", "vfio_pci_core", "vfio_pci"):
        kernel.load(module, VFIO, {"ids": "10de:2bb5,10de:22e8"})
    assert bus.bound(ONE) == "vfio-pci"
    with pytest.raises(OSError) as refused:
        kernel.load("nvidia", OPEN, {})
    assert number_of(refused) == "ENODEV"
    bus.store("vfio-pci", "unbind", ONE)
    kernel.load("nvidia", OPEN, {})
    assert (bus.bound(ONE), bus.minor(ONE), bus.bound(OTHER)) == ("nvidia", "0", "vfio-pci")
    kernel.unload("vfio_pci")
    assert bus.bound(OTHER) is None


def test_nvidia_waits_until_nobody_has_the_card_open(
    machine: Path, bus: Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    open_now = [1, 1, 0]
    monkeypatch.setattr("gpu.drivers.openers", lambda root, numbers: open_now.pop(0))
    waited: list[float] = []
    Drivers(machine, waited.append).store("nvidia", "unbind", ONE)
    assert len(waited) == 2
    log = (machine / "dev/kmsg").read_text()
    assert log.count(f"Attempting to remove device {ONE} with non-zero usage count!") == 1
    assert bus.bound(ONE) is None


def test_the_file_system_hands_writes_on_and_allows_nothing_else(machine: Path, bus: Drivers) -> None:
    files = busfs.Bus(machine / "sys/bus/pci/drivers", bus)

    def number(*names: str) -> int:
        at = 1
        for name in names:
            (at,) = struct.unpack_from("<Q", files.answer(1, at, name.encode() + b"\0"))
        return at

    def write(at: int, text: str) -> bytes:
        return files.answer(16, at, struct.pack("<QQI20x", 0, 0, len(text)) + text.encode())

    assert write(number("nvidia", "unbind"), f"{ONE}\n") == struct.pack("<II", len(ONE) + 1, 0)
    assert bus.bound(ONE) is None
    write(number(".drivers_probe"), ONE)
    assert bus.bound(ONE) == "nvidia"
    with pytest.raises(OSError) as refused:
        write(number("vfio-pci", "unbind"), ONE)
    assert number_of(refused) == "ENODEV"
    for opcode, body in (
        (35, struct.pack("<IIII", 0, 0, 0, 0) + b"new\0"),
        (9, bytes(8) + b"new\0"),
        (10, b"nvidia\0"),
    ):
        with pytest.raises(PermissionError):
            files.answer(opcode, 1, body)
