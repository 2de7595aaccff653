# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from pve import update
from pve.errors import ApiError
from pve.node import Node


def _content(**more: t.Any) -> dict[str, t.Any]:
    return {"memory": 4096, "rootfs": "s:subvol-1-disk-0,size=8G", "pending": {}, "snapshots": {}, **more}


def test_running_guest_takes_what_it_can(node: Node) -> None:
    content = _content(dev0="/dev/nvidia0", tags="a", features="nesting=1", net1="name=eth1")
    new = {"memory": 64, "dev0": "/dev/nvidia0,gid=44", "dev1": "/dev/nvidia1", "nameserver": "192.0.2.1"}
    new["net0"] = "name=eth0,hwaddr=02:00:00:00:00:01"
    update.request(content, 1, new, ["tags", "features", "net1"], [], node.runtime)
    update.apply_running(content, 1, node.runtime)
    assert content["pending"] == {"delete": "features", "dev0": "/dev/nvidia0,gid=44", "nameserver": "192.0.2.1"}
    assert (content["memory"], content["dev0"], content["dev1"]) == (64, "/dev/nvidia0", "/dev/nvidia1")
    assert content["net0"] == "name=eth0,hwaddr=02:00:00:00:00:01,type=veth"
    assert "tags" not in content and "net1" not in content
    assert node.runtime.plugged == ["-net1", "dev1", "net0"]


def test_what_can_not_be_plugged_waits(node: Node) -> None:
    node.runtime.plugs = False
    content = _content(net1="name=eth1")
    new = {"dev1": "/dev/nvidia1", "net0": "name=eth0"}
    update.request(content, 1, new, ["net1"], [], node.runtime)
    update.apply_running(content, 1, node.runtime)
    assert content == _content(net1="name=eth1", pending={**new, "delete": "net1"})


def test_volumes_that_are_not_mounted_any_more_are_kept(node: Node) -> None:
    content = _content(mp0="s:subvol-1-disk-1,mp=/a", mp1="s:subvol-1-disk-2,mp=/b", mp2="/srv,mp=/c")
    update.request(content, 1, {"mp1": "s:subvol-1-disk-1,mp=/b"}, ["mp0", "mp2"], [], node.runtime)
    update.apply_stopped(content)
    assert content == _content(mp1="s:subvol-1-disk-1,mp=/b", unused0="s:subvol-1-disk-2")


def test_stopped_guest_takes_everything(node: Node) -> None:
    content = _content(dev0="/dev/nvidia0", pending={"delete": "dev0", "cores": 2})
    update.request(content, 1, {"net0": "name=eth0,bridge=b,hwaddr=BC:24:11:00:00:01"}, [], [], node.runtime)
    update.apply_stopped(content)
    assert content == {
        **_content(cores=2),
        "net0": "name=eth0,bridge=b,hwaddr=BC:24:11:00:00:01,type=veth",
    }


def test_network_gets_an_address_of_its_own() -> None:
    first, second = (update.canonical("net0", "name=eth0") for _ in range(2))
    assert first.startswith("name=eth0,hwaddr=BC:24:11:") and first.endswith(",type=veth")
    assert first != second


def test_changes_that_change_nothing_leave_nothing_pending(node: Node) -> None:
    content = _content(description="a\n", pending={"memory": 64, "delete": "gone"})
    update.request(content, 1, {"memory": 4096, "description": "a"}, ["never-set"], [], node.runtime)
    assert content["pending"] == {}


def test_revert_takes_back_values_and_deletions(node: Node) -> None:
    content = _content(tags="a", pending={"cores": 2, "delete": "tags"})
    update.request(content, 1, {}, [], ["cores", "tags"], node.runtime)
    assert content["pending"] == {}


@pytest.mark.parametrize(
    ("new", "delete", "why"),
    [
        ({"dev0": "/dev/nvidia9"}, [], "Device /dev/nvidia9 does not exist"),
        ({"dev0": "gid=44"}, [], "Path has to be defined"),
        ({"unprivileged": 0}, [], "unable to modify read-only option: 'unprivileged'"),
        ({}, ["unprivileged"], "unable to delete read-only option: 'unprivileged'"),
        ({}, ["memory"], "unable to delete required option 'memory'"),
        ({"mp0": "/a,mp=/a"}, [], "can't update CT 1 drive 'mp0' - protection mode enabled"),
    ],
)
def test_refused_changes(node: Node, new: dict[str, t.Any], delete: list[str], why: str) -> None:
    content = _content(unprivileged=1, protection=1)
    with pytest.raises(ApiError) as caught:
        update.request(content, 1, new, delete, [], node.runtime)
    assert (caught.value.status, caught.value.message) == (500, why)
