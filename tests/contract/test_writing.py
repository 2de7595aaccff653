# SPDX-License-Identifier: GPL-3.0-or-later
"""The part of the contract that makes guests, on vmids that the user names for it. None has a GPU."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.pve import properties
from ansible.modules import pve_container, pve_container_info, pve_snapshot
from contract.stage import DISK_GIB, Stage

NOTES = 'it\'s the "first"\nof two lines, 100% $HOME; naïve'


def text(config: dict[str, t.Any], *keys: str) -> list[str]:
    """Values of a configuration in one spelling; a note without the newline that Proxmox gives it."""
    return [str(config.get(key, "")).rstrip("\n") for key in keys]


def absent(guest: dict[str, t.Any]) -> dict[str, t.Any]:
    return {"vmid": guest["vmid"], "state": "absent", "purge": True}


def needs(stage: Stage, vmid: int, feature: str, what: str) -> None:
    """Skip what the user's storage cannot do."""
    if not stage.can(vmid, feature):
        pytest.skip(f"storage '{stage.settings.storage}' of type {stage.storage_kind} cannot {what}")


def test_a_guest_is_made_changed_put_right_and_unset(stage: Stage) -> None:
    guest = stage.guest(description=NOTES, startup="order=2,up=30", onboot=False)
    made = stage.becomes(pve_container, guest)
    assert made["container"]["status"] == "stopped" and made["container"]["hostname"] == guest["hostname"]
    vmid = guest["vmid"]
    assert text(stage.config(vmid), "description", "memory", "cores", "tags") == [NOTES, "256", "1", stage.mark]

    changed = {**guest, "memory_mib": 512, "cores": 2, "hostname": f"changed-{vmid}", "description": "of\nanother mind"}
    changed = {**changed, "tags": [stage.mark, "changed"], "startup": "order=3"}
    stage.becomes(pve_container, changed)
    assert text(stage.config(vmid), "description", "memory", "cores") == ["of\nanother mind", "512", "2"]
    assert set(stage.config(vmid)["tags"].split(";")) == {stage.mark, "changed"}
    # The same in another spelling, and with tags that are not declared.
    stage.stays(
        pve_container, {**changed, "startup": "order=3,", "tags": [stage.mark], "description": "of\nanother mind\n"}
    )

    keys: dict[str, t.Any] = {"memory": 384, "cores": None, "description": "by hand"}
    if stage.settings.bridge:
        keys["net0"] = stage.config(vmid)["net0"] + ",firewall=1,link_down=1"
    stage.by_hand(vmid, **keys)
    repaired = stage.becomes(pve_container, changed)
    assert set(repaired["diff"]["after"]) == set(keys)
    assert text(stage.config(vmid), "memory", "cores", "description") == ["512", "2", "of\nanother mind"]
    assert "firewall" not in properties.parse(stage.config(vmid).get("net0", ""))

    bare = {**changed, "description": "", "cores": 0, "startup": ""}
    stage.becomes(pve_container, bare)
    assert not {"description", "cores", "startup"} & stage.config(vmid).keys()

    stage.by_hand(vmid, protection=1)
    assert "it is protected" in stage.refused(pve_container, absent(guest))["msg"]
    stage.by_hand(vmid, protection=None)
    stage.becomes(pve_container, absent(guest))
    told = stage.run(pve_container_info, {"vmid": vmid})
    assert told["rc"] == 0 and told["containers"] == []


def test_a_guest_starts_waits_for_a_restart_and_stops(stage: Stage) -> None:
    guest = stage.guest(state="started")
    assert stage.becomes(pve_container, guest)["container"]["status"] == "running"
    # In force at once.
    hot = {**guest, "memory_mib": 320, "cores": 2}
    plugged = stage.becomes(pve_container, hot)
    assert plugged["pending"] == [] and not plugged["restart_required"]
    # Not before a restart, and check mode knows.
    cold = {**hot, "features": {"nesting": True}}
    foretold = stage.foretold(pve_container, cold)
    waits = stage.becomes(pve_container, cold)
    assert waits["pending"] == foretold["pending"] == ["features"] and waits["restart_required"]
    assert "features" not in waits["container"]["config"]
    assert stage.stays(pve_container, cold)["restart_required"]
    (told,) = stage.run(pve_container_info, {"vmid": guest["vmid"]})["containers"]
    assert told["pending"] == {"features": "nesting=1"} and told["restart_required"]
    restarted = stage.run(pve_container, {**cold, "state": "restarted"})
    assert restarted["rc"] == 0 and restarted["changed"], restarted.get("msg")
    assert restarted["pending"] == [] and restarted["container"]["config"]["features"] == "nesting=1"
    stage.becomes(pve_container, {**cold, "state": "stopped"})
    stage.becomes(pve_container, {**cold, "state": "started"})
    # Stopped on the way.
    stage.becomes(pve_container, absent(guest))


def test_there_and_back_with_snapshots(stage: Stage) -> None:
    guest = stage.guest()
    stage.becomes(pve_container, guest)
    proven = {"vmid": guest["vmid"], "name": "proven", "description": "it answers"}
    if not stage.can(guest["vmid"], "snapshot"):
        refused = stage.refused(pve_snapshot, proven)
        assert [found["id"] for found in refused["findings"]] == ["PVE_SNAPSHOT_UNSUPPORTED"]
    needs(stage, guest["vmid"], "snapshot", "take snapshots; that Slipway says so and makes none was seen")
    made = stage.becomes(pve_snapshot, proven)
    assert [(one["name"], one["description"], one["ours"]) for one in made["snapshots"]] == [
        ("proven", "it answers", True)
    ]
    stage.becomes(pve_container, {**guest, "memory_mib": 512, "cores": 2})
    back = {**proven, "state": "rolled_back"}
    foretold = stage.foretold(pve_snapshot, back)
    done = stage.run(pve_snapshot, back)
    assert done["rc"] == 0 and done["changed"], done.get("msg")
    assert done["diff"] == foretold["diff"]
    assert text(stage.config(guest["vmid"]), "memory", "cores") == ["256", "1"]
    stage.stays(pve_container, guest)
    for name in ("run-1", "run-2"):
        pruned = stage.becomes(pve_snapshot, {**proven, "name": name, "keep": 1, "keep_prefix": "run-"})
    assert [one["name"] for one in pruned["snapshots"]] == ["proven", "run-2"]
    if stage.storage_kind == "zfspool":
        older = stage.refused(pve_snapshot, back)
        assert [found["id"] for found in older["findings"]] == ["PVE_SNAPSHOT_NOT_NEWEST"]
    stage.becomes(pve_snapshot, {**proven, "name": "run-2", "state": "absent"})
    stage.becomes(pve_snapshot, {**proven, "state": "absent"})


def test_a_full_clone_is_a_guest_of_its_own(stage: Stage) -> None:
    source = stage.guest(**stage.quiet_net())
    stage.becomes(pve_container, source)
    needs(stage, source["vmid"], "copy", "copy disks")
    vmid = stage.free_vmid()
    clone = {
        "vmid": vmid,
        "clone": {"vmid": source["vmid"], "full": True},
        "hostname": f"clone-{vmid}",
        "memory_mib": 320,
    }
    made = stage.becomes(pve_container, clone)["container"]["config"]
    first = stage.config(source["vmid"])
    assert made["hostname"] == f"clone-{vmid}" and made["rootfs"] != first["rootfs"]
    assert made.get("net0", "1") != first.get("net0", "2")
    # It does not need its source any more.
    stage.becomes(pve_container, absent(source))
    stage.stays(pve_container, clone)


def test_a_linked_clone_of_a_template(stage: Stage) -> None:
    golden = stage.guest(**stage.quiet_net(), state="template")
    assert stage.becomes(pve_container, golden)["container"]["template"]
    assert stage.refused(pve_container, {"vmid": golden["vmid"], "state": "started"})["msg"]
    needs(stage, golden["vmid"], "clone", "link the disks of clones")
    vmid = stage.free_vmid()
    clone = {"vmid": vmid, "clone": {"vmid": golden["vmid"], "full": False}, "state": "started"}
    made = stage.becomes(pve_container, clone)["container"]
    assert made["status"] == "running" and not made["template"]
    # Proxmox keeps a template as long as something hangs on it, and Slipway hands on what it says.
    kept = stage.run(pve_container, absent(golden))
    assert kept["rc"] == 1 and "failed" in kept["msg"]
    stage.becomes(pve_container, absent(clone))
    stage.becomes(pve_container, absent(golden))


def test_a_disk_grows(stage: Stage) -> None:
    guest = stage.guest()
    stage.becomes(pve_container, guest)
    larger = {**guest, "rootfs": {**guest["rootfs"], "size_gib": DISK_GIB + 1}}
    # Only a warning without consent.
    stage.stays(pve_container, larger)
    grown = stage.becomes(pve_container, {**larger, "grow_disks": True})
    assert properties.parse(grown["container"]["config"]["rootfs"], "volume")["size"] == f"{DISK_GIB + 1}G"


def test_devices_are_for_root(stage: Stage) -> None:
    guest = stage.guest(devices=[{"path": "/dev/fuse", "mode": "0660"}])
    if not stage.is_root:
        deferred = stage.run(pve_container, {**guest, "defer_root_only": True})
        assert deferred["rc"] == 0 and deferred["deferred"] == ["dev0"], deferred.get("msg")
        assert "dev0" not in stage.config(guest["vmid"])
        return
    stage.becomes(pve_container, guest)
    assert stage.config(guest["vmid"])["dev0"] == "/dev/fuse,mode=0660"
    stage.by_hand(guest["vmid"], dev0="/dev/fuse,mode=0666")
    stage.becomes(pve_container, guest)
    bare = {**guest, "devices": []}
    if stage.client.shell:
        # The record on the node says whose it is.
        stage.becomes(pve_container, bare)
        assert "dev0" not in stage.config(guest["vmid"])
    else:
        assert stage.stays(pve_container, bare)["unmanaged"] == ["dev0"]


def test_raw_lines_on_the_node(root_stage: Stage) -> None:
    stage = root_stage
    guest = stage.guest(state="started")
    stage.becomes(pve_container, guest)
    vmid, lines = guest["vmid"], ["lxc.environment: SLIPWAY_A=1", "lxc.environment: SLIPWAY_B=2"]
    waits = stage.changes_raw(vmid, lines=lines)
    assert waits["restart_required"] and waits["lines"] == lines
    assert stage.config(vmid)["lxc"] == [line.split(": ") for line in lines]
    # A change through the API leaves them, and they it.
    stage.becomes(pve_container, {**guest, "memory_mib": 320})
    restarted = stage.run(pve_container, {**guest, "memory_mib": 320, "state": "restarted"})
    assert restarted["rc"] == 0, restarted.get("msg")
    assert stage.raw is not None
    settled = stage.raw(vmid, {"lines": lines}, False)
    assert not settled["changed"] and not settled["restart_required"]
    stage.changes_raw(vmid, lines=lines[:1])
    assert stage.config(vmid)["lxc"] == [lines[0].split(": ")]
    stage.changes_raw(vmid, lines=[])
    assert "lxc" not in stage.config(vmid)
    assert stage.run(pve_container_info, {"vmid": vmid})["containers"][0]["raw_lines"] == []
