# SPDX-License-Identifier: GPL-3.0-or-later
"""pve_snapshot, driven through main() against a node behind the wire: what is sent is what counts."""

from __future__ import annotations

import typing as t

import pytest
from ansible.modules import pve_snapshot

API = {
    "api_host": "pve1.example.com",
    "api_user": "deploy@pve",
    "api_token_id": "slipway",
    "api_token_secret": "s3cret-uuid",
    "node": "node1",
    "vmid": 101,
}
MARK = "[made by Slipway]"
HERE = "nodes/node1/lxc/101/snapshot"
DISK = {"rootfs": "local-zfs:subvol-101-disk-0,size=8G"}

Run = t.Callable[..., dict[str, t.Any]]


def names(result: dict[str, t.Any]) -> list[str]:
    return [one["name"] for one in result["snapshots"]]


def test_one_is_made_once(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, "running", **DISK)
    args = API | {"name": "proven", "description": "it answers"}
    foretold = run_module(pve_snapshot, args, check=True)
    assert proxmox.writes == [] and foretold["changed"] and names(foretold) == []
    made = run_module(pve_snapshot, args)
    assert proxmox.writes == [("POST", HERE, {"snapname": "proven", "description": f"it answers\n{MARK}"})]
    assert (
        made["diff"]
        == foretold["diff"]
        == {"before": {"snapshots": {}}, "after": {"snapshots": {"proven": "it answers"}}}
    )
    assert made["snapshots"] == [
        {
            "name": "proven",
            "description": "it answers",
            "created": 2**31,
            "parent": None,
            "ours": True,
            "unfinished": None,
        }
    ]
    assert made["task"] == "UPID:node1:0000ABCD:00001234:6731F2A0:vzsnapshot:101:deploy@pve!slipway:"
    proxmox.requests.clear()
    again = run_module(pve_snapshot, args)
    assert not again["changed"] and again["diff"] == {"before": {}, "after": {}}
    assert len(proxmox.requests) == 4


def test_proxmox_is_asked_before(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **DISK)
    run_module(pve_snapshot, API | {"name": "proven"})
    asked = [
        (path, params) for method, path, params in proxmox.requests if path.endswith("feature") or method == "POST"
    ]
    assert asked == [
        ("nodes/node1/lxc/101/feature", {"feature": "snapshot"}),
        (HERE, {"snapname": "proven", "description": MARK}),
    ]


@pytest.mark.parametrize("check", [True, False])
def test_where_the_storage_cannot_it_says_which_and_what_else(run_module: Run, proxmox: t.Any, check: bool) -> None:
    proxmox.guest(
        101, rootfs="local:101/vm-101-disk-0.raw,size=8G", mp0="/srv/models,mp=/models", mp1="local-zfs:x,mp=/b"
    )
    proxmox.unable.add((101, "snapshot"))
    result = run_module(pve_snapshot, API | {"name": "proven"}, check=check)
    assert result["rc"] == 1 and proxmox.writes == []
    assert result["msg"].startswith(
        "Cannot make snapshot 'proven' of container '101' on node1: not all of the container can be part of one: rootfs is on "
        "'local', a storage of type dir; mp0 (/models) is a bind mount of /srv/models. Move the disk to a storage that can "
    )
    found = result["findings"][0]
    assert found["id"] == "PVE_SNAPSHOT_UNSUPPORTED" and "mp1" not in found["detail"]
    assert "lxc.mount.entry" in found["remedy"] and "vzdump" in found["remedy"]


def test_storages_that_may_not_be_seen_are_named_all_the_same(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **DISK)
    proxmox.unable.add((101, "snapshot"))
    proxmox.answers["nodes/node1/storage"] = [(403, "Permission check failed", {})]
    result = run_module(pve_snapshot, API | {"name": "proven"})
    assert "rootfs is on 'local-zfs', of which the type could not be seen" in result["msg"]


def test_a_description_is_changed_and_another_s_is_not_made_ours(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **DISK)
    proxmox.snapshot(101, "mine", 1, f"old\n{MARK}\n")
    proxmox.snapshot(101, "yours", 2, "kept for the auditors\n")
    changed = run_module(pve_snapshot, API | {"name": "mine", "description": "new"})
    assert proxmox.writes == [("PUT", f"{HERE}/mine/config", {"description": f"new\n{MARK}"})]
    assert changed["diff"]["after"]["snapshots"] == {"mine": "new", "yours": "kept for the auditors"}
    run_module(pve_snapshot, API | {"name": "yours", "description": "new"})
    assert proxmox.writes[-1][2] == {"description": "new"}
    proxmox.requests.clear()
    for name in ("mine", "yours"):
        assert not run_module(pve_snapshot, API | {"name": name, "description": "new"})["changed"]
        assert not run_module(pve_snapshot, API | {"name": name})["changed"]
    assert proxmox.writes == []


def test_old_ones_of_ours_go_and_no_others(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **DISK)
    for time, (name, mark) in enumerate(
        [
            ("run-1", MARK),
            ("by-hand", "mine"),
            ("run-2", MARK),
            ("proven", MARK),
            ("run-3", f"x\n{MARK}"),
            ("run-x", ""),
        ]
    ):
        proxmox.snapshot(101, name, time, mark)
    args = API | {"name": "run-4", "keep": 2, "keep_prefix": "run-"}
    foretold = run_module(pve_snapshot, args, check=True)
    assert proxmox.writes == []
    made = run_module(pve_snapshot, args)
    assert [(method, path) for method, path, _ in proxmox.writes] == [
        ("POST", HERE),
        ("DELETE", f"{HERE}/run-1"),
        ("DELETE", f"{HERE}/run-2"),
    ]
    assert names(made) == ["by-hand", "proven", "run-3", "run-x", "run-4"]
    assert made["diff"] == foretold["diff"] and set(made["diff"]["after"]["snapshots"]) == set(names(made))
    assert not run_module(pve_snapshot, args)["changed"]


def test_nothing_is_removed_where_none_could_be_made(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **DISK)
    for time in range(3):
        proxmox.snapshot(101, f"run-{time}", time, MARK)
    proxmox.answers[f"POST {HERE}"] = [(500, "zfs error: out of space", {})] * 9
    result = run_module(pve_snapshot, API | {"name": "run-4", "keep": 1})
    assert "out of space" in result["msg"] and {method for method, _, _ in proxmox.writes} == {"POST"}


def test_absent(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **DISK)
    proxmox.snapshot(101, "by-hand", 1, "mine")
    args = API | {"name": "by-hand", "state": "absent"}
    foretold = run_module(pve_snapshot, args, check=True)
    assert proxmox.writes == []
    gone = run_module(pve_snapshot, args)
    assert (
        gone["diff"] == foretold["diff"] == {"before": {"snapshots": {"by-hand": "mine"}}, "after": {"snapshots": {}}}
    )
    assert proxmox.writes == [("DELETE", f"{HERE}/by-hand", {})] and gone["snapshots"] == []
    assert not run_module(pve_snapshot, args)["changed"]


def test_a_guest_that_is_not_there(run_module: Run, proxmox: t.Any) -> None:
    assert not run_module(pve_snapshot, API | {"name": "proven", "state": "absent"})["changed"]
    # A task before this one would make it.
    assert run_module(pve_snapshot, API | {"name": "proven"}, check=True)["changed"]
    for state in ("present", "rolled_back"):
        result = run_module(pve_snapshot, API | {"name": "proven", "state": state})
        assert result["rc"] == 1 and "it does not exist. Make the container first" in result["msg"]


@pytest.mark.parametrize(
    ("running", "start", "calls"),
    [
        (True, None, ["rollback", "start"]),
        (False, None, ["rollback"]),
        (True, False, ["rollback"]),
        (False, True, ["rollback", "start"]),
    ],
)
def test_rolled_back(run_module: Run, proxmox: t.Any, running: bool, start: bool | None, calls: list[str]) -> None:
    raw = [["lxc.prlimit.memlock", "unlimited"]]
    proxmox.guest(101, "running" if running else "stopped", memory=512, dev0="/dev/nvidia0", description="a\n", **DISK)
    proxmox.snapshot(101, "proven", 1, MARK, memory=1024, lxc=raw, dev0="/dev/nvidia0,gid=44")
    proxmox.guests[101]["snapshots"][0]["config"]["description"] = "b\n"
    proxmox.guests[101]["config"]["unused0"] = "local-zfs:old"
    args = API | {"name": "proven", "state": "rolled_back"} | ({} if start is None else {"start": start})
    foretold = run_module(pve_snapshot, args, check=True)
    assert proxmox.writes == []
    done = run_module(pve_snapshot, args)
    assert [path.rpartition("/")[2] for _, path, _ in proxmox.writes] == calls
    # What comes back besides the disks; the description of the guest and its unused disks stay.
    assert (
        done["diff"]
        == foretold["diff"]
        == {
            "before": {"status": "running" if running else "stopped", "memory": "512", "dev0": "/dev/nvidia0"},
            "after": {
                "status": "running" if "start" in calls else "stopped",
                "memory": "1024",
                "dev0": "/dev/nvidia0,gid=44",
                "lxc": ["lxc.prlimit.memlock: unlimited"],
                "snapshot": "proven",
            },
        }
    )
    assert done["changed"] and done["status"] == ("running" if "start" in calls else "stopped")


def test_a_rollback_says_that_pending_changes_are_lost(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, "running", pending=[{"key": "cores", "pending": 4}], **DISK)
    proxmox.snapshot(101, "proven", 1)
    diff = run_module(pve_snapshot, API | {"name": "proven", "state": "rolled_back"}, check=True)["diff"]
    assert diff["before"]["pending"] == ["cores"] and diff["after"]["pending"] == []


@pytest.mark.parametrize("check", [True, False])
def test_zfs_rolls_back_to_the_newest_only(run_module: Run, proxmox: t.Any, check: bool) -> None:
    proxmox.guest(101, **DISK)
    for time, name in enumerate(["first", "second", "third"]):
        proxmox.snapshot(101, name, time)
    result = run_module(pve_snapshot, API | {"name": "first", "state": "rolled_back"}, check=check)
    assert result["rc"] == 1 and proxmox.writes == []
    assert (
        "there are newer ones (second, third), and local-zfs is ZFS, which rolls back to the newest only"
        in result["msg"]
    )
    assert [found["id"] for found in result["findings"]] == ["PVE_SNAPSHOT_NOT_NEWEST"]
    assert run_module(pve_snapshot, API | {"name": "third", "state": "rolled_back"}, check=check)["rc"] == 0


def test_other_storages_roll_back_to_any(run_module: Run, proxmox: t.Any) -> None:
    proxmox.storages[1]["type"] = "lvmthin"
    proxmox.guest(101, **DISK)
    proxmox.snapshot(101, "first", 1)
    proxmox.snapshot(101, "second", 1)  # in the same second
    assert run_module(pve_snapshot, API | {"name": "first", "state": "rolled_back"})["rc"] == 0


def test_a_snapshot_that_is_not_there_cannot_be_rolled_back_to(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **DISK)
    proxmox.snapshot(101, "first", 1)
    result = run_module(pve_snapshot, API | {"name": "fist", "state": "rolled_back"})
    assert "there is no such snapshot. Name one of those there are: first." in result["msg"]


def test_one_that_a_killed_task_left_is_not_taken_for_whole(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **DISK)
    proxmox.snapshot(101, "proven", 1)
    proxmox.guests[101]["snapshots"][0]["snapstate"] = "prepare"
    for state in ("present", "rolled_back"):
        result = run_module(pve_snapshot, API | {"name": "proven", "state": state})
        assert result["rc"] == 1 and proxmox.writes == []
        assert (
            "left it unfinished (prepare)" in result["msg"] and "pct delsnapshot 101 proven --force 1" in result["msg"]
        )


def test_the_task_of_a_killed_run_is_waited_for(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **DISK)
    proxmox.snapshot(101, "proven", 1)
    row = {"vmid": 101, "status": "stopped"}
    proxmox.answers["nodes/node1/lxc"] = [[row | {"lock": "snapshot"}]] * 2 + [[row]]
    assert not run_module(pve_snapshot, API | {"name": "proven"})["changed"]
    proxmox.answers["nodes/node1/lxc"] = [[row | {"lock": "backup"}]]
    result = run_module(pve_snapshot, API | {"name": "next", "timeout_seconds": 0})
    assert "it is locked (backup)" in result["msg"] and result["findings"][0]["id"] == "PVE_GUEST_LOCKED"


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"name": "1st"}, "is no name for a snapshot"),
        ({"name": "current"}, "is no name for a snapshot"),
        ({"name": "a" * 41}, "is no name for a snapshot"),
        ({"name": "proven", "keep": 0}, "'keep' must be 1 or more"),
        ({"name": "proven", "keep": 1, "keep_prefix": "run-"}, "does not begin with keep_prefix 'run-'"),
    ],
)
def test_options_that_can_not_be(run_module: Run, proxmox: t.Any, options: dict[str, t.Any], cause: str) -> None:
    proxmox.guest(101, **DISK)
    result = run_module(pve_snapshot, API | options)
    assert result["rc"] == 1 and cause in result["msg"] and proxmox.writes == []


def test_a_template_has_none(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, template=1, **DISK)
    assert "the container is a template, which has none" in run_module(pve_snapshot, API | {"name": "proven"})["msg"]


def test_a_task_that_fails_brings_the_end_of_its_log(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **DISK)
    task = "nodes/node1/tasks/UPID:node1:0000ABCD:00001234:6731F2A0:vzsnapshot:101:deploy@pve!slipway:"
    proxmox.answers[f"{task}/status"] = [{"status": "stopped", "exitstatus": "zfs error: dataset is busy"}]
    proxmox.answers[f"{task}/log"] = [[{"n": 1, "t": "snapshotting 'rootfs'"}]]
    result = run_module(pve_snapshot, API | {"name": "proven"})
    assert "dataset is busy" in result["msg"] and "snapshotting 'rootfs'" in result["msg"]
