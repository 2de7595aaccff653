# SPDX-License-Identifier: GPL-3.0-or-later
"""pve_guests_info, driven through main() on a folder that is a node."""

from __future__ import annotations

import functools
import typing as t

import pytest
from ansible.module_utils.slipway.pve import boot_order
from ansible.modules import pve_guests_info

Run = t.Callable[..., dict[str, t.Any]]
GpuMachine = t.Any  # tests/unit/conftest.py


@pytest.fixture
def node(gpu_machine: GpuMachine, monkeypatch: pytest.MonkeyPatch) -> GpuMachine:
    gpu_machine.file("proc/net/unix", "Num RefCount Protocol Flags Type St Inode Path\n")
    gpu_machine.file("proc/sys/kernel/random/boot_id", "boot-1\n")
    monkeypatch.setattr(pve_guests_info, "run", functools.partial(pve_guests_info.run, root=gpu_machine.root))
    return gpu_machine


def starts(node: GpuMachine, *vmids: int) -> None:
    lines = [f"0000: 00000002 00000000 00010000 0001 01 {vmid}00 @/var/lib/lxc/{vmid}/command\n" for vmid in vmids]
    node.file("proc/net/unix", "Num RefCount Protocol Flags Type St Inode Path\n" + "".join(lines))


@pytest.mark.parametrize(
    ("startup", "order"),
    [("order=3,up=30", 3), ("3", 3), ("up=30", None), ("", None), ("order=x", None), ("order=1,order=2", None)],
)
def test_the_order_is_read_as_proxmox_writes_it(startup: str, order: int | None) -> None:
    assert boot_order.start_order(startup) == order


def test_guests_come_in_the_order_in_which_they_start(node: GpuMachine, run_module: Run) -> None:
    node.file("etc/pve/lxc/103.conf", "hostname: late\nonboot: 1\n")
    node.file("etc/pve/lxc/101.conf", "hostname: second\nstartup: order=2\n")
    node.file("etc/pve/lxc/102.conf", "hostname: first\nstartup: order=1,down=20\nonboot: 1\n")
    node.file("etc/pve/lxc/100.conf", "hostname: mould\ntemplate: 1\n")
    node.file("etc/pve/qemu-server/99.conf", "name: router\nhostpci0: 0000:06:00.0,pcie=1\n")
    node.file("run/qemu-server/99.pid", "1\n")
    node.file("proc/1/stat", "1 (kvm) S\n")
    starts(node, 101, 103)
    found = run_module(pve_guests_info, {})
    assert (found["rc"], found["changed"], found["findings"]) == (0, False, [])
    assert [guest["vmid"] for guest in found["guests"]] == [102, 101, 99, 103]
    assert [guest["vmid"] for guest in found["guests"] if guest["running"]] == [101, 99, 103]
    assert found["guests"][2] == {
        "vmid": 99,
        "kind": "qemu",
        "name": "router",
        "running": True,
        "onboot": False,
        "order": None,
        "passes_through": True,
    }
    assert [guest["passes_through"] for guest in found["guests"]] == [False, False, True, False]


def test_a_device_of_a_snapshot_is_no_device(node: GpuMachine, run_module: Run) -> None:
    node.file("etc/pve/qemu-server/99.conf", "name: router\n\n[before]\nhostpci0: 0000:06:00.0\n")
    assert not run_module(pve_guests_info, {})["guests"][0]["passes_through"]


def test_what_cannot_be_read_is_a_sentence(node: GpuMachine, run_module: Run) -> None:
    node.file("etc/pve/lxc/101.conf", "hostname: one\n")
    node.drop("proc/net")
    failed = run_module(pve_guests_info, {})
    assert failed["rc"] == 1
    assert failed["msg"].startswith("Cannot read the guests on ")
    assert failed["msg"].endswith("Run this as root on a Proxmox VE node.")
