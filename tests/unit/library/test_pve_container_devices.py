# SPDX-License-Identifier: GPL-3.0-or-later
"""Whose a device of a guest is: what pve_container takes away, what it leaves, and what it remembers on the node."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.modules import pve_container
from rig_node import AS_ROOT, OVER_SSH, TEMPLATE, Rig

Run = t.Callable[..., dict[str, t.Any]]
GUEST = {"node": "node1", "vmid": 101}
NEW = {"ostemplate": TEMPLATE, "rootfs": {"storage": "local-zfs", "size_gib": 8}}
NET = "net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=dhcp,type=veth"


def gpus(*paths: str) -> dict[str, t.Any]:
    return {"devices": [{"path": path, "gid": 44} for path in paths]}


def recorded(rig: Rig, vmid: int = 101) -> list[str]:
    return json.loads((rig.node.root / f"var/lib/slipway/guests/{vmid}.json").read_text())["devices"]


def test_a_device_of_ours_that_is_no_longer_declared_goes(run_module: Run, rig: Rig) -> None:
    rig.guest(101, "dev0: /dev/nvidia1", NET)
    run_module(pve_container, OVER_SSH | GUEST | gpus("/dev/nvidia0"))
    assert "dev1: /dev/nvidia0,gid=44\n" in rig.file(101) and recorded(rig) == ["/dev/nvidia0"]
    file = rig.node.root / "var/lib/slipway/guests/101.json"
    assert file.stat().st_mode & 0o777 == 0o600 and [entry.name for entry in file.parent.iterdir()] == ["101.json"]
    foretold = run_module(pve_container, OVER_SSH | GUEST | gpus(), check=True)
    assert foretold["changed"] and recorded(rig) == ["/dev/nvidia0"]
    gone = run_module(pve_container, OVER_SSH | GUEST | gpus())
    assert gone["diff"] == foretold["diff"] == {"before": {"dev1": "/dev/nvidia0,gid=44"}, "after": {}}
    # What somebody else put there stays, and is named.
    assert "dev0: /dev/nvidia1\n" in rig.file(101) and "dev1" not in rig.file(101)
    assert gone["unmanaged"] == ["dev0"] and recorded(rig) == []
    assert not run_module(pve_container, OVER_SSH | GUEST | gpus())["changed"]


def test_what_equals_the_declaration_becomes_ours(run_module: Run, rig: Rig) -> None:
    rig.guest(101, "dev0: /dev/nvidia0,gid=44", NET)
    assert not run_module(pve_container, OVER_SSH | GUEST | gpus("/dev/nvidia0"))["changed"]
    assert recorded(rig) == ["/dev/nvidia0"]


def test_devices_of_a_new_guest_are_ours(run_module: Run, rig: Rig) -> None:
    made = run_module(
        pve_container, OVER_SSH | GUEST | NEW | gpus("/dev/nvidia0", "/dev/nvidia1") | {"state": "started"}
    )
    assert made["rc"] == 0 and recorded(rig) == ["/dev/nvidia0", "/dev/nvidia1"]
    assert len([call for call in rig.calls if "/tasks/" not in call[1]]) <= 12
    run_module(pve_container, OVER_SSH | GUEST | gpus("/dev/nvidia0"))
    assert "delete: dev1\n" in rig.file(101).split("[pve:pending]")[1] and recorded(rig) == ["/dev/nvidia0"]


def test_a_record_of_another_guest_of_that_number_makes_nothing_ours(run_module: Run, rig: Rig) -> None:
    rig.guest(101, NET)
    run_module(pve_container, OVER_SSH | GUEST | gpus("/dev/nvidia0"))
    other = rig.file(101).replace("BC:24:11:00:00:01", "BC:24:11:00:00:02")
    rig.node.conf_path(101).write_text(other)
    assert not run_module(pve_container, OVER_SSH | GUEST | gpus())["changed"]
    assert "dev0" in rig.file(101)


def test_without_the_node_nothing_that_is_not_declared_is_ours(run_module: Run, rig: Rig) -> None:
    rig.guest(101, NET)
    run_module(pve_container, OVER_SSH | GUEST | gpus("/dev/nvidia0"))
    over_https = run_module(pve_container, AS_ROOT | GUEST | gpus())
    assert not over_https["changed"] and over_https["unmanaged"] == ["dev0"]


def test_devices_that_are_not_given_cost_no_look_at_the_node(
    run_module: Run, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.guest(101, "dev0: /dev/nvidia0", NET)
    monkeypatch.setattr(rig, "_shell", lambda words: pytest.fail("the node was asked"))
    assert run_module(pve_container, OVER_SSH | GUEST)["unmanaged"] == []


def test_a_run_that_is_killed_before_its_change_leaves_a_record_of_both(
    run_module: Run, rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.guest(101, NET)
    run_module(pve_container, OVER_SSH | GUEST | gpus("/dev/nvidia0"))
    monkeypatch.setattr(rig.node, "save", lambda vmid, content: (_ for _ in ()).throw(OSError("killed")))
    assert run_module(pve_container, OVER_SSH | GUEST | gpus("/dev/nvidia1"))["rc"] == 1
    assert recorded(rig) == ["/dev/nvidia0", "/dev/nvidia1"]
