# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest
from gpu.kernel import Kernel, parse_bool
from gpu.kmod import Kmod, Request, parse, parse_insmod, read_image

VERSION = "595.58.03"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("nvidia-uvm", Request(["nvidia_uvm"])),
        ("nvidia_uvm uvm_disable_hmm=1", Request(["nvidia_uvm"], ["uvm_disable_hmm=1"])),
        ("-a nvidia nvidia_uvm", Request(["nvidia", "nvidia_uvm"])),
        ("-r nvidia-drm nvidia", Request(["nvidia_drm", "nvidia"], remove=True)),
        ("-qS 6.1 nvidia", Request(["nvidia"], passed_on=["-q", "-S", "6.1"], quiet=True)),
        (
            "--first-time --set-version=6.1 nvidia",
            Request(["nvidia"], passed_on=["--set-version", "6.1"], first_time=True),
        ),
        ("-b nvidia", Request(["nvidia"], passed_on=["-b"])),
        ("--show-depends nvidia", Request(["nvidia"], asks_only=True)),
        ("-n nvidia", Request(["nvidia"], asks_only=True)),
    ],
)
def test_command_line(line: str, expected: Request) -> None:
    assert parse(line.split()) == expected


def test_insmod_line() -> None:
    line = 'insmod /lib/modules/6.1/kernel/drivers/video/nvidia-uvm.ko.xz uvm_disable_hmm=1 a-b="c d" bare '
    assert parse_insmod(line) == (
        "nvidia_uvm",
        "/lib/modules/6.1/kernel/drivers/video/nvidia-uvm.ko.xz",
        {"uvm_disable_hmm": "1", "a_b": "c d", "bare": None},
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", True), ("Y", True), ("on", True), (None, True), ("0", False), ("n", False), ("off", False)],
)
def test_kernel_booleans(text: str | None, value: bool) -> None:
    assert parse_bool(text) is value


def image(folder: Path, module: str, license_text: str = "Dual MIT/GPL") -> Path:
    path = folder / f"{module}.ko"
    path.write_bytes(f"ELF\0license={license_text}\0version={VERSION}\0".encode())
    return path


@pytest.fixture
def modprobe(machine: Path) -> t.Callable[..., int]:
    """Runs modprobe on the machine, with these lines as the real program's answer to --show-depends."""

    def run(line: str, *answer: str, status: int = 0) -> int:
        program = machine / "real"
        program.write_text("#!/bin/sh\n" + "".join(f"echo '{step}'\n" for step in answer) + f"exit {status}\n")
        program.chmod(0o755)
        return Kmod(Kernel(machine), str(program)).modprobe(parse(line.split()))

    return run


def test_insert_with_dependencies_and_options(machine: Path, modprobe: t.Callable[..., int]) -> None:
    steps = [
        f"insmod {image(machine, 'nvidia')} NVreg_DeviceFileMode=432",
        f"insmod {image(machine, 'nvidia-uvm')} uvm_disable_hmm=1",
    ]
    assert modprobe("nvidia_uvm", *steps) == 0
    modules = machine / "sys/module"
    assert (modules / "nvidia_uvm/parameters/uvm_disable_hmm").read_text() == "Y\n"
    assert (modules / "nvidia/version").read_text() == f"{VERSION}\n"
    assert (modules / "nvidia/refcnt").read_text() == "1\n"
    assert "DeviceFileMode: 432\n" in (machine / "proc/driver/nvidia/params").read_text()
    assert f"Open Kernel Module for x86_64  {VERSION}  " in (machine / "proc/driver/nvidia/version").read_text()
    information = (machine / "proc/driver/nvidia/gpus/0000:03:00.0/information").read_text()
    assert "Device Minor:    2\n" in information
    assert "Bus Location:    0000:03:00.0\n" in information
    registered = [line.split() for line in (machine / "proc/devices").read_text().splitlines() if "nvidia" in line]
    assert registered == [["4", "nvidia"], ["4", "nvidiactl"], ["7", "nvidia-uvm"]]
    assert (machine / "sys/bus/pci/devices/0000:03:00.0/driver").resolve() == machine / "sys/bus/pci/drivers/nvidia"


def test_without_the_option_hmm_is_on_and_again_changes_nothing(machine: Path, modprobe: t.Callable[..., int]) -> None:
    steps = [f"insmod {image(machine, name)}" for name in ("nvidia", "nvidia-uvm")]
    assert modprobe("nvidia_uvm", *steps) == 0
    assert modprobe("nvidia_uvm", *steps[:1], steps[1] + " uvm_disable_hmm=1") == 0
    assert (machine / "sys/module/nvidia_uvm/parameters/uvm_disable_hmm").read_text() == "N\n"


@pytest.mark.parametrize(
    ("step", "words"),
    [
        ("{uvm} uvm_disable_hmm=maybe", "could not insert 'nvidia_uvm': Invalid argument"),
        ("{closed}", "could not insert 'nvidia': No such device"),
    ],
)
def test_refusals_of_the_kernel(
    machine: Path, modprobe: t.Callable[..., int], capsys: pytest.CaptureFixture[str], step: str, words: str
) -> None:
    names = {"uvm": image(machine, "nvidia-uvm")}
    names["closed"] = image(machine, "nvidia", "NVIDIA")
    assert modprobe("nvidia", "insmod " + step.format(**names)) == 1
    assert words in capsys.readouterr().err
    assert not Kernel(machine).is_loaded("nvidia")


def test_status_of_the_real_program_when_there_is_no_module(modprobe: t.Callable[..., int]) -> None:
    assert modprobe("nvidia", status=1) == 1


@pytest.fixture
def loaded(machine: Path, modprobe: t.Callable[..., int]) -> Path:
    assert modprobe("nvidia_uvm", *[f"insmod {image(machine, name)}" for name in ("nvidia", "nvidia-uvm")]) == 0
    return machine


def hold(machine: Path, node: str) -> Path:
    """A process of a guest, say, with this node open: its number is taken as the machine's for the node."""
    status = os.stat("/dev/null")
    lines = (machine / "hardware/nodes").read_text().splitlines()
    numbers = f"{node} {os.major(status.st_rdev)} {os.minor(status.st_rdev)}"
    (machine / "hardware/nodes").write_text(
        "\n".join(numbers if line.split()[0] == node else line for line in lines) + "\n"
    )
    descriptors = machine / "proc/4242/fd"
    descriptors.mkdir(parents=True)
    (descriptors / "3").symlink_to("/dev/null")
    return descriptors / "3"


def test_a_module_in_use_stays(
    loaded: Path, modprobe: t.Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    descriptor = hold(loaded, "nvidia-uvm-tools")
    assert modprobe("-r nvidia_uvm") == 1
    assert capsys.readouterr().err == "modprobe: FATAL: Module nvidia_uvm is in use.\n"
    assert Kmod(Kernel(loaded)).rmmod(["nvidia-uvm"]) == 1
    assert capsys.readouterr().err == "rmmod: ERROR: Module nvidia_uvm is in use\n"
    assert Kmod(Kernel(loaded)).rmmod(["nvidia"]) == 1
    assert capsys.readouterr().err == "rmmod: ERROR: Module nvidia is in use by: nvidia_uvm\n"
    descriptor.unlink()
    assert modprobe("-r nvidia_uvm") == 0
    assert not [path for path in (loaded / "sys/module").iterdir() if path.name.startswith("nvidia")], (
        "nvidia goes with it"
    )
    assert not (loaded / "proc/driver/nvidia").exists()
    assert "nvidia" not in (loaded / "proc/devices").read_text()


def test_an_open_gpu_keeps_the_driver_when_uvm_goes(loaded: Path, modprobe: t.Callable[..., int]) -> None:
    hold(loaded, "nvidia0")
    assert modprobe("-r nvidia_uvm") == 0
    assert Kernel(loaded).is_loaded("nvidia")
    assert not Kernel(loaded).is_loaded("nvidia_uvm")


def test_removing_what_is_not_there(
    modprobe: t.Callable[..., int], machine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert modprobe("-r nvidia_uvm") == 0
    assert modprobe("-r --first-time nvidia_uvm") == 1
    assert Kmod(Kernel(machine)).rmmod(["nvidia_uvm"]) == 1
    assert "not currently loaded" in capsys.readouterr().err


def test_image_of_a_module(tmp_path: Path) -> None:
    assert read_image(image(tmp_path, "nvidia")).is_open
    closed = read_image(image(tmp_path, "nvidia", "NVIDIA"))
    assert (closed.version, closed.is_open) == (VERSION, False)
