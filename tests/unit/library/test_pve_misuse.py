# SPDX-License-Identifier: GPL-3.0-or-later
"""What people write by mistake, and what others have left there, against the rig's Proxmox by both ways to its API."""

from __future__ import annotations

import typing as t

import pytest
from ansible.modules import pve_container, pve_container_info, pve_snapshot
from rig_node import AS_ROOT, AS_TOKEN, OVER_SSH, Rig

Run = t.Callable[..., dict[str, t.Any]]
HERE = {"node": "node1", "vmid": 101}


@pytest.fixture(params=[AS_TOKEN, OVER_SSH], ids=["https", "ssh"])
def api(request: pytest.FixtureRequest) -> dict[str, t.Any]:
    return request.param


def test_a_template_that_did_not_come_about_is_a_failure(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101)
    rig.fault("POST */template", "task_fails", message="zfs error: busy")
    result = run_module(pve_container, api | HERE | {"state": "template"})
    assert result["rc"] == 1 and result["msg"].startswith("Cannot make a template of container '101' on node1: ")
    assert not rig.node.load(101).get("template")


def test_a_locked_guest_is_waited_for_before_it_becomes_a_template(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101, "lock: backup")
    result = run_module(pve_container, api | HERE | {"state": "template", "timeout_seconds": 5})
    assert result["rc"] == 1 and "it is locked (backup)" in result["msg"] and "pct unlock 101" in result["msg"]


def test_tags_that_came_out_empty_take_no_tags_away(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101, "tags: prod;user")
    for tags in ([""], ["", " "], ["", "prod"]):
        assert not run_module(pve_container, api | HERE | {"tags": tags})["changed"], tags
    assert run_module(pve_container, api | HERE | {"tags": []})["changed"] and "tags" not in rig.node.load(101)


@pytest.mark.parametrize(("there", "declared"), [("/mine", "/mine/"), ("/mine/", "/mine"), ("/var/data", "/var//data")])
def test_a_path_in_another_spelling_is_the_same_disk(
    run_module: Run, rig: Rig, api: t.Any, there: str, declared: str
) -> None:
    rig.guest(101, f"mp0: local-zfs:subvol-101-disk-1,mp={there},size=8G")
    mounts = {"mounts": [{"path": declared, "storage": "local-zfs", "size_gib": 8}]}
    assert not run_module(pve_container, api | HERE | mounts)["changed"] and rig.writes == []


def test_notes_with_a_line_separator_are_read_and_written(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101)
    notes = {"description": "a\u2028b\u0085c"}
    assert run_module(pve_container, api | HERE | notes)["changed"]
    assert not run_module(pve_container, api | HERE | notes)["changed"]
    assert run_module(pve_container_info, api | HERE)["containers"][0]["config"]["description"].startswith("a\u2028b")
    named = {"name": "one", "description": "x\u2028y"}
    assert run_module(pve_snapshot, api | HERE | named)["changed"]
    assert not run_module(pve_snapshot, api | HERE | named)["changed"]


@pytest.mark.parametrize("mount", ["nfs,cifs", "nfs,keyctl=1"])
@pytest.mark.parametrize("there", [(), ("features: nesting=1",)], ids=["none", "some"])
def test_file_systems_are_separated_by_semicolons(run_module: Run, rig: Rig, mount: str, there: tuple[str]) -> None:
    rig.guest(101, *there)
    for check in (True, False):
        result = run_module(pve_container, AS_ROOT | HERE | {"features": {"mount": mount}}, check=check)
        assert result["rc"] == 1 and "separated by semicolons, as in 'nfs;cifs'" in result["msg"]
    assert rig.writes == [] or all("ticket" in path for _verb, path in rig.writes)


@pytest.mark.parametrize("host", ["https://node1.example.com:8006", "node1.example.com/"])
def test_an_address_of_the_web_is_no_host(run_module: Run, rig: Rig, api: t.Any, host: str) -> None:
    result = run_module(pve_container, api | HERE | {"api_host": host})
    assert result["rc"] == 1 and "a host's name or IP address is needed" in result["msg"]


@pytest.mark.parametrize("vmid", [0, -5, 99, 10**9])
def test_a_number_that_no_guest_can_have(run_module: Run, rig: Rig, api: t.Any, vmid: int) -> None:
    result = run_module(pve_container, api | HERE | {"vmid": vmid})
    assert result["rc"] == 1 and "Proxmox numbers guests from 100 to 999999999" in result["msg"]


def test_check_mode_tells_of_a_lock(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101, "lock: backup")
    for module, arguments in ((pve_container, {"memory_mib": 1024}), (pve_snapshot, {"name": "one"})):
        result = run_module(module, api | HERE | arguments, check=True)
        assert result["changed"] and [one["id"] for one in result["findings"]] == ["PVE_GUEST_LOCKED"]


def test_a_snapshot_that_is_not_there_needs_no_lock_to_be_gone(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101, "lock: backup")
    assert run_module(pve_snapshot, api | HERE | {"name": "one", "state": "absent"})["rc"] == 0


def test_keep_removes_what_is_older_alone(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101)
    for name in ("r1", "r2", "r3"):
        run_module(pve_snapshot, api | HERE | {"name": name})
    assert not run_module(pve_snapshot, api | HERE | {"name": "r1", "keep": 1})["changed"]
    run_module(pve_snapshot, api | HERE | {"name": "r3", "keep": 2})
    assert sorted(rig.node.load(101)["snapshots"]) == ["r2", "r3"]


def test_keep_does_not_count_what_is_somebody_elses(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101)
    for name in ("s1", "s2"):
        run_module(pve_snapshot, api | HERE | {"name": name})
    rig.run("pct snapshot 101 before-upgrade")
    run_module(pve_snapshot, api | HERE | {"name": "before-upgrade", "keep": 1})
    assert sorted(rig.node.load(101)["snapshots"]) == ["before-upgrade", "s2"]
