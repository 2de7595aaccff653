# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.gpu.tree import Tree

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
    assert [hop["bus_id"] for hop in first.pop("path")][-1] == "0000:06:00.0"
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
        "local_cpus": "0-31",
        "driver_override": None,
        "bar1_mib": 131072,
        "bar1_sizes_mib": [1 << bit for bit in range(6, 18)],
        "iommu_group": None,
        "iommu_type": None,
        "iommu_mode": "off",
        "machines": [],
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


LINK = {"speed_gts": 32.0, "width": 16, "max_speed_gts": 32.0, "max_width": 16}


def test_the_way_to_a_gpu(look: Look) -> None:
    facts = look()
    first, second = (gpu["path"] for gpu in facts["gpus"])
    assert [(hop["bus_id"], hop["kind"]) for hop in first] == [
        ("0000:00:01.1", "root port"),
        ("0000:01:00.0", "upstream port"),
        ("0000:02:00.0", "downstream port"),
        ("0000:06:00.0", "endpoint"),
    ]
    assert second[2]["bus_id"] == "0000:02:01.0"
    assert [hop["link"] for hop in first] == [LINK, LINK, LINK, {**LINK, "speed_gts": 2.5}]
    assert {(hop["max_payload_bytes"], hop["max_read_request_bytes"]) for hop in first} == {(256, 512)}
    assert facts["acs"]["redirect"] is False
    assert facts["acs"]["hops"] == [
        {"bus_id": bus_id, "acs_control": 0x11, "request_redirect": False, "completion_redirect": False}
        for bus_id in ("0000:00:01.1", "0000:01:00.0", "0000:02:00.0", "0000:02:01.0")
    ]
    assert facts["iommu"] == {"units": [], "mode": "off"}


def test_each_device_on_the_way_is_read_once(look: Look, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []
    read = Tree.binary_attribute
    monkeypatch.setattr(Tree, "binary_attribute", lambda tree, path: reads.append(path) or read(tree, path))
    look()
    assert len(reads) == len(set(reads)) == 6


def test_a_container_reads_64_bytes_and_so_knows_nothing_of_acs(gpu_machine: GpuMachine, look: Look) -> None:
    for file in (gpu_machine.root / "sys/devices").rglob("config"):
        file.write_bytes(file.read_bytes()[:64])
    facts = look()
    assert facts["acs"]["redirect"] is None
    assert {hop["request_redirect"] for hop in facts["acs"]["hops"]} == {None}
    assert {hop["kind"] for hop in facts["gpus"][0]["path"]} == {None}
    assert facts["gpus"][0]["path"][0]["link"] == LINK


def test_a_device_that_hangs_on_nothing_has_no_path(gpu_machine: GpuMachine, look: Look) -> None:
    gpu_machine.drop("sys/bus/pci/devices/0000:07:00.0")
    gpu_machine.file("sys/bus/pci/devices/0000:07:00.0/vendor", "0x10de\n")
    facts = look()
    assert facts["gpus"][1]["path"] is None
    assert facts["acs"]["redirect"] is None


def test_iommu_groups(gpu_machine: GpuMachine, look: Look) -> None:
    for bus_id, number, kind in (("0000:06:00.0", 40, "identity"), ("0000:07:00.0", 41, "DMA-FQ")):
        gpu_machine.link(f"sys/bus/pci/devices/{bus_id}/iommu_group", f"../../kernel/iommu_groups/{number}")
        gpu_machine.file(f"sys/kernel/iommu_groups/{number}/type", kind + "\n")
    gpu_machine.file("sys/class/iommu/ivhd0/x", "")
    facts = look()
    assert [(gpu["iommu_group"], gpu["iommu_mode"]) for gpu in facts["gpus"]] == [
        (40, "passthrough"),
        (41, "translated"),
    ]
    assert facts["iommu"] == {"units": ["ivhd0"], "mode": "translated"}


def test_parameters_of_modules(gpu_machine: GpuMachine, look: Look) -> None:
    gpu_machine.file("etc/modprobe.d/vfio.conf", "options vfio-pci ids=10de:2bb5 disable_vga\n")
    modules = look()["modules"]
    assert modules["nvidia_uvm"] == {"live": {"uvm_disable_hmm": "Y"}, "on_disk": {"uvm_disable_hmm": "1"}}
    assert modules["vfio_pci"] == {"live": None, "on_disk": {"ids": "10de:2bb5", "disable_vga": None}}
    gpu_machine.as_guest("nvidia0")
    assert look()["modules"]["nvidia_uvm"] == {"live": {"uvm_disable_hmm": "Y"}, "on_disk": None}


def test_processes_that_hold_gpus(gpu_machine: GpuMachine, look: Look) -> None:
    def process(pid: int, name: str, cgroup: str, *targets: str) -> None:
        gpu_machine.file(f"proc/{pid}/comm", name + "\n")
        gpu_machine.file(f"proc/{pid}/cgroup", cgroup + "\n")
        gpu_machine.file(f"proc/{pid}/fd/x", "")
        gpu_machine.drop(f"proc/{pid}/fd/x")
        for number, target in enumerate(targets):
            gpu_machine.link(f"proc/{pid}/fd/{number}", target)

    process(900, "nvidia-persiste", "0::/system.slice/x.service", "/dev/null", "/dev/nvidia0", "/dev/nvidia1")
    process(1200, "python3", "0::/lxc/101/ns/x", "/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia0")
    process(1300, "bash", "0::/", "/dev/nvidia.txt", "socket:[1]")
    facts = look()
    assert facts["processes"] == [
        {"pid": 900, "name": "nvidia-persiste", "guest": None, "devices": ["/dev/nvidia0", "/dev/nvidia1"]},
        {"pid": 1200, "name": "python3", "guest": 101, "devices": ["/dev/nvidia-uvm", "/dev/nvidia0"]},
    ]
    assert facts["persistence"] == {"daemon": True, "devices": ["/dev/nvidia0", "/dev/nvidia1"]}


def test_without_the_persistence_daemon(look: Look) -> None:
    assert look()["persistence"] == {"daemon": False, "devices": []}


def test_capability_nodes(gpu_machine: GpuMachine, look: Look) -> None:
    gpu_machine.link("dev/nvidia-caps/nvidia-cap1", "/dev/null")
    gpu_machine.file("proc/devices", "Character devices:\n  1 nvidia\n  1 nvidia-uvm\n235 nvidia-caps\n")
    (node,) = look()["capability_nodes"]
    assert node == {
        "path": "/dev/nvidia-caps/nvidia-cap1",
        "major": 1,
        "minor": 3,
        "mode": node["mode"],
        "expected_major": 235,
    }


def test_virtual_machines_that_get_a_gpu(gpu_machine: GpuMachine, look: Look) -> None:
    (gpu_machine.root / "etc/pve/nodes/node1").mkdir(parents=True)
    gpu_machine.link("etc/pve/local", "nodes/node1")
    gpu_machine.file("etc/pve/mapping/pci.cfg", "gpu\n\tmap id=10de:2bb5,node=node1,path=0000:07:00.0\n")
    gpu_machine.file("etc/pve/qemu-server/200.conf", "name: win\nhostpci0: 0000:06:00,pcie=1\nonboot: 1\n")
    gpu_machine.file("etc/pve/qemu-server/201.conf", "name: lin\nhostpci1: mapping=gpu\n")
    gpu_machine.file("etc/pve/qemu-server/202.conf", "name: old\ntemplate: 1\nhostpci0: 0000:06:00\n")
    gpu_machine.file("run/qemu-server/200.pid", "77\n")
    gpu_machine.file("proc/77/comm", "kvm\n")
    first, second = (gpu["machines"] for gpu in look()["gpus"])
    assert first == [{"vmid": 200, "name": "win", "key": "hostpci0", "running": True, "onboot": True}]
    assert second == [{"vmid": 201, "name": "lin", "key": "hostpci1", "running": False, "onboot": False}]


XID = "3,{},{},-;NVRM: Xid (PCI:0000:06:00): 79, pid=1, name=python3, GPU has fallen off the bus.\n"


def test_errors_in_the_kernel_log(gpu_machine: GpuMachine, look: Look) -> None:
    gpu_machine.file("dev/kmsg", "6,1,0,-;Linux\n" + XID.format(2, 10_000_000) + XID.format(3, 89_940_000_000))
    xids = look()["xids"]
    assert [(xid["bus_id"], xid["code"], xid["age_seconds"]) for xid in xids] == [
        ("0000:06:00.0", 79, 89990),
        ("0000:06:00.0", 79, 60),
    ]
    assert xids[0]["text"] == "NVRM: Xid (PCI:0000:06:00): 79, pid=1, name=python3, GPU has fallen off the bus."


def test_a_kernel_log_that_is_not_there_or_not_readable(gpu_machine: GpuMachine, look: Look) -> None:
    gpu_machine.drop("dev/kmsg")
    facts = look()
    assert (facts["xids"], facts["unreadable"]) == (None, {})
    gpu_machine.file("dev/kmsg/x", "")
    facts = look()
    assert (facts["xids"], facts["unreadable"]) == (None, {"/dev/kmsg": "EISDIR"})
    gpu_machine.as_guest("nvidia0")
    assert look()["xids"] is None
