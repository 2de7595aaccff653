# SPDX-License-Identifier: GPL-3.0-or-later
"""driver_kernels_info, driven through main() on a folder with kernels, with modinfo and DKMS as they print."""

from __future__ import annotations

import functools
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.gpu import kernels
from ansible.modules import driver_kernels_info

Run = t.Callable[..., dict[str, t.Any]]
NOW, NEXT = "6.14.11-9-pve", "6.14.11-10-pve"
VERSION = "580.105.08"


class Host:
    """Kernels in /boot, the driver's version for each, and what ``dkms status`` prints."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.drivers = {NOW: VERSION}
        self.dkms = ""
        for release in (NOW, NEXT):
            self.file(f"boot/vmlinuz-{release}", "")

    def file(self, path: str, text: str) -> None:
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def ask(self, command: t.Sequence[str]) -> str:
        if command[0] == "dkms":
            return self.dkms
        return self.drivers.get(command[2], "")


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host(tmp_path)
    run = functools.partial(driver_kernels_info.run, root=tmp_path, running=NOW, ask=made.ask)
    monkeypatch.setattr(driver_kernels_info, "run", run)
    return made


def test_the_newest_kernel_boots_next(host: Host, run_module: Run) -> None:
    found = run_module(driver_kernels_info, {})
    assert (found["running"], found["next"], found["changed"]) == (NOW, NEXT, False)


@pytest.mark.parametrize("pin", ["proxmox-boot-pin", "next-boot-pin"])
def test_a_pinned_one_does_in_its_place(host: Host, run_module: Run, pin: str) -> None:
    host.file(f"etc/kernel/{pin}", f"{NOW}\n")
    assert run_module(driver_kernels_info, {})["next"] == NOW


def test_a_pin_for_one_boot_comes_first_and_one_of_no_kernel_counts_for_nothing(host: Host, run_module: Run) -> None:
    host.file("etc/kernel/proxmox-boot-pin", "5.0.0-1-pve\n")
    assert run_module(driver_kernels_info, {})["next"] == NEXT
    host.file("etc/kernel/proxmox-boot-pin", f"{NEXT}\n")
    host.file("etc/kernel/next-boot-pin", f"{NOW}\n")
    assert run_module(driver_kernels_info, {})["next"] == NOW


def test_without_kernels_the_running_one_does(host: Host, run_module: Run) -> None:
    for release in (NOW, NEXT):
        (host.root / f"boot/vmlinuz-{release}").unlink()
    found = run_module(driver_kernels_info, {"version": VERSION})
    assert (found["next"], len(found["kernels"]), found["findings"]) == (NOW, 1, [])


def test_what_the_next_one_lacks_is_named_with_what_dkms_knows(host: Host, run_module: Run) -> None:
    host.dkms = f"nvidia/{VERSION}, {NOW}, x86_64: installed\nzfs/2.3.4, {NEXT}, x86_64: installed\n"
    found = run_module(driver_kernels_info, {"version": VERSION})
    assert found["kernels"] == [
        {"release": NOW, "running": True, "next": False, "driver": VERSION, "dkms": f"nvidia/{VERSION}: installed"},
        {"release": NEXT, "running": False, "next": True, "driver": None, "dkms": None},
    ]
    assert found["dkms_modules"] == ["nvidia"]
    (told,) = found["findings"]
    assert (told["id"], told["severity"], told["subject"]) == ("DRIVER_KERNEL_MISSING", "fail", f"kernel {NEXT}")
    assert told["detail"] == f"it has no module of it; DKMS has nvidia/{VERSION}"


def test_another_version_is_as_bad_as_none(host: Host, run_module: Run) -> None:
    host.drivers[NEXT] = "570.0"
    (told,) = run_module(driver_kernels_info, {"version": VERSION})["findings"]
    assert told["detail"] == "it has 570.0; DKMS knows no driver"
    host.drivers[NEXT] = VERSION
    assert run_module(driver_kernels_info, {"version": VERSION})["findings"] == []


def test_the_running_kernel_is_not_judged_here(host: Host, run_module: Run) -> None:
    host.drivers = {NEXT: VERSION}
    assert run_module(driver_kernels_info, {"version": VERSION})["findings"] == []


@pytest.mark.parametrize(
    ("line", "build"),
    [
        ("nvidia/580.105.08, 6.14.11-9-pve, x86_64: installed", ("nvidia", VERSION, NOW, "installed")),
        ("nvidia/580.105.08: added", ("nvidia", VERSION, None, "added")),
        ("nvidia, 580.105.08, 6.14.11-9-pve, x86_64: built", ("nvidia", VERSION, NOW, "built")),
        (
            "nvidia-current/550.163.01, 6.8.12-9-pve, x86_64: installed (Original modules exist)",
            ("nvidia-current", "550.163.01", "6.8.12-9-pve", "installed (Original modules exist)"),
        ),
    ],
)
def test_dkms_is_read_in_all_its_forms(line: str, build: tuple[str, str, str | None, str]) -> None:
    (found,) = kernels.dkms_builds(f"zfs/2.3.4, 6.14.11-9-pve, x86_64: installed\n{line}\n")
    assert (found.name, found.version, found.release, found.state) == build


def test_a_program_that_is_not_there_says_nothing() -> None:
    assert kernels.ask(["no-such-program-anywhere"]) == ""
    assert kernels.ask(["false"]) == ""
    assert kernels.ask(["echo", "it"]) == "it\n"
