# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots, in tables: their order, which are ours, which go, what a rollback changes."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.pve import snapshots

ROWS = [
    {"name": "current", "description": "You are here!", "parent": "c"},
    # In one second: only the line of descent tells their order.
    {"name": "c", "snaptime": 20, "parent": "b", "description": ""},
    {"name": "b", "snaptime": 20, "parent": "a", "description": "two\nlines\n[made by Slipway]\n"},
    {"name": "a", "snaptime": "10", "description": "[made by Slipway]", "snapstate": "delete"},
]


def test_they_come_oldest_first() -> None:
    found = snapshots.from_rows(ROWS)
    assert [(one.name, one.description, one.ours, one.unfinished) for one in found] == [
        ("a", "", True, "delete"),
        ("b", "two\nlines", True, None),
        ("c", "", False, None),
    ]
    assert [one.name for one in snapshots.newer(found, "b")] == ["c"]
    assert snapshots.newer(found, "c") == []
    assert snapshots.from_rows([ROWS[0]]) == []


def test_two_of_one_second_are_newer_only_by_descent() -> None:
    rows = [{"name": name, "snaptime": 5, "parent": "base"} for name in ("x", "y")]
    found = snapshots.from_rows([{"name": "base", "snaptime": 1}, *rows])
    assert snapshots.newer(found, "x") == [] and [one.name for one in snapshots.newer(found, "base")] == ["x", "y"]


@pytest.mark.parametrize("text", [None, "", "a", "a\nb\n", "a\n\n"])
def test_a_mark_is_put_on_and_read_back(text: str | None) -> None:
    (found,) = snapshots.from_rows([{"name": "a", "description": snapshots.marked(text) + "\n"}])
    assert found.ours and found.description == (text or "").rstrip()


@pytest.mark.parametrize(
    ("keep", "prefix", "gone"),
    [
        (1, "", ["r1", "p", "r2"]),
        (2, "", ["r1", "p"]),
        (3, "", ["r1"]),
        (9, "", []),
        (1, "r", ["r1", "r2"]),
        (2, "r", ["r1"]),
    ],
)
def test_which_go(keep: int, prefix: str, gone: list[str]) -> None:
    there = [
        snapshots.Snapshot("r1", created=1, ours=True),
        snapshots.Snapshot("by-hand", created=2),
        snapshots.Snapshot("p", created=3, ours=True),
        snapshots.Snapshot("r2", created=4, ours=True),
    ]
    assert [one.name for one in snapshots.old(there, "r3", keep, prefix)] == gone
    # One that is there already and is declared counts, and stays.
    assert "r1" not in [one.name for one in snapshots.old(there, "r1", 1, prefix)]


def test_what_a_rollback_changes() -> None:
    now: dict[str, t.Any] = {
        "cores": 2,
        "memory": "512",
        "description": "x",
        "unused0": "a:b",
        "parent": "p",
        "digest": "1",
    }
    then = {"cores": "2", "memory": 1024, "tags": "a", "snaptime": 5, "lxc": [["lxc.a", "1"], ["lxc.a", "2"]]}
    assert snapshots.differences(now, then) == (
        {"memory": "512"},
        {"memory": "1024", "tags": "a", "lxc": ["lxc.a: 1", "lxc.a: 2"]},
    )


def test_why_there_can_be_none() -> None:
    config = {
        "rootfs": "zfs:subvol-1-disk-0,size=8G",
        "mp0": "nfs:1/vm-1-disk-1.raw,mp=/a",
        "mp1": "/srv,mp=/b",
        "mp2": "/dev/sdb1,mp=/c",
        "mp10": "hidden:x,mp=/d",
    }
    assert list(snapshots.unfit(config, {"zfs": "zfspool", "nfs": "nfs"})) == [
        "mp0 (/a) is on 'nfs', a storage of type nfs",
        "mp1 (/b) is a bind mount of /srv",
        "mp2 (/c) is a device mount of /dev/sdb1",
        "mp10 (/d) is on 'hidden', of which the type could not be seen",
    ]
