# SPDX-License-Identifier: GPL-3.0-or-later
"""What users of other tools reported about guests, a test each, named after the report; against the rig's Proxmox.

The first part goes by the numbers of the list of field reports; ``cp`` is community.proxmox, ``cg`` community.general. The
last part has the ten situations of the appendix in which the existing module was measured.
"""

from __future__ import annotations

import json
import re
import typing as t
from pathlib import Path

import pytest
from ansible.modules import pve_container, pve_snapshot
from rig_node import AS_ROOT, AS_TOKEN, OVER_SSH, TEMPLATE, Rig

Run = t.Callable[..., dict[str, t.Any]]
HERE = {"node": "node1", "vmid": 101}
DISK = {"storage": "local-zfs", "size_gib": 8}
NEW = HERE | {"ostemplate": TEMPLATE, "rootfs": DISK}
NET = "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=dhcp,type=veth"
DECLARED_NET = {"net": [{"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "dhcp"}]}
GPU = {"devices": [{"path": "/dev/nvidia0", "gid": 44, "mode": "0660"}]}


@pytest.fixture(params=[AS_TOKEN, OVER_SSH], ids=["https", "ssh"])
def api(request: pytest.FixtureRequest) -> dict[str, t.Any]:
    return request.param


def good(result: dict[str, t.Any]) -> dict[str, t.Any]:
    assert result["rc"] == 0, result
    return result


# --- the list of field reports ---


@pytest.mark.parametrize("there", [False, True], ids=["new", "there"])
def test_report_08_remz1337_proxmox_8_a_device_that_is_not_there_is_named_before_the_guest_is_touched(
    run_module: Run, rig: Rig, there: bool
) -> None:
    """A guest did not start, since /dev/nvidia-modeset was not there when it did."""
    if there:
        rig.guest(101, "memory: 512", run=True)
    missing = {"devices": [{"path": "/dev/nvidia-modeset"}], "memory_mib": 1024}
    result = run_module(pve_container, AS_ROOT | NEW | missing)
    assert result["rc"] == 1 and "/dev/nvidia-modeset does not exist" in result["msg"]
    if there:
        assert rig.node.load(101)["memory"] == 512 and rig.containers.running(101)
    else:
        assert rig.node.vmids() == []


def test_report_09_jammsen_7_no_device_number_is_written_down(run_module: Run, rig: Rig) -> None:
    """Each new kernel changed the majors, and the guest's lines had the old ones."""
    rig.guest(101)
    good(run_module(pve_container, AS_ROOT | HERE | GPU | {"state": "started"}))
    rig.containers.devices["/dev/nvidia0"] = 0xE900  # after a new kernel
    good(run_module(pve_container, AS_ROOT | HERE | GPU | {"state": "restarted"}))
    assert rig.file(101).count("dev0: ") == 1 and "cgroup2" not in rig.file(101) and "195" not in rig.file(101)
    assert not good(run_module(pve_container, AS_ROOT | HERE | GPU | {"state": "started"}))["changed"]


def test_report_21_bassT23_proxmox_334_no_silent_way_on_without_a_snapshot(
    run_module: Run, rig: Rig, api: t.Any
) -> None:
    """An update went on without the snapshot that it was told to make, because there can be none."""
    rig.guest(101, "mp0: /srv/models,mp=/models")
    result = run_module(pve_snapshot, api | HERE | {"name": "before"})
    assert result["rc"] == 1 and rig.writes == []
    assert [found["id"] for found in result["findings"]] == ["PVE_SNAPSHOT_UNSUPPORTED"]
    assert ("GET", "nodes/node1/lxc/101/feature") in [(verb, path.strip("/")) for verb, path in rig.calls]


def test_report_22_cv4pve_autosnap_112_a_bind_mount_is_no_storage(run_module: Run, rig: Rig, api: t.Any) -> None:
    """A guest with a bind mount was skipped, its path taken for a storage."""
    rig.guest(101, "mp0: /srv/models,mp=/models")
    told = run_module(pve_snapshot, api | HERE | {"name": "before"})
    assert "mp0 (/models) is a bind mount of /srv/models" in told["msg"] and "storage of type" not in told["msg"]
    # The way out that the finding names: a raw line is no mount point, and the guest can be part of a snapshot.
    assert "lxc.mount.entry" in told["findings"][0]["remedy"]
    rig.guest(102, "lxc.mount.entry: /srv/models srv/models none bind,ro,create=dir")
    good(run_module(pve_snapshot, api | HERE | {"vmid": 102, "name": "before"}))


def test_report_23_cp_405_cg_8407_no_disk_is_allocated_twice(run_module: Run, rig: Rig, api: t.Any) -> None:
    """``rootfs: storage:size`` was left in the file of a guest that was made anew, and each update took one more disk."""
    args = api | NEW | {"mounts": [{"path": "/srv", **DISK}]}
    for _ in range(2):
        good(run_module(pve_container, args))
        assert rig.node.load(101)["rootfs"] == "local-zfs:subvol-101-disk-0,size=8G"
        assert rig.node.load(101)["mp0"] == "local-zfs:subvol-101-disk-1,mp=/srv,size=8G"
        for cores in (1, 2):
            good(run_module(pve_container, args | {"cores": cores}))
        assert len(list((rig.node.root / "rpool/data").iterdir())) == 2
        good(run_module(pve_container, args | {"state": "absent"}))


def test_report_24_cp_98_a_guest_is_started_right_after_its_creation(run_module: Run, rig: Rig, api: t.Any) -> None:
    """The start looked the new guest up in the cluster's broadcast, which does not have it yet."""
    rig.fault("GET /cluster/resources", "error", status=500, message="stale", times=None)
    made = good(run_module(pve_container, api | NEW | {"state": "started"}))
    assert made["container"]["status"] == "running" and rig.containers.up == {101}


def test_report_27_bpg_1107_a_task_may_take_longer_than_an_answer(
    run_module: Run, rig: Rig, monkeypatch: t.Any
) -> None:
    """Creation timed out on a slow disk, whatever was set: one limit was taken for the other."""
    unpack = rig.containers.unpack

    def slowly(*arguments: t.Any) -> None:
        rig.clock.sleep(200)
        unpack(*arguments)

    monkeypatch.setattr(rig.containers, "unpack", slowly)
    args = AS_TOKEN | NEW | {"api_timeout_seconds": 5}
    late = run_module(pve_container, args | {"timeout_seconds": 20})
    assert (
        late["rc"] == 1 and "has not ended within 20 seconds; it still runs" in late["msg"] and "UPID:" in late["msg"]
    )
    # Nothing of it was taken back: the next run waits for the same task, and finds the guest.
    assert [verb for verb, _, _ in rig.writes] == ["POST"]
    good(run_module(pve_container, args | {"timeout_seconds": 300}))
    assert [verb for verb, _, _ in rig.writes] == ["POST"] and "rootfs" in rig.file(101)


def test_report_28_bpg_1721_devices_at_creation_as_at_update(run_module: Run, rig: Rig) -> None:
    """devN was set by an update and left out at creation: two ways made it."""
    good(run_module(pve_container, OVER_SSH | NEW | GPU))
    assert rig.node.load(101)["dev0"] == "/dev/nvidia0,gid=44,mode=0660"
    rig.guest(102)
    good(run_module(pve_container, OVER_SSH | HERE | {"vmid": 102} | GPU))
    assert rig.node.load(102)["dev0"] == rig.node.load(101)["dev0"]


def test_report_29_cg_6773_restarted_is_running(run_module: Run, rig: Rig, api: t.Any) -> None:
    """After "restarted" the guest was stopped: the task had ended, and high availability had it."""
    rig.guest(101, run=True)
    done = good(run_module(pve_container, api | HERE | {"state": "restarted"}))
    assert done["container"]["status"] == "running"
    assert [path.rpartition("/")[2] for _, path, _ in rig.writes] == ["reboot"]


def test_report_29_a_restart_that_leaves_it_stopped_is_a_failure(run_module: Run, rig: Rig, monkeypatch: t.Any) -> None:
    rig.guest(101, run=True)
    monkeypatch.setattr(rig.containers, "start", lambda *arguments, **options: None)
    result = run_module(pve_container, AS_TOKEN | HERE | {"state": "restarted", "timeout_seconds": 30})
    assert result["rc"] == 1 and "its task ended well, but it is not running after 30 seconds" in result["msg"]


def test_report_34_pxvirt_120_a_failed_start_says_why(run_module: Run, rig: Rig, api: t.Any) -> None:
    """A start failed with an exit status and nothing else."""
    rig.guest(101)
    rig.containers.breaks_on = "start"
    result = run_module(pve_container, api | HERE | {"state": "started"})
    assert result["rc"] == 1 and "the hook of a test fails" in result["msg"]


def test_report_34_a_device_that_is_gone_is_named(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101, "dev0: /dev/nvidia-uvm")
    result = run_module(pve_container, api | HERE | {"state": "started"})
    assert result["rc"] == 1 and "Device /dev/nvidia-uvm does not exist" in result["msg"]


# --- what users of community.proxmox report ---


def test_report_cp_24_cp_50_a_clone_has_the_cores_and_memory_that_were_declared(
    run_module: Run, rig: Rig, api: t.Any
) -> None:
    """A clone ignored what was declared beside it, and an update was never idempotent."""
    good(run_module(pve_container, api | NEW | {"vmid": 900, "state": "template", "cores": 1, "memory_mib": 512}))
    args = api | HERE | {"clone": {"vmid": 900}, "cores": 4, "memory_mib": 2048}
    made = good(run_module(pve_container, args))["container"]["config"]
    assert (int(made["cores"]), int(made["memory"])) == (4, 2048)
    assert not good(run_module(pve_container, args))["changed"]


def test_report_cp_28_mounts_at_creation(run_module: Run, rig: Rig, api: t.Any) -> None:
    """Specifying mounts made creation fail."""
    good(run_module(pve_container, api | NEW | {"mounts": [{"path": "/srv", **DISK}, {"path": "/var/cache", **DISK}]}))
    content = rig.node.load(101)
    assert "mp=/srv" in content["mp0"] and "mp=/var/cache" in content["mp1"]


def test_report_cp_29_a_token_that_may_not_is_told_what_it_lacks(run_module: Run, rig: Rig) -> None:
    """With a token: "Pre-creation checks failed: 'errors'"."""
    watcher = {"api_user": "watch@pve", "api_token_id": "t", "api_token_secret": "seen"}
    result = run_module(pve_container, AS_TOKEN | watcher | NEW)
    assert result["rc"] == 1 and "/vms/101, VM.Allocate" in result["msg"]
    assert "Give 'watch@pve!t' the privilege" in result["msg"]


def test_report_cp_49_a_running_guest_is_stopped_and_destroyed(run_module: Run, rig: Rig, api: t.Any) -> None:
    """Deleting a running guest was "success", and the guest ran on."""
    rig.guest(101, run=True)
    assert good(run_module(pve_container, api | HERE | {"state": "absent"}))["changed"]
    assert rig.node.vmids() == [] and rig.containers.up == set()


def test_report_cp_66_a_template_is_one_once(run_module: Run, rig: Rig, api: t.Any) -> None:
    """state=template failed in its second run."""
    args = api | NEW | {"state": "template"}
    assert good(run_module(pve_container, args))["changed"]
    assert not good(run_module(pve_container, args))["changed"]


def test_report_cp_69_an_update_comes_into_force_or_says_that_it_waits(run_module: Run, rig: Rig, api: t.Any) -> None:
    """An update of mounts or memory did nothing: it was pending, and a later run said "up to date"."""
    rig.guest(101, "memory: 512", run=True)
    args = api | HERE | {"memory_mib": 1024, "features": {"nesting": True}}
    done = good(run_module(pve_container, args))
    assert int(done["container"]["config"]["memory"]) == 1024
    for result in (done, good(run_module(pve_container, args))):
        assert result["pending"] == ["features"] and result["restart_required"]
        assert "features" not in result["container"]["config"]
    good(run_module(pve_container, args | {"state": "restarted"}))
    assert rig.node.load(101)["features"] == "nesting=1"


def test_report_cp_144_cp_458_devices_can_be_passed_in(run_module: Run, rig: Rig) -> None:
    """There was no option for devN."""
    rig.guest(101, run=True)
    done = good(run_module(pve_container, AS_ROOT | HERE | GPU))
    # A new one is plugged into a running guest.
    assert done["container"]["devices"][0]["path"] == "/dev/nvidia0" and not done["restart_required"]


def test_report_cp_180_mounts_do_not_change_in_every_run(run_module: Run, rig: Rig, api: t.Any) -> None:
    """A mount of a volume was changed in every run."""
    args = api | NEW | {"mounts": [{"path": "/srv", **DISK}]}
    good(run_module(pve_container, args))
    before = rig.file(101)
    assert not good(run_module(pve_container, args))["changed"] and rig.file(101) == before


def test_report_cp_405_a_guest_that_is_made_anew_starts(run_module: Run, rig: Rig, api: t.Any) -> None:
    args = api | NEW | {"state": "started"}
    good(run_module(pve_container, args))
    good(run_module(pve_container, args | {"state": "absent"}))
    assert good(run_module(pve_container, args))["container"]["status"] == "running"


def test_report_cp_418_cores_are_cores_at_creation_and_at_update(run_module: Run, rig: Rig, api: t.Any) -> None:
    """``cpus`` was cpuunits at creation, and cpulimit at an update."""
    for cores in (2, 4):
        good(run_module(pve_container, api | NEW | {"cores": cores}))
        content = rig.node.load(101)
        assert content["cores"] == cores and not {"cpuunits", "cpulimit"} & set(content)


def test_report_cp_55_cp_233_both_limits_of_time_can_be_set(run_module: Run, rig: Rig) -> None:
    """The limit for an answer was 5 seconds, and could not be set."""
    rig.guest(101)
    rig.fault("GET /nodes/node1/lxc/101/config", "slow", seconds=20, times=None)
    late = run_module(pve_container, AS_TOKEN | HERE | {"api_timeout_seconds": 5})
    assert late["rc"] == 1 and "within 5 seconds" in late["msg"] and "api_timeout_seconds" in late["msg"]
    good(run_module(pve_container, AS_TOKEN | HERE | {"api_timeout_seconds": 60}))


# --- the ten situations ---

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (Path(__file__).parents[3] / "docs" / "guests.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| situation")
]


def as_in_the_docs(number: int, result: dict[str, t.Any]) -> None:
    """What came of a situation is what its row of docs/guests.md says: the outcome, and each word in code marks."""
    _situation, outcome, words = ROWS[number - 1]
    assert outcome == ("failed" if result["rc"] else "changed" if result["changed"] else "ok")
    before, after = (result.get("diff", {}).get(side, {}) for side in ("before", "after"))
    diff = "\n".join(
        f"{key}: {before.get(key, 'not set')} -> {after.get(key, 'not set')}" for key in {**before, **after}
    )
    for quoted in re.findall("`([^`]+)`", words):
        assert quoted in f"{diff}\n{result.get('msg', '')}"


def test_the_docs_have_the_ten_situations() -> None:
    assert len(ROWS) == 10


def test_situation_01_nothing_to_change(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101, f"net0: {NET}", "hostname: infer1")
    as_in_the_docs(1, run_module(pve_container, api | HERE | {"hostname": "infer1"} | DECLARED_NET))
    assert rig.writes == [] and len(rig.calls) == 3


def test_situation_02_an_option_of_a_network_is_taken_away(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101, f"net0: {NET},firewall=1")
    as_in_the_docs(2, run_module(pve_container, api | HERE | DECLARED_NET))
    content = rig.node.load(101)
    assert "firewall" not in content["net0"] and "hwaddr=BC:24:11:00:00:01" in content["net0"]
    assert not good(run_module(pve_container, api | HERE | DECLARED_NET))["changed"]


def test_situation_03_a_feature_is_taken_away(run_module: Run, rig: Rig) -> None:
    rig.guest(101, "features: keyctl=1,nesting=1")
    as_in_the_docs(3, run_module(pve_container, AS_ROOT | HERE | {"features": {"nesting": True}}))
    assert rig.node.load(101)["features"] == "nesting=1"


def test_situation_04_what_is_not_there_is_not_deleted(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101)
    nothing = {"devices": [], "startup": "", "features": {}, "tags": [], "description": "", "cores": 0}
    as_in_the_docs(4, run_module(pve_container, api | HERE | nothing))
    assert rig.writes == []


def test_situation_05_a_description_is_the_same_with_its_newline(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101)
    assert good(run_module(pve_container, api | HERE | {"description": "x"}))["changed"]
    as_in_the_docs(5, run_module(pve_container, api | HERE | {"description": "x"}))


def test_situation_06_a_start_fails_at_once(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101)
    rig.containers.breaks_on = "start"
    result = run_module(pve_container, api | HERE | {"state": "started"})
    as_in_the_docs(6, result)
    assert "timeout" not in result["msg"] and "the hook of a test fails" in result["msg"]


def test_situation_07_absent_while_it_runs(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101, run=True)
    result = good(run_module(pve_container, api | HERE | {"state": "absent"}))
    as_in_the_docs(7, result)
    assert result["container"]["status"] == "absent" and rig.node.vmids() == []


def test_situation_08_a_snapshot_in_check_mode(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101)
    result = good(run_module(pve_snapshot, api | HERE | {"name": "before"}, check=True))
    as_in_the_docs(8, result)
    assert rig.writes == []


def test_situation_09_the_task_of_a_snapshot_fails(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101)
    rig.fault("POST /nodes/node1/lxc/101/snapshot", "task_fails", message="zfs error: out of space")
    result = run_module(pve_snapshot, api | HERE | {"name": "before"})
    as_in_the_docs(9, result)
    assert "UPID:node1:" in result["msg"] and "timeout" not in result["msg"].lower()


def test_situation_10_check_mode_tells_of_every_state(run_module: Run, rig: Rig, api: t.Any) -> None:
    rig.guest(101, run=True)
    foretold = {
        state: good(run_module(pve_container, api | HERE | {"state": state}, check=True))["changed"]
        for state in ("present", "started", "stopped", "restarted", "absent")
    }
    as_in_the_docs(10, run_module(pve_container, api | HERE | {"state": "absent"}, check=True))
    assert rig.writes == []
    assert foretold == {"present": False, "started": False, "stopped": True, "restarted": True, "absent": True}
    new = good(run_module(pve_container, api | NEW | {"vmid": 102, "state": "template"}, check=True))
    assert new["changed"] and json.loads(json.dumps(new["diff"]["after"]))["template"] == 1 and rig.writes == []
