# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
from pathlib import Path

import pytest
from ansible.module_utils.slipway.gpu import host


@pytest.mark.parametrize(
    ("text", "version", "is_open"),
    [
        (
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.58.03  Release Build  (b@h)  Tue Mar 17\n"
            "GCC version:  gcc version 14.2.0 (Debian 14.2.0-19)\n",
            "595.58.03",
            True,
        ),
        ("NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.142  Release Build  (b@h)\n", "580.142", True),
        (
            "NVRM version: NVIDIA UNIX x86_64 Kernel Module  520.61.05  Thu Sep 29 05:30:25 UTC 2022\n",
            "520.61.05",
            False,
        ),
        ("NVRM version: NVIDIA UNIX Kernel Module for aarch64  34.1.1  Release Build\n", "34.1.1", False),
    ],
)
def test_both_banners_tell_version_and_kind(text: str, version: str, is_open: bool) -> None:
    assert host.driver_banner(text) == host.DriverBanner(version, is_open)


@pytest.mark.parametrize(
    "text", ["", "GCC version:  gcc version 9.4.0\n", "NVRM version: Open Kernel Module malformed\n"]
)
def test_what_is_no_banner_is_none(text: str) -> None:
    assert host.driver_banner(text) is None


def test_driver_parameters_keep_numbers_and_quoted_text() -> None:
    text = 'ModifyDeviceFiles: 1\nDeviceFileMode: 438\nRegistryDwords: "ForceP2P=0x11;RMForceP2PType=1"\nRmMsg: ""\n'
    assert host.driver_parameters(text) == {
        "ModifyDeviceFiles": 1,
        "DeviceFileMode": 438,
        "RegistryDwords": "ForceP2P=0x11;RMForceP2PType=1",
        "RmMsg": "",
    }


def test_information_of_an_initialised_gpu() -> None:
    text = (
        "Model: \t\t NVIDIA H100 80GB HBM3\nIRQ:   \t\t 10\nGPU UUID: \t GPU-9221d5d1-b60b-a624-bf14-0a1819cfda3b\n"
        "Bus Location: \t 0000:62:00.0\nDevice Minor: \t 5\nGPU Firmware: \t 535.129.03\nGPU Excluded:\t No\n"
    )
    assert host.gpu_information(text) == {
        "name": "NVIDIA H100 80GB HBM3",
        "uuid": "GPU-9221d5d1-b60b-a624-bf14-0a1819cfda3b",
        "minor": 5,
        "excluded": False,
    }


def test_question_marks_and_missing_lines_are_unknown() -> None:
    text = "Model: \t\t Unknown\nGPU UUID: \t GPU-????????-????-????-????-????????????\n"
    assert host.gpu_information(text) == {"name": "Unknown", "uuid": None, "minor": None, "excluded": None}


def test_majors_are_those_of_character_devices() -> None:
    text = (
        "Character devices:\n  1 mem\n195 nvidia-frontend\n511 nvidia-uvm\n\nBlock devices:\n  7 loop\n99 nvidia-uvm\n"
    )
    assert host.character_majors(text) == {"mem": 1, "nvidia-frontend": 195, "nvidia-uvm": 511}


@pytest.mark.parametrize(
    ("text", "value"), [("Y\n", True), ("N\n", False), ("1", True), ("0", False), ("on", True), ("", None), ("2", None)]
)
def test_boolean(text: str, value: bool | None) -> None:
    assert host.boolean(text) is value


def test_command_line_keeps_order_repeats_flags_and_quotes() -> None:
    text = 'ro console=ttyS0 console=tty0 dyndbg="file a.c +p" root=UUID=1-2 quiet -- init=5 ro\n'
    assert host.command_line(text) == [
        ("ro", None),
        ("console", "ttyS0"),
        ("console", "tty0"),
        ("dyndbg", "file a.c +p"),
        ("root", "UUID=1-2"),
        ("quiet", None),
    ]


def test_command_line_of_a_real_machine(shared_data: Path) -> None:
    parameters = host.command_line((shared_data / "field/8gpu-switches/cmdline.txt").read_text())
    assert parameters[0] == ("BOOT_IMAGE", "/vmlinuz-6.17.0-20-generic")
    assert parameters[-2:] == [("amd_iommu", "off"), ("iommu", "off")]
    assert ("ro", None) in parameters


@pytest.mark.parametrize("text", ["01:00.0", "0000:01:00.0", "00000000:01:00.0", " 0000:01:00.0\n"])
def test_a_pci_address_has_one_form(text: str) -> None:
    assert host.bus_id(text) == "0000:01:00.0"


def test_a_pci_domain_of_its_own_is_kept() -> None:
    assert host.bus_id("10000:E1:00.0") == "10000:e1:00.0"


@pytest.mark.parametrize("text", ["", "0", "GPU-1", "0000:01:00", "0000:01:00.8", "0000:01:00.0;x"])
def test_what_is_no_pci_address_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a PCI address"):
        host.bus_id(text)


def test_addresses_of_a_real_machine_meet(shared_data: Path) -> None:
    field = shared_data / "field/8gpu-switches"
    smi = re.findall(r"^GPU (\S+)$", (field / "nvidia-smi-q.txt").read_text(), re.MULTILINE)
    lspci = re.findall(r"^(\S+) 3D controller: NVIDIA", (field / "lspci-vvv.txt").read_text(), re.MULTILINE)
    assert len(smi) == 8
    assert [host.bus_id(address) for address in smi] == [host.bus_id(address) for address in lspci]


@pytest.mark.parametrize(
    ("uid_map", "container", "proxmox", "guest"),
    [
        ("         0          0 4294967295\n", False, False, False),
        ("0 100000 65536\n", False, False, True),
        ("0 100000 65536\n", True, True, True),
        ("0 0 1000\n1000 1000 1\n1001 101001 64535\n", False, False, True),
        ("0 0 4294967295\n", True, False, True),
        ("0 0 4294967295\n", True, True, False),
        (None, False, False, False),
        (None, True, False, True),
    ],
)
def test_who_is_a_guest(uid_map: str | None, container: bool, proxmox: bool, guest: bool) -> None:
    assert host.is_guest(uid_map, container, proxmox) is guest
