# SPDX-License-Identifier: GPL-3.0-or-later
"""pve_snapshot and clones against the rig's Proxmox, over HTTPS and SSH: what is sent does there what it should."""

from __future__ import annotations

import typing as t

import pytest
from ansible.modules import pve_container, pve_snapshot
from rig_node import AS_TOKEN, OVER_SSH, TEMPLATE, Rig

Run = t.Callable[..., dict[str, t.Any]]
HERE = {"node": "node1", "vmid": 101}
NET = "net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=192.0.2.21/24,type=veth"


@pytest.fixture(params=[AS_TOKEN, OVER_SSH], ids=["https", "ssh"])
def api(request: pytest.FixtureRequest) -> dict[str, t.Any]:
    return request.param


def test_there_and_back(run_module: Run, rig: Rig, api: dict[str, t.Any]) -> None:
    rig.guest(101, "dev0: /dev/nvidia0,gid=44", "memory: 2048", NET, "lxc.prlimit.memlock: unlimited", run=True)
    before = rig.file(101)
    made = run_module(pve_snapshot, api | HERE | {"name": "proven", "description": "it answers"})
    assert made["rc"] == 0 and made["changed"], made
    assert [(one["name"], one["description"], one["ours"]) for one in made["snapshots"]] == [
        ("proven", "it answers", True)
    ]
    rig.requests.clear()
    assert not run_module(pve_snapshot, api | HERE | {"name": "proven", "description": "it answers"})["changed"]
    assert len(rig.calls) <= 4 and rig.writes == []
    run_module(pve_container, api | HERE | {"memory_mib": 4096, "tags": ["new"]})
    rig.requests.clear()
    foretold = run_module(pve_snapshot, api | HERE | {"name": "proven", "state": "rolled_back"}, check=True)
    assert rig.writes == []
    back = run_module(pve_snapshot, api | HERE | {"name": "proven", "state": "rolled_back"})
    assert (
        back["diff"]
        == foretold["diff"]
        == {
            "before": {"status": "running", "memory": "4096", "tags": "new"},
            "after": {"status": "running", "memory": "2048", "snapshot": "proven"},
        }
    )
    assert back["status"] == "running" and rig.containers.up == {101}
    now = rig.file(101).split("[proven]")[0]
    assert now.replace("parent: proven\n", "").rstrip() == before.rstrip()
    gone = run_module(pve_snapshot, api | HERE | {"name": "proven", "state": "absent"})
    assert gone["changed"] and gone["snapshots"] == [] and "[proven]" not in rig.file(101)


def test_old_ones_go(run_module: Run, rig: Rig, api: dict[str, t.Any]) -> None:
    rig.guest(101)
    for name in ("run-1", "run-2", "run-3"):
        done = run_module(pve_snapshot, api | HERE | {"name": name, "keep": 2})
        assert done["rc"] == 0, done
    assert [one["name"] for one in done["snapshots"]] == ["run-2", "run-3"]
    older = run_module(pve_snapshot, api | HERE | {"name": "run-2", "state": "rolled_back"})
    assert older["rc"] == 1 and "there are newer ones (run-3), and local-zfs is ZFS" in older["msg"]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("mp0: /srv/models,mp=/models", "mp0 (/models) is a bind mount of /srv/models"),
        ("mp0: local:101/vm-101-disk-1.raw,mp=/data,size=4G", "mp0 (/data) is on 'local', a storage of type dir"),
    ],
)
def test_where_the_storage_cannot(run_module: Run, rig: Rig, api: dict[str, t.Any], line: str, cause: str) -> None:
    rig.guest(101, line)
    result = run_module(pve_snapshot, api | HERE | {"name": "proven"})
    assert result["rc"] == 1 and cause in result["msg"] and rig.writes == []


@pytest.mark.parametrize("full", [False, True])
def test_from_a_template_to_a_guest(run_module: Run, rig: Rig, api: dict[str, t.Any], full: bool) -> None:
    disk = {"storage": "local-zfs", "size_gib": 8}
    golden = api | {"node": "node1", "vmid": 900, "ostemplate": TEMPLATE, "rootfs": disk, "state": "template"}
    net = {"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "192.0.2.90/24"}
    assert run_module(pve_container, golden | {"net": [net]})["rc"] == 0
    again = run_module(pve_container, golden | {"net": [net]})
    assert again["rc"] == 0 and not again["changed"]
    clone = api | HERE | {"clone": {"vmid": 900, "full": full}, "hostname": "infer1", "state": "started"}
    refused = run_module(pve_container, clone)
    assert refused["rc"] == 1 and "has the address 192.0.2.90/24 on net0" in refused["msg"]
    clone["net"] = [net | {"ip": "192.0.2.21/24"}]
    rig.requests.clear()
    foretold = run_module(pve_container, clone, check=True)
    assert foretold["changed"] and rig.writes == []
    rig.requests.clear()
    made = run_module(pve_container, clone)
    assert made["rc"] == 0, made
    assert len([path for _, path in rig.calls if "/tasks/" not in path]) <= 12
    config = made["container"]["config"]
    assert config["hostname"] == "infer1" and "ip=192.0.2.21/24" in config["net0"] and rig.containers.up == {101}
    source = rig.node.load(900)["net0"]
    assert config["net0"].split("hwaddr=")[1].split(",")[0] != source.split("hwaddr=")[1].split(",")[0]
    assert config["rootfs"].startswith("local-zfs:subvol-101-" if full else "local-zfs:basevol-900-disk-0/subvol-101-")
    assert not run_module(pve_container, clone)["changed"]


def test_a_clone_can_be_larger_than_its_source(run_module: Run, rig: Rig, api: dict[str, t.Any]) -> None:
    disk = {"storage": "local-zfs", "size_gib": 8}
    run_module(pve_container, api | {"node": "node1", "vmid": 900, "ostemplate": TEMPLATE, "rootfs": disk})
    clone = api | HERE | {"clone": {"vmid": 900}, "rootfs": disk | {"size_gib": 12}, "grow_disks": True, "cores": 2}
    foretold = run_module(pve_container, clone, check=True)
    made = run_module(pve_container, clone)
    assert made["rc"] == 0 and "size=12G" in rig.node.load(101)["rootfs"], made
    assert made["diff"] == foretold["diff"] and "size=12G" in made["diff"]["after"]["rootfs"]
    assert not run_module(pve_container, clone)["changed"]


def test_disks_grow(run_module: Run, rig: Rig, api: dict[str, t.Any]) -> None:
    rig.guest(101, run=True)
    grow = api | HERE | {"rootfs": {"storage": "local-zfs", "size_gib": 16}, "grow_disks": True}
    grown = run_module(pve_container, grow)
    assert grown["rc"] == 0 and "size=16G" in rig.file(101)
    assert not run_module(pve_container, grow)["changed"]
