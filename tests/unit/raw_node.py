# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder that is a node with guest 101 and its configuration file, and a pct that reads that file."""

from __future__ import annotations

import json
import os
import typing as t
from functools import partial
from pathlib import Path

import pytest
from ansible.module_utils.slipway import files
from ansible.module_utils.slipway.pve import node
from ansible.modules import pve_container_raw

MOUNT = "lxc.mount.entry: /srv/models srv/models none bind,ro,create=dir"
SHM = "lxc.mount.entry: tmpfs dev/shm tmpfs size=64G,create=dir 0 0"
MEMLOCK = "lxc.prlimit.memlock: unlimited"
USERS = "lxc.cap.drop: sys_rawio"
NET = "net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,type=veth"
CONF = f"#owner%3A ops\narch: amd64\nmemory: 4096\n{NET}\n{USERS}\n\n[before]\nmemory: 1024\n{MEMLOCK}\n"
# Reads the main part of the file, and like Proxmox knows no key with "nonsense" in it.
PCT = "#!/bin/sh\n[ \"$1 $3\" = 'config --current' ] || exit 2\nsed '/^\\[/,$d; /nonsense/d' '{conf}'\n"


class Node:
    """The things of guest 101 on its node."""

    def __init__(self, root: Path) -> None:
        self.place = node.Place(101, root)
        self.place.mount_point.mkdir(parents=True)
        for path in (self.place.config, self.place.started_with, root / "proc/net/unix", root / "bin/pct"):
            path.parent.mkdir(parents=True, exist_ok=True)
        self.place.config.write_text(CONF)
        (root / "proc/net/unix").write_text("Num RefCount Protocol Flags Type St Inode Path\n")
        (root / "proc/sys/kernel/random").mkdir(parents=True)
        (root / "proc/sys/kernel/random/boot_id").write_text("boot-1\n")
        (root / "bin/pct").write_text(PCT.format(conf=self.place.config))
        (root / "bin/pct").chmod(0o755)
        self.root = root

    def start(self, inode: int = 7) -> None:
        """As Proxmox does: the raw lines go into LXC's configuration, and lxc-start has a socket."""
        lines = self.place.config.read_text().partition("\n[")[0].splitlines()
        raw = [line.replace(":", " =", 1) for line in lines if line.startswith("lxc.")]
        self.place.started_with.write_text("lxc.arch = amd64\n" + "\n".join(raw) + "\n")
        line = f"0000000000000000: 00000002 00000000 00010000 0001 01 {inode} @/var/lib/lxc/101/command\n"
        (self.root / "proc/net/unix").write_text(line)

    @property
    def record(self) -> dict[str, t.Any]:
        return json.loads(self.place.record.read_text())


def node_in(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    """A node that pve_container_raw works on, with Proxmox's ways: its lock, its pct, and no chmod below /etc/pve."""
    made = Node(folder)
    monkeypatch.setattr(pve_container_raw, "Place", partial(node.Place, root=folder))
    monkeypatch.setenv("PATH", f"{folder / 'bin'}:{os.environ['PATH']}")
    monkeypatch.setattr(node, "LOCK_SECONDS", 0.3)
    really = os.fchmod

    def fchmod(handle: int, mode: int) -> None:
        """As on pmxcfs."""
        if os.readlink(f"/proc/self/fd/{handle}").startswith(str(made.place.config.parent)):
            raise PermissionError(1, "Operation not permitted")
        really(handle, mode)

    monkeypatch.setattr(files.os, "fchmod", fchmod)
    return made
