# SPDX-License-Identifier: GPL-3.0-or-later
"""Privileges: what is held by the tree that Proxmox tells, what is needed, and how to get it."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.pve import grants
from ansible.module_utils.slipway.pve.guest import Guest

TREE = {
    "/": {"Sys.Audit": 1},
    "/vms": {"VM.Audit": 1, "VM.Allocate": "0"},
    "/vms/7": {"VM.PowerMgmt": 0},
    "/storage": {"Datastore.Audit": 0},
}
NEW = Guest(101, "pve1")
OLD = Guest(101, "pve1", "running", declared={"net0": "name=eth0,bridge=vmbr0", "features": "nesting=1"})


@pytest.mark.parametrize(
    ("path", "privileges"),
    [
        ("/", {"Sys.Audit"}),
        ("/nodes/pve1", {"Sys.Audit"}),
        ("/vms", {"VM.Audit", "VM.Allocate"}),
        ("/vms/101", {"VM.Audit"}),  # what is not handed down holds on its own path only
        ("/vms/7", {"VM.PowerMgmt"}),  # the nearest path alone counts
        ("/storage", {"Datastore.Audit"}),
        ("/storage/local", {"Sys.Audit"}),  # nothing is handed down from /storage, so the one above it still holds
    ],
)
def test_held(path: str, privileges: set[str]) -> None:
    assert grants.held(TREE, path) == privileges
    assert grants.held({}, path) == set()


def _needed(guest: Guest, changes: dict[str, t.Any], **more: t.Any) -> list[tuple[str, str, str]]:
    arguments: dict[str, t.Any] = {"storages": [], "template_storage": None, "unprivileged": True, **more}
    arguments.setdefault("creating", not guest.exists)
    found = grants.needed("pve1", guest, changes, **arguments)
    return [(need.path, "|".join(need.privileges), ", ".join(need.purposes)) for need in found]


READ = [("/vms/101", "VM.Audit", "reading it"), ("/nodes/pve1", "Sys.Audit", "reading the node's memory and CPUs")]
START = ("/vms/101", "VM.PowerMgmt", "starting it")


def test_a_guest_that_is_right_and_runs_needs_reading_only() -> None:
    assert _needed(OLD, {}) == READ
    assert _needed(Guest(101, "pve1", "stopped"), {}) == [*READ, START]


def test_a_new_guest() -> None:
    changes = {
        "cores": 4,
        "features": "nesting=1",
        "hostname": "infer1",
        "memory": 4096,
        "mp0": "tank:100,mp=/data",
        "net0": "name=eth0,bridge=vmbr0",
        "rootfs": "local-zfs:8",
        "swap": 0,
        "tags": "gpu",
    }
    assert _needed(NEW, changes, storages=["tank", "local-zfs"], template_storage="local") == [
        *READ,
        ("/vms/101", "VM.Allocate", "creating it, features"),
        ("/vms/101", "VM.Config.CPU", "cores"),
        ("/vms/101", "VM.Config.Network", "hostname, net0"),
        ("/vms/101", "VM.Config.Memory", "memory, swap"),
        ("/vms/101", "VM.Config.Disk", "mp0, rootfs"),
        ("/sdn/zones/localnetwork/vmbr0", "SDN.Use", "net0"),
        ("/vms/101", "VM.Config.Options", "tags"),
        ("/storage/local-zfs", "Datastore.AllocateSpace", "its disks"),
        ("/storage/tank", "Datastore.AllocateSpace", "its disks"),
        ("/storage/local", "Datastore.Audit|Datastore.AllocateSpace", "reading the template"),
        START,
    ]
    assert ("/", "Sys.Modify", "creating a privileged container") in _needed(NEW, {}, unprivileged=False)


def test_the_bridge_that_it_has_is_asked_for_too_and_a_vlan_by_its_own_path() -> None:
    def bridges(new: str | None, **more: t.Any) -> list[str]:
        return [path for path, privilege, _ in _needed(OLD, {"net0": new}, **more) if privilege == "SDN.Use"]

    assert bridges("name=eth0,bridge=vmbr1,tag=7") == [
        "/sdn/zones/localnetwork/vmbr0",
        "/sdn/zones/localnetwork/vmbr1/7",
    ]
    assert bridges(None) == ["/sdn/zones/localnetwork/vmbr0"]
    # The zone of a network of SDN is not told, so nothing is said of it.
    assert bridges("name=eth0,bridge=lab", vnets=["lab"]) == ["/sdn/zones/localnetwork/vmbr0"]


def test_missing_is_what_none_of_the_privileges_meets() -> None:
    audit = grants.Need("/vms/101", ("VM.Audit",), ("reading it",))
    either = grants.Need("/storage", ("Datastore.AllocateSpace", "Datastore.Audit"), ("its disks",))
    start = grants.Need("/vms/101", ("VM.PowerMgmt",), ("starting it",))
    stop = grants.Need("/vms/101", ("VM.Console", "VM.Migrate"), ("net0", "cores"))
    assert grants.missing(TREE, [audit, either, start, stop]) == {"/vms/101": [start, stop]}
    assert grants.sentence("deploy@pve", "/vms/101", [start, stop]) == (
        "On /vms/101: VM.PowerMgmt (for starting it), VM.Console or VM.Migrate (for net0, cores). To give it, on the node: "
        "pveum acl modify /vms/101 --users deploy@pve --roles PVEVMAdmin"
    )


@pytest.mark.parametrize(
    ("identity", "path", "privilege", "command"),
    [
        ("deploy@pve", "/vms/101", "VM.PowerMgmt", "pveum acl modify /vms/101 --users deploy@pve --roles PVEVMAdmin"),
        (
            "deploy@pve!slipway",
            "/storage/tank",
            "Datastore.AllocateSpace",
            "pveum acl modify /storage/tank --users deploy@pve --tokens 'deploy@pve!slipway' --roles PVEDatastoreUser",
        ),
        # root@pam itself has everything; its token need not.
        ("root@pam!t", "/nodes/a", "Sys.Audit", "pveum acl modify /nodes/a --tokens 'root@pam!t' --roles PVEAuditor"),
        (
            "deploy@pve",
            "/",
            "Sys.Modify",
            "pveum role add SlipwayPrivileged --privs Sys.Modify && "
            "pveum acl modify / --users deploy@pve --roles SlipwayPrivileged",
        ),
    ],
)
def test_the_way_out(identity: str, path: str, privilege: str, command: str) -> None:
    assert grants.way_out(identity, path, privilege) == command
