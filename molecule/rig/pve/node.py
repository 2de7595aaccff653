# SPDX-License-Identifier: GPL-3.0-or-later
"""The node: where its files are, and the configuration files of its containers with their locks."""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import re
import sys
import time
import typing as t
from pathlib import Path

from . import conf
from .access import Access
from .errors import died
from .storage import Storages

if t.TYPE_CHECKING:
    from collections.abc import Iterator

    from .runtime import Runtime

LOCK_TIMEOUT_SECONDS = 10


@dataclasses.dataclass
class Node:
    """One Proxmox host. ``root`` is / on a node and a scratch folder in tests; ``runtime`` drives the containers."""

    name: str
    root: Path
    runtime: Runtime
    synchronous: bool = False  # tasks run in this process and show their output: what pct and pvesh do
    contended: bool = False  # a fault: somebody else holds the locks of all configurations

    @property
    def etc_pve(self) -> Path:
        return self.root / "etc/pve"

    @property
    def task_logs(self) -> Path:
        return self.root / "var/log/pve/tasks"

    @property
    def storages(self) -> Storages:
        return Storages.load(self.root)

    @property
    def access(self) -> Access:
        """Read each time: a user that was added counts at once."""
        return Access.load(self.etc_pve)

    def quorate(self) -> bool:
        """Whether the cluster has quorum, without which /etc/pve can only be read."""
        try:
            return bool(json.loads((self.etc_pve / ".members").read_text())["cluster"]["quorate"])
        except (FileNotFoundError, KeyError):
            return True

    def check_quorum(self) -> None:
        """Refuse to begin what would have to write into /etc/pve later."""
        if not self.quorate():
            raise died("cluster not ready - no quorum?")

    def conf_path(self, vmid: int) -> Path:
        return self.etc_pve / f"nodes/{self.name}/lxc/{vmid}.conf"

    def vmids(self) -> list[int]:
        """The containers of this node."""
        found = (re.fullmatch(r"(\d+)\.conf", path.name) for path in self.conf_path(0).parent.iterdir())
        return sorted(int(name[1]) for name in found if name)

    def guests(self) -> dict[int, tuple[str, str]]:
        """Every guest of the cluster that has a configuration file: its type and its node."""
        found = {}
        for path in sorted(self.etc_pve.glob("nodes/*/*/*.conf")):
            kind = {"lxc": "lxc", "qemu-server": "qemu"}.get(path.parent.name)
            if kind and path.stem.isdecimal():
                found[int(path.stem)] = (kind, path.parents[1].name)
        return found

    def members(self) -> dict[str, bool]:
        """The nodes of the cluster and whether each is online; without a cluster this one is alone."""
        try:
            listed = json.loads((self.etc_pve / ".members").read_text())["nodelist"]
        except FileNotFoundError:
            return {self.name: True}
        return {name: bool(entry["online"]) for name, entry in listed.items()}

    def load(self, vmid: int) -> conf.Conf:
        """The configuration of a container; what the reader has to say about the file goes to standard error."""
        try:
            text = self.conf_path(vmid).read_text()
        except FileNotFoundError:
            raise died(f"Configuration file 'nodes/{self.name}/lxc/{vmid}.conf' does not exist") from None
        parsed, warnings = conf.parse(vmid, text)
        for warning in warnings:
            sys.stderr.write(warning)
        return parsed

    def save(self, vmid: int, content: conf.Conf) -> None:
        """Write a configuration as a whole or not at all."""
        target = self.conf_path(vmid)
        temporary = target.with_name(f"{target.name}.tmp.{os.getpid()}")
        if not self.quorate():
            raise died(f"unable to open file '/{temporary.relative_to(self.root)}' - Permission denied")
        temporary.write_text(conf.write(content))
        temporary.replace(target)

    @contextlib.contextmanager
    def changing(self, vmid: int) -> Iterator[conf.Conf]:
        """A configuration that is written when the block ends well, under the lock."""
        with self.locked(vmid):
            content = self.load(vmid)
            yield content
            self.save(vmid, content)

    @contextlib.contextmanager
    def locked(self, vmid: int) -> Iterator[None]:
        """Hold the lock that every writer of a container's configuration takes, also from outside this program."""
        path = self.root / f"run/lock/lxc/pve-config-{vmid}.lock"
        path.parent.mkdir(parents=True, exist_ok=True)
        no_lock = died(f"can't lock file '/run/lock/lxc/{path.name}' - got timeout")
        if self.contended:
            raise no_lock
        deadline = time.monotonic() + LOCK_TIMEOUT_SECONDS
        with path.open("a") as handle:
            waited = False
            while True:
                try:
                    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    if not waited:
                        sys.stderr.write("trying to acquire lock...\n")
                    waited = True
                if time.monotonic() > deadline:
                    raise no_lock
                time.sleep(0.1)
            if waited:
                sys.stderr.write(" OK\n")
            yield


def check_lock(content: conf.Conf) -> None:
    """Refuse a container that some operation has locked in its configuration."""
    if content.get("lock"):
        raise died(f"CT is locked ({content['lock']})")


def check_digest(content: conf.Conf, digest: str | None) -> None:
    """Refuse a change that was planned on a configuration that is another one by now."""
    if digest not in (None, content["digest"]):
        raise died("detected modified configuration - file changed by other user? Try again.")


def check_protection(content: conf.Conf, what: str) -> None:
    """Refuse to remove what is protected."""
    if content.get("protection"):
        raise died(f"{what} - protection mode enabled")
