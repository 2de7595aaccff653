# SPDX-License-Identifier: GPL-3.0-or-later
"""pve_container: guests made as clones, templates, and disks that grow."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.modules import pve_container

Run = t.Callable[..., dict[str, t.Any]]
API = {
    "api_host": "pve1.example.com",
    "api_user": "deploy@pve",
    "api_token_id": "slipway",
    "api_token_secret": "s3cret-uuid",
    "node": "node1",
    "vmid": 101,
}
SOURCE = {
    "hostname": "golden",
    "rootfs": "local-zfs:basevol-900-disk-0,size=16G",
    "net0": "name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:09:00,ip=192.0.2.90/24,type=veth",
    "dev0": "/dev/nvidia0,gid=44",
    "lxc": [["lxc.prlimit.memlock", "unlimited"]],
    "template": 1,
}
CLONE = {
    "clone": {"vmid": 900},
    "hostname": "infer1",
    "cores": 8,
    "net": [{"id": 0, "name": "eth0", "bridge": "vmbr0", "ip": "192.0.2.21/24"}],
}


def test_a_linked_clone(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(900, **SOURCE)
    foretold = run_module(pve_container, API | CLONE | {"state": "started"}, check=True)
    assert proxmox.writes == [] and foretold["changed"]
    assert foretold["container"]["config"]["cores"] == 8 and foretold["container"]["status"] == "absent"
    made = run_module(pve_container, API | CLONE | {"state": "started"})
    assert made["rc"] == 0, made
    assert proxmox.writes == [
        ("POST", "nodes/node1/lxc/900/clone", {"newid": "101", "hostname": "infer1", "full": "0"}),
        (
            "PUT",
            "nodes/node1/lxc/101/config",
            {
                "cores": "8",
                # The address is the declared one, the MAC address that which Proxmox chose for the clone.
                "net0": "bridge=vmbr0,hwaddr=BC:24:11:C1:0E:00,ip=192.0.2.21/24,name=eth0,type=veth",
                "digest": "d1",
            },
        ),
        ("POST", "nodes/node1/lxc/101/status/start", {}),
    ]
    assert made["diff"] == foretold["diff"]
    assert made["diff"]["before"] == {"status": "absent"} and made["diff"]["after"]["clone"]["vmid"] == 900
    assert made["diff"]["after"]["status"] == "running" and "template" not in made["diff"]["after"]
    # The copied device needs no root: nothing of it is changed.
    assert made["container"]["devices"][0]["path"] == "/dev/nvidia0"
    again = run_module(pve_container, API | CLONE | {"state": "started"})
    assert not again["changed"]


def test_a_clone_costs_no_more_than_twelve_calls(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(900, **SOURCE)
    run_module(pve_container, API | CLONE | {"state": "started"})
    assert len([path for _, path, _ in proxmox.requests if "/tasks/" not in path]) <= 12


def test_a_full_clone_of_a_snapshot_goes_to_a_storage(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(900, "running", **{key: value for key, value in SOURCE.items() if key != "template"})
    proxmox.snapshot(900, "golden", 1, cores=2)
    clone = {"clone": {"vmid": 900, "full": True, "snapname": "golden"}, "storage": "fast"}
    made = run_module(pve_container, API | CLONE | clone)
    assert made["rc"] == 0, made
    assert proxmox.writes[0][2] == {
        "newid": "101",
        "hostname": "infer1",
        "full": "1",
        "snapname": "golden",
        "storage": "fast",
    }
    asked = next(params for _, path, params in proxmox.requests if path.endswith("/feature"))
    assert asked == {"feature": "copy", "snapname": "golden"}


def test_a_clone_without_a_host_name_does_not_get_its_source_s(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(900, rootfs="local-zfs:basevol-900-disk-0,size=16G", hostname="golden", template=1)
    assert run_module(pve_container, API | {"clone": {"vmid": 900}})["container"]["hostname"] == "CT101"


@pytest.mark.parametrize(
    ("status", "source", "clone", "cause", "remedy"),
    [
        ("stopped", {"template": 0}, {"full": False}, "container '900' is no template", "clone.full to true"),
        (
            "running",
            {"template": 0},
            {},
            "container '900' runs, and a running container is cloned from",
            "pve_snapshot",
        ),
        ("stopped", {"mp0": "/srv/models,mp=/models"}, {}, "container '900' has mp0, a bind mount", "lxc.mount.entry"),
        ("stopped", {"mp0": "/dev/sdb1,mp=/models"}, {}, "container '900' has mp0, a device mount", "lxc.mount.entry"),
        (
            "stopped",
            {"unprivileged": 0},
            {},
            "container '900' is privileged, declared is unprivileged",
            "what the source",
        ),
        (
            "stopped",
            {"net1": "name=eth1,ip=192.0.2.9/24"},
            {},
            "has the address 192.0.2.9/24 on net1",
            "Declare an address",
        ),
    ],
)
def test_what_keeps_a_clone_from_being_made_is_found_first(
    run_module: Run,
    proxmox: t.Any,
    status: str,
    source: dict[str, t.Any],
    clone: dict[str, t.Any],
    cause: str,
    remedy: str,
) -> None:
    proxmox.guest(900, status, **{**SOURCE, **source})
    for check in (True, False):
        args = API | CLONE | {"clone": {"vmid": 900, **clone}, "unprivileged": True}
        result = run_module(pve_container, args, check=check)
        assert result["rc"] == 1 and proxmox.writes == []
        assert result["msg"].startswith("Cannot clone container '101' on node1: ")
        assert cause in result["msg"] and remedy in result["msg"].split(cause)[1]


def test_a_source_that_is_not_there(run_module: Run, proxmox: t.Any) -> None:
    assert "there is no container '900' on this node" in run_module(pve_container, API | CLONE)["msg"]


@pytest.mark.parametrize(
    ("full", "feature", "remedy"), [(False, "clone", "Set clone.full to true"), (True, "copy", "Stop the source")]
)
def test_disks_that_cannot_be_cloned(run_module: Run, proxmox: t.Any, full: bool, feature: str, remedy: str) -> None:
    proxmox.guest(900, **SOURCE)
    proxmox.unable.add((900, feature))
    result = run_module(pve_container, API | CLONE | {"clone": {"vmid": 900, "full": full}})
    assert result["rc"] == 1 and proxmox.writes == [] and remedy in result["msg"]
    assert [found["id"] for found in result["findings"]] == ["PVE_CLONE_UNSUPPORTED"]


def test_a_clone_may_not_change_what_only_root_may(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(900, **SOURCE)
    result = run_module(pve_container, API | CLONE | {"devices": [{"path": "/dev/nvidia0", "gid": 45}]})
    assert result["rc"] == 1 and proxmox.writes == [] and "may not set dev0" in result["msg"]


def test_keys_of_a_clone_are_its_source_s(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(900, **SOURCE)
    result = run_module(pve_container, API | CLONE | {"ssh_public_keys": ["ssh-ed25519 AAAA a@b"]})
    assert "a clone lets in whom its source lets in" in json.dumps(result["warnings"])


def test_a_template_is_made_once(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101)
    foretold = run_module(pve_container, API | {"state": "template", "cores": 2}, check=True)
    assert proxmox.writes == [] and foretold["changed"]
    made = run_module(pve_container, API | {"state": "template", "cores": 2})
    assert made["diff"] == foretold["diff"] == {"before": {"template": 0}, "after": {"cores": 2, "template": 1}}
    assert made["container"]["template"] and proxmox.writes[-1] == ("POST", "nodes/node1/lxc/101/template", {})
    proxmox.requests.clear()
    assert not run_module(pve_container, API | {"state": "template", "cores": 2})["changed"]
    assert len(proxmox.requests) == 3


def test_a_template_is_made_from_nothing(run_module: Run, proxmox: t.Any) -> None:
    made = run_module(pve_container, API | {"state": "template", "ostemplate": "local:vztmpl/debian-13.tar.zst"})
    assert made["container"]["template"] and [path for _, path, _ in proxmox.writes] == [
        "nodes/node1/lxc",
        "nodes/node1/lxc/101/template",
    ]


@pytest.mark.parametrize(
    ("status", "config", "state", "cause"),
    [
        ("running", {}, "template", "Cannot make a template of container '101' on node1: it runs. Stop it first"),
        ("stopped", {"template": 1}, "started", "Cannot start container '101' on node1: it is a template"),
        ("stopped", {"template": 1}, "restarted", "Cannot start container '101' on node1: it is a template"),
    ],
)
def test_states_that_cannot_be(
    run_module: Run, proxmox: t.Any, status: str, config: dict[str, t.Any], state: str, cause: str
) -> None:
    proxmox.guest(101, status, **config)
    result = run_module(pve_container, API | {"state": state, "cores": 4})
    assert result["rc"] == 1 and result["msg"].startswith(cause) and proxmox.writes == []


def test_a_guest_with_snapshots_becomes_no_template(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(101)
    proxmox.snapshot(101, "before", 1)
    result = run_module(pve_container, API | {"state": "template", "cores": 4})
    assert "it has snapshots (before), and a template can have none" in result["msg"] and proxmox.writes == []


def test_disks_grow_where_that_is_allowed(run_module: Run, proxmox: t.Any) -> None:
    proxmox.guest(
        101,
        "running",
        rootfs="local-zfs:subvol-101-disk-0,size=8G",
        mp0="local-zfs:subvol-101-disk-1,mp=/var/cache,size=102400M",
        mp1="local-zfs:subvol-101-disk-2,mp=/srv,size=512M",
    )
    disks = {
        "rootfs": {"storage": "local-zfs", "size_gib": 16},
        "mounts": [
            {"path": "/var/cache", "storage": "local-zfs", "size_gib": 50},
            {"path": "/srv", "storage": "local-zfs", "size_gib": 1},
        ],
    }
    left = run_module(pve_container, API | disks)
    assert not left["changed"] and "grow_disks would let it grow" in json.dumps(left["warnings"])
    foretold = run_module(pve_container, API | disks | {"grow_disks": True}, check=True)
    assert proxmox.writes == []
    grown = run_module(pve_container, API | disks | {"grow_disks": True})
    assert proxmox.writes == [
        ("PUT", "nodes/node1/lxc/101/resize", {"disk": "rootfs", "size": "16G", "digest": "d1"}),
        ("PUT", "nodes/node1/lxc/101/resize", {"disk": "mp1", "size": "1G", "digest": "d1"}),
    ]
    assert grown["diff"] == foretold["diff"]
    assert grown["diff"]["after"] == {
        "rootfs": "local-zfs:subvol-101-disk-0,size=16G",
        "mp1": "local-zfs:subvol-101-disk-2,mp=/srv,size=1G",
    }
    # What is larger than declared stays, for a disk is never shrunk.
    assert "mp0 (/var/cache) has 102400M, not 50G as declared; it was left so" in json.dumps(grown["warnings"])
    assert not run_module(pve_container, API | disks | {"grow_disks": True})["changed"]
