# SPDX-License-Identifier: GPL-3.0-or-later
"""The judge: one declaration, and one fact after another that does not fit it."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest
from ansible.module_utils.slipway.pve import preflight
from ansible.module_utils.slipway.pve.guest import Guest

TOKEN = "deploy@pve!slipway"
TEMPLATE = "local:vztmpl/debian-13.tar.zst"
PARAMS: dict[str, t.Any] = {
    "node": "pve1",
    "vmid": 101,
    "ostemplate": TEMPLATE,
    "rootfs": {"storage": "local-zfs", "size_gib": 8},
    "cores": 4,
    "memory_mib": 4096,
    "swap_mib": 512,
    "net": [{"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "192.0.2.21/24", "gw": "192.0.2.1"}],
    "root_over_ssh": False,
    "others": [],
}
EVERYTHING = {
    "/": dict.fromkeys(
        [
            *("VM.Audit", "VM.Allocate", "VM.PowerMgmt", "Sys.Audit", "SDN.Use", "Datastore.AllocateSpace"),
            *(f"VM.Config.{part}" for part in ("CPU", "Disk", "Memory", "Network", "Options")),
        ],
        1,
    )
}
GOOD = preflight.Facts(
    nodes=[{"node": "pve1", "status": "online"}, {"node": "pve2", "status": "online"}],
    guest=Guest(101, "pve1"),
    permissions=EVERYTHING,
    storages=[
        {"storage": "local", "type": "dir", "content": "vztmpl", "enabled": 1, "active": 1, "avail": 2**40},
        {"storage": "local-zfs", "type": "zfspool", "content": "rootdir", "enabled": 1, "active": 1, "avail": 2**40},
    ],
    templates=[{"volid": TEMPLATE, "size": 2**27}],
    machine={"memory": {"total": 2**33}, "swap": {"total": 2**30}, "cpuinfo": {"cpus": 8}},
    bridges=[{"iface": "vmbr0", "type": "bridge"}],
)


def there(**config: t.Any) -> Guest:
    """A guest that is as declared, but for this."""
    kept = {
        "cores": 4,
        "memory": 4096,
        "swap": 512,
        "net0": "name=eth0,bridge=vmbr0,gw=192.0.2.1,ip=192.0.2.21/24",
        "unprivileged": 1,
        **config,
    }
    lock = kept.pop("lock", None)
    return Guest(101, "pve1", "running", config=kept, declared=dict(kept), lock=lock)


def told(options: dict[str, t.Any] | None = None, identity: str = TOKEN, **facts: t.Any) -> list[tuple[str, str, str]]:
    found = preflight.judge(PARAMS | (options or {}), identity, dataclasses.replace(GOOD, **facts))
    return [(item.id, item.severity, item.detail) for item in found]


def test_nothing_is_wrong() -> None:
    assert told() == []
    assert told(guest=there(), storages=None, templates=None) == []
    assert told(identity="root@pam", permissions=None) == []


@pytest.mark.parametrize(
    ("options", "told_of"),
    [
        ({"memory_mib": 8193}, ("PVE_MEMORY_EXCEEDED", "fail", "'memory_mib' is 8193, and node 'pve1' has 8192 MiB of memory.")),
        ({"swap_mib": 1025}, ("PVE_SWAP_EXCEEDED", "warn", "'swap_mib' is 1025, and node 'pve1' has 1024 MiB of swap.")),
        ({"cores": 9}, ("PVE_CPUS_EXCEEDED", "warn", "'cores' is 9, and node 'pve1' has 8 CPUs.")),
        ({"memory_mib": 8}, ("PVE_VALUE_REFUSED", "fail", "'memory_mib' is 8; it must be 16 or more.")),
        (
            {"ostemplate": None},
            (
                "PVE_VALUE_REFUSED",
                "fail",
                "'ostemplate' is not given, and the container does not exist; it must be STORAGE:vztmpl/FILE.",
            ),
        ),
        (
            {"net": [PARAMS["net"][0] | {"bridge": "vmbr1"}]},
            ("PVE_BRIDGE_UNKNOWN", "fail", "Node 'pve1' has vmbr0."),
        ),
        (
            {"net": [PARAMS["net"][0] | {"gw": "192.0.3.1"}]},
            (
                "PVE_GATEWAY_UNREACHABLE",
                "fail",
                "gw 192.0.3.1 of net0 is not in the subnet 192.0.2.0/24 of ip 192.0.2.21/24.",
            ),
        ),
        (
            {"net": [PARAMS["net"][0] | {"ip": "192.0.2.0/24"}]},
            (
                "PVE_ADDRESS_UNUSABLE",
                "fail",
                "ip 192.0.2.0/24 of net0 is the network address of its subnet 192.0.2.0/24.",
            ),
        ),
        (
            {"devices": [{"path": "/dev/nvidia0"}]},
            (
                "PVE_ROOT_ONLY_KEYS",
                "fail",
                "'deploy@pve!slipway' may not set dev0 (dev0: configuring device passthrough is only allowed for root@pam).",
            ),
        ),
        ({"devices": [{"path": "/dev/nvidia0"}], "root_over_ssh": True}, None),
        (
            {"unprivileged": False},
            (
                "PVE_PRIVILEGE_MISSING",
                "fail",
                "On /: Sys.Modify (for creating a privileged container). To give it, on the node: pveum role add SlipwayPrivileged "
                "--privs Sys.Modify && pveum acl modify / --users deploy@pve --tokens 'deploy@pve!slipway' --roles "
                "SlipwayPrivileged",
            ),
        ),
        (
            {"others": [{"name": "infer2", "node": "pve2", "vmid": 101}, {"name": "infer3", "node": "pve2", "vmid": 102}]},
            ("PVE_VMID_TWICE", "fail", "'infer2' on node 'pve2' of the same cluster is declared with 101 too."),
        ),
        ({"others": [{"name": "infer2", "node": "elsewhere", "vmid": 101}]}, None),  # another cluster
        (
            {"others": [{"name": "infer2", "node": "pve1", "vmid": 101}]},
            ("PVE_VMID_TWICE", "fail", "'infer2' on the same node is declared with 101 too."),
        ),
        # Without a root disk Proxmox takes 4 GiB of the storage, and 'local' where none is named.
        (
            {"rootfs": None},
            (
                "PVE_STORAGE_CONTENT",
                "fail",
                "It takes vztmpl, and 4 GiB of disks would need rootdir. Fit for that: local-zfs.",
            ),
        ),
        ({"rootfs": None, "storage": "local-zfs"}, None),
        # A size that is wrong is told once, and no disk is made up in its place.
        (
            {"rootfs": {"storage": "local-zfs", "size_gib": 0}},
            ("PVE_VALUE_REFUSED", "fail", "size_gib of 'rootfs' is 0; it must be 1 or more."),
        ),
    ],
)  # fmt: skip
def test_options_that_do_not_fit_the_facts(options: dict[str, t.Any], told_of: tuple[str, str, str] | None) -> None:
    assert told(options) == ([told_of] if told_of else [])


@pytest.mark.parametrize(
    ("options", "guest", "told_of"),
    [
        (
            {},
            there(lock="backup"),
            ("PVE_GUEST_LOCKED", "warn", "Its lock is 'backup'; Slipway waits for it before it changes anything."),
        ),
        ({}, there(template=1, hostname="base"), ("PVE_GUEST_IS_TEMPLATE", "fail", "It is 'base'.")),
        (
            {"unprivileged": True},
            there(unprivileged=0),
            ("PVE_GUEST_OTHER_PRIVILEGES", "fail", "It is privileged, declared is unprivileged."),
        ),
        ({"ostemplate": None, "rootfs": None}, there(), None),
        # What it has already is no change, whoever asks.
        ({"devices": [{"path": "/dev/nvidia0"}]}, there(dev3="/dev/nvidia0"), None),
    ],
)
def test_guests_that_exist(options: dict[str, t.Any], guest: Guest, told_of: tuple[str, str, str] | None) -> None:
    assert told(options, guest=guest) == ([told_of] if told_of else [])


def test_disks_of_one_storage_are_added_up() -> None:
    mounts = [
        {"path": "/a", "storage": "local-zfs", "size_gib": 1000},
        {"path": "/b", "storage": "local-zfs", "size_gib": 17},
    ]
    [(fault, severity, text)] = told({"mounts": mounts})
    assert (fault, severity) == ("PVE_STORAGE_FULL", "warn")
    assert text.startswith("Declared are 1025 GiB of disks, free are 1024.0 GiB.")
    # Of a guest that exists only the disk that it does not have yet counts.
    with_a = there(mp0="local-zfs:subvol-101-disk-1,mp=/a,size=1000G")
    assert told({"mounts": mounts}, guest=with_a) == []


def test_a_missing_privilege_stands_for_what_it_hides() -> None:
    """Without it, Proxmox leaves storages and bridges out of its lists and refuses to tell of the node."""
    few = {"/": {name: 1 for name in EVERYTHING["/"] if name.startswith("VM.")}}
    found = told(
        permissions=few,
        storages=[],
        templates=None,
        bridges=[],
        machine=None,
        unread={"machine": "Proxmox answered 403"},
    )
    assert [text.split(" (for ")[0] for _, _, text in found] == [
        "On /nodes/pve1: Sys.Audit",
        "On /sdn/zones/localnetwork/vmbr0: SDN.Use",
        "On /storage/local-zfs: Datastore.AllocateSpace",
        "On /storage/local: Datastore.Audit or Datastore.AllocateSpace",
    ]
    assert {fault for fault, _, _ in found} == {"PVE_PRIVILEGE_MISSING"}


def test_a_status_that_nobody_knows_is_unknown() -> None:
    nodes = [{"node": "pve1", "status": "unknown"}]
    assert told(nodes=nodes, guest=None) == [("PVE_NODE_OFFLINE", "unknown", "Its status is 'unknown'.")]
