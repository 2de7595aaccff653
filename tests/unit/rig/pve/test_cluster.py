# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node tells of itself and its cluster, and to whom."""

from __future__ import annotations

import json
import typing as t

import pytest
from pve import api
from pve.errors import ApiError
from pve.node import Node

TOKEN = "slipway@pve!deploy"
TEMPLATE = "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"


def _get(node: Node, path: str, user: str = TOKEN, /, **given: t.Any) -> t.Any:
    return api.call(node, user, "GET", path, given)


def _bridges(node: Node) -> None:
    for name in ("vmbr0", "vmbr1"):
        (node.root / f"sys/class/net/{name}/bridge").mkdir(parents=True)
        (node.root / f"sys/class/net/{name}/brif/eth{name[-1]}").mkdir(parents=True)
    for name in ("eth0", "eth1", "lo"):
        (node.root / f"sys/class/net/{name}").mkdir()


def test_own_permissions(node: Node) -> None:
    tree = _get(node, "/access/permissions")
    assert tree["/vms"]["VM.Allocate"] == 1
    assert tree["/sdn/zones/localnetwork/vmbr0"] == {"SDN.Audit": 1, "SDN.Use": 1}
    assert "/nodes" not in tree
    assert _get(node, "/access/permissions", path="/storage/local") == {
        "/storage/local": {"Datastore.AllocateSpace": 1, "Datastore.Audit": 1}
    }
    assert _get(node, "/access/permissions", path="/nodes/node1") == {}
    # A user may ask for their tokens; of others, who has Sys.Audit on /access.
    assert _get(node, "/access/permissions", "slipway@pve", userid=TOKEN) == tree
    assert _get(node, "/access/permissions", "watch@pve!t", userid=TOKEN) == tree
    with pytest.raises(ApiError) as caught:
        _get(node, "/access/permissions", userid="watch@pve")
    assert (caught.value.status, caught.value.message) == (403, "Permission check failed (/access, Sys.Audit)")


def test_bridges_are_for_who_may_use_or_see_them(node: Node) -> None:
    _bridges(node)

    def names(user: str, **given: t.Any) -> list[str]:
        return [entry["iface"] for entry in _get(node, "/nodes/node1/network", user, **given)]

    assert names(TOKEN, type="any_bridge") == ["vmbr0"]
    assert names("watch@pve!t", type="any_bridge") == ["vmbr0", "vmbr1"]
    assert names("root@pam") == ["eth0", "eth1", "vmbr0", "vmbr1"]
    assert names("nobody@pve", type="bridge") == []
    assert names("root@pam", type="eth") == ["eth0", "eth1"]
    found = _get(node, "/nodes/node1/network", "root@pam", type="any_local_bridge")[0]
    assert (found["type"], found["active"], found["bridge_ports"]) == ("bridge", 1, "eth0")
    with pytest.raises(ApiError) as caught:
        _get(node, "/nodes/node1/network", type="wire")
    assert caught.value.status == 400


def test_nodes_and_what_they_do(node: Node) -> None:
    assert [(row["node"], row["status"], "maxmem" in row) for row in _get(node, "/nodes")] == [
        ("node1", "online", False)
    ]
    assert _get(node, "/nodes", "watch@pve!t")[0]["maxmem"] > 0
    members = {"nodename": "node1", "nodelist": {"node1": {"id": 1, "online": 1}, "node2": {"id": 2, "online": 0}}}
    (node.etc_pve / ".members").write_text(json.dumps(members))
    assert [(row["node"], row["status"]) for row in _get(node, "/nodes")] == [("node1", "online"), ("node2", "offline")]
    for name, status in (("node2", 595), ("node3", 500)):  # a member that is down, and no member
        with pytest.raises(ApiError) as caught:
            _get(node, f"/nodes/{name}/lxc")
        assert caught.value.status == status
    assert _get(node, "/nodes/node1/status", "watch@pve!t")["swap"].keys() == {"total", "free", "used"}


def test_guests_of_other_nodes_and_machines_take_their_vmid(node: Node, guest: int) -> None:
    for path in ("nodes/node2/lxc/200.conf", "nodes/node1/qemu-server/300.conf"):
        (node.etc_pve / path).parent.mkdir(parents=True, exist_ok=True)
        (node.etc_pve / path).write_text("")
    for vmid in (101, 200, 300):
        with pytest.raises(ApiError) as caught:
            _get(node, "/cluster/nextid", vmid=vmid)
        assert caught.value.errors == {"vmid": f"VM {vmid} already exists"}
    rows = _get(node, "/cluster/resources", type="vm")
    assert [(row["id"], row["type"], row["node"]) for row in rows] == [
        ("lxc/101", "lxc", "node1"),
        ("qemu/300", "qemu", "node1"),
        ("lxc/200", "lxc", "node2"),
    ]
    assert [row["vmid"] for row in _get(node, "/nodes/node1/lxc")] == [101]
    create = {"ostemplate": TEMPLATE, "storage": "local-zfs"}
    for vmid, who in ((200, "CT 200 already exists on node 'node2'"), (300, "VM 300 already exists on node 'node1'")):
        with pytest.raises(ApiError) as caught:
            api.call(node, TOKEN, "POST", "/nodes/node1/lxc", {**create, "vmid": vmid})
        assert caught.value.message == f"unable to create CT {vmid} - {who}"


def test_storages_that_are_off(node: Node) -> None:
    with (node.etc_pve / "storage.cfg").open("a") as file:
        file.write("\ndir: old\n\tpath /srv/old\n\tcontent rootdir\n\tdisable 1\n")
        file.write("\ndir: disk\n\tpath /mnt/disk\n\tcontent rootdir\n\tis_mountpoint 1\n")
    rows = {row["storage"]: row for row in _get(node, "/nodes/node1/storage")}
    assert [(name, row["enabled"], row["active"]) for name, row in rows.items()] == [
        ("local", 1, 1),
        ("local-zfs", 1, 1),
        ("old", 0, 0),
        ("disk", 1, 0),
    ]
    assert (rows["disk"]["avail"], "used_fraction" in rows["disk"]) == (0, False)
    for name, why in (("old", "storage 'old' is disabled"), ("disk", "unable to activate storage 'disk'")):
        with pytest.raises(ApiError) as caught:
            create = {"vmid": 102, "ostemplate": TEMPLATE, "rootfs": f"{name}:4"}
            api.call(node, "root@pam", "POST", "/nodes/node1/lxc", create)
        assert caught.value.message.startswith(why)
