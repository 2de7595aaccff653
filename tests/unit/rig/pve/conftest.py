# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in a scratch folder whose containers are only remembered."""

from __future__ import annotations

import shutil
import stat
import typing as t
from pathlib import Path

import pytest
from pve.errors import died
from pve.install import install
from pve.lxcconf import PassedDevice
from pve.node import Node

TEMPLATE = "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"
NODE = {
    "name": "node1",
    "address": "127.0.0.1",
    "root_password": "a-root-password",
    "users": [
        {
            "userid": "slipway@pve",
            "password": "a-user-password",
            "acl": [
                {"path": "/vms", "role": "PVEVMAdmin"},
                {"path": "/storage", "role": "PVEDatastoreUser"},
                {"path": "/sdn/zones/localnetwork/vmbr0", "role": "PVESDNUser"},
            ],
            "tokens": [{"id": "deploy", "secret": "token-secret"}],
        },
        {
            "userid": "watch@pve",
            "acl": [{"path": "/", "role": "PVEAuditor"}],
            "tokens": [{"id": "t", "secret": "seen"}],
        },
    ],
}


class RememberedContainers:
    """A runtime without LXC: which guests run, which devices the node has, and what was asked of it."""

    def __init__(self) -> None:
        self.up: set[int] = set()
        self.devices = {"/dev/nvidia0": 0xC300, "/dev/nvidia1": 0xC301}
        self.plugged: list[str] = []
        self.plugs = True
        self.started: dict[int, str] = {}
        self.breaks_on = ""

    def running(self, vmid: int) -> bool:
        return vmid in self.up

    def pid(self, vmid: int) -> int | None:
        return 1 if vmid in self.up else None

    def controllers(self) -> set[str]:
        return set()

    def device(self, path: str) -> tuple[int, int]:
        if path not in self.devices:
            raise died(f"Device {path} does not exist")
        return stat.S_IFCHR | 0o666, self.devices[path]

    def plug_device(self, vmid: int, key: str, value: str) -> bool:
        self.plugged.append(key)
        return self.plugs

    def limit(self, vmid: int, content: dict[str, t.Any]) -> None:
        pass

    def unpack(self, archive: Path, rootfs: Path, say: t.Callable[[str], None]) -> None:
        if self.breaks_on == "unpack":
            raise died("the archive is broken")
        (rootfs / "etc/ssh").mkdir(parents=True)
        (rootfs / "etc/os-release").write_text("ID=debian\n")
        (rootfs / "etc/shadow").write_text("root:*:1::::::\n")

    def pass_device(self, vmid: int, device: dict[str, t.Any], unprivileged: bool) -> PassedDevice:
        mode, number = self.device(device["path"])
        return PassedDevice("/made" + device["path"], device["path"], mode, number, True)

    def start(self, vmid: int, config: str, say: t.Callable[[str], None]) -> None:
        self.started[vmid] = config
        self.up.add(vmid)

    def stop(self, vmid: int, timeout_seconds: int | None) -> bool:
        self.up.discard(vmid)
        return True

    def forget(self, vmid: int) -> None:
        pass

    def attach(self, vmid: int, command: list[str], stdin: t.IO[bytes] | None = None) -> int:
        return 7

    def interfaces(self, vmid: int) -> list[dict[str, t.Any]]:
        return []


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root file system of node1 as installed, with an OS template; each test works on a copy."""
    root = tmp_path_factory.mktemp("node1")
    install(root, NODE)
    (root / "etc/resolv.conf").write_text("nameserver 192.0.2.53\n")
    (root / "var/lib/vz/template/cache" / TEMPLATE.split("/")[1]).write_bytes(b"")
    return root


@pytest.fixture
def node(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """node1; its tasks run at once, and nothing is chowned, so that tests need not be root."""
    monkeypatch.setattr("os.chown", lambda *args, **kwargs: None)
    shutil.copytree(installed, tmp_path, symlinks=True, dirs_exist_ok=True)
    return Node("node1", tmp_path, RememberedContainers(), synchronous=True)


@pytest.fixture
def guest(node: Node) -> int:
    """Guest 101 of that node, stopped."""
    volume = node.root / "rpool/data/subvol-101-disk-0"
    volume.mkdir(parents=True)
    node.conf_path(101).write_text(
        "cores: 4\ndev0: /dev/nvidia0,gid=44\nmemory: 4096\n"
        "rootfs: local-zfs:subvol-101-disk-0,size=8G\nunprivileged: 1\nlxc.prlimit.memlock: unlimited\n"
    )
    return 101
