# SPDX-License-Identifier: GPL-3.0-or-later
"""Comparing as Proxmox does, in tables."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.pve import devices, guest, properties
from ansible.module_utils.slipway.pve.plan import Plan, plan, same

NET = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=dhcp,type=veth"


@pytest.mark.parametrize(
    ("key", "present", "wanted"),
    [
        ("net0", NET, "bridge=vmbr0,ip=dhcp,name=eth0"),
        ("net0", NET + ",firewall=0", "bridge=vmbr0,ip=dhcp,name=eth0"),
        ("net0", NET, "bridge=vmbr0,ip=dhcp,name=eth0,hwaddr=bc:24:11:00:00:01"),
        ("net0", NET + ",firewall=off,link_down=no", "bridge=vmbr0,ip=dhcp,name=eth0"),
        ("net0", NET + ",ip6=2001:DB8:0::21/64", "bridge=vmbr0,ip=dhcp,ip6=2001:db8::21/64,name=eth0"),
        ("net0", NET + ",gw6=2001:db8::0001", "bridge=vmbr0,gw6=2001:db8::1,ip=dhcp,name=eth0"),
        ("mp0", "local:vm-1-disk-1,mp=/a,size=65536M", "local:vm-1-disk-1,size=64G,mp=/a"),
        ("mp0", "volume=local:x,mp=/a,ro=yes,size=1G", "local:x,mp=/a,ro=1"),
        ("onboot", "off", 0),
        ("tags", "gpu,inference", "inference;gpu"),
        ("dev0", "path=/dev/nvidia0,uid=0,gid=44", "/dev/nvidia0,gid=44,uid=0"),
        ("dev0", "/dev/nvidia0,deny-write=on", "/dev/nvidia0,deny-write=1"),
        ("features", "nesting=1,keyctl=0", "nesting=1"),
        ("features", "mount=nfs;cifs", "mount=cifs;nfs"),
        ("startup", "up=30,order=2", "2,up=30"),
        ("tags", "gpu inference", "inference;GPU"),
        ("tags", "gpu;of-the-user", "gpu"),
        ("description", "two\nlines\n", "two\nlines"),
        ("onboot", "yes", 1),
        ("memory", "4096", 4096),
    ],
)
def test_same(key: str, present: t.Any, wanted: t.Any) -> None:
    assert same(key, present, wanted)


@pytest.mark.parametrize(
    ("key", "present", "wanted"),
    [
        ("net0", NET + ",firewall=1", "bridge=vmbr0,ip=dhcp,name=eth0"),
        ("net0", NET, "bridge=vmbr0,ip=dhcp,name=eth0,hwaddr=BC:24:11:00:00:02"),
        ("net0", NET, "bridge=vmbr0,ip=dhcp,name=eth0,type=phys"),
        ("features", "nesting=1,keyctl=1", "nesting=1"),
        ("net0", NET.replace("dhcp", "192.0.2.1/24"), "bridge=vmbr0,ip=192.0.2.1/25,name=eth0"),
        ("mp0", "local:x,mp=/a,size=1G", "local:x,mp=/a,size=1025M"),
        ("dev0", "/dev/nvidia0,mode=0666", "/dev/nvidia0,mode=0660"),
        ("dev0", "/dev/nvidia0,gid=44,gid=45", "/dev/nvidia0,gid=44"),
        ("description", "a", "b"),
        ("tags", "gpu", "gpu;inference"),
    ],
)
def test_different(key: str, present: t.Any, wanted: t.Any) -> None:
    assert not same(key, present, wanted)


def test_what_proxmox_assumes_is_no_change() -> None:
    assert not plan({}, {"onboot": 0, "swap": 512, "memory": 512, "startup": None})


def test_a_plan_has_both_sides() -> None:
    made = plan({"cores": 2, "features": "keyctl=1", "hostname": "a"}, {"cores": 4, "features": None, "hostname": "a"})
    assert made == Plan({"cores": 4}, ("features",), {"cores": 2, "features": "keyctl=1"})
    assert made.without({"features"}) == Plan({"cores": 4}, (), {"cores": 2})


def test_new_devices_are_plugged_in_and_changed_ones_wait() -> None:
    made = plan(
        {"dev0": "/dev/a", "dev9": "/dev/b"}, {"dev0": "/dev/a,gid=1", "dev1": "/dev/c", "dev9": None, "cores": 2}
    )
    assert made.waits_for_restart() == ["dev0", "dev9"]


def test_numbers_that_a_pending_removal_still_holds_are_not_given_away() -> None:
    now = {"dev0": "/dev/old", "dev1": "/dev/nvidia0"}
    later = {"dev1": "/dev/nvidia0"}
    keys = devices.assign(["/dev/nvidia0", "/dev/new"], (later, now), "dev", devices.device_path)
    assert keys == {"/dev/nvidia0": "dev1", "/dev/new": "dev2"}
    full = {f"dev{number}": f"/dev/{number}" for number in range(256)}
    with pytest.raises(ValueError, match="all 256 keys devN are taken"):
        devices.assign(["/dev/new"], (full,), "dev", devices.device_path)


def test_a_guest_is_put_together() -> None:
    found = guest.from_answers(
        101,
        "node1",
        {"vmid": 101, "status": "running"},
        {"cores": 2, "dev0": "/dev/a", "memory": 512, "lock": "backup", "digest": "d"},
        [
            {"key": "memory", "value": 512},
            {"key": "cores", "value": 2, "pending": 4},
            {"key": "dev0", "value": "/dev/a", "delete": 1},
            {"key": "swap", "value": 1, "delete": 0},
        ],
    )
    assert found.config == {"cores": 2, "dev0": "/dev/a", "memory": 512, "lock": "backup"}
    assert found.declared == {"cores": 4, "memory": 512, "lock": "backup"}
    assert (found.pending, found.digest, found.lock) == (("cores", "dev0"), "d", "backup")


@pytest.mark.parametrize(
    ("size", "gib"), [("64G", 64), ("65536M", 64), ("1T", 1024), ("1073741824", 1), ("512K", 2**-11)]
)
def test_sizes(size: str, gib: float) -> None:
    assert properties.gibibytes(size) == gib


@pytest.mark.parametrize("value", ["nonsense", "a=1,a=2"])
def test_property_strings_that_are_none(value: str) -> None:
    with pytest.raises(ValueError, match=r"has no name|comes twice"):
        properties.parse(value)


def test_tags_of_others_stay() -> None:
    assert plan({"tags": "of-the-user;b"}, {"tags": "slipway;b"}).set == {"tags": "b;of-the-user;slipway"}
