# SPDX-License-Identifier: GPL-3.0-or-later
"""pve_container_info: what it tells of guests, and that it only reads."""

from __future__ import annotations

import typing as t

import pytest
from ansible.modules import pve_container, pve_container_info, pve_snapshot
from rig_node import AS_TOKEN, OVER_SSH, Rig

Run = t.Callable[..., dict[str, t.Any]]
API = {
    "api_host": "pve1.example.com",
    "api_user": "deploy@pve",
    "api_token_id": "slipway",
    "api_token_secret": "s3cret-uuid",
}


def test_one_guest(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(
        101,
        "running",
        pending=[{"key": "features", "pending": "nesting=1"}, {"key": "cores", "delete": 1}],
        hostname="infer1",
        cores=2,
        dev0="/dev/nvidia0,gid=44",
        lxc=[["lxc.mount.entry", "/srv/a srv/a none bind"], ["lxc.mount.entry", "/srv/b srv/b none bind"]],
        lock="backup",
    )
    proxmox.snapshot(101, "proven", 1, "[made by Slipway]")
    result = run_module(pve_container_info, API | {"node": "node1", "vmid": 101})
    assert result["rc"] == 0 and not result["changed"] and proxmox.writes == [] and result["findings"] == []
    (found,) = result["containers"]
    assert {key: found[key] for key in ("vmid", "node", "status", "hostname", "lock", "digest", "template")} == {
        "vmid": 101,
        "node": "node1",
        "status": "running",
        "hostname": "infer1",
        "lock": "backup",
        "digest": "d1",
        "template": False,
    }
    # In force is what the guest runs with; what waits is told beside it.
    assert found["config"]["cores"] == 2 and "features" not in found["config"] and "lxc" not in found["config"]
    assert found["pending"] == {"features": "nesting=1", "cores": None} and found["restart_required"]
    assert found["raw_lines"] == ["lxc.mount.entry: /srv/a srv/a none bind", "lxc.mount.entry: /srv/b srv/b none bind"]
    assert found["devices"][0]["path"] == "/dev/nvidia0" and found["unprivileged"]
    assert found["addresses"] == [
        {"name": "eth0", "hwaddr": "BC:24:11:00:00:01", "addresses": ["192.0.2.21/24", "2001:db8::1/64"]}
    ]
    assert [(one["name"], one["ours"]) for one in found["snapshots"]] == [("proven", True)]
    assert found["record"] is None
    assert len(proxmox.requests) == 5


def test_one_that_is_not_there(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(102)
    assert run_module(pve_container_info, API | {"vmid": 101})["containers"] == []


def test_those_of_a_cluster_and_the_node_that_is_away(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(102)
    proxmox.guest(101, "stopped", pending=[{"key": "cores", "pending": 4}])
    result = run_module(pve_container_info, API)
    assert [one["vmid"] for one in result["containers"]] == [101, 102]
    assert not result["containers"][0]["restart_required"] and result["containers"][0]["addresses"] == []
    found = result["findings"][0]
    assert (found["id"], found["severity"], found["subject"]) == ("PVE_NODE_OFFLINE", "unknown", "node 'node2'")


def test_one_that_cannot_be_read_does_not_hide_the_others(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101)
    proxmox.guest(102, "running")
    proxmox.answers["nodes/node1/lxc/101/config"] = [(500, "Configuration file '101.conf' does not exist", {})] * 9
    proxmox.answers["nodes/node1/lxc/102/interfaces"] = [(500, "CT 102 not running", {})] * 9
    result = run_module(pve_container_info, API | {"node": "node1"})
    assert [one["vmid"] for one in result["containers"]] == [102]
    assert [(found["id"], found["subject"]) for found in result["findings"]] == [
        ("CHECK_NOT_MADE", "container '101' on node 'node1'"),
        ("CHECK_NOT_MADE", "the addresses of container '102' on node 'node1'"),
    ]


def test_a_node_that_gives_no_answer(run_module: Run, proxmox: t.Any) -> None:
    proxmox.answers["nodes/node9/lxc"] = [(595, "No route to host", {})] * 99
    result = run_module(pve_container_info, API | {"node": "node9"})
    assert result["rc"] == 1 and result["msg"].startswith("Cannot read the containers on node9: ")


def test_all_addresses_where_proxmox_lists_them(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, "running")
    both = [{"ip-address": "192.0.2.21", "prefix": 24}, {"ip-address": "192.0.2.22", "prefix": 24}]
    row = {"name": "eth0", "hardware-address": "bc:24:11:00:00:01", "inet": "192.0.2.21/24", "ip-addresses": both}
    proxmox.answers["nodes/node1/lxc/101/interfaces"] = [[row]]
    found = run_module(pve_container_info, API | {"vmid": 101})["containers"][0]["addresses"][0]
    assert found == {"name": "eth0", "hwaddr": "BC:24:11:00:00:01", "addresses": ["192.0.2.21/24", "192.0.2.22/24"]}


@pytest.mark.parametrize("identity", [AS_TOKEN, OVER_SSH], ids=["https", "ssh"])
def test_both_ways_tell_the_same(run_module: Run, rig: Rig, identity: dict[str, t.Any]) -> None:
    net = "net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=dhcp,type=veth"
    rig.guest(101, "cores: 4", "features: nesting=1", net, "tags: a;b", "lxc.prlimit.memlock: unlimited", run=True)
    rig.guest(102)
    run_module(
        pve_container, OVER_SSH | {"node": "node1", "vmid": 101, "features": {}, "devices": [{"path": "/dev/nvidia0"}]}
    )
    run_module(pve_snapshot, OVER_SSH | {"node": "node1", "vmid": 101, "name": "proven"})
    rig.requests.clear()
    result = run_module(pve_container_info, identity)
    assert result["rc"] == 0 and rig.writes == [], result
    found, other = result["containers"]
    assert found["config"]["features"] == "nesting=1" and found["pending"] == {"features": None}
    assert found["raw_lines"] == ["lxc.prlimit.memlock: unlimited"] and other["vmid"] == 102
    assert [one["name"] for one in found["snapshots"]] == ["proven"]
    if identity is OVER_SSH:
        assert found["record"]["devices"] == ["/dev/nvidia0"] and other["record"] == {}
    else:
        assert found["record"] is None and other["record"] is None
