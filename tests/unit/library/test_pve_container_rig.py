# SPDX-License-Identifier: GPL-3.0-or-later
"""pve_container against the rig's Proxmox: what it sends is understood there, and what is there it understands."""

from __future__ import annotations

import typing as t

import pytest
from ansible.modules import pve_container
from rig_node import AS_ROOT, AS_TOKEN, OVER_SSH, TEMPLATE, Rig

Run = t.Callable[..., dict[str, t.Any]]
GUEST = {
    "node": "node1",
    "vmid": 102,
    "hostname": "infer1",
    "ostemplate": TEMPLATE,
    "rootfs": {"storage": "local-zfs", "size_gib": 8},
    "cores": 4,
    "memory_mib": 2048,
    "net": [{"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "192.0.2.21/24", "gw": "192.0.2.1"}],
    "features": {"nesting": True},
    "tags": ["inference", "gpu"],
    "description": "made by a test",
}


@pytest.mark.parametrize("identity", [AS_TOKEN, AS_ROOT, OVER_SSH], ids=["token", "password", "ssh"])
def test_life_of_a_guest(run_module: Run, rig: Rig, identity: dict[str, t.Any]) -> None:
    declared = identity | GUEST | {"state": "started"}
    made = run_module(pve_container, declared)
    assert made["rc"] == 0 and made["changed"], made
    assert len([call for call in rig.calls if "/tasks/" not in call[1]]) <= 12
    assert rig.containers.up == {102}
    assert "tags: gpu;inference\n" in rig.file(102) and "cores: 4\n" in rig.file(102)
    rig.requests.clear()
    again = run_module(pve_container, declared)
    assert not again["changed"] and again["diff"] == {"before": {}, "after": {}}, again
    assert len(rig.calls) <= 4 and rig.writes == []
    gone = run_module(pve_container, identity | {"node": "node1", "vmid": 102, "state": "absent"})
    assert gone["changed"] and rig.node.vmids() == [] and rig.containers.up == set()
    assert list((rig.node.root / "rpool/data").iterdir()) == []


def test_time_and_faults_of_the_stage(run_module: Run, rig: Rig) -> None:
    """What the tests with this fixture rest on: sleeping passes time, for the module as for a task that hangs."""
    rig.guest(101, "memory: 2048", "cores: 4")
    mine = AS_TOKEN | {"node": "node1", "vmid": 101}
    rig.fault("POST */start", "task_hangs", seconds=20)
    begun = rig.clock.ahead
    assert run_module(pve_container, mine | {"state": "started"})["changed"]
    assert rig.containers.up == {101} and rig.clock.ahead - begun >= 20
    rig.fault("PUT */config", "slow", seconds=31)
    # The answer comes too late, and what it would have said is looked up.
    assert run_module(pve_container, mine | {"cores": 8})["changed"] and rig.clock.ahead - begun >= 51
    for fault in ("drop_before", "drop_after"):
        rig.fault("GET *", fault)
        assert run_module(pve_container, mine)["rc"] == 0
        rig.fault("GET *", fault)
        assert run_module(pve_container, OVER_SSH | {"node": "node1", "vmid": 101})["rc"] == 0
    rig.quorum(False)
    refused = run_module(pve_container, mine | {"cores": 9})
    assert "Permission denied" in refused["msg"] and "cores: 8\n" in rig.file(101)


def test_other_nodes_of_the_stage(run_module: Run, rig: Rig) -> None:
    rig.member("node2", online=False, guests=[102])
    taken = run_module(pve_container, AS_ROOT | GUEST)
    assert "this vmid is taken by the container" in taken["msg"] and "node 'node2'" in taken["msg"]
    down = run_module(pve_container, AS_ROOT | GUEST | {"node": "node2"})
    assert "Proxmox answered 595 No route to host" in down["msg"]
