# SPDX-License-Identifier: GPL-3.0-or-later
"""pve_claims, driven through main() on a folder that is a node, and its question to a network on a socket of the test's."""

from __future__ import annotations

import functools
import json
import struct
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.slipway.errors import SlipwayError
from ansible.module_utils.slipway.pve import arp, claims, neighbours, node
from ansible.modules import pve_claims

Run = t.Callable[..., dict[str, t.Any]]
GpuMachine = t.Any  # tests/unit/conftest.py
OURS = "hostname: infer1\nnet0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=192.0.2.21/24\n"
NET = [{"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "192.0.2.21/24", "gw": "192.0.2.1"}]


class Asked:
    """Stands for the network."""

    def __init__(self) -> None:
        self.questions: list[tuple[str, str]] = []
        self.answer = claims.Answer()

    def __call__(self, address: str, network: t.Mapping[str, t.Any]) -> claims.Answer:
        self.questions.append((address, network["bridge"]))
        return self.answer


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def pve(gpu_machine: GpuMachine, asked: Asked, monkeypatch: pytest.MonkeyPatch) -> GpuMachine:
    """A node with two GPUs and no guest."""
    gpu_machine.file("proc/net/unix", "Num RefCount Protocol Flags Type St Inode Path\n")
    gpu_machine.file("proc/sys/kernel/random/boot_id", "boot-1\n")
    gpu_machine.file("proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1 kB\n")
    (gpu_machine.root / "etc/pve/nodes/node1/lxc").mkdir(parents=True)
    (gpu_machine.root / "etc/pve/nodes/node1/qemu-server").mkdir()
    gpu_machine.link("etc/pve/local", "nodes/node1")
    gpu_machine.link("etc/pve/lxc", "nodes/node1/lxc")
    gpu_machine.link("etc/pve/qemu-server", "nodes/node1/qemu-server")
    run = functools.partial(pve_claims.run, root=gpu_machine.root, ask=asked)
    monkeypatch.setattr(pve_claims, "run", run)
    return gpu_machine


def declared(**options: t.Any) -> dict[str, t.Any]:
    return {"vmid": 101, "hostname": "infer1", "gpus": ["all"], "net": NET, "memory_mib": 4096, **options}


def ids(result: dict[str, t.Any]) -> list[tuple[str, str, str]]:
    return [(found["id"], found["severity"], found["subject"]) for found in result["findings"]]


def test_a_node_without_guests(run_module: Run, pve: GpuMachine, asked: Asked) -> None:
    result = run_module(pve_claims, declared())
    assert (result["rc"], result["changed"], result["findings"]) == (0, False, [])
    assert (result["guests"], result["guest"], result["ours"], result["memory_mib"]) == ([], None, False, 16384)
    assert result["gpus"] == [
        {"bus_id": "0000:06:00.0", "minor": 1, "device": "/dev/nvidia1"},
        {"bus_id": "0000:07:00.0", "minor": 0, "device": "/dev/nvidia0"},
    ]
    assert asked.questions == [("192.0.2.21", "vmbr0")]


def test_the_documented_keys_are_the_returned_ones(run_module: Run, pve: GpuMachine) -> None:
    pve.file("etc/pve/lxc/105.conf", "hostname: other\n")
    documented = yaml.safe_load(pve_claims.RETURN)
    result = run_module(pve_claims, declared())
    assert set(documented) == set(result) - {"changed", "rc", "invocation", "warnings", "deprecations"}
    assert set(documented["guests"]["contains"]) == set(result["guests"][0])


def test_everything_that_collides_is_told_at_once(run_module: Run, pve: GpuMachine, asked: Asked) -> None:
    pve.file("etc/pve/lxc/105.conf", "hostname: other\ndev0: /dev/nvidia1\nmemory: 13000\nonboot: 1\n")
    pve.file("etc/pve/qemu-server/106.conf", "name: win\nhostpci0: mapping=gpu\nipconfig0: ip=192.0.2.21/24\n")
    pve.file("etc/pve/mapping/pci.cfg", "gpu\n\tmap id=10de:2bb5,node=node1,path=0000:07:00.0\n")
    pve.file("run/qemu-server/106.pid", "4711\n")
    (pve.root / "proc/4711").mkdir()
    result = run_module(pve_claims, declared())
    assert ids(result) == [
        ("GPU_CLAIMED", "fail", "container 'other' (105)"),
        ("GPU_CLAIMED", "fail", "virtual machine 'win' (106)"),
        ("ADDRESS_IN_USE", "fail", "192.0.2.21"),
        ("MEMORY_SHORT", "warn", "guest 'infer1' (101)"),
    ]
    assert [(guest["vmid"], guest["running"], guest["gpus"]) for guest in result["guests"]] == [
        (105, False, ["0000:06:00.0"]),
        (106, True, ["0000:07:00.0"]),
    ]


def test_gpus_are_known_before_there_is_a_driver(run_module: Run, pve: GpuMachine) -> None:
    pve.drop("proc/driver", "proc/devices", "dev")
    pve.file("etc/pve/lxc/105.conf", "hostname: other\ndev0: /dev/nvidia1\n")
    result = run_module(pve_claims, declared(gpus=["07:00.0"]))
    assert [gpu["device"] for gpu in result["gpus"]] == [None, None]
    assert ids(result) == [("GPU_CLAIMED", "warn", "container 'other' (105)")]


def test_a_guest_is_ours_by_a_record_that_is_about_it(run_module: Run, pve: GpuMachine) -> None:
    pve.file("etc/pve/lxc/101.conf", OURS)
    result = run_module(pve_claims, declared())
    assert (result["ours"], ids(result)) == (False, [("GUEST_FOREIGN", "fail", "container 'infer1' (101)")])
    place = node.Place(101, pve.root)
    place.mount_point.mkdir(parents=True)
    identity = node.identity(place, OURS)
    assert identity["hwaddr"] == "BC:24:11:00:00:01"
    pve.file("var/lib/slipway/guests/101.json", json.dumps({"vmid": 101, "lines": [], "guest": identity}))
    result = run_module(pve_claims, declared())
    assert (result["ours"], result["findings"], result["guest"]["addresses"]) == (True, [], ["192.0.2.21"])
    # Destroyed, and made anew under the same number.
    pve.file("etc/pve/lxc/101.conf", OURS.replace("00:01", "00:02"))
    assert run_module(pve_claims, declared())["ours"] is False
    assert ids(run_module(pve_claims, declared(allow_adopt=True))) == [
        ("GUEST_FOREIGN", "info", "container 'infer1' (101)")
    ]


def test_what_can_not_be_taken_over_is_no_foreign_guest(run_module: Run, pve: GpuMachine) -> None:
    pve.file("etc/pve/qemu-server/101.conf", "name: win\n")
    result = run_module(pve_claims, declared())
    assert (ids(result), result["guest"]["kind"]) == ([], "qemu")
    pve.drop("etc/pve/qemu-server/101.conf")
    pve.file("etc/pve/lxc/101.conf", "template: 1\n")
    assert ids(run_module(pve_claims, declared())) == []


def test_a_guest_in_the_making_is_waited_for(run_module: Run, pve: GpuMachine, monkeypatch: pytest.MonkeyPatch) -> None:
    pve.file("etc/pve/lxc/101.conf", "lock: create\n")
    monkeypatch.setattr(neighbours.time, "sleep", lambda _: pve.file("etc/pve/lxc/101.conf", OURS))
    assert run_module(pve_claims, declared())["guest"]["name"] == "infer1"
    pve.file("etc/pve/lxc/101.conf", "lock: create\n")
    result = run_module(pve_claims, declared(timeout_seconds=0))
    assert result["rc"] == 1 and "it has been in the making for 0 seconds" in result["msg"]
    assert [found["id"] for found in result["findings"]] == ["PVE_GUEST_LOCKED"]


def test_check_mode_says_the_same_and_nothing_is_written(run_module: Run, pve: GpuMachine) -> None:
    pve.file("etc/pve/lxc/101.conf", OURS)
    before = {path: path.lstat().st_mtime_ns for path in pve.root.rglob("*")}
    results = [run_module(pve_claims, declared(), check=check) for check in (False, True)]
    assert results[0]["findings"] == results[1]["findings"]
    assert {path: path.lstat().st_mtime_ns for path in pve.root.rglob("*")} == before


@pytest.mark.parametrize(
    ("options", "message"),
    [({"gpus": ["0"]}, "Cannot read option 'gpus' on "), ({}, "Cannot read the guests on ")],
)
def test_what_makes_no_sense(options: dict[str, t.Any], message: str, run_module: Run, pve: GpuMachine) -> None:
    if not options:
        pve.drop("etc/pve/lxc")
    result = run_module(pve_claims, declared(**options))
    assert result["rc"] == 1 and result["msg"].startswith(message)


class Link:
    """A packet socket on a network that answers with these frames."""

    def __init__(self, frames: list[bytes]) -> None:
        self.frames, self.sent = frames, []

    def __enter__(self) -> Link:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def bind(self, _: object) -> None:
        pass

    def getsockname(self) -> tuple[t.Any, ...]:
        return ("vmbr0", 0x0806, 0, 1, bytes.fromhex("020000000001"))

    def send(self, frame: bytes) -> None:
        self.sent.append(frame)

    def recv(self, _: int) -> bytes:
        return self.frames.pop(0)


def frame(mac: str, owner: str) -> bytes:
    ethernet = bytes(12) + struct.pack("!H", 0x0806)
    head = struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2)
    address = bytes(int(part) for part in owner.split("."))
    return ethernet + head + bytes.fromhex(mac) + address + bytes(10) + bytes(18)


def test_a_network_is_asked_by_arp(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    link = Link([b"short", frame("bc2411000009", "192.0.2.9"), frame("bc2411000005", "192.0.2.21")])
    monkeypatch.setattr(arp.socket, "socket", lambda *_: link)
    monkeypatch.setattr(arp.select, "select", lambda *_: (link.frames, [], []))
    assert arp._probe("192.0.2.21", "vmbr0") == {"BC:24:11:00:00:05"}
    (question,) = link.sent
    assert question.hex(" ") == (
        "ff ff ff ff ff ff 02 00 00 00 00 01 08 06 "
        "00 01 08 00 06 04 00 01 02 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 c0 00 02 15"
    )


def test_a_network_that_does_not_answer_is_asked_three_times(monkeypatch: pytest.MonkeyPatch) -> None:
    link = Link([])
    monkeypatch.setattr(arp.socket, "socket", lambda *_: link)
    monkeypatch.setattr(arp.select, "select", lambda *_: ([], [], []))
    assert arp._probe("192.0.2.21", "vmbr0") == set()
    assert len(link.sent) == 3


def test_what_is_not_asked_is_told() -> None:
    assert arp.ask("127.0.0.1", {"bridge": "lo"}).own
    assert arp.ask("2001:db8::5", {"bridge": "lo"}).not_asked == "that is done for IPv4"
    assert arp.ask("192.0.2.21", {"bridge": "lo", "tag": 20}).not_asked == "the node has no interface lo.20"


def test_somebody_who_may_not_look_is_told_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: t.Any) -> t.NoReturn:
        raise PermissionError(13, "Permission denied", "/etc/pve/lxc/101.conf")

    monkeypatch.setattr(pve_claims.neighbours, "wait_for_creation", refuse)
    with pytest.raises(SlipwayError, match=r"only root may read /etc/pve/lxc/101[.]conf[.] Set ansible_user to root"):
        pve_claims.run({"vmid": 101, "timeout_seconds": 1}, False)
