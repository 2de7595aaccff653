# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection drops at each thing that is written, before it is done and after: it is done once, and the run goes on."""

from __future__ import annotations

import typing as t

import pytest
from ansible.modules import pve_container, pve_snapshot
from rig_node import AS_TOKEN, OVER_SSH, TEMPLATE, Rig

Run = t.Callable[..., dict[str, t.Any]]
HERE = {"node": "node1", "vmid": 101}
DISK = {"storage": "local-zfs", "size_gib": 8}
# What is done, by which request, on a guest that runs or not, and what the module is asked for.
WORK: dict[str, tuple[t.Any, str, bool, dict[str, t.Any]]] = {
    "create": (pve_container, "POST */lxc", False, {"vmid": 102, "ostemplate": TEMPLATE, "rootfs": DISK}),
    "clone": (pve_container, "POST */clone", False, {"vmid": 102, "clone": {"vmid": 101, "full": True}}),
    "configure": (pve_container, "PUT */config", False, {"cores": 7, "startup": ""}),
    "grow": (pve_container, "PUT */resize", False, {"rootfs": DISK | {"size_gib": 12}, "grow_disks": True}),
    "start": (pve_container, "POST */start", False, {"state": "started"}),
    "shut down": (pve_container, "POST */shutdown", True, {"state": "stopped"}),
    "restart": (pve_container, "POST */reboot", True, {"state": "restarted"}),
    "stop": (pve_container, "POST */stop", True, {"state": "absent"}),
    "destroy": (pve_container, "DELETE */lxc/101", False, {"state": "absent"}),
    "make a template": (pve_container, "POST */template", False, {"state": "template"}),
    "make a snapshot": (pve_snapshot, "POST */snapshot", False, {"name": "next"}),
    "describe a snapshot": (pve_snapshot, "PUT */snapshot/there/config", False, {"name": "there", "description": "x"}),
    "remove a snapshot": (pve_snapshot, "DELETE */snapshot/there", False, {"name": "there", "state": "absent"}),
    "roll back": (pve_snapshot, "POST */rollback", True, {"name": "there", "state": "rolled_back"}),
}
# Done twice it comes to the same, and that it was done cannot be seen; of a restart not where it took no time, as here.
TWICE = ("describe a snapshot", "roll back", "restart")


@pytest.mark.parametrize("fault", ["drop_before", "drop_after"])
@pytest.mark.parametrize("identity", [AS_TOKEN, OVER_SSH], ids=["https", "ssh"])
@pytest.mark.parametrize("name", WORK)
def test_it_is_done_once(run_module: Run, rig: Rig, name: str, identity: dict[str, t.Any], fault: str) -> None:
    module, request, running, options = WORK[name]
    rig.guest(101, "cores: 4", "startup: order=2", run=running)
    if module is pve_snapshot:
        assert run_module(pve_snapshot, AS_TOKEN | HERE | {"name": "there"})["rc"] == 0
    rig.requests.clear()
    rig.fault(request, fault)
    result = run_module(module, identity | HERE | options)
    assert result["rc"] == 0 and result["changed"], result
    verb, pattern = request.split(" ")
    sent = [path for sent, path, _ in rig.writes if sent == verb and path.rstrip("/").endswith(pattern.strip("*"))]
    assert len(sent) == (2 if fault == "drop_before" or name in TWICE else 1)
    if name != "roll back" and options.get("state") != "restarted":
        assert not run_module(module, identity | HERE | options)["changed"]
    if module is pve_container and options.get("state") not in ("absent", "template"):
        assert rig.containers.up == ({101} if options.get("state") in ("started", "restarted") else set())


def test_what_is_left_to_root_is_no_reason_to_send_again(run_module: Run, rig: Rig) -> None:
    rig.guest(101)
    rig.fault("PUT */config", "drop_after")
    options = {"cores": 7, "devices": [{"path": "/dev/nvidia0"}], "defer_root_only": True}
    result = run_module(pve_container, AS_TOKEN | HERE | options)
    assert result["rc"] == 0 and result["deferred"] == ["dev0"] and len(rig.writes) == 1
