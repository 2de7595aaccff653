# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.pve import claims, conf, record
from ansible.module_utils.slipway.pve.claims import Answer, Guest, Hardware, Wanted

A, B = "0000:03:00.0", "0000:04:00.0"
# The driver's numbers do not follow the order of the bus.
HARDWARE = Hardware({A: 1, B: 0}, major=195, mappings={"gpus": [A, B], "one": ["0000:04:00", "0000:05:00.0"]})
NO_DRIVER = Hardware({A: None, B: None})


def container(text: str, hardware: Hardware = HARDWARE, vmid: int = 105, running: bool = False) -> Guest:
    return claims.guest(vmid, "lxc", f"hostname: other\n{text}\n", running, hardware)


def machine(text: str, running: bool = False) -> Guest:
    return claims.guest(106, "qemu", f"name: win\n{text}\n", running, HARDWARE)


def wanted(**options: t.Any) -> Wanted:
    values = {"vmid": 101, "hostname": "infer1", "gpus": [A, B], "networks": [], "memory_mib": 4096}
    return Wanted(**{**values, **options})


def find(
    want: Wanted, *guests: Guest, answers: t.Any = None, memory: int = 100000, hardware: Hardware = HARDWARE
) -> t.Any:
    return claims.find(want, guests, hardware, memory, answers or {})


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("dev0: /dev/nvidia0,gid=44", {B: "dev0"}),
        ("dev3: path=/dev/nvidia1,mode=0666", {A: "dev3"}),
        ("dev0: /dev/nvidiactl\ndev1: /dev/nvidia-uvm", {}),
        ("mp0: /dev/nvidia1,mp=/dev/nvidia1", {A: "mp0"}),
        (
            "lxc.mount.entry: /dev/nvidia1 dev/nvidia1 none bind,optional,create=file",
            {A: "lxc.mount.entry: /dev/nvidia1 dev/nvidia1 none bind,optional,create=file"},
        ),
        ("lxc.cgroup2.devices.allow: c 195:1 rwm", {A: "lxc.cgroup2.devices.allow: c 195:1 rwm"}),
        ("lxc.cgroup2.devices.allow: c 226:1 rwm", {}),
        # As recipes write it: the rule for all numbers means the nodes that are mounted beside it.
        (
            "lxc.cgroup2.devices.allow = c 195:* rwm\nlxc.mount.entry = /dev/nvidia0 dev/nvidia0 none bind",
            {B: "lxc.mount.entry: /dev/nvidia0 dev/nvidia0 none bind"},
        ),
        (
            "lxc.cgroup2.devices.allow: c 195:* rwm",
            {A: "lxc.cgroup2.devices.allow: c 195:* rwm", B: "lxc.cgroup2.devices.allow: c 195:* rwm"},
        ),
        # What waits for a restart counts, a snapshot's does not.
        ("memory: 1\n\n[pve:pending]\ndev0: /dev/nvidia1\n\n[before]\ndev1: /dev/nvidia0", {A: "dev0"}),
        ("memory: 1\n\n[before]\ndev1: /dev/nvidia0", {}),
        ("#dev0: /dev/nvidia0", {}),
    ],
)
def test_gpus_of_a_container(text: str, gpus: dict[str, str]) -> None:
    assert container(text).gpus == gpus


@pytest.mark.parametrize(
    ("text", "gpus"),
    [
        ("hostpci0: 0000:03:00.0,pcie=1", {A: "hostpci0"}),
        ("hostpci1: 03:00,x-vga=1", {A: "hostpci1"}),
        ("hostpci0: host=0000:04:00", {B: "hostpci0"}),
        ("hostpci0: 03:00.1", {}),
        ("hostpci0: 0000:03:00.0;04:00.0", {A: "hostpci0", B: "hostpci0"}),
        ("hostpci0: mapping=one,pcie=1", {B: "hostpci0"}),
        ("hostpci0: mapping=gpus", {A: "hostpci0", B: "hostpci0"}),
        ("hostpci0: mapping=unknown", {}),
        # A raw line means nothing to a virtual machine.
        ("dev0: /dev/nvidia0", {}),
    ],
)
def test_gpus_of_a_virtual_machine(text: str, gpus: dict[str, str]) -> None:
    assert machine(text).gpus == gpus


def test_mappings_are_those_of_the_node() -> None:
    text = (
        "gpu0\n\tdescription the first\n\tmap id=10de:2bb5,iommugroup=12,node=pve1,path=0000:03:00.0\n"
        "\tmap id=10de:2bb5,node=pve2,path=0000:81:00.0\n\n"
        "pool\n\tmap id=10de:2bb5,node=pve1,path=0000:04:00.0;0000:04:00.1\n\tmap id=10de:2bb5,node=pve1,path=0000:05:00.0\n"
    )
    assert claims.mappings(text, "pve1") == {
        "gpu0": ["0000:03:00.0"],
        "pool": ["0000:04:00.0", "0000:04:00.1", "0000:05:00.0"],
    }


def test_the_rest_of_a_guest() -> None:
    text = (
        "memory: 2048\nonboot: 1\ntags: a;b\nnet0: name=eth0,bridge=vmbr0,hwaddr=bc:24:11:00:00:01,ip=192.0.2.5/24,ip6=2001:DB8::5/64\n"
        "net1: name=eth1,bridge=vmbr1,ip=dhcp"
    )
    assert container(text, running=True).as_dict() == {
        "vmid": 105,
        "kind": "lxc",
        "name": "other",
        "running": True,
        "gpus": [],
        "devices": [],
        "addresses": ["192.0.2.5", "2001:db8::5"],
        "memory_mib": 2048,
        "onboot": True,
    }
    assert container(text).hwaddrs == ("BC:24:11:00:00:01",)
    cloud = machine(
        "net0: virtio=BC:24:11:00:00:02,bridge=vmbr0\nipconfig0: ip=192.0.2.6/24,gw=192.0.2.1\nmemory: current=4096"
    )
    assert (cloud.hwaddrs, list(cloud.addresses), cloud.memory_mib) == (("BC:24:11:00:00:02",), ["192.0.2.6"], 4096)
    assert container("").memory_mib == 512


def test_a_gpu_that_another_guest_has() -> None:
    (found,) = find(wanted(gpus=[A]), container("dev0: /dev/nvidia1\ndev1: /dev/nvidia0"))
    assert (found.id, found.severity, found.subject) == ("GPU_CLAIMED", "fail", "container 'other' (105)")
    assert found.detail == "It has 0000:03:00.0 (dev0) and does not run now"
    (found,) = find(wanted(), machine("hostpci0: mapping=gpus", running=True))
    assert found.detail == "It has 0000:03:00.0 (hostpci0), 0000:04:00.0 (hostpci0) and runs"
    assert found.subject == "virtual machine 'win' (106)"


def test_no_claim_of_this_guest_of_a_template_or_on_another_gpu() -> None:
    device = "dev0: /dev/nvidia1"
    assert find(wanted(), container(device, vmid=101)) == []
    assert find(wanted(), container(f"{device}\ntemplate: 1")) == []
    assert find(wanted(gpus=[B]), container(device)) == []
    assert find(wanted(gpus=[]), container(device)) == []


def test_before_there_is_a_driver_a_node_is_a_gpu_that_nobody_can_name() -> None:
    other = container("dev0: /dev/nvidia1", NO_DRIVER)
    (found,) = find(wanted(), other, hardware=NO_DRIVER)
    assert (found.severity, found.detail) == ("fail", "It has /dev/nvidia1")
    (found,) = find(wanted(gpus=[A]), other, hardware=NO_DRIVER)
    assert (found.severity, found.detail) == ("warn", "It has /dev/nvidia1, and which GPU that is the driver will tell")
    assert find(wanted(gpus=[]), other, hardware=NO_DRIVER) == []
    # A node of a GPU that is gone is no claim on those that are there.
    assert find(wanted(), container("dev0: /dev/nvidia7")) == []


NET = [{"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "192.0.2.21/24", "ip6": "auto"}]
MINE, OTHERS = "BC:24:11:00:00:01", "BC:24:11:00:00:05"


def own(running: bool) -> Guest:
    return container(f"net0: name=eth0,hwaddr={MINE},ip=192.0.2.21/24", vmid=101, running=running)


@pytest.mark.parametrize(
    ("guests", "answer", "severity", "detail"),
    [
        ([], Answer(), None, ""),
        ([own(True)], Answer((MINE,)), None, ""),
        ([own(False)], Answer((MINE,)), "fail", f"container 'other' (101) with the MAC address {MINE} answers for it"),
        (
            [own(True)],
            Answer((MINE, "FE:00:00:00:00:01")),
            "fail",
            "a machine with the MAC address FE:00:00:00:00:01 answers for it",
        ),
        ([], Answer(own=True), "fail", "the node itself has it"),
        (
            [container("net1: name=eth1,ip=192.0.2.21/25")],
            Answer(),
            "fail",
            "container 'other' (105) declares it (net1)",
        ),
        # Named once, though it answers too.
        (
            [container(f"net0: name=eth0,hwaddr={OTHERS},ip=192.0.2.21/24", running=True)],
            Answer((OTHERS,)),
            "fail",
            "container 'other' (105) declares it (net0)",
        ),
        # By DHCP, say: its configuration does not tell.
        (
            [container(f"net0: name=eth0,hwaddr={OTHERS},ip=dhcp", running=True)],
            Answer((OTHERS,)),
            "fail",
            f"container 'other' (105) with the MAC address {OTHERS} answers for it",
        ),
        ([container("net0: name=eth0,ip=192.0.2.21/24\ntemplate: 1")], Answer(), None, ""),
        ([], Answer(not_asked="no way"), "info", "Whether a machine answers for it was not asked: no way"),
        (
            [],
            Answer(trouble="vmbr0: Network is down"),
            "unknown",
            "Whether a machine answers for it was not asked: vmbr0: Network is down",
        ),
    ],
)
def test_an_address_in_use(guests: list[Guest], answer: Answer, severity: str | None, detail: str) -> None:
    found = find(wanted(networks=NET), *guests, answers={"192.0.2.21": answer})
    assert [(one.id, one.subject, one.severity, one.detail) for one in found] == (
        [("ADDRESS_IN_USE", "192.0.2.21", severity, detail)] if severity else []
    )


def test_memory_of_guests_that_run_or_start_at_boot() -> None:
    guests = [
        container("memory: 6000", running=True),
        container("memory: 8000", vmid=107),
        machine("memory: 1000\nonboot: 1"),
    ]
    assert find(wanted(), *guests, memory=11096) == []
    (found,) = find(wanted(), *guests, memory=11095)
    assert (found.id, found.severity, found.subject) == ("MEMORY_SHORT", "warn", "guest 'infer1' (101)")
    assert found.detail == (
        "container 'other' (105) 6000 + virtual machine 'win' (106) 1000 + this guest 4096 = 11096 MiB, "
        "and the node has 11095 MiB"
    )


def test_a_guest_that_is_not_ours() -> None:
    refused = claims.foreign(container("tags: mine"), adopted=False)
    assert (refused.severity, refused.subject, refused.detail) == (
        "fail",
        "container 'other' (105)",
        "Its tags are mine",
    )
    assert claims.foreign(container(""), adopted=True).severity == "info"


@pytest.mark.parametrize(
    ("then", "now", "same"),
    [
        ({"hwaddr": MINE, "created": 5}, {"hwaddr": MINE, "created": 5}, True),
        ({"hwaddr": MINE, "created": 5}, {"hwaddr": OTHERS, "created": 5}, False),
        ({"hwaddr": MINE, "created": 5}, {"hwaddr": MINE, "created": 6}, False),
        ({"hwaddr": MINE, "created": None}, {"hwaddr": MINE, "created": 6}, True),
        ({"hwaddr": MINE, "created": 5}, {"hwaddr": None, "created": 5}, False),
        ({"hwaddr": None, "created": 5}, {"hwaddr": None, "created": 5}, True),
        ({"hwaddr": None, "created": None}, {"hwaddr": None, "created": None}, False),
        (None, {"hwaddr": MINE, "created": 5}, False),
        ("text", {"hwaddr": MINE, "created": 5}, False),
    ],
)
def test_whose_record_it_is(then: t.Any, now: dict[str, t.Any], same: bool) -> None:
    assert record.is_of({"vmid": 101, "guest": then}, now) is same


def test_the_first_network_says_who_a_guest_is() -> None:
    text = f"net10: name=b,hwaddr={OTHERS}\nnet2: name=a,hwaddr={MINE.lower()}\n"
    assert claims.hwaddr(text) == MINE
    assert claims.hwaddr("memory: 1\n") is None


def test_settings_are_those_of_the_main_part() -> None:
    text = "#memory: 1\nmemory: 2\nlxc.a: 3\n\n[pve:pending]\ncores: 4\ndelete: swap\n\n[one]\nmemory: 5\n"
    assert conf.settings(text) == {"memory": "2"}
    assert conf.pending(text) == {"cores": "4", "delete": "swap"}
    assert conf.pending("memory: 2\n") == {}
