# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest

GpuMachine = t.Any  # tests/unit/conftest.py
Look = t.Callable[..., dict[str, t.Any]]


def test_a_healthy_node(look: Look) -> None:
    facts = look()
    assert facts["place"] == "node"
    assert facts["cmdline"] == "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro iommu=pt"
    assert facts["driver"] == {
        "loaded": True,
        "kernel_version": "595.58.03",
        "open_kernel_module": True,
        "user_version": "595.58.03",
        "user_library": "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        "parameters": {"EnableMSI": 1, "RegistryDwords": "ForceP2P=0x11"},
        "packages": {},
        "installed_by": [],
    }
    assert facts["uvm"] == {"loaded": True, "disable_hmm": True, "disable_hmm_on_disk": True}
    assert facts["cuda"] is None
    assert facts["unreadable"] == {}
    assert [node["path"] for node in facts["devices"]] == [
        "/dev/nvidia0",
        "/dev/nvidia1",
        "/dev/nvidia-uvm",
        "/dev/nvidiactl",
    ]


def test_a_gpu_has_the_node_of_its_minor(look: Look) -> None:
    first, second = look()["gpus"]
    assert first == {
        "bus_id": "0000:06:00.0",
        "minor": 1,
        "device": "/dev/nvidia1",
        "name": "NVIDIA RTX PRO 6000",
        "uuid": "GPU-00000001",
        "excluded": False,
        "driven": True,
        "vendor_id": "0x10de",
        "device_id": "0x2bb5",
        "numa_node": 0,
        "pci_driver": "nvidia",
        "link": {"speed_gts": 2.5, "width": 16, "max_speed_gts": 32.0, "max_width": 16},
        "memory_mib": None,
        "sm": None,
    }
    assert (second["bus_id"], second["device"]) == ("0000:07:00.0", "/dev/nvidia0")


def test_without_the_driver_gpus_are_found_on_the_bus(gpu_machine: GpuMachine, look: Look) -> None:
    gpu_machine.drop("proc/driver", "sys/module", "dev")
    gpu_machine.file("sys/bus/pci/devices/0000:06:00.1/vendor", "0x10de\n")
    gpu_machine.file("sys/bus/pci/devices/0000:06:00.1/class", "0x040300\n")
    gpu_machine.file("sys/bus/pci/devices/0000:06:00.0/numa_node", "-1\n")
    gpu_machine.file("sys/bus/pci/devices/0000:06:00.0/current_link_speed", "Unknown\n")
    gpu_machine.file("proc/devices", "Character devices:\n  1 mem\n")
    facts = look()
    assert [(gpu["bus_id"], gpu["minor"], gpu["device"], gpu["driven"]) for gpu in facts["gpus"]] == [
        ("0000:06:00.0", None, None, False),
        ("0000:07:00.0", None, None, False),
    ]
    assert facts["gpus"][0]["numa_node"] is None
    assert facts["gpus"][0]["link"]["speed_gts"] is None
    assert facts["driver"]["loaded"] is False
    assert facts["uvm"] == {"loaded": False, "disable_hmm": None, "disable_hmm_on_disk": True}


def test_a_guest_has_the_gpus_it_was_given(gpu_machine: GpuMachine, look: Look) -> None:
    gpu_machine.as_guest("nvidia0", "nvidiactl", "nvidia-uvm")
    facts = look()
    assert facts["place"] == "guest"
    assert [gpu["bus_id"] for gpu in facts["gpus"]] == ["0000:07:00.0"]
    assert len(facts["known_gpus"]) == 2
    assert facts["uvm"]["disable_hmm_on_disk"] is None


def test_the_place_can_be_told(look: Look) -> None:
    assert look(place="guest")["place"] == "guest"


def test_a_proxmox_node_in_a_container_is_a_node(gpu_machine: GpuMachine, look: Look) -> None:
    gpu_machine.file("proc/1/environ", "PATH=/bin\0container=lxc\0")
    assert look()["place"] == "guest"
    gpu_machine.file("etc/pve/local/placeholder", "")
    assert look()["place"] == "node"


@pytest.mark.parametrize(
    ("path", "text", "on_disk"),
    [
        ("etc/modprobe.d/nvidia.conf", "", False),
        ("etc/modprobe.d/zz.conf", "options nvidia_uvm uvm_disable_hmm=0\n", False),
        ("etc/modprobe.d/aa.conf", "options nvidia_uvm uvm_disable_hmm=0\n", True),
        ("proc/cmdline", "ro nvidia_uvm.uvm_disable_hmm=N\n", False),
    ],
)
def test_what_the_next_load_will_take(path: str, text: str, on_disk: bool, gpu_machine: GpuMachine, look: Look) -> None:
    gpu_machine.file(path, text)
    assert look()["uvm"]["disable_hmm_on_disk"] is on_disk


def test_what_refuses_to_be_read_is_remembered(gpu_machine: GpuMachine, look: Look) -> None:
    # A folder in the place of the file refuses root too.
    gpu_machine.drop("etc/modprobe.d/nvidia.conf")
    gpu_machine.file("etc/modprobe.d/nvidia.conf/x", "")
    facts = look()
    assert facts["unreadable"] == {"/etc/modprobe.d/nvidia.conf": "EISDIR"}
    assert facts["uvm"]["disable_hmm_on_disk"] is None
