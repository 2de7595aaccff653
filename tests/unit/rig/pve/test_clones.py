# SPDX-License-Identifier: GPL-3.0-or-later
"""Clones, templates and bigger disks."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
from pve import api, disks, tasks
from pve.errors import ApiError
from pve.node import Node

TOKEN = "slipway@pve!deploy"
LXC = "/nodes/node1/lxc"
ONE = f"{LXC}/101"


def _call(node: Node, verb: str, path: str, user: str = TOKEN, **given: t.Any) -> t.Any:
    return api.call(node, user, verb, path, given)


def _ended(node: Node, verb: str, path: str, **given: t.Any) -> str:
    return tasks.Task(node, _call(node, verb, path, **given)).exit_status()


def _clone(node: Node, **given: t.Any) -> str:
    return _ended(node, "POST", f"{ONE}/clone", **{"newid": 102, **given})


def _refusal(node: Node, verb: str, path: str, user: str = TOKEN, **given: t.Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        _call(node, verb, path, user, **given)
    return caught.value.status, caught.value.message


def _file(node: Node, vmid: int) -> str:
    return re.sub(r"BC:24:11:[0-9A-F:]{8}", "NEW", node.conf_path(vmid).read_text())


@pytest.fixture
def source(node: Node, guest: int) -> Path:
    """Guest 101 with a network, a second disk, a snapshot and something pending."""
    data = node.root / "rpool/data"
    (data / "subvol-101-disk-0/etc").mkdir()
    (data / "subvol-101-disk-0/etc/machine-id").write_text("0123\n")
    (data / "subvol-101-disk-1").mkdir()
    (data / "subvol-101-disk-1/weights").write_text("w")
    content = node.load(101) | {
        "net0": "name=eth0,bridge=vmbr0,hwaddr=02:00:00:00:00:01,ip=192.0.2.21/24,type=veth",
        "mp0": "local-zfs:subvol-101-disk-1,mp=/data,size=1G",
        "unused0": "local-zfs:subvol-101-disk-9",
        "description": "the source\n",
        "onboot": 1,
    }
    node.save(101, content)
    _ended(node, "POST", f"{ONE}/snapshot", snapname="s1")
    return data


def test_full_clone(node: Node, source: Path) -> None:
    before = _file(node, 101)
    assert _clone(node, hostname="infer2", description="the copy") == "OK"
    assert _file(node, 102) == (
        "#the copy\ncores: 4\ndev0: /dev/nvidia0,gid=44\nhostname: infer2\nmemory: 4096\n"
        "mp0: local-zfs:subvol-102-disk-1,mp=/data,size=1G\n"
        "net0: name=eth0,bridge=vmbr0,hwaddr=NEW,ip=192.0.2.21/24,type=veth\nonboot: 1\n"
        "rootfs: local-zfs:subvol-102-disk-0,size=8G\nunprivileged: 1\nlxc.prlimit.memlock: unlimited\n"
    )
    assert _file(node, 101) == before
    assert (source / "subvol-102-disk-1/weights").read_text() == "w"
    assert (source / "subvol-102-disk-0/etc/machine-id").read_text() == ""
    assert (source / "subvol-101-disk-0/etc/machine-id").read_text() == "0123\n"


def test_a_running_guest_is_cloned_from_a_snapshot(node: Node, source: Path) -> None:
    (source / "subvol-101-disk-1/weights").write_text("newer")
    _call(node, "POST", f"{ONE}/status/start")
    _call(node, "PUT", f"{ONE}/config", cores=9)
    before = _file(node, 101)
    why = "Cannot do full clones on a running container without snapshots"
    assert _refusal(node, "POST", f"{ONE}/clone", newid=102) == (500, why)
    assert _file(node, 101) == before and node.vmids() == [101]
    assert _clone(node, snapname="s1") == "OK"
    assert "cores: 4\n" in _file(node, 102) and "snaptime" not in _file(node, 102)
    assert (source / "subvol-102-disk-1/weights").read_text() == "w"


def test_a_linked_clone_is_of_a_template(node: Node, source: Path) -> None:
    why = "Linked clone feature for 'local-zfs:subvol-101-disk-0' is not available"
    assert _refusal(node, "POST", f"{ONE}/clone", newid=102, full=0) == (500, why)
    snapshots = "unable to create template, because CT contains snapshots"
    assert _refusal(node, "POST", f"{ONE}/template") == (500, snapshots)
    _ended(node, "DELETE", f"{ONE}/snapshot/s1")
    assert _call(node, "POST", f"{ONE}/template") is None
    assert "vztemplate" in {task.parts["type"] for task in tasks.every(node)}
    assert _refusal(node, "POST", f"{ONE}/template") == (500, "you can't convert a template to a template")
    with_storage = "parameter 'storage' not allowed for linked clones"
    assert _refusal(node, "POST", f"{ONE}/clone", newid=102, storage="local-zfs") == (500, with_storage)
    assert _clone(node) == "OK"
    assert "rootfs: local-zfs:basevol-101-disk-0/subvol-102-disk-0,size=8G\n" in _file(node, 102)
    assert "template" not in _file(node, 102)
    assert (source / "subvol-102-disk-1/weights").exists()
    used = "base volume 'basevol-101-disk-0' is still in use by linked clones"
    assert _ended(node, "DELETE", ONE) == used
    assert _clone(node, newid=103, full=1) == "OK"
    assert "rootfs: local-zfs:subvol-103-disk-0,size=8G\n" in _file(node, 103)
    for vmid in (102, 103, 101):
        assert _ended(node, "DELETE", f"{LXC}/{vmid}") == "OK"
    assert [path for path in source.iterdir() if "disk-9" not in path.name] == []


def test_a_clone_of_a_clone_is_snapshotted_and_started(node: Node, source: Path) -> None:
    _ended(node, "DELETE", f"{ONE}/snapshot/s1")
    _call(node, "POST", f"{ONE}/template")
    _clone(node)
    assert _ended(node, "POST", f"{LXC}/102/snapshot", snapname="s2") == "OK"
    assert _ended(node, "POST", f"{LXC}/102/snapshot/s2/rollback", start=1) == "OK"
    assert "lxc.rootfs.path = dir:" + str(source / "subvol-102-disk-0") in node.runtime.started[102]


@pytest.mark.parametrize(
    ("given", "status", "why"),
    [
        ({"newid": 101}, 500, "CT 101 already exists on node 'node1'"),
        ({"snapname": "gone"}, 500, "snapshot 'gone' does not exist"),
        ({"pool": "p"}, 500, "'pool' is not part of this rig"),
        ({"target": "node7"}, 500, "no such cluster node 'node7'"),
        ({"storage": "gone"}, 500, "storage 'gone' does not exist"),
        ({"storage": "local"}, 400, "Parameter verification failed."),
    ],
)
def test_refused_clones_change_nothing(node: Node, source: Path, given: t.Any, status: int, why: str) -> None:
    before = _file(node, 101)
    assert _refusal(node, "POST", f"{ONE}/clone", **{"newid": 102, **given}) == (status, why)
    assert _file(node, 101) == before and node.vmids() == [101]


def test_bind_mounts_refuse(node: Node, source: Path) -> None:
    node.save(101, {**node.load(101), "mp1": "/srv/models,mp=/models"})
    why = "unable to clone mountpoint 'mp1' (type bind)"
    assert _refusal(node, "POST", f"{ONE}/clone", newid=102) == (500, why)
    assert node.vmids() == [101] and "\nlock:" not in _file(node, 101)


def test_a_failed_copy_leaves_nothing_and_unlocks(node: Node, source: Path) -> None:
    (source / "subvol-101-disk-1").rename(source / "away")
    assert _clone(node).startswith("clone failed: command 'cp' failed: ")
    assert node.vmids() == [101] and "\nlock:" not in _file(node, 101)
    assert not list(source.glob("subvol-102*"))


def test_the_source_is_locked_meanwhile(node: Node, source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[str, str]] = []
    monkeypatch.setattr(
        "pve.guests.after_clone", lambda node, vmid: seen.append((node.load(101)["lock"], node.load(vmid)["lock"]))
    )
    assert _clone(node) == "OK"
    assert seen == [("disk", "create")]
    node.save(101, {**node.load(101), "lock": "backup"})
    assert _refusal(node, "POST", f"{ONE}/clone", newid=103) == (500, "CT is locked (backup)")


def test_rights_of_a_clone(node: Node, source: Path) -> None:
    missing = "Permission check failed (/vms/101, VM.Clone)"
    assert _refusal(node, "POST", f"{ONE}/clone", "watch@pve!t", newid=102) == (403, missing)
    with (node.etc_pve / "user.cfg").open("a") as file:
        file.write("acl:1:/vms/102:slipway@pve:PVEVMUser:\nacl:1:/storage/bare:slipway@pve:NoAccess:\n")
    with (node.etc_pve / "storage.cfg").open("a") as file:
        file.write("\nzfspool: bare\n\tpool rpool/bare\n\tcontent rootdir\n")
    missing = "Permission check failed (/vms/102, VM.Allocate)"
    assert _refusal(node, "POST", f"{ONE}/clone", newid=102) == (403, missing)
    missing = "Permission check failed (/storage/bare, Datastore.AllocateSpace)"
    assert _refusal(node, "POST", f"{ONE}/clone", newid=103, storage="bare") == (403, missing)
    other = {"net0": "name=eth0,bridge=vmbr9,hwaddr=02:00:00:00:00:01,type=veth"}
    node.save(101, {**node.load(101), **other})
    missing = "Permission check failed (/sdn/zones/localnetwork/vmbr9, SDN.Use)"
    assert _refusal(node, "POST", f"{ONE}/clone", newid=103) == (403, missing)
    assert node.vmids() == [101] and "\nlock:" not in _file(node, 101)


def test_resize(node: Node, source: Path) -> None:
    assert _ended(node, "PUT", f"{ONE}/resize", disk="rootfs", size="+2G") == "OK"
    assert _ended(node, "PUT", f"{ONE}/resize", disk="mp0", size="1536M") == "OK"
    assert "rootfs: local-zfs:subvol-101-disk-0,size=10G\n" in _file(node, 101)
    assert "mp0: local-zfs:subvol-101-disk-1,mp=/data,size=1536M\n" in _file(node, 101)

    def refused(**given: t.Any) -> tuple[int, str]:
        return _refusal(node, "PUT", f"{ONE}/resize", **given)

    assert refused(disk="rootfs", size="8G") == (500, "unable to shrink disk size")
    assert refused(disk="rootfs", size="10240M") == (500, "disk is already at specified size")
    assert refused(disk="mp3", size="8G") == (500, "no such disk 'mp3'")
    assert refused(disk="mp256", size="8G")[0] == refused(disk="rootfs", size="-1G")[0] == 400
    modified = "detected modified configuration - file changed by other user? Try again."
    assert refused(disk="rootfs", size="11G", digest="0" * 40) == (500, modified)
    node.save(101, {**node.load(101), "mp1": "local-zfs:subvol-200-disk-0,mp=/x,size=1G", "mp2": "/srv,mp=/y,size=1G"})
    other = "can't resize mount point owned by another container (200)"
    assert refused(disk="mp1", size="8G") == (500, other)
    assert refused(disk="mp2", size="8G") == (500, "unable to parse volume ID '/srv'")
    assert _refusal(node, "PUT", f"{ONE}/resize", "watch@pve!t", disk="rootfs", size="11G")[0] == 403


@pytest.mark.parametrize(
    ("text", "size", "printed"),
    [
        ("8G", 2**33, "8G"),
        ("1.5G", 3 * 2**29, "1536M"),
        ("1024G", 2**40, "1T"),
        ("1000", 1000, "1000"),
        ("2K", 2048, "2K"),
    ],
)
def test_sizes(text: str, size: int, printed: str) -> None:
    assert (disks.parse_size(text), disks.format_size(size)) == (size, printed)
