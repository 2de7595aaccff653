# SPDX-License-Identifier: GPL-3.0-or-later
"""pve_preflight, driven through main() against a node behind the wire: what it reads, and what it tells."""

from __future__ import annotations

import typing as t

import pytest
import requests
from ansible.modules import pve_preflight

API = {
    "api_host": "pve1.example.com",
    "api_user": "deploy@pve",
    "api_token_id": "slipway",
    "api_token_secret": "s3cret-uuid",
    "node": "node1",
    "vmid": 101,
}
DECLARED = {
    "hostname": "infer1",
    "ostemplate": "local:vztmpl/debian-13.tar.zst",
    "storage": "local-zfs",
    "rootfs": {"storage": "local-zfs", "size_gib": 64},
    "cores": 16,
    "memory_mib": 65536,
    "swap_mib": 0,
    "net": [{"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "192.0.2.21/24", "gw": "192.0.2.1"}],
    "features": {"nesting": True},
    "unprivileged": True,
    "onboot": True,
    "tags": ["gpu"],
    "devices": [{"path": "/dev/nvidia0", "gid": 44, "mode": "0660"}],
    "root_over_ssh": True,
}
KEPT = {
    "hostname": "infer1",
    "rootfs": "local-zfs:subvol-101-disk-0,size=64G",
    "cores": 16,
    "memory": 65536,
    "swap": 0,
    "net0": "name=eth0,bridge=vmbr0,gw=192.0.2.1,hwaddr=BC:24:11:00:00:01,ip=192.0.2.21/24,type=veth",
    "features": "nesting=1",
    "onboot": 1,
    "tags": "gpu",
    "dev0": "/dev/nvidia0,gid=44,mode=0660",
}
TOKEN = "deploy@pve!slipway"
Run = t.Callable[..., dict[str, t.Any]]


def told(result: dict[str, t.Any]) -> list[tuple[str, str]]:
    assert result["rc"] == 0, result
    return [(found["id"], found["severity"]) for found in result["findings"]]


def test_a_new_guest_that_can_be_costs_eight_calls(run_module: Run, proxmox: t.Any) -> None:
    result = run_module(pve_preflight, API | DECLARED, check=True)
    assert told(result) == []
    assert not result["changed"] and result["identity"] == TOKEN
    assert result["container"] == {
        **{"exists": False, "status": "absent", "node": "node1", "hostname": None, "lock": None},
    }
    assert [(method, path, sent) for method, path, sent in proxmox.requests] == [
        ("GET", "nodes", {}),
        ("GET", "access/permissions", {}),
        ("GET", "nodes/node1/lxc", {}),
        ("GET", "cluster/nextid", {"vmid": "101"}),
        ("GET", "nodes/node1/storage", {}),
        ("GET", "nodes/node1/storage/local/content", {"content": "vztmpl"}),
        ("GET", "nodes/node1/network", {"type": "any_bridge"}),
        ("GET", "nodes/node1/status", {}),
    ]


def test_a_guest_that_exists_costs_seven(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101, "running", **KEPT)
    # It is right and runs, so it is enough to see it: neither template nor storage matter any more.
    proxmox.permissions = {"/": {"VM.Audit": 1, "Sys.Audit": 1, "SDN.Audit": 1}}
    proxmox.storages = proxmox.templates = []
    result = run_module(pve_preflight, API | DECLARED)
    assert told(result) == []
    assert result["container"] == {
        **{"exists": True, "status": "running", "node": "node1", "hostname": "infer1", "lock": None},
    }
    assert [path for _, path, _ in proxmox.requests] == [
        "nodes",
        "access/permissions",
        "nodes/node1/lxc",
        "nodes/node1/lxc/101/config",
        "nodes/node1/lxc/101/pending",
        "nodes/node1/network",
        "nodes/node1/status",
    ]


def test_all_that_is_wrong_comes_at_once(run_module: Run, proxmox: t.Any) -> None:
    proxmox.bridges = ["vmbr1"]
    proxmox.permissions["/vms"] = {"VM.Audit": 1, "VM.Allocate": 1, "VM.PowerMgmt": 1, "VM.Config.Options": 1}
    proxmox.machine["memory"]["total"] = 2**30
    wrong = {"ostemplate": "local:vztmpl/debian-12.tar.zst", "rootfs": {"storage": "tank", "size_gib": 8}, "cores": -4}
    result = run_module(pve_preflight, API | DECLARED | wrong | {"root_over_ssh": False})
    assert told(result) == [
        ("PVE_VALUE_REFUSED", "fail"),
        ("PVE_ROOT_ONLY_KEYS", "fail"),
        ("PVE_PRIVILEGE_MISSING", "fail"),
        ("PVE_STORAGE_UNKNOWN", "fail"),
        ("PVE_TEMPLATE_MISSING", "fail"),
        ("PVE_MEMORY_EXCEEDED", "fail"),
        ("PVE_BRIDGE_UNKNOWN", "fail"),
    ]
    assert [found["detail"] for found in result["findings"] if found["id"] == "PVE_PRIVILEGE_MISSING"] == [
        "On /vms/101: VM.Config.Network (for hostname, net0), VM.Config.Memory (for memory, swap), VM.Config.Disk (for "
        "rootfs). To give it, on the node: pveum acl modify /vms/101 --users deploy@pve --tokens 'deploy@pve!slipway' "
        "--roles PVEVMAdmin"
    ]


def test_root_needs_no_privileges_and_is_not_asked_for_them(run_module: Run, proxmox: t.Any) -> None:
    proxmox.answers["access/ticket"] = [{"ticket": "PVE:root@pam:1", "CSRFPreventionToken": "csrf"}]
    proxmox.permissions = {}
    args = {k: v for k, v in (API | DECLARED).items() if "token" not in k} | {"api_user": "root@pam"}
    result = run_module(pve_preflight, args | {"api_password": "pw", "root_over_ssh": False})
    assert told(result) == [] and result["identity"] == "root@pam"
    assert "access/permissions" not in [path for _, path, _ in proxmox.requests]


def test_a_vmid_that_something_else_has(run_module: Run, proxmox: t.Any) -> None:
    proxmox.elsewhere = [{"vmid": 101, "type": "lxc", "name": "old", "node": "node2"}]
    result = run_module(pve_preflight, API | DECLARED)
    assert told(result) == [("PVE_VMID_TAKEN", "fail")]
    assert result["findings"][0]["detail"] == "It belongs to the container 'old' on node 'node2'."
    assert result["container"]["exists"] is False


def test_a_guest_that_the_identity_may_not_see(run_module: Run, proxmox: t.Any) -> None:
    """Proxmox hides it from the list and says that the vmid is not free: it may be the very guest."""
    proxmox.elsewhere = [{"vmid": 101}]
    proxmox.permissions["/vms"] = {"VM.PowerMgmt": 1}
    result = run_module(pve_preflight, API | DECLARED)
    assert told(result) == [("PVE_PRIVILEGE_MISSING", "fail")]
    assert result["findings"][0]["detail"].startswith("On /vms/101: VM.Audit (for reading it). ")
    assert result["container"] == {
        **{"exists": None, "status": None, "node": "node1", "hostname": None, "lock": None},
    }


@pytest.mark.parametrize(
    ("node", "finding", "text"),
    [
        ("node3", ("PVE_NODE_UNKNOWN", "fail"), "Its nodes are node1, node2."),
        ("node2", ("PVE_NODE_OFFLINE", "fail"), "Its status is 'offline'."),
    ],
)
def test_a_node_that_is_not_there_is_not_asked(
    run_module: Run, proxmox: t.Any, node: str, finding: tuple[str, str], text: str
) -> None:
    others = [{"name": "infer9", "node": "node1", "vmid": 101}, {"name": "far", "node": "pve9", "vmid": 101}]
    result = run_module(pve_preflight, API | DECLARED | {"node": node, "others": others})
    assert told(result) == [finding, ("PVE_VMID_TWICE", "fail")]
    assert result["findings"][0]["detail"] == text
    assert [path for _, path, _ in proxmox.requests] == ["nodes"]
    assert result["container"]["exists"] is None


def test_what_could_not_be_read_is_unknown(run_module: Run, proxmox: t.Any) -> None:
    refused = (501, "Method 'GET /x' not implemented", {})
    for path in ("access/permissions", "nodes/node1/storage", "nodes/node1/network", "nodes/node1/status"):
        proxmox.answers[path] = [refused]
    result = run_module(pve_preflight, API | DECLARED)
    assert told(result) == [("CHECK_NOT_MADE", "unknown")] * 4
    assert [found["subject"] for found in result["findings"]] == [
        "privileges of 'deploy@pve!slipway'",
        "storages of node 'node1'",
        "memory and CPUs of node 'node1'",
        "bridges of node 'node1'",
    ]
    assert "501" in result["findings"][0]["detail"]


@pytest.mark.parametrize(
    ("path", "answer", "cause", "remedy"),
    [
        ("nodes", (401, "invalid token value!", {}), "401 invalid token value", "Check user, token and secret of"),
        ("nodes", requests.exceptions.SSLError("self-signed"), "its TLS certificate is not trusted", "Set ca_path"),
        (
            "nodes",
            requests.exceptions.ConnectionError("refused"),
            "it cannot be reached on port 8006 (refused)",
            "pveproxy",
        ),
        ("nodes/node1/status", (595, "No route to host", {}), "595 No route to host", "Check that the node is up"),
        ("nodes/node1/lxc", requests.exceptions.ReadTimeout("slow"), "no answer came within 30 seconds", "longer"),
    ],
)
def test_where_the_api_cannot_be_asked_it_fails(
    run_module: Run, proxmox: t.Any, path: str, answer: t.Any, cause: str, remedy: str
) -> None:
    proxmox.answers[path] = [answer] * 99  # more often than it is tried again
    result = run_module(pve_preflight, API | DECLARED)
    assert result["rc"] == 1
    assert result["msg"].startswith("Cannot look ahead for container '101' on pve1.example.com: ")
    assert cause in result["msg"] and remedy in result["msg"].split(cause)[1]
