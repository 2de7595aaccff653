# SPDX-License-Identifier: GPL-3.0-or-later
"""The journey of a guest through the API's code, as each of the identities that matter."""

from __future__ import annotations

import fcntl
import typing as t

import pytest
from pve import api, guests, schema, tasks
from pve import node as node_module
from pve.errors import ApiError
from pve.node import Node

TOKEN = "slipway@pve!deploy"
LXC = "/nodes/node1/lxc"
TEMPLATE = "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"
CREATE = {"vmid": 102, "ostemplate": TEMPLATE, "storage": "local-zfs", "net0": "name=eth0,bridge=vmbr0,ip=192.0.2.9/24"}


def _call(node: Node, verb: str, path: str, user: str = TOKEN, **given: t.Any) -> t.Any:
    return api.call(node, user, verb, path, given)


def _refusal(
    node: Node, verb: str, path: str, user: str = TOKEN, **given: t.Any
) -> tuple[int, str, dict[str, str] | None]:
    with pytest.raises(ApiError) as caught:
        _call(node, verb, path, user, **given)
    return caught.value.status, caught.value.message, caught.value.errors


def _file(node: Node, vmid: int) -> str:
    return node.conf_path(vmid).read_text()


def test_every_described_method_is_there() -> None:
    assert api.methods().keys() == schema.METHODS.keys()


def test_life_of_a_guest(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pve.setup._host_keys", lambda root: ["keys made"])
    upid = _call(node, "POST", LXC, **CREATE, **{"ssh-public-keys": "ssh-ed25519 AAAA me", "features": "nesting=1"})
    assert [line["t"] for line in _call(node, "GET", f"/nodes/node1/tasks/{upid}/log", limit=0)] == [
        "Detected container architecture: amd64",
        "keys made",
        "TASK OK",
    ]
    config = _call(node, "GET", f"{LXC}/102/config")
    assert config.pop("net0").startswith("name=eth0,bridge=vmbr0,hwaddr=BC:24:11:")
    assert {key: value for key, value in config.items() if key != "digest"} == {
        **{"arch": "amd64", "features": "nesting=1", "hostname": "CT102", "memory": 512, "ostype": "debian"},
        **{"rootfs": "local-zfs:subvol-102-disk-0,size=4G", "swap": 512, "unprivileged": 1},
    }
    rootfs = node.root / "rpool/data/subvol-102-disk-0"
    keys = rootfs / "root/.ssh/authorized_keys"
    assert (keys.read_text(), keys.stat().st_mode & 0o777) == ("ssh-ed25519 AAAA me\n", 0o600)
    assert _call(node, "GET", "/cluster/nextid", vmid=103) == "103"
    assert _refusal(node, "GET", "/cluster/nextid", vmid=102)[2] == {"vmid": "VM 102 already exists"}

    _call(node, "POST", f"{LXC}/102/status/start")
    assert _call(node, "GET", f"{LXC}/102/status/current")["status"] == "running"
    assert "nameserver 192.0.2.53\n" in (rootfs / "etc/resolv.conf").read_text()
    assert "Address=192.0.2.9/24\n" in (rootfs / "etc/systemd/network/eth0.network").read_text()
    assert _refusal(node, "POST", f"{LXC}/102/status/start")[:2] == (500, "CT 102 already running")
    assert _refusal(node, "DELETE", f"{LXC}/102")[1] == "unable to destroy CT 102 - container is running"
    _call(node, "POST", f"{LXC}/102/status/shutdown", timeout=5)
    _call(node, "DELETE", f"{LXC}/102")
    assert (node.vmids(), rootfs.exists()) == ([], False)


def test_creation_that_fails_leaves_nothing(node: Node) -> None:
    node.runtime.breaks_on = "unpack"
    upid = _call(node, "POST", LXC, **CREATE)
    assert tasks.Task(node, upid).exit_status() == "unable to create CT 102 - the archive is broken"
    assert (node.vmids(), list((node.root / "rpool/data").iterdir())) == ([], [])


def test_refused_creations(node: Node, guest: int) -> None:
    exists = "unable to create CT 101 - CT 101 already exists on node 'node1'"
    assert _refusal(node, "POST", LXC, **{**CREATE, "vmid": 101})[:2] == (500, exists)
    assert _refusal(node, "POST", LXC, **{**CREATE, "storage": "local"})[2] == {
        "storage": "storage 'local' does not support container directories"
    }
    assert _refusal(node, "POST", LXC, **CREATE, unprivileged=0)[:2] == (403, "Permission check failed (/, Sys.Modify)")
    assert _refusal(node, "POST", LXC, **CREATE, dev0="/dev/nvidia0")[0] == 403
    encoded = {"ssh-public-keys": "ssh-ed25519%20AAAA%20me"}
    assert _refusal(node, "POST", LXC, **CREATE, **encoded)[:2] == (500, "SSH public key validation error")
    assert _refusal(node, "POST", LXC, user="watch@pve!t", **CREATE)[:2] == (
        403,
        "Permission check failed (/vms/102, VM.Allocate)",
    )
    assert node.vmids() == [101]


def test_changes(node: Node, guest: int) -> None:
    digest = _call(node, "GET", f"{LXC}/101/config")["digest"]
    _call(node, "PUT", f"{LXC}/101/config", digest=digest, cores=8, delete="swap")
    modified = "detected modified configuration - file changed by other user? Try again."
    assert _refusal(node, "PUT", f"{LXC}/101/config", digest=digest, cores=9)[:2] == (500, modified)
    assert _refusal(node, "PUT", f"{LXC}/101/config")[1] == "no options specified"
    assert _refusal(node, "PUT", f"{LXC}/101/config", delete="gpu0")[2] == {"delete": "unknown option 'gpu0'"}
    assert _refusal(node, "PUT", f"{LXC}/101/config", cores=1, delete="cores")[0] == 400
    assert _refusal(node, "PUT", f"{LXC}/101/config", delete="dev0")[0] == 403
    _call(node, "PUT", f"{LXC}/101/config", user="root@pam", delete="dev0")
    assert _file(node, 101) == (
        "cores: 8\nmemory: 4096\nrootfs: local-zfs:subvol-101-disk-0,size=8G\nunprivileged: 1\nlxc.prlimit.memlock: unlimited\n"
    )


def test_change_of_a_running_guest_waits_for_the_restart(node: Node, guest: int) -> None:
    _call(node, "POST", f"{LXC}/101/status/start")
    _call(node, "PUT", f"{LXC}/101/config", user="root@pam", dev0="/dev/nvidia1", cores=2)
    assert [item for item in _call(node, "GET", f"{LXC}/101/pending") if "pending" in item] == [
        {"key": "dev0", "value": "/dev/nvidia0,gid=44", "pending": "/dev/nvidia1"}
    ]
    assert _call(node, "GET", f"{LXC}/101/config", current=1)["dev0"] == "/dev/nvidia0,gid=44"
    assert _call(node, "GET", f"{LXC}/101/config")["dev0"] == "/dev/nvidia1"
    _call(node, "POST", f"{LXC}/101/status/reboot")
    assert "/made/dev/nvidia1 dev/nvidia1 none bind" in node.runtime.started[101]
    assert "pending" not in _file(node, 101)


def test_a_running_guest_gets_new_disks_at_once(node: Node, guest: int) -> None:
    _call(node, "POST", f"{LXC}/101/status/start")
    _call(node, "PUT", f"{LXC}/101/config", mp0="local-zfs:2,mp=/data,ro=1")
    volume = node.root / "rpool/data/subvol-101-disk-1"
    assert node.runtime.plugged == [f"{volume} /data ro"]
    assert "mp0: local-zfs:subvol-101-disk-1,mp=/data,ro=1,size=2G\n" in _file(node, 101)
    # Another mount at its number, and its removal, wait; the volume is kept.
    _call(node, "PUT", f"{LXC}/101/config", user="root@pam", mp0="/srv,mp=/data")
    _call(node, "PUT", f"{LXC}/101/config", delete="mp0")
    assert _file(node, 101).endswith("\n[pve:pending]\ndelete: mp0\n")
    _call(node, "POST", f"{LXC}/101/status/reboot")
    assert "unused0: local-zfs:subvol-101-disk-1\n" in _file(node, 101) and "mp0" not in _file(node, 101)
    assert volume.is_dir()
    _call(node, "PUT", f"{LXC}/101/config", delete="unused0")
    assert not volume.exists() and "unused0" not in _file(node, 101)


def test_a_disk_that_can_not_be_plugged_waits(node: Node, guest: int) -> None:
    _call(node, "POST", f"{LXC}/101/status/start")
    node.runtime.plugs = False
    _call(node, "PUT", f"{LXC}/101/config", mp0="local-zfs:2,mp=/data")
    assert _file(node, 101).endswith("\n[pve:pending]\nmp0: local-zfs:2,mp=/data\n")
    assert [path.name for path in (node.root / "rpool/data").iterdir()] == ["subvol-101-disk-0"]
    _call(node, "POST", f"{LXC}/101/status/reboot")
    assert "mp0: local-zfs:subvol-101-disk-1,mp=/data,size=2G\n" in _file(node, 101)


def test_missing_device_keeps_the_guest_down(node: Node, guest: int) -> None:
    node.runtime.devices.clear()
    upid = _call(node, "POST", f"{LXC}/101/status/start")
    assert tasks.Task(node, upid).exit_status() == "Device /dev/nvidia0 does not exist"
    assert node.runtime.up == set()


def test_locks(node: Node, guest: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    node.conf_path(101).write_text(_file(node, 101) + "lock: backup\n")
    assert _refusal(node, "PUT", f"{LXC}/101/config", cores=1)[:2] == (500, "CT is locked (backup)")
    assert _refusal(node, "DELETE", f"{LXC}/101")[1] == "CT is locked (backup)"
    assert _refusal(node, "POST", f"{LXC}/101/status/start", skiplock=1)[2] == {
        "skiplock": "Only root may use this option."
    }
    monkeypatch.setattr(node_module, "LOCK_TIMEOUT_SECONDS", 0.2)
    (node.root / "run/lock/lxc").mkdir(parents=True, exist_ok=True)
    with (node.root / "run/lock/lxc/pve-config-101.lock").open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        why = "can't lock file '/run/lock/lxc/pve-config-101.lock' - got timeout"
        assert _refusal(node, "PUT", f"{LXC}/101/config", cores=1)[:2] == (500, why)


def test_what_is_not_there(node: Node) -> None:
    absent = "Configuration file 'nodes/node1/lxc/999.conf' does not exist"
    assert _refusal(node, "GET", f"{LXC}/999/config")[:2] == (500, absent)
    assert _refusal(node, "GET", f"{LXC}/999/config", user="root@pam", current=1)[1] == absent
    assert _refusal(node, "POST", f"{LXC}/101/migrate")[:2] == (
        501,
        f"Method 'POST {LXC}/101/migrate' not implemented",
    )
    assert _refusal(node, "GET", "/nodes/other/lxc")[0] == 500
    unknown = "UPID:node1:0000AAAA:0000AAAA:65000000:vzstart:101:root@pam:"
    assert _refusal(node, "GET", f"/nodes/node1/tasks/{unknown}/status", user="root@pam")[:2] == (400, "no such task")


def test_only_guests_that_may_be_seen_are_listed(node: Node, guest: int) -> None:
    assert [found["vmid"] for found in _call(node, "GET", LXC, user="watch@pve!t")] == [101]
    assert _call(node, "GET", LXC, user="nobody@pve") == []
    assert [found["id"] for found in _call(node, "GET", "/cluster/resources", type="vm")] == ["lxc/101"]


def test_template(node: Node, guest: int) -> None:
    _call(node, "POST", f"{LXC}/101/template")
    assert "rootfs: local-zfs:basevol-101-disk-0,size=8G\ntemplate: 1\n" in _file(node, 101)
    upid = _call(node, "POST", f"{LXC}/101/status/start")
    assert tasks.Task(node, upid).exit_status() == "you can't start a CT if it's a template"


def test_boot_order_and_failures(node: Node) -> None:
    for vmid, startup, onboot in ((110, "", 1), (111, "order=2", 1), (112, "order=1", 1), (113, "order=1", 0)):
        (node.root / f"rpool/data/subvol-{vmid}-disk-0").mkdir()
        lines = f"rootfs: local-zfs:subvol-{vmid}-disk-0\nonboot: {onboot}\n" + (
            f"startup: {startup}\n" if startup else ""
        )
        node.conf_path(vmid).write_text(lines + ("dev0: /dev/absent\n" if vmid == 112 else ""))
    said: list[str] = []
    guests.at_boot(node, said.append)
    assert said == [
        "Starting CT 112",
        "Starting CT 112 failed: Device /dev/absent does not exist",
        "Starting CT 111",
        "Starting CT 110",
    ]
    said.clear()
    guests.at_shutdown(node, said.append)
    assert (said, node.runtime.up) == (["Stopping CT 110", "Stopping CT 111"], set())
