# SPDX-License-Identifier: GPL-3.0-or-later
"""What people reported of other tools for the same work, a test each: the way to the API, its tasks, and raw lines.

A name has the report's number in the list that the work began from, where it is in it, and then project and issue.
"""

from __future__ import annotations

import importlib.util
import os
import re
import typing as t
from pathlib import Path

import pytest
import requests
from ansible.module_utils.slipway.pve import api, conf, tasks
from ansible.module_utils.slipway.pve.client import DONE, ApiError, Client
from ansible.module_utils.slipway.pve.connect import connect
from ansible.modules import pve_container, pve_container_raw
from raw_node import CONF, MEMLOCK, MOUNT, SHM, USERS, Node, node_in

Run = t.Callable[..., dict[str, t.Any]]

API: dict[str, t.Any] = {
    "api_host": "pve1.example.com",
    "api_user": "root@pam",
    "api_token_id": "slipway",
    "api_token_secret": "s3cret-uuid",
    "node": "node1",
    "vmid": 101,
}
NEW = API | {"ostemplate": "local:vztmpl/debian-13.tar.zst", "rootfs": {"storage": "local-zfs", "size_gib": 8}}
GPU = {"path": "/dev/nvidia0", "gid": 44, "mode": "0660"}
LOCK = "can't lock file '/run/lock/lxc/pve-config-101.lock' - got timeout"


def upid(kind: str) -> str:
    return f"UPID:node1:0000ABCD:00001234:6731F2A0:{kind}:101:deploy@pve!slipway:"


def ended(proxmox: t.Any, kind: str, exit_status: str, *log: str) -> str:
    """Let the task of this kind end like this, and return its path."""
    path = f"nodes/node1/tasks/{upid(kind)}"
    proxmox.answers[f"{path}/status"] = [{"status": "stopped", "exitstatus": exit_status}]
    proxmox.answers[f"{path}/log"] = [[{"n": number, "t": line} for number, line in enumerate(log, 1)]]
    return path


@pytest.fixture
def pve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return node_in(tmp_path, monkeypatch)


@pytest.fixture
def client(proxmox: t.Any) -> Client:
    """A connection as the modules make it, with which nothing was asked yet."""
    return connect({**API, "api_backend": "https", "api_port": 8006, "validate_certs": True, "api_timeout_seconds": 30})


# --- raw lines ---


def test_01_tteck_proxmox_2230_lines_after_a_snapshot_have_no_effect(run_module: Run, pve: Node) -> None:
    run_module(pve_container_raw, {"vmid": 101, "lines": [MOUNT]})
    read = conf.parse(pve.place.config.read_text())
    assert MOUNT in [str(line) for line in read.main.raw]
    assert [str(line) for line in read.snapshots["before"].raw] == [MEMLOCK]


def test_02_bpg_2973_a_snapshot_keeps_the_key_that_the_main_part_loses(run_module: Run, pve: Node) -> None:
    section = CONF[CONF.index("[before]") :]
    run_module(pve_container_raw, {"vmid": 101, "lines": [MEMLOCK]})
    run_module(pve_container_raw, {"vmid": 101, "lines": []})
    run_module(pve_container_raw, {"vmid": 101, "lines": [], "exclusive_keys": ["lxc.prlimit.memlock", "lxc.cap.drop"]})
    text = pve.place.config.read_text()
    assert text.endswith(section) and MEMLOCK in section
    assert "lxc." not in text[: -len(section)]


def test_03_dryvist_what_proxmox_has_put_in_order_is_not_written_again(run_module: Run, pve: Node) -> None:
    declared = {"vmid": 101, "lines": [SHM, MEMLOCK, MOUNT]}
    run_module(pve_container_raw, declared)
    # As it does at any change through the API: notes to the top, raw lines to the end of their part.
    pve.place.config.write_text(conf.render(conf.parse(pve.place.config.read_text())))
    ordered = pve.place.config.read_text()
    result = run_module(pve_container_raw, declared)
    assert not result["changed"] and pve.place.config.read_text() == ordered
    assert ordered.index("memory: 4096") < ordered.index(SHM) < ordered.index(MOUNT) < ordered.index("[before]")


def test_04_ansible_70535_a_file_below_etc_pve_is_written_without_chmod(
    run_module: Run, pve: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PermissionError), open(pve.place.config) as file:
        os.fchmod(file.fileno(), 0o640)
    for name in ("chmod", "chown", "fchown"):
        monkeypatch.setattr(os, name, lambda *_args, **_options: pytest.fail("pmxcfs refuses that"))
    assert run_module(pve_container_raw, {"vmid": 101, "lines": [MOUNT]})["lines"] == [USERS, MOUNT]
    assert os.listdir(pve.place.config.parent) == ["101.conf"]


# --- who may ---


@pytest.mark.parametrize("exists", [False, True])
def test_05_telmate_764_1423_the_token_of_root_is_told_before_the_first_write(
    run_module: Run, proxmox: t.Any, exists: bool
) -> None:
    if exists:
        proxmox.guest(101)
    result = run_module(pve_container, NEW | {"devices": [GPU], "features": {"keyctl": True}, "cores": 4})
    assert result["rc"] == 1 and proxmox.writes == []
    assert "'root@pam!slipway' may not set dev0, features" in result["msg"]
    assert "api_backend ssh_paramiko" in result["msg"] and "a token never may, not even root's" in result["msg"]
    assert [found["id"] for found in result["findings"]] == ["PVE_ROOT_ONLY_KEYS"]


def test_05_telmate_155_keys_that_are_right_already_are_not_sent(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, features="keyctl=1,nesting=1", dev0="/dev/nvidia0,gid=44,mode=0660", cores=2)
    declared = {"devices": [GPU], "features": {"nesting": True, "keyctl": True}, "cores": 4}
    assert run_module(pve_container, API | declared)["changed"]
    assert proxmox.writes == [("PUT", "nodes/node1/lxc/101/config", {"cores": "4", "digest": "d1"})]


def test_community_proxmox_29_a_refusal_names_the_option_and_not_the_word_errors(
    run_module: Run, proxmox: t.Any
) -> None:
    def told(status: int, reason: str, body: t.Any) -> str:
        proxmox.answers["POST nodes/node1/lxc"] = [(status, reason, body)] * 9
        result = run_module(pve_container, NEW)
        assert result["rc"] == 1
        return result["msg"]

    errors = {"data": None, "errors": {"rootfs": "unable to parse volume ID 'x'", "hostname": "not a name"}}
    assert told(400, "Parameter verification failed.", errors) == (
        "Cannot create container '101' on node1: Proxmox answered 400 Parameter verification failed; "
        "hostname: not a name; rootfs: unable to parse volume ID 'x'. Correct the option that it names."
    )
    assert told(403, "Permission check failed (/storage/local-zfs, Datastore.AllocateSpace)", {"data": None}) == (
        "Cannot create container '101' on node1: Proxmox answered 403 Permission check failed (/storage/local-zfs, "
        "Datastore.AllocateSpace). Give 'root@pam!slipway' the privilege that it names, or use an identity that has it."
    )
    # An answer that says nothing of its own, as a proxy before it gives one.
    assert "answered 401 No ticket. Check user, token and secret of 'root@pam!slipway'." in told(401, "No ticket", {})


# --- tasks ---


def test_25_community_proxmox_96_a_task_that_ends_with_warnings_is_done(run_module: Run, proxmox: t.Any) -> None:
    path = ended(proxmox, "vzcreate", "WARNINGS: 2", "extracting", "WARN: old systemd", "WARN: no ssh keys")
    result = run_module(pve_container, NEW)
    assert result["rc"] == 0 and result["changed"]
    assert [found["detail"] for found in result["findings"]] == ["WARN: old systemd\nWARN: no ssh keys"]
    # It was asked once, and not until a time was up.
    assert [path_of for _, path_of, _ in proxmox.requests].count(f"{path}/status") == 1


def test_25_community_proxmox_67_a_failure_brings_its_reason_and_not_one_useless_line(
    run_module: Run, proxmox: t.Any
) -> None:
    lines = [f"extracting file {number}" for number in range(80)]
    why = "TASK ERROR: unable to create CT 101 - zfs error: out of space"
    path = ended(proxmox, "vzcreate", "unable to create CT 101 - zfs error: out of space", *lines, why, "")
    told = run_module(pve_container, NEW)["msg"]
    assert told.startswith(
        f"Cannot create container '101' on node1: the task {upid('vzcreate')} failed: unable to create"
    )
    assert f"  extracting file 79\n  {why}" in told and "file 60" not in told
    # Without a limit of 0 the server gives the first 50 lines.
    assert ("GET", f"{path}/log", {"limit": "0"}) in proxmox.requests
    assert [path_of for _, path_of, _ in proxmox.requests].count(f"{path}/status") == 1


def test_26_telmate_1126_a_lock_that_another_task_holds_is_waited_for(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101)
    proxmox.answers["POST nodes/node1/lxc/101/status/start"] = [(500, LOCK, {"data": None})] * 3
    assert run_module(pve_container, API | {"state": "started"})["rc"] == 0
    assert [path for _, path, _ in proxmox.writes] == ["nodes/node1/lxc/101/status/start"] * 4


def test_26_telmate_1126_a_task_that_met_the_lock_is_started_again(proxmox: t.Any, client: Client) -> None:
    proxmox.guest(101)
    ended(proxmox, "vzstart", LOCK)
    assert tasks.run(client, lambda: api.start(client, "node1", 101), 300).exit_status == "OK"
    assert len(proxmox.writes) == 2


def test_26_telmate_1126_one_that_never_comes_free_is_told(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101)
    proxmox.answers["POST nodes/node1/lxc/101/status/start"] = [(500, LOCK, {"data": None})] * 99
    told = run_module(pve_container, API | {"state": "started"})["msg"]
    assert LOCK in told and told.endswith("Wait for the task that holds the lock, then run again.")


def test_27_bpg_1107_1160_a_creation_that_takes_longer_is_left_to_run(run_module: Run, proxmox: t.Any) -> None:
    proxmox.answers[f"nodes/node1/tasks/{upid('vzcreate')}/status"] = [{"status": "running"}] * 999
    result = run_module(pve_container, NEW | {"timeout_seconds": 40, "api_timeout_seconds": 7})
    assert result["msg"] == (
        f"Cannot create container '101' on node1: the task {upid('vzcreate')} has not ended within 40 seconds; it still "
        "runs. Follow it in the node's task list and run again when it has ended, or give more timeout_seconds."
    )
    assert [method for method, _, _ in proxmox.writes] == ["POST"]
    # The one setting says nothing of the other.
    assert {options["timeout"] for options in proxmox.sent} == {7}


def test_community_proxmox_45_a_slow_answer_is_no_failed_creation(
    run_module: Run, proxmox: t.Any, client: Client
) -> None:
    assert run_module(pve_container, NEW)["rc"] == 0
    assert {options["timeout"] for options in proxmox.sent} == {30}
    del proxmox.guests[101]
    proxmox.requests.clear()

    def create(still_runs: bool) -> t.Any:
        """The work is done, or has begun, and the answer comes too late."""
        proxmox.guests.clear()
        proxmox.answers["POST nodes/node1/lxc"] = [requests.exceptions.ReadTimeout("slow")]
        proxmox.answers["nodes/node1/tasks"] = [[{"upid": upid("vzcreate")}] if still_runs else []]
        proxmox.guest(101)
        look = tasks.look_up(client, "node1", 101, "vzcreate", lambda: bool(api.containers(client, "node1")))
        return api.create(client, "node1", {"vmid": 101}, look)

    assert create(still_runs=True) == upid("vzcreate")
    assert create(still_runs=False) is DONE
    assert [method for method, _, _ in proxmox.writes] == ["POST", "POST"]
    # And where nothing can tell, nothing is sent twice.
    proxmox.answers["POST nodes/node1/lxc"] = [requests.exceptions.ReadTimeout("slow")]
    with pytest.raises(ApiError, match="the node may still be at work"):
        api.create(client, "node1", {"vmid": 101})
    assert len(proxmox.writes) == 3


# --- what it needs ---


def test_community_proxmox_151_paramiko_is_imported_by_its_own_name_and_named_where_it_is_missing(
    run_module: Run, proxmox: t.Any, monkeypatch: pytest.MonkeyPatch, root: Path
) -> None:
    through_ansible = re.compile(r"ansible\S*\s+import\s+.*paramiko|ansible\S*paramiko")
    for file in [*root.glob("library/*.py"), *root.glob("module_utils/**/*.py")]:
        assert not through_ansible.search(file.read_text()), file
    find_spec = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "paramiko" else find_spec(name))
    told = run_module(pve_container, API | {"api_backend": "ssh_paramiko"})["msg"]
    assert told.startswith(
        "Cannot connect to the Proxmox API on pve1.example.com: the Python package 'paramiko' is missing"
    )
    assert "ansible_playbook_python" in told
    # The other way does not need it.
    assert run_module(pve_container, NEW)["rc"] == 0 and len(proxmox.writes) == 1
