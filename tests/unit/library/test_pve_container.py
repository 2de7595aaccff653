# SPDX-License-Identifier: GPL-3.0-or-later
"""pve_container, driven through main() against a node behind the wire: what is sent is what counts."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
import requests
from ansible.modules import pve_container

API = {
    "api_host": "pve1.example.com",
    "api_user": "deploy@pve",
    "api_token_id": "slipway",
    "api_token_secret": "s3cret-uuid",
    "node": "node1",
    "vmid": 101,
}
ROOT = {k: v for k, v in API.items() if not k.startswith("api_token")} | {"api_user": "root@pam", "api_password": "pw"}
TICKET = {"ticket": "PVE:root@pam:1", "CSRFPreventionToken": "csrf"}
DECLARED = {
    "hostname": "infer1",
    "ostemplate": "local:vztmpl/debian-13.tar.zst",
    "rootfs": {"storage": "local-zfs", "size_gib": 64},
    "cores": 16,
    "memory_mib": 65536,
    "swap_mib": 0,
    "net": [
        {"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "192.0.2.21/24", "gw": "192.0.2.1", "firewall": False},
    ],
    "features": {"nesting": True, "keyctl": False},
    "unprivileged": True,
    "onboot": True,
    "tags": ["inference", "gpu"],
    "description": "made by hand",
    "ssh_public_keys": ["ssh-ed25519 AAAA a@b", "ssh-ed25519 BBBB c@d"],
    "mounts": [{"path": "/var/cache", "storage": "local-zfs", "size_gib": 100}],
}
# How Proxmox keeps what DECLARED asks for.
KEPT = {
    "hostname": "infer1",
    "rootfs": "local-zfs:subvol-101-disk-0,size=64G",
    "cores": 16,
    "memory": 65536,
    "swap": 0,
    "net0": "name=eth0,bridge=vmbr0,gw=192.0.2.1,hwaddr=BC:24:11:00:00:01,ip=192.0.2.21/24,type=veth",
    "features": "nesting=1",
    "unprivileged": 1,
    "onboot": 1,
    "tags": "gpu;inference",
    "description": "made by hand\n",
    "mp0": "local-zfs:subvol-101-disk-1,mp=/var/cache,size=100G",
}
CREATED = {
    "vmid": "101",
    "ostemplate": "local:vztmpl/debian-13.tar.zst",
    "rootfs": "local-zfs:64",
    "unprivileged": "1",
    "ssh-public-keys": "ssh-ed25519 AAAA a@b\nssh-ed25519 BBBB c@d",
    "hostname": "infer1",
    "cores": "16",
    "memory": "65536",
    "swap": "0",
    "description": "made by hand",
    "onboot": "1",
    "tags": "inference;gpu",
    "features": "nesting=1",
    "net0": "bridge=vmbr0,gw=192.0.2.1,ip=192.0.2.21/24,name=eth0",
    "mp0": "local-zfs:100,mp=/var/cache",
}
GPU = {"path": "/dev/nvidia0", "gid": 44, "mode": "0660"}

Run = t.Callable[..., dict[str, t.Any]]


def test_create(run_module: Run, proxmox: t.Any) -> None:
    result = run_module(pve_container, API | DECLARED)
    assert result["rc"] == 0, result
    assert proxmox.writes == [("POST", "nodes/node1/lxc", CREATED)]
    assert result["changed"] and not result["restart_required"]
    assert result["task"] == "UPID:node1:0000ABCD:00001234:6731F2A0:vzcreate:101:deploy@pve!slipway:"
    assert result["container"]["status"] == "stopped" and result["container"]["hostname"] == "infer1"
    assert result["diff"]["before"] == {"status": "absent"}
    assert result["diff"]["after"]["memory"] == 65536


def test_second_run_costs_three_calls_and_changes_nothing(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, "running", **KEPT)
    result = run_module(pve_container, API | DECLARED | {"state": "started"})
    assert not result["changed"] and result["diff"] == {"before": {}, "after": {}}
    assert [(method, path) for method, path, _ in proxmox.requests] == [
        ("GET", "nodes/node1/lxc"),
        ("GET", "nodes/node1/lxc/101/config"),
        ("GET", "nodes/node1/lxc/101/pending"),
    ]
    assert proxmox.requests[1][2] == {"current": "1"}


def test_only_what_differs_is_sent_with_the_digest(run_module: Run, proxmox: t.Any) -> None:
    drifted = {"memory": 1024, "net0": KEPT["net0"] + ",firewall=1"}
    proxmox.guest(101, **KEPT | drifted)
    result = run_module(pve_container, API | DECLARED)
    assert proxmox.writes == [
        (
            "PUT",
            "nodes/node1/lxc/101/config",
            {
                "memory": "65536",
                # The option that nobody declared is gone; the address that Proxmox chose stays.
                "net0": "bridge=vmbr0,gw=192.0.2.1,hwaddr=BC:24:11:00:00:01,ip=192.0.2.21/24,name=eth0,type=veth",
                "digest": "d1",
            },
        )
    ]
    assert result["diff"]["before"] == drifted
    assert result["container"]["config"]["memory"] == "65536"


def test_nothing_is_touched_that_was_not_given(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **KEPT)
    assert not run_module(pve_container, API)["changed"]
    assert proxmox.writes == []


def test_empty_options_unset(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, **KEPT)
    empty = {"cores": 0, "tags": [], "description": "", "features": {}, "hostname": "", "startup": ""}
    run_module(pve_container, API | empty)
    # startup was not set, so it is not deleted: Proxmox would only warn, and it would count as a change in each run.
    assert proxmox.writes[0][2] == {"delete": "cores,description,features,hostname,tags", "digest": "d1"}
    assert not run_module(pve_container, API | empty)["changed"]


def test_devices_keep_their_number_and_others_are_left(run_module: Run, proxmox: t.Any) -> None:
    proxmox.answers["access/ticket"] = [TICKET] * 2
    proxmox.guest(101, dev0="/dev/net/tun", dev1="mode=0660,path=/dev/nvidia1,gid=44", dev3="/dev/nvidia0,gid=4")
    declared = {"devices": [GPU, GPU | {"path": "/dev/nvidia1"}, {"path": "/dev/nvidiactl", "deny_write": True}]}
    result = run_module(pve_container, ROOT | declared)
    assert proxmox.writes[-1][2] == {
        "dev3": "/dev/nvidia0,gid=44,mode=0660",
        "dev2": "/dev/nvidiactl,deny-write=1",
        "digest": "d1",
    }
    none = {"gid": None, "uid": None, "mode": None}
    assert result["container"]["devices"] == [
        {"key": "dev0", "path": "/dev/net/tun", "deny_write": False, **none},
        {"key": "dev1", "path": "/dev/nvidia1", "gid": 44, "uid": None, "mode": "0660", "deny_write": False},
        {"key": "dev2", "path": "/dev/nvidiactl", "deny_write": True, **none},
        {"key": "dev3", "path": "/dev/nvidia0", "gid": 44, "uid": None, "mode": "0660", "deny_write": False},
    ]
    assert not run_module(pve_container, ROOT | declared)["changed"]


def test_a_pending_value_is_not_sent_again_and_asks_for_the_restart(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, "running", pending=[{"key": "features", "pending": "nesting=1"}, {"key": "cores", "delete": 1}])
    result = run_module(pve_container, API | {"features": {"nesting": True}, "cores": 0})
    assert not result["changed"]
    assert result["pending"] == ["cores", "features"] and result["restart_required"]
    proxmox.guests[101]["status"] = "stopped"
    assert not run_module(pve_container, API | {"features": {"nesting": True}})["restart_required"]


def test_root_only_keys_fail_before_the_first_write(run_module: Run, proxmox: t.Any) -> None:
    args = API | DECLARED | {"devices": [GPU], "features": {"nesting": True, "keyctl": True}}
    result = run_module(pve_container, args)
    assert result["rc"] == 1 and proxmox.writes == []
    assert "Cannot configure container '101' on node1: 'deploy@pve!slipway' may not set dev0, features" in result["msg"]
    assert "ssh_paramiko" in result["msg"] and "defer_root_only" in result["msg"]
    assert result["findings"][0]["id"] == "PVE_ROOT_ONLY_KEYS"


def test_root_only_keys_are_deferred(run_module: Run, proxmox: t.Any) -> None:
    args = API | DECLARED | {"devices": [GPU], "defer_root_only": True}
    result = run_module(pve_container, args)
    assert result["changed"] and result["deferred"] == ["dev0"]
    assert proxmox.writes == [("POST", "nodes/node1/lxc", CREATED)]
    again = run_module(pve_container, args)
    assert not again["changed"] and again["deferred"] == ["dev0"]
    proxmox.guests[101]["config"]["dev0"] = "/dev/nvidia0,gid=44,mode=0660"
    assert run_module(pve_container, args)["deferred"] == []


@pytest.mark.parametrize(
    ("status", "state", "calls"),
    [
        ("stopped", "started", ["status/start"]),
        ("running", "started", []),
        ("running", "stopped", ["status/shutdown"]),
        ("stopped", "stopped", []),
        ("running", "restarted", ["status/reboot"]),
        ("stopped", "restarted", ["status/start"]),
        ("running", "present", []),
        ("stopped", "absent", [""]),
        ("running", "absent", ["status/stop", ""]),
    ],
)
def test_states(run_module: Run, proxmox: t.Any, status: str, state: str, calls: list[str]) -> None:
    proxmox.guest(101, status)
    foretold = run_module(pve_container, API | {"state": state}, check=True)
    assert proxmox.writes == []
    result = run_module(pve_container, API | {"state": state})
    assert [path.removeprefix("nodes/node1/lxc/101").strip("/") for _, path, _ in proxmox.writes] == calls
    assert result["changed"] == foretold["changed"] == bool(calls)
    assert result["diff"] == foretold["diff"]
    expected = {"absent": "absent", "present": status, "stopped": "stopped"}.get(state, "running")
    assert result["container"]["status"] == expected


def test_absent_already(run_module: Run, proxmox: t.Any) -> None:
    assert not run_module(pve_container, API | {"state": "absent"})["changed"]


def test_check_mode_of_a_guest_that_does_not_exist(run_module: Run, proxmox: t.Any) -> None:
    result = run_module(pve_container, API | DECLARED | {"state": "started"}, check=True)
    assert proxmox.writes == [] and result["changed"]
    assert result["container"]["status"] == "absent" and result["container"]["hostname"] == "infer1"
    assert result["diff"]["after"]["status"] == "running" and result["diff"]["after"]["cores"] == 16


def test_check_mode_foretells_the_restart(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, "running", features="nesting=1")
    result = run_module(pve_container, API | {"features": {}, "cores": 4}, check=True)
    assert proxmox.writes == [] and result["changed"]
    assert result["pending"] == ["features"] and result["restart_required"]
    assert result["container"]["config"]["features"] == "nesting=1"


def test_disks_are_never_sent_again(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, rootfs="other:subvol-101-disk-0,size=8G", mp4=KEPT["mp0"])
    args = API | {"rootfs": DECLARED["rootfs"], "mounts": DECLARED["mounts"]}
    result = run_module(pve_container, args)
    assert not result["changed"] and proxmox.writes == []
    # How ansible-core wraps a warning differs from version to version.
    told = json.dumps(result["warnings"])
    assert "rootfs is on 'other', not on 'local-zfs' as declared; it was left there" in told
    assert "rootfs has 8G, not 64G as declared; it was left so" in told and "mp4" not in told


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        ({"unprivileged": False}, "it is unprivileged, declared is privileged, and Proxmox fixes this at creation"),
        ({"devices": [GPU | {"mode": "432"}]}, "mode '432' of '/dev/nvidia0' in 'devices' is not four octal digits"),
        ({"devices": [{"path": "/dev/../etc/passwd"}]}, "is not a device path that Proxmox accepts"),
        ({"devices": [GPU, GPU]}, "'devices' has two entries with the path '/dev/nvidia0'"),
        ({"net": [{"id": 0, "name": "a"}, {"id": 0, "name": "b"}]}, "'net' has two entries with id 0"),
    ],
)
def test_options_that_can_not_be(run_module: Run, proxmox: t.Any, options: dict[str, t.Any], cause: str) -> None:
    proxmox.guest(101)
    result = run_module(pve_container, API | options)
    assert result["rc"] == 1 and cause in result["msg"] and proxmox.writes == []


def test_a_vmid_that_is_taken_is_refused(run_module: Run, proxmox: t.Any) -> None:
    proxmox.elsewhere = [{"vmid": 101, "type": "qemu", "name": "web", "node": "node2"}]
    for state in ("present", "absent"):
        result = run_module(pve_container, API | DECLARED | {"state": state})
        assert result["rc"] == 1 and proxmox.writes == []
        assert result["msg"] == (
            "Cannot manage container '101' on node1: this vmid is taken by the virtual machine 'web' on node 'node2'. "
            "Declare another vmid, or the node on which the container is."
        )


def test_without_a_template_nothing_can_be_made(run_module: Run, proxmox: t.Any) -> None:
    result = run_module(pve_container, API | {"state": "started"}, check=True)
    assert result["rc"] == 1 and "without 'ostemplate' or 'clone' it cannot be made" in result["msg"]


def test_a_protected_guest_is_not_even_stopped(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, "running", protection=1)
    result = run_module(pve_container, API | {"state": "absent"})
    assert result["rc"] == 1 and "it is protected" in result["msg"] and proxmox.writes == []


def test_a_lock_is_waited_for(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101)
    rows = [{"vmid": 101, "status": "stopped"}]
    proxmox.answers["nodes/node1/lxc"] = [[rows[0] | {"lock": "backup"}]] * 3 + [rows]
    result = run_module(pve_container, API | {"cores": 4})
    assert result["changed"] and len(proxmox.writes) == 1


def test_a_lock_that_stays_is_named(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101)
    proxmox.answers["nodes/node1/lxc"] = [[{"vmid": 101, "status": "stopped", "lock": "snapshot"}]]
    result = run_module(pve_container, API | {"cores": 4, "timeout_seconds": 0})
    assert result["rc"] == 1 and proxmox.writes == []
    assert "it is locked (snapshot)" in result["msg"] and "pct unlock 101" in result["msg"]
    assert result["findings"][0]["id"] == "PVE_GUEST_LOCKED"


def test_a_task_that_fails_brings_the_end_of_its_log(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101)
    task = "nodes/node1/tasks/UPID:node1:0000ABCD:00001234:6731F2A0:vzstart:101:deploy@pve!slipway:"
    # As often as it is tried.
    proxmox.answers[f"{task}/status"] = [{"status": "stopped", "exitstatus": "startup for container '101' failed"}] * 2
    proxmox.answers[f"{task}/log"] = [[{"n": 1, "t": "Device /dev/nvidia-uvm does not exist"}, {"n": 2, "t": ""}]] * 3
    result = run_module(pve_container, API | {"state": "started"})
    assert result["rc"] == 1
    assert result["msg"].startswith("Cannot start container '101' on node1: the task UPID:node1:0000ABCD:")
    assert "failed: startup for container '101' failed. The end of its log:\n  Device /dev/nvidia-uvm" in result["msg"]
    assert ("GET", f"{task}/log", {"limit": "0"}) in proxmox.requests


def test_warnings_of_a_task_are_a_finding(run_module: Run, proxmox: t.Any) -> None:
    task = "nodes/node1/tasks/UPID:node1:0000ABCD:00001234:6731F2A0:vzcreate:101:deploy@pve!slipway:"
    proxmox.answers[f"{task}/status"] = [{"status": "stopped", "exitstatus": "WARNINGS: 1"}]
    proxmox.answers[f"{task}/log"] = [[{"n": 1, "t": "done"}, {"n": 2, "t": "WARN: old systemd"}]]
    result = run_module(pve_container, API | DECLARED)
    assert result["changed"]
    assert [(f["id"], f["detail"]) for f in result["findings"]] == [("PVE_TASK_WARNINGS", "WARN: old systemd")]


@pytest.mark.parametrize(
    ("answer", "cause", "remedy"),
    [
        ((401, "No ticket", {}), "Proxmox answered 401 No ticket", "Check user, token and secret"),
        ((403, "Permission check failed (/vms/101, VM.Audit)", {}), "VM.Audit", "Give 'deploy@pve!slipway'"),
        (
            (400, "Parameter verification failed.", {"errors": {"node": "no such node"}}),
            "; node: no such node",
            "Correct",
        ),
        (requests.exceptions.SSLError("self-signed"), "its TLS certificate is not trusted", "Set ca_path"),
        (requests.exceptions.ReadTimeout("slow"), "no answer came within 30 seconds", "api_timeout_seconds"),
        (requests.exceptions.ConnectionError("refused"), "it cannot be reached", "pveproxy"),
    ],
)
def test_what_the_way_to_proxmox_says(run_module: Run, proxmox: t.Any, answer: t.Any, cause: str, remedy: str) -> None:
    proxmox.answers["nodes/node1/lxc"] = [answer] * 99  # more often than it is tried again
    result = run_module(pve_container, API)
    assert result["rc"] == 1 and result["msg"].startswith("Cannot read container '101' on node1: ")
    assert cause in result["msg"] and remedy in result["msg"].split(cause)[1]


def test_credentials_go_where_they_should_and_nowhere_else(
    run_module: Run, proxmox: t.Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PROXMOX_TOKEN_SECRET", "s3cret-uuid")
    args = {k: v for k, v in API.items() if k != "api_token_secret"} | DECLARED | {"ca_path": str(tmp_path / "ca.pem")}
    assert "ca.pem' of ca_path does not exist" in run_module(pve_container, args)["msg"]
    (tmp_path / "ca.pem").touch()
    result = run_module(pve_container, args | {"api_token_id": "deploy@pve!slipway"})
    assert result["rc"] == 0 and "s3cret-uuid" not in json.dumps(result)
    assert proxmox.headers[0]["Authorization"] == "PVEAPIToken=deploy@pve!slipway=s3cret-uuid"
    assert proxmox.sent[0]["verify"] == str(tmp_path / "ca.pem") and proxmox.sent[0]["timeout"] == 30
    run_module(pve_container, args)
    assert proxmox.headers[-1]["Authorization"] == "PVEAPIToken=deploy@pve!slipway=s3cret-uuid"


def test_without_credentials_it_says_what_is_missing(run_module: Run, proxmox: t.Any) -> None:
    result = run_module(pve_container, {k: v for k, v in API.items() if "token" not in k})
    assert result["msg"] == (
        "Cannot connect to the Proxmox API on pve1.example.com: it needs 'api_user' and either 'api_token_id' with "
        "'api_token_secret' or 'api_password'. Give them, or set api_backend to ssh_paramiko to work as root over SSH."
    )
    proxmox.answers["access/ticket"] = [(401, "authentication failure", {})]
    assert "Proxmox refused the password of 'root@pam'" in run_module(pve_container, ROOT)["msg"]
