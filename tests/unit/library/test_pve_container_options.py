# SPDX-License-Identifier: GPL-3.0-or-later
"""Every option of pve_container in turn, against the rig's Proxmox: made, repeated, changed, repeated, spoiled by hand, put
right, unset, and gone with the guest. In check mode nothing is sent but GETs."""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass, field

import pytest
from ansible.module_utils.slipway.pve.options import GUEST_OPTIONS
from ansible.modules import pve_container
from rig_node import OVER_SSH, TEMPLATE, Rig

Run = t.Callable[..., dict[str, t.Any]]
Options = dict[str, t.Any]
HERE = OVER_SSH | {"node": "node1", "vmid": 101}
DISK = {"storage": "local-zfs", "size_gib": 8}
BASE = {"ostemplate": TEMPLATE, "rootfs": DISK}
NET = {"id": 0, "name": "eth0", "bridge": "vmbr0"}
MAC, OTHER_MAC = "BC:24:11:00:00:0A", "BC:24:11:00:00:0B"


@dataclass(frozen=True)
class Case:
    """An option: two values of it, what a person makes of it by hand, and how it is unset, where it can be.

    ``made``, ``changed`` and ``unset_to`` are what the file then has: a key and its value, None where the key is gone. Of a
    network the MAC address and the type count only where they are named.
    """

    option: str
    first: Options
    second: Options
    made: Options
    changed: Options
    by_hand: Options
    unset: Options | None = None
    unset_to: Options = field(default_factory=dict)
    # What the file has after a person's change was put right, where that is not what it had before.
    repaired: Options | None = None


def plain(option: str, key: str, first: t.Any, second: t.Any, by_hand: t.Any, **more: t.Any) -> Case:
    """An option that is one key with one value."""
    return Case(
        option,
        {option: first},
        {option: second},
        {key: first},
        {key: second},
        {key: by_hand},
        unset_to={key: None},
        **more,
    )


def net(option: str, first: t.Any, second: t.Any, by_hand: str, unset: bool = True) -> Case:
    """An option of an interface. Unset, it is one that is not declared any more."""

    def value(given: t.Any) -> Options:
        return {"net0": {"name": "eth0", "bridge": "vmbr0", option: str(int(given)) if given is True else str(given)}}

    bare = {key: text for key, text in {"name": "eth0", "bridge": "vmbr0"}.items() if key != option}
    return Case(
        f"net.{option}",
        {"net": [NET | {option: first}]},
        {"net": [NET | {option: second}]},
        value(first),
        value(second) if second is not False else {"net0": {"name": "eth0", "bridge": "vmbr0"}},
        {"net0": by_hand},
        {"net": [{key: text for key, text in NET.items() if key != option}]} if unset else None,
        {"net0": bare},
    )


def feature(option: str) -> Case:
    """A feature flag, on and off."""
    on = f"{option}=1"
    return Case(
        f"features.{option}",
        {"features": {option: True}},
        {"features": {option: False}},
        {"features": on},
        {"features": None},
        {"features": on},
        {"features": {}},
        {"features": None},
    )


def device(option: str, first: t.Any, second: t.Any, made: str, changed: str) -> Case:
    """An option of a device; unset means that the device is not declared any more."""
    return Case(
        f"devices.{option}",
        {"devices": [{"path": "/dev/nvidia0", option: first}]},
        {"devices": [{"path": "/dev/nvidia0", option: second}]},
        {"dev0": made},
        {"dev0": changed},
        {"dev0": "/dev/nvidia0,uid=7"},
        {"devices": []},
        {"dev0": None},
    )


def disk(path: str, size: int = 4) -> Options:
    return {"path": path, "storage": "local-zfs", "size_gib": size}


CASES = [
    plain("hostname", "hostname", "infer1", "infer2", "by-hand", unset={"hostname": ""}),
    plain("cores", "cores", 2, 4, 8, unset={"cores": 0}),
    plain("startup", "startup", "order=2", "order=3,up=10", "order=9", unset={"startup": ""}),
    Case("memory_mib", {"memory_mib": 1024}, {"memory_mib": 2048}, {"memory": 1024}, {"memory": 2048}, {"memory": 99}),
    Case("swap_mib", {"swap_mib": 0}, {"swap_mib": 256}, {"swap": 0}, {"swap": 256}, {"swap": 99}),
    Case("onboot", {"onboot": True}, {"onboot": False}, {"onboot": 1}, {"onboot": 0}, {"onboot": 1}),
    Case(
        "description",
        {"description": "one\ntwo: 100%"},
        {"description": "three"},
        {"description": "one\ntwo: 100%\n"},
        {"description": "three\n"},
        {"description": "by hand\n"},
        {"description": ""},
        {"description": None},
    ),
    Case(
        "tags",
        {"tags": ["gpu"]},
        {"tags": ["gpu", "b"]},
        {"tags": "gpu"},
        {"tags": "b;gpu"},
        {"tags": "of-the-user"},
        {"tags": []},
        {"tags": None},
        {"tags": "b;gpu;of-the-user"},
    ),
    *(feature(name) for name in ("nesting", "keyctl", "fuse", "mknod", "force_rw_sys")),
    Case(
        "features.mount",
        {"features": {"mount": "nfs"}},
        {"features": {"mount": "nfs;cifs"}},
        {"features": "mount=nfs"},
        {"features": "mount=nfs;cifs"},
        {"features": "mount=nfs;cifs,nesting=1"},
        {"features": {}},
        {"features": None},
    ),
    Case(
        "net.id",
        {"net": [NET]},
        {"net": [NET, NET | {"id": 7, "name": "eth7"}]},
        {"net0": {"name": "eth0", "bridge": "vmbr0"}, "net7": None},
        {"net7": {"name": "eth7", "bridge": "vmbr0"}},
        {"net7": None},
    ),
    Case(
        "net.name",
        {"net": [NET]},
        {"net": [NET | {"name": "eth1"}]},
        {"net0": {"name": "eth0", "bridge": "vmbr0"}},
        {"net0": {"name": "eth1", "bridge": "vmbr0"}},
        {"net0": "name=eth9,bridge=vmbr0"},
    ),
    net("bridge", "vmbr0", "vmbr1", "name=eth0,bridge=vmbr9"),
    net("ip", "192.0.2.21/24", "dhcp", "name=eth0,bridge=vmbr0,ip=192.0.2.99/24"),
    net("gw", "192.0.2.1", "192.0.2.2", "name=eth0,bridge=vmbr0"),
    net("ip6", "2001:db8::21/64", "auto", "name=eth0,bridge=vmbr0,ip6=dhcp"),
    net("gw6", "2001:db8::1", "2001:db8::2", "name=eth0,bridge=vmbr0,gw6=2001:db8::9"),
    net("hwaddr", MAC, OTHER_MAC, f"name=eth0,bridge=vmbr0,hwaddr={MAC}", unset=False),
    net("firewall", True, False, "name=eth0,bridge=vmbr0,firewall=1"),
    net("tag", 5, 6, "name=eth0,bridge=vmbr0,tag=7"),
    net("mtu", 1400, 9000, "name=eth0,bridge=vmbr0,mtu=1500"),
    net("link_down", True, False, "name=eth0,bridge=vmbr0,link_down=1"),
    Case(
        "devices.path",
        {"devices": [{"path": "/dev/nvidia0"}]},
        {"devices": [{"path": "/dev/nvidia1"}]},
        {"dev0": "/dev/nvidia0"},
        {"dev0": None, "dev1": "/dev/nvidia1"},
        {"dev1": None},
        {"devices": []},
        {"dev0": None, "dev1": None},
        # The number that is free is a lower one now.
        {"dev0": "/dev/nvidia1", "dev1": None},
    ),
    device("gid", 44, 45, "/dev/nvidia0,gid=44", "/dev/nvidia0,gid=45"),
    device("uid", 5, 6, "/dev/nvidia0,uid=5", "/dev/nvidia0,uid=6"),
    device("mode", "0660", "0666", "/dev/nvidia0,mode=0660", "/dev/nvidia0,mode=0666"),
    device("deny_write", True, False, "/dev/nvidia0,deny-write=1", "/dev/nvidia0"),
    Case(
        "mounts.path",
        {"mounts": [disk("/var/cache")]},
        {"mounts": [disk("/var/cache"), disk("/srv")]},
        {"mp0": "local-zfs:subvol-101-disk-1,mp=/var/cache,size=4G", "mp1": None},
        {"mp1": "local-zfs:subvol-101-disk-2,mp=/srv,size=4G"},
        {"mp1": None},
        repaired={"mp1": "local-zfs:subvol-101-disk-3,mp=/srv,size=4G"},
    ),
    Case(
        "mounts.size_gib",
        {"mounts": [disk("/srv")]},
        {"mounts": [disk("/srv", 6)], "grow_disks": True},
        {"mp0": "local-zfs:subvol-101-disk-1,mp=/srv,size=4G"},
        {"mp0": "local-zfs:subvol-101-disk-1,mp=/srv,size=6G"},
        {"mp0": "local-zfs:subvol-101-disk-1,mp=/srv,size=4096M"},
    ),
    Case(
        "rootfs.size_gib",
        {"rootfs": DISK},
        {"rootfs": DISK | {"size_gib": 12}, "grow_disks": True},
        {"rootfs": "local-zfs:subvol-101-disk-0,size=8G"},
        {"rootfs": "local-zfs:subvol-101-disk-0,size=12G"},
        {"rootfs": "local-zfs:subvol-101-disk-0,size=8192M"},
    ),
]
# Options that count when the guest is made: another value later, and what is said about it.
AT_CREATION = {
    "ostemplate": (TEMPLATE, "local:vztmpl/another.tar.zst", None),
    "storage": ("local-zfs", "local", None),
    "ssh_public_keys": (["ssh-ed25519 AAAA a@b"], ["ssh-ed25519 BBBB c@d"], None),
    "rootfs.storage": (DISK, DISK | {"storage": "local"}, "rootfs is on 'local-zfs', not on 'local' as declared"),
    "mounts.storage": (
        [disk("/srv")],
        [disk("/srv") | {"storage": "local"}],
        "mp0 (/srv) is on 'local-zfs', not on 'local'",
    ),
    "unprivileged": (True, False, "it is unprivileged, declared is privileged, and Proxmox fixes this at creation"),
}


def test_no_option_is_forgotten() -> None:
    names = set()
    for name, spec in GUEST_OPTIONS.items():
        names |= {f"{name}.{inner}" for inner in spec.get("options", {})} or {name}
    # Together they say which guest it is. A mount's and a disk's storage are among those that count at creation.
    assert {case.option for case in CASES} | set(AT_CREATION) == names - {"vmid", "node"}


class Guest:
    """Guest 101 of the rig, and the module on it."""

    def __init__(self, run_module: Run, rig: Rig, running: bool) -> None:
        self.run_module = run_module
        self.rig = rig
        self.running = running

    def run(self, options: Options, check: bool = False, **more: t.Any) -> dict[str, t.Any]:
        self.rig.requests.clear()
        state = {"state": "started" if self.running else "present"}
        result = self.run_module(pve_container, HERE | BASE | state | options | more, check=check)
        assert result["rc"] == 0, result
        if check or not result["changed"]:
            assert self.rig.writes == [], "written without need"
        return result

    def settle(self, options: Options) -> None:
        """Run as declared: check mode says so first, and a second run, before and after a restart, has nothing to do."""
        foretold = self.run(options, check=True)
        done = self.run(options)
        assert done["changed"] and foretold["changed"] and foretold["diff"] == done["diff"], (foretold, done)
        assert foretold["pending"] == done["pending"], (foretold, done)
        self.unchanged(options)
        if done["restart_required"]:
            self.run(options, state="restarted")
            self.unchanged(options)

    def unchanged(self, options: Options) -> None:
        result = self.run(options)
        assert not result["changed"] and result["diff"] == {"before": {}, "after": {}}, result
        assert len(self.rig.calls) <= 4

    def has(self, expected: Options) -> None:
        content = self.rig.node.load(101)
        assert content["pending"] == {}
        for key, value in expected.items():
            found = content.get(key)
            if isinstance(value, dict):
                options = dict(part.split("=", 1) for part in found.split(","))
                found = {
                    name: text for name, text in options.items() if name in value or name not in ("hwaddr", "type")
                }
            assert found == value, key

    def by_hand(self, changes: Options) -> None:
        content = self.rig.node.load(101)
        for key, value in changes.items():
            content.pop(key, None)
            if value is not None:
                content[key] = value
        self.rig.node.save(101, content)


@pytest.mark.parametrize("running", [False, True], ids=["stopped", "running"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.option)
def test_every_option(run_module: Run, rig: Rig, case: Case, running: bool) -> None:
    guest = Guest(run_module, rig, running)
    guest.settle(case.first)
    guest.has(case.made)
    guest.settle(case.second)
    guest.has(case.changed)
    guest.by_hand(case.by_hand)
    guest.settle(case.second)
    guest.has(case.repaired or case.changed)
    if case.unset is not None:
        if case.changed == case.unset_to:
            guest.settle(case.first)
        guest.settle(case.unset)
        guest.has(case.unset_to)
    foretold = guest.run({}, check=True, state="absent")
    gone = guest.run({}, state="absent")
    assert gone["changed"] and foretold["diff"] == gone["diff"] and rig.node.vmids() == []
    assert not guest.run({}, state="absent")["changed"]


@pytest.mark.parametrize("option", AT_CREATION)
def test_what_counts_at_creation(run_module: Run, rig: Rig, option: str) -> None:
    first, second, said = AT_CREATION[option]
    name = option.partition(".")[0]
    made = run_module(pve_container, HERE | BASE | {name: first})
    assert made["rc"] == 0 and made["changed"]
    before = rig.file(101)
    rig.requests.clear()
    assert not run_module(pve_container, HERE | BASE | {name: first})["changed"]
    result = run_module(pve_container, HERE | BASE | {name: second})
    assert not result.get("changed") and rig.writes == [] and rig.file(101) == before
    assert result["rc"] == (1 if option == "unprivileged" else 0)
    if said:
        assert said in json.dumps([result.get("msg"), result.get("warnings")])
