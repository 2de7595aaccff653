# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from gpu import hardware, pci
from gpu.kernel import Image, Kernel


def test_gpus_lie_behind_switches_on_two_sockets(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    pci.write(tmp_path / "bus", pci.cards(8, "a"))
    devices = tmp_path / "bus/devices"
    gpus = [d.name for d in sorted(devices.iterdir()) if (d / "class").read_text() == "0x030200\n"]
    assert gpus == [f"0000:{bus}:00.0" for bus in ("03", "04", "43", "44", "83", "84", "c3", "c4")]
    assert (devices / gpus[7]).resolve().parts[-5:] == (
        "pci0000:c0",
        "0000:c0:01.1",
        "0000:c1:00.0",
        "0000:c2:01.0",
        "0000:c4:00.0",
    )
    assert [(devices / gpu / "numa_node").read_text().strip() for gpu in gpus] == list("00001111")
    assert (devices / gpus[0]).resolve().parents[1] == (devices / gpus[1]).resolve().parents[1], "one switch for two"


def test_each_device_has_a_configuration_space(tmp_path: Path) -> None:
    (tmp_path / "bus").mkdir()
    pci.write(tmp_path / "bus", pci.cards(1, "a"))
    spaces = [
        (tmp_path / "bus/devices" / f"0000:{at}" / "config").read_bytes() for at in ("00:01.1", "01:00.0", "03:00.0")
    ]
    assert {len(space) for space in spaces} == {4096}
    assert [space[:2] for space in spaces] == [b"\x22\x10", b"\x00\x10", b"\xde\x10"]
    # The kind of port beside the capability's version, and the control register of ACS.
    assert [space[0x62] >> 4 for space in spaces] == [4, 5, 1]
    assert [space[0x106] for space in spaces] == [0x11, 0x11, 0]


def test_power_on_empties_the_log_and_shows_no_iommu(machine: Path) -> None:
    (machine / "dev/kmsg").write_text("3,1,1,-;NVRM: Xid\n")
    hardware.power_on(machine, 1)
    assert "Xid" not in (machine / "dev/kmsg").read_text()
    assert list((machine / "sys/class/iommu").iterdir()) == []


@pytest.mark.parametrize(
    ("count", "minors"), [(8, [2, 3, 0, 1, 6, 7, 4, 5]), (4, [2, 3, 0, 1]), (3, [1, 2, 0]), (0, [])]
)
def test_minors_are_not_in_bus_order_and_have_no_gaps(count: int, minors: list[int]) -> None:
    assert [card.minor for card in pci.cards(count, "a")] == minors


def test_uuids_belong_to_a_machine() -> None:
    assert pci.cards(2, "a") == pci.cards(2, "a")
    assert {card.uuid for card in pci.cards(2, "a")}.isdisjoint(card.uuid for card in pci.cards(2, "b"))


def test_nine_gpus_are_refused() -> None:
    with pytest.raises(ValueError, match="0 to 8 GPUs, not 9"):
        pci.cards(9, "a")


def test_power_on_forgets_the_driver_and_keeps_what_is_mounted(machine: Path) -> None:
    Kernel(machine).load("nvidia", Image("595.58.03", True), {})
    mounted = {name: (machine / name).stat().st_ino for name in hardware.MOUNTS}
    (machine / "proc/driver/gpu-faults").write_text("dropped\n")
    hardware.power_on(machine, 4)
    assert not (machine / "proc/driver/gpu-faults").exists()
    assert not list(machine.rglob("*nvidia*"))
    assert "nvidia" not in (machine / "proc/devices").read_text()
    assert {name: (machine / name).stat().st_ino for name in hardware.MOUNTS} == mounted


def test_numbers_come_from_the_first_row_on_which_all_open(tmp_path: Path) -> None:
    def opens(path: Path, major: int, minor: int) -> bool:
        return (major, minor) != (4, 11)

    assert hardware._numbers(tmp_path, ["a", "b"], [(4, 10), (4, 20)], opens) == {"a": (4, 20), "b": (4, 21)}
    with pytest.raises(RuntimeError, match="no character device"):
        hardware._numbers(tmp_path, ["a", "b"], [(4, 10)], opens)


def test_devices_open_and_have_two_majors(tmp_path: Path, root_only: None) -> None:
    hardware.power_on(tmp_path, 1)
    nodes = dict(line.split(" ", 1) for line in (tmp_path / "hardware/nodes").read_text().splitlines())
    assert set(nodes) == {*hardware.NODE_NAMES, *hardware.UVM_NAMES}
    assert not (tmp_path / "probe").exists()


def test_guests_see_the_kernel_but_not_the_stage(tmp_path: Path) -> None:
    assert "/sys/module sys/module none bind,ro 0 0" in hardware.GUEST_MOUNTS
    assert "/sys/bus/pci sys/bus/pci none rbind 0 0" in hardware.GUEST_MOUNTS
    assert "/proc/cmdline proc/cmdline none bind,ro 0 0" in hardware.GUEST_MOUNTS
    assert "/proc/modules proc/modules none bind,optional,ro 0 0" in hardware.GUEST_MOUNTS
    assert not [mount for mount in hardware.GUEST_MOUNTS if "rig" in mount or "kmsg" in mount or "osrelease" in mount]
    assert f"{tmp_path}/hardware etc/rig/hardware none bind,create=dir 0 0" in hardware.node_mounts(tmp_path)


def test_a_machine_starts_by_the_files_of_its_disk(machine: Path, tmp_path: Path) -> None:
    disk = tmp_path / "disk"
    command = ["power-on", str(machine), "1", str(disk)]
    with pytest.raises(SystemExit, match="GRUB has no menu"):
        hardware.main(command)
    (disk / "boot/grub").mkdir(parents=True)
    (disk / "boot/vmlinuz-6.17").touch()
    (disk / "boot/grub/grub.cfg").write_text(
        "menuentry 'a' $menuentry_id_option 'b' {\n linux /boot/vmlinuz-6.17 ro\n}\n"
    )
    (disk / "etc/rig").mkdir(parents=True)
    (disk / "etc/rig/board").write_text("payload bytes=128\n")
    hardware.main(command)
    assert (machine / "proc/cmdline").read_text() == "BOOT_IMAGE=/boot/vmlinuz-6.17 ro\n"
    assert (machine / "sys/bus/pci/devices/0000:03:00.0/config").read_bytes()[0x68:0x6A] == b"\0\x20"
    (disk / "etc/rig/board").write_text("payload\n")
    with pytest.raises(SystemExit, match="is no fault of a board"):
        hardware.main(command)
