# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine with GPUs as a folder (what procfs, sysfs, /dev and /etc of a healthy node hold), servers, and a Proxmox node."""

from __future__ import annotations

import struct
import typing as t
from pathlib import Path

import pytest
from gpu_facts import config_space
from openai_server import OpenAIServer

if t.TYPE_CHECKING:
    from pve.node import Node
    from rig_node import Rig

OPEN_BANNER = (
    "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  595.58.03  Release Build  (builder@host)  "
    "Tue Mar 17 20:01:12 UTC 2026\nGCC version:  gcc version 14.2.0 (Debian 14.2.0-19)\n"
)
# Character major 1 has /dev/null, which always opens: here it stands for both of the driver's majors.
PROC_DEVICES = (
    "Character devices:\n  1 nvidia\n  1 nvidia-uvm\n  5 /dev/tty\n\nBlock devices:\n  8 sd\n 99 nvidia-uvm\n"
)
LINK = {
    "current_link_speed": "32.0 GT/s PCIe",
    "current_link_width": "16",
    "max_link_speed": "32.0 GT/s PCIe",
    "max_link_width": "16",
}
ELF64_X86_64 = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HH", 3, 62)


class GpuMachine:
    """Writes a healthy node below ``root``; ``file``, ``link`` and ``drop`` change it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.file("proc/self/uid_map", "         0          0 4294967295\n")
        self.file("proc/cmdline", "BOOT_IMAGE=/boot/vmlinuz root=/dev/sda1 ro iommu=pt\n")
        self.file("proc/devices", PROC_DEVICES)
        self.file("proc/driver/nvidia/version", OPEN_BANNER)
        self.file("proc/driver/nvidia/params", 'EnableMSI: 1\nRegistryDwords: "ForceP2P=0x11"\n')
        self.file("sys/module/nvidia/version", "595.58.03\n")
        self.file("sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "Y\n")
        self.file("etc/modprobe.d/nvidia.conf", "options nvidia-uvm uvm_disable_hmm=1\n")
        self.file("usr/lib/x86_64-linux-gnu/libcuda.so.595.58.03", ELF64_X86_64)
        self.link("usr/lib/x86_64-linux-gnu/libcuda.so.1", "libcuda.so.595.58.03")
        self.file("proc/uptime", "90000.00 1.00\n")
        self.file("dev/kmsg", "6,1,0,-;Linux version 6.8.12-9-pve\n SUBSYSTEM=x\n")
        (self.root / "sys/class/iommu").mkdir(parents=True)
        # Both behind one switch: root port, its upstream port, a downstream port for each GPU.
        self.port("0000:00:01.1", 4, "pci0000:00")
        self.port("0000:01:00.0", 5, "pci0000:00/0000:00:01.1")
        self.port("0000:02:00.0", 6, "pci0000:00/0000:00:01.1/0000:01:00.0")
        self.port("0000:02:01.0", 6, "pci0000:00/0000:00:01.1/0000:01:00.0")
        # The driver's numbers do not follow the order of the bus.
        self.gpu("0000:06:00.0", minor=1)
        self.gpu("0000:07:00.0", minor=0)
        for name in ("nvidiactl", "nvidia-uvm", "nvidia0", "nvidia1"):
            self.link(f"dev/{name}", "/dev/null")

    def port(self, bus_id: str, kind: int, above: str, acs_control: int | None = 0x11) -> None:
        """A device below ``above``, with the number that PCI Express has for its kind, and a link of 16 lanes at full speed."""
        folder = f"sys/devices/{above}/{bus_id}"
        self.link(f"sys/bus/pci/devices/{bus_id}", f"../../../../{folder}")
        self.file(f"{folder}/config", config_space(kind, acs_control))
        for name, value in LINK.items():
            self.file(f"{folder}/{name}", value + "\n")

    def gpu(self, bus_id: str, minor: int | None, above: str = "") -> None:
        """A GPU on the bus and, with a ``minor``, in the driver's list. ``above`` is the port that it hangs on."""
        if not (self.root / f"sys/bus/pci/devices/{bus_id}").exists():
            slot = int(bus_id[5:7], 16) % 2
            switch = f"pci0000:00/0000:00:01.1/0000:01:00.0/0000:02:0{slot}.0"
            self.port(bus_id, 1, above or switch, acs_control=None)
        if minor is not None:
            self.file(
                f"proc/driver/nvidia/gpus/{bus_id}/information",
                f"Model: \t\t NVIDIA RTX PRO 6000\nIRQ:   \t\t 185\nGPU UUID: \t GPU-0000000{minor}\n"
                f"Bus Location: \t {bus_id}\nDevice Minor: \t {minor}\nGPU Excluded:\t No\n",
            )
        attributes = {
            "vendor": "0x10de",
            "device": "0x2bb5",
            "class": "0x030200",
            "numa_node": "0",
            "local_cpulist": "0-31",
            "driver_override": "(null)",
            # It rests in the first generation. Region 2 is what NVIDIA calls BAR1: 128 GiB.
            "current_link_speed": "2.5 GT/s PCIe",
            "resource": "0x7b000000000 0x7b003ffffff 0x14220c\n0x0 0x0 0x0\n0x76000000000 0x77fffffffff 0x14220c\n0x0 0x0 0x0",
            "resource2_resize": "000000000003ffc0",
        }
        for name, value in attributes.items():
            self.file(f"sys/bus/pci/devices/{bus_id}/{name}", value + "\n")
        self.link(
            f"sys/bus/pci/devices/{bus_id}/driver", "../../drivers/" + ("vfio-pci" if minor is None else "nvidia")
        )

    def file(self, path: str, content: str | bytes) -> None:
        """Write a file and the folders above it."""
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode() if isinstance(content, str) else content)

    def link(self, path: str, target: str) -> None:
        """Make a symbolic link, in the place of what was there."""
        self.drop(path)
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).symlink_to(target)

    def drop(self, *paths: str) -> None:
        """Take files, links or whole folders away."""
        for path in paths:
            target = self.root / path
            if target.is_dir() and not target.is_symlink():
                self.drop(*(str(inner.relative_to(self.root)) for inner in target.iterdir()))
                target.rmdir()
            else:
                target.unlink(missing_ok=True)

    def as_guest(self, *nodes: str) -> None:
        """Turn it into an unprivileged container that was given these nodes."""
        self.file("proc/self/uid_map", "0 100000 65536\n")
        self.drop("etc/modprobe.d", "dev")
        for name in nodes:
            self.link(f"dev/{name}", "/dev/null")


@pytest.fixture
def gpu_machine(tmp_path: Path) -> GpuMachine:
    """A healthy node with two GPUs; tests change it."""
    return GpuMachine(tmp_path / "machine")


@pytest.fixture
def look(gpu_machine: GpuMachine) -> t.Callable[..., dict[str, t.Any]]:
    """What the code sees of ``gpu_machine``."""
    from ansible.module_utils.slipway.gpu import machine

    return lambda **options: machine.look(root=str(gpu_machine.root), timeout_seconds=10, **options)


@pytest.fixture
def server() -> t.Iterator[OpenAIServer]:
    """A stand-in for an inference server; tests change it."""
    running = OpenAIServer()
    yield running
    running.close()


@pytest.fixture(scope="session")
def installed_node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root file system of the rig's node1 as installed; each test works on a copy."""
    import rig_node

    return rig_node.installed(tmp_path_factory.mktemp("node1"))


@pytest.fixture
def scratch_node(installed_node: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """node1 of the rig below a folder; its tasks run at once, and nothing is chowned, so that tests need not be root."""
    import rig_node

    monkeypatch.setattr("os.chown", lambda *args, **kwargs: None)
    return rig_node.copied(installed_node, tmp_path / "node1")


@pytest.fixture
def rig(scratch_node: Node, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Rig]:
    """That node where ``pve_*`` modules reach it over HTTPS and SSH; sleeping takes no time."""
    import rig_node

    connected = rig_node.connected(scratch_node, monkeypatch)
    yield connected
    connected.clock.over = True
