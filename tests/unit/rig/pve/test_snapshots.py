# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots as each part of them can be seen: the configuration file, the files of the guest, the words of a refusal."""

from __future__ import annotations

import os
import re
import typing as t
from pathlib import Path

import pytest
from pve import api, tasks
from pve.errors import ApiError, died
from pve.node import Node

TOKEN = "slipway@pve!deploy"
ONE = "/nodes/node1/lxc/101"
LIST = f"{ONE}/snapshot"


def _call(node: Node, verb: str, path: str, user: str = TOKEN, **given: t.Any) -> t.Any:
    return api.call(node, user, verb, path, given)


def _ended(node: Node, verb: str, path: str, **given: t.Any) -> str:
    return tasks.Task(node, _call(node, verb, path, **given)).exit_status()


def _take(node: Node, name: str, **given: t.Any) -> str:
    return _ended(node, "POST", LIST, snapname=name, **given)


def _file(node: Node) -> str:
    return re.sub(r"snaptime: \d+", "snaptime: 1", node.conf_path(101).read_text())


@pytest.fixture
def disk(node: Node, guest: int) -> Path:
    """The root disk of guest 101, with a file."""
    folder = node.root / "rpool/data/subvol-101-disk-0"
    (folder / "model").write_text("good")
    return folder


def test_a_snapshot_is_a_section_and_a_copy(node: Node, disk: Path) -> None:
    assert _take(node, "before", description="as it was") == "OK"
    part = (
        "cores: 4\ndev0: /dev/nvidia0,gid=44\nmemory: 4096\n"
        "rootfs: local-zfs:subvol-101-disk-0,size=8G\n{}unprivileged: 1\nlxc.prlimit.memlock: unlimited\n"
    )
    main = part.format("").replace("memory: 4096\n", "memory: 4096\nparent: before\n")
    assert _file(node) == main + "\n[before]\n#as it was\n" + part.format("snaptime: 1\n")
    found = _call(node, "GET", LIST)
    assert [(row["name"], row.get("parent"), row["description"]) for row in found] == [
        ("before", None, "as it was\n"),
        ("current", "before", "You are here!"),
    ]
    assert found[0]["snaptime"] > 10**9 and found[1]["running"] == 0
    assert "lxc" not in _call(node, "GET", f"{LIST}/before/config")
    assert _call(node, "GET", f"{LIST}/before") == [{"cmd": "rollback"}, {"cmd": "config"}]
    assert _call(node, "GET", f"{ONE}/config", snapshot="before")["memory"] == 4096
    _call(node, "PUT", f"{LIST}/before/config", description="as it ever was")
    assert "[before]\n#as it ever was\n" in _file(node)


def test_going_back_brings_files_and_configuration(node: Node, disk: Path) -> None:
    _take(node, "before")
    (disk / "model").write_text("broken")
    (disk / "new").touch()
    _call(node, "PUT", f"{ONE}/config", cores=8, description="mine", tags="a")
    _call(node, "POST", f"{ONE}/status/start")
    node.runtime.plugs = False
    _call(node, "PUT", f"{ONE}/config", user="root@pam", dev1="/dev/nvidia1")
    assert "[pve:pending]\ndev1" in _file(node)
    assert _ended(node, "POST", f"{LIST}/before/rollback") == "OK"
    assert (disk / "model").read_text() == "good" and not (disk / "new").exists()
    assert node.runtime.up == set()
    main = _file(node).partition("\n[before]")[0]
    assert main == (
        "#mine\ncores: 4\ndev0: /dev/nvidia0,gid=44\nmemory: 4096\nparent: before\n"
        "rootfs: local-zfs:subvol-101-disk-0,size=8G\nunprivileged: 1\nlxc.prlimit.memlock: unlimited\n"
    )
    # It can be gone back to again, and then be started at once.
    assert _ended(node, "POST", f"{LIST}/before/rollback", start=1) == "OK"
    assert node.runtime.up == {101}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owners_of_an_unprivileged_guest_stay(node: Node, disk: Path) -> None:
    os.lchown(disk / "model", 100033, 100044)
    (disk / "model").chmod(0o4750)
    (disk / "link").symlink_to("/etc/shadow")
    _take(node, "before")
    (disk / "model").unlink()
    assert _ended(node, "POST", f"{LIST}/before/rollback") == "OK"
    found = (disk / "model").stat()
    assert (found.st_uid, found.st_gid, oct(found.st_mode & 0o7777)) == (100033, 100044, "0o4750")
    assert str((disk / "link").readlink()) == "/etc/shadow"


def test_a_running_guest_is_held_still(node: Node, disk: Path) -> None:
    _call(node, "POST", f"{ONE}/status/start")
    assert _take(node, "live") == "OK"
    assert node.runtime.frozen == [True, False]


def test_zfs_goes_back_to_the_newest_only(node: Node, disk: Path) -> None:
    for name in ("first", "second"):
        assert _take(node, name) == "OK"
    why = "can't rollback, 'first' is not most recent snapshot on 'local-zfs:subvol-101-disk-0'"
    before = _file(node)
    assert _ended(node, "POST", f"{LIST}/first/rollback") == why
    assert _file(node) == before
    assert _ended(node, "DELETE", f"{LIST}/second") == "OK"
    assert _ended(node, "POST", f"{LIST}/first/rollback") == "OK"


def test_what_goes_leaves_its_parent_to_its_children(node: Node, disk: Path) -> None:
    for name in ("first", "second", "third"):
        _take(node, name)
    assert _ended(node, "DELETE", f"{LIST}/second") == "OK"
    parents = {row["name"]: row.get("parent") for row in _call(node, "GET", LIST)}
    assert parents == {"first": None, "third": "first", "current": "third"}
    assert sorted(path.name for path in disk.parent.iterdir()) == [
        "subvol-101-disk-0",
        "subvol-101-disk-0@first",
        "subvol-101-disk-0@third",
    ]
    _call(node, "DELETE", ONE)
    assert list(disk.parent.iterdir()) == []


def test_a_lost_copy_keeps_the_guest_locked_until_force(node: Node, disk: Path) -> None:
    _take(node, "lost")
    (disk.parent / "subvol-101-disk-0@lost").rename(disk.parent / "elsewhere")
    why = "zfs error: could not find any snapshots to destroy; check snapshot names."
    assert _ended(node, "DELETE", f"{LIST}/lost") == why
    assert "lock: snapshot-delete\n" in _file(node) and "snapstate: delete\n" in _file(node)
    assert _call(node, "GET", LIST)[0]["snapstate"] == "delete"
    assert _ended(node, "DELETE", f"{LIST}/lost", force=1) == "CT is locked (snapshot-delete)"
    content = node.load(101)
    del content["lock"]
    node.save(101, content)
    assert _ended(node, "POST", f"{LIST}/lost/rollback") == (
        "can't rollback, snapshot 'lost' does not exist on 'local-zfs:subvol-101-disk-0'"
    )
    assert _ended(node, "DELETE", f"{LIST}/lost", force=1) == "OK"
    assert "snapstate" not in _file(node) and "lock" not in _file(node).replace("memlock", "")


def test_a_failed_snapshot_leaves_nothing(node: Node, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content = node.load(101)
    node.save(101, {**content, "mp0": "local-zfs:subvol-101-disk-1,mp=/data,size=1G"})
    before = _file(node)  # the second disk is not there
    assert _take(node, "half").startswith("command 'cp' failed: cp: ")
    assert _file(node) == before
    assert [path.name for path in disk.parent.iterdir()] == ["subvol-101-disk-0"]


@pytest.mark.parametrize(
    ("mount", "kind"),
    [
        ("/srv/models,mp=/models", "bind mount"),
        ("/dev/sdb1,mp=/data", "device"),
        ("old:subvol-101-disk-0,mp=/a", "dir"),
    ],
)
def test_where_a_disk_can_not_no_snapshot_is_possible(node: Node, guest: int, mount: str, kind: str) -> None:
    with (node.etc_pve / "storage.cfg").open("a") as file:
        file.write("\ndir: old\n\tpath /srv/old\n\tcontent rootdir\n")
    assert _call(node, "GET", f"{ONE}/feature", feature="snapshot") == {"hasFeature": 1}
    node.save(101, {**node.load(101), "mp0": mount})
    before = _file(node)
    assert _call(node, "GET", f"{ONE}/feature", feature="snapshot") == {"hasFeature": 0}
    assert _take(node, "one") == "snapshot feature is not available"
    assert _file(node) == before


def test_features(node: Node, disk: Path) -> None:
    def can(**given: t.Any) -> dict[str, int]:
        names = ("snapshot", "clone", "copy")
        return {name: _call(node, "GET", f"{ONE}/feature", feature=name, **given)["hasFeature"] for name in names}

    assert can() == {"snapshot": 1, "clone": 0, "copy": 1}
    _take(node, "s1")
    assert can(snapname="s1") == {"snapshot": 1, "clone": 0, "copy": 0}
    _ended(node, "DELETE", f"{LIST}/s1")
    _call(node, "POST", f"{ONE}/template")
    assert can() == {"snapshot": 0, "clone": 1, "copy": 1}


def _refusal(node: Node, verb: str, path: str, user: str = TOKEN, **given: t.Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        _call(node, verb, path, user, **given)
    return caught.value.status, caught.value.message


def test_refusals(node: Node, disk: Path) -> None:
    _take(node, "here")
    reserved = "unable to use snapshot name 'current' (reserved name)"
    assert _refusal(node, "POST", LIST, snapname="current") == (500, reserved)
    assert _refusal(node, "POST", LIST, snapname="a b") == (400, "Parameter verification failed.")
    assert _refusal(node, "GET", f"{LIST}/gone/config") == (500, "snapshot 'gone' does not exist")
    assert _refusal(node, "GET", f"{ONE}/feature", feature="snapshot", snapname="gone")[0] == 500
    assert _take(node, "here") == "snapshot name 'here' already used"
    assert _ended(node, "DELETE", f"{LIST}/gone") == "snapshot 'gone' does not exist"
    assert _ended(node, "POST", f"{LIST}/gone/rollback") == "snapshot 'gone' does not exist"
    for verb, path, given in (("POST", LIST, {"snapname": "no"}), ("DELETE", f"{LIST}/here", {})):
        missing = "Permission check failed (/vms/101, VM.Snapshot)"
        assert _refusal(node, verb, path, "watch@pve!t", **given) == (403, missing)
    missing = "Permission check failed (/vms/101, VM.Snapshot|VM.Snapshot.Rollback)"
    assert _refusal(node, "POST", f"{LIST}/here/rollback", "watch@pve!t") == (403, missing)
    assert len(_call(node, "GET", LIST, "watch@pve!t")) == 2
    node.save(101, {**node.load(101), "lock": "backup"})
    for verb, path, given in (
        ("POST", LIST, {"snapname": "no"}),
        ("DELETE", f"{LIST}/here", {}),
        ("POST", f"{LIST}/here/rollback", {}),
    ):
        assert _ended(node, verb, path, **given) == "CT is locked (backup)"
    node.save(101, {**node.load(101), "template": 1})
    assert _take(node, "no") == "you can't take a snapshot if it's a template"
    assert _ended(node, "POST", f"{LIST}/here/rollback") == "you can't rollback if vm is a template"


def test_a_disk_that_came_later_is_kept_unused(node: Node, disk: Path) -> None:
    _take(node, "before")
    _call(node, "PUT", f"{ONE}/config", mp0="local-zfs:1,mp=/data")
    assert _ended(node, "POST", f"{LIST}/before/rollback") == "OK"
    assert "unused0: local-zfs:subvol-101-disk-1\n" in _file(node) and "mp0" not in _file(node)


def test_the_guest_is_locked_while_it_works(node: Node, disk: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str | None] = []

    def failing(storages: t.Any, volid: str, name: str) -> None:
        seen.append(node.load(101).get("lock"))
        raise died("the pool is suspended")

    monkeypatch.setattr("pve.storage.Storages.snapshot", failing)
    assert _take(node, "one") == "the pool is suspended"
    monkeypatch.undo()
    monkeypatch.setattr("os.chown", lambda *args, **kwargs: None)
    _take(node, "two")
    monkeypatch.setattr("pve.storage.Storages.rollback", failing)
    assert _ended(node, "POST", f"{LIST}/two/rollback") == "the pool is suspended"
    assert seen == ["snapshot", "rollback"]
    assert "lock: rollback\n" in _file(node)
