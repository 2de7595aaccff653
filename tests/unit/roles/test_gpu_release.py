# SPDX-License-Identifier: GPL-3.0-or-later
"""Giving GPUs back from vfio-pci, its script run on a folder in the place of sysfs, and where in the role that is done."""

from __future__ import annotations

import subprocess
import typing as t
from pathlib import Path

import pytest
import yaml

GPU = "0000:03:00.0"


def tasks(root: Path, file: str) -> list[dict[str, t.Any]]:
    """The tasks of a file of the role, those of other files of it in the place where they are brought in."""
    found: list[dict[str, t.Any]] = []
    for task in yaml.safe_load((root / "roles/pve_host/tasks" / file).read_text()):
        part = task.get("ansible.builtin.import_tasks") or task.get("ansible.builtin.include_tasks")
        found += tasks(root, part) if part else [task]
    return found


class Bus:
    """A GPU in sysfs, as plain files: what is written stays, and nobody acts on it."""

    def __init__(self, folder: Path, script: str) -> None:
        self.drivers = folder / "bus/pci/drivers"
        self.device = folder / "bus/pci/devices" / GPU
        self.script = script.replace("{{ item }}", GPU).replace("/sys/", f"{folder}/")
        self.device.mkdir(parents=True)
        (self.device / "driver_override").write_text("(null)\n")

    def bind(self, driver: str) -> None:
        (self.drivers / driver).mkdir(parents=True)
        (self.device / "driver").symlink_to(self.drivers / driver)

    def give_back(self) -> tuple[int, str]:
        done = subprocess.run(["sh", "-c", self.script], capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout.strip() or done.stderr.strip()

    def read(self, path: str) -> str:
        return (self.device / path).read_text().strip()


@pytest.fixture
def bus(tmp_path: Path, root: Path) -> Bus:
    return Bus(tmp_path, tasks(root, "release.yml")[0]["ansible.builtin.shell"])


def test_before_the_driver_is_there_a_gpu_is_left_waiting_for_it(bus: Bus) -> None:
    bus.bind("vfio-pci")
    assert bus.give_back() == (0, "given back")
    assert (bus.read("driver/unbind"), bus.read("driver_override")) == (GPU, "nvidia")
    assert not (bus.drivers.parent / "drivers_probe").exists()


def test_one_that_the_driver_has_taken_loses_its_override_and_nothing_else(bus: Bus) -> None:
    bus.bind("nvidia")
    (bus.device / "driver_override").write_text("nvidia\n")
    assert bus.give_back() == (0, "")
    assert bus.read("driver_override") == ""
    assert not (bus.device / "driver/unbind").exists()


def test_one_that_the_driver_does_not_take_is_told(bus: Bus) -> None:
    (bus.drivers / "nvidia").mkdir(parents=True)
    bus.bind("vfio-pci")
    code, _said = bus.give_back()
    assert (code, (bus.drivers.parent / "drivers_probe").read_text().strip()) == (1, GPU)


def test_it_is_done_before_a_driver_comes_and_again_after_the_last_reboot(root: Path) -> None:
    # NVIDIA's driver is not loaded where it finds no GPU that it could have, and a reboot gives them to vfio-pci again.
    names = [task["name"] for task in tasks(root, "main.yml")]
    given = [at for at, name in enumerate(names) if name == "Release | Give the GPUs back to the host's driver"]
    reboots = [at for at, name in enumerate(names) if name == "Reboot | Reboot the node"]
    first, last = (
        names.index("Driver | Install it from NVIDIA's installer"),
        names.index("Live | Make the nodes of those that a reboot gave to vfio-pci"),
    )
    assert reboots[0] < given[0] < first < names.index("Devices | Load the driver")
    assert reboots[-1] < given[-1] < last


def test_guests_of_a_reboot_that_was_broken_off_start_when_their_gpus_have_nodes(root: Path) -> None:
    # Else a guest that lacks one would keep each run from making it.
    live = yaml.safe_load((root / "roles/pve_host/tasks/live.yml").read_text())
    names = [task["name"] for task in live]
    made = names.index("Live | Load and make what is missing")
    assert made < names.index("Live | Reboot for all that waits for it")
    # What waits for a reboot (another driver that is in use) may keep the modules from being loaded: then the reboot comes first.
    assert any("__pve_host_reasons_now | length > 0" in condition for condition in live[made]["when"])
