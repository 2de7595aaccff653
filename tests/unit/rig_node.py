# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig's Proxmox node inside the test process: a scratch folder, containers that are only remembered, a clock that jumps.

Its two ways in are those of a client: HTTPS (what would leave the machine through requests) and SSH (what paramiko would
run there). Code under test is real down to these libraries, the emulated Proxmox is real behind them.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import shlex
import shutil
import socket
import stat
import subprocess
import sys
import threading
import time
import typing as t
from pathlib import Path
from urllib.parse import urlsplit

import paramiko
import pytest
import requests
import urllib3
from pve import cli, cluster, faults, lxclog, tasks, wire
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
API = {"api_host": "node1.example.com", "api_timeout_seconds": 30}
# Options of Slipway's modules for three identities. The token's has no root-only keys, the other two are root@pam.
AS_TOKEN = {**API, "api_user": "slipway@pve", "api_token_id": "deploy", "api_token_secret": "token-secret"}
AS_ROOT = {**API, "api_user": "root@pam", "api_password": "a-root-password"}
OVER_SSH = {**API, "api_backend": "ssh_paramiko"}


class RememberedContainers:
    """A runtime without LXC: which guests run, which devices the node has, and what was asked of it."""

    def __init__(self) -> None:
        self.up: set[int] = set()
        self.devices = {"/dev/nvidia0": 0xC300, "/dev/nvidia1": 0xC301}
        self.plugged: list[str] = []
        self.plugs = True
        self.started: dict[int, str] = {}
        self.breaks_on = ""
        self.frozen: list[bool] = []

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

    def plug_mount(self, vmid: int, source: str, target: str, read_only: bool) -> bool:
        self.plugged.append(f"{source} {target}{' ro' if read_only else ''}")
        return self.plugs

    def plug_network(self, vmid: int, key: str, old: str | None, new: str) -> bool:
        self.plugged.append(key)
        return self.plugs

    def unplug_network(self, vmid: int, key: str) -> bool:
        self.plugged.append(f"-{key}")
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

    def start(self, vmid: int, config: str, say: t.Callable[[str], None], debug: bool = False) -> None:
        if self.breaks_on == "start":
            for line in lxclog.shown(vmid, lxclog.failed_hook(vmid, "the hook of a test fails", debug)):
                say(line)
            raise died(f"startup for container '{vmid}' failed")
        self.started[vmid] = config
        self.up.add(vmid)

    def stop(self, vmid: int, timeout_seconds: int | None) -> bool:
        self.up.discard(vmid)
        return True

    def freeze(self, vmid: int, frozen: bool) -> bool:
        self.frozen.append(frozen)
        return True

    def forget(self, vmid: int) -> None:
        pass

    def attach(self, vmid: int, command: list[str], stdin: t.IO[bytes] | None = None) -> int:
        return 7

    def interfaces(self, vmid: int) -> list[dict[str, t.Any]]:
        return []


def installed(root: Path) -> Path:
    """node1 as installed below ``root``, with an OS template."""
    install(root, NODE)
    (root / "etc/resolv.conf").write_text("nameserver 192.0.2.53\n")
    (root / "var/lib/vz/template/cache" / TEMPLATE.split("/")[1]).write_bytes(b"")
    return root


def copied(template: Path, root: Path) -> Node:
    """A node of its own, made from an installed one; its tasks run at once."""
    shutil.copytree(template, root, symlinks=True, dirs_exist_ok=True)
    return Node("node1", root, RememberedContainers(), synchronous=True)


class Clock:
    """Time that passes when somebody sleeps: the test's own thread jumps, a task of the node sleeps until it has."""

    def __init__(self) -> None:
        self.ahead = 0.0
        self.real = (time.monotonic, time.sleep)
        self.awake: dict[threading.Thread, bool] = {}  # the threads of tasks
        self.over = False

    def monotonic(self) -> float:
        return self.real[0]() + self.ahead

    def sleep(self, seconds: float) -> None:
        thread = threading.current_thread()
        if thread not in self.awake:
            self.ahead += seconds
            self._let_work()
            return
        until = self.monotonic() + seconds
        self.awake[thread] = False
        while self.monotonic() < until and not self.over:
            self.real[1](0.0005)
        self.awake[thread] = True

    def rebind(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Put this clock where code under test has bound the real one: as a default of a parameter."""
        ours = dict(zip(self.real, (self.monotonic, self.sleep), strict=True))
        for name, module in list(sys.modules.items()):
            for function in vars(module).values() if name.startswith("ansible.module_utils.slipway.pve.") else ():
                defaults = getattr(function, "__defaults__", None) or ()
                if any(value in self.real for value in defaults):
                    new = tuple(ours[value] if value in self.real else value for value in defaults)
                    monkeypatch.setattr(function, "__defaults__", new)

    def run(self, work: t.Callable[[], None]) -> None:
        """Do work in a thread and come back when it has ended, or sleeps."""
        worker = threading.Thread(target=work, daemon=True)
        self.awake[worker] = True
        worker.start()
        self._let_work()

    def _let_work(self) -> None:
        """Wait until every task has ended or sleeps; those whose time has come wake up first."""
        if any(worker.is_alive() for worker in self.awake):
            self.real[1](0.002)
        while any(awake and worker.is_alive() for worker, awake in self.awake.items()):
            self.real[1](0.0005)


class HungUp(Exception):
    """The SSH connection is gone."""


class Rig:
    """The node with its ways in. ``requests`` has every one that came: verb, path below /api2/json/, parameters."""

    def __init__(self, node: Node, clock: Clock) -> None:
        self.node = node
        self.clock = clock
        self.requests: list[tuple[str, str, dict[str, t.Any]]] = []
        self.echo = False

    @property
    def containers(self) -> RememberedContainers:
        return t.cast(RememberedContainers, self.node.runtime)

    @property
    def calls(self) -> list[tuple[str, str]]:
        """The requests without their parameters; a login is none."""
        return [(verb, path) for verb, path, _ in self.requests if path != "access/ticket"]

    @property
    def writes(self) -> list[tuple[str, str, dict[str, t.Any]]]:
        return [request for request in self.requests if request[0] != "GET" and request[1] != "access/ticket"]

    def file(self, vmid: int) -> str:
        """The text of a guest's configuration file."""
        return self.node.conf_path(vmid).read_text()

    def guest(self, vmid: int, *lines: str, run: bool = False) -> None:
        """A guest with a root disk and these lines of its configuration file, in the order in which Proxmox writes them."""
        (self.node.root / f"rpool/data/subvol-{vmid}-disk-0").mkdir(parents=True)
        disk = f"rootfs: local-zfs:subvol-{vmid}-disk-0,size=8G"
        self.node.conf_path(vmid).write_text("\n".join([*lines, disk, "unprivileged: 1"]) + "\n")
        content = self.node.load(vmid)
        self.node.save(vmid, content)
        if run:
            self.containers.up.add(vmid)

    def fault(self, request: str, kind: str, **options: t.Any) -> None:
        """Switch one more fault on: see pve/faults.py. ``times`` is 1 unless given; None leaves it on for good."""
        options = {"times": 1, **options}
        entry = {"request": request, "kind": kind, **{k: v for k, v in options.items() if v is not None}}
        path = self.node.root / faults.FILE
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps([*(json.loads(path.read_text()) if path.exists() else []), entry]))

    def member(
        self, name: str, online: bool = True, guests: t.Sequence[int] = (), machines: t.Sequence[int] = ()
    ) -> None:
        """One more node of the cluster, with containers and virtual machines; from here it can not be reached."""
        path = self.node.etc_pve / ".members"
        known = json.loads(path.read_text()) if path.exists() else {"nodelist": {"node1": {"id": 1, "online": 1}}}
        known["nodelist"][name] = {"id": len(known["nodelist"]) + 1, "online": int(online)}
        path.write_text(json.dumps(known))
        for folder, vmids in (("lxc", guests), ("qemu-server", machines)):
            for vmid in vmids:
                conf = self.node.etc_pve / f"nodes/{name}/{folder}/{vmid}.conf"
                conf.parent.mkdir(parents=True, exist_ok=True)
                conf.write_text("")

    def quorum(self, quorate: bool) -> None:
        """Let the cluster lose its quorum, or find it again."""
        cluster.set_quorum(self.node, quorate)

    def send(self, _adapter: t.Any, request: t.Any, **options: t.Any) -> requests.Response:
        """In the place of HTTPAdapter.send."""
        url = urlsplit(request.url)
        body = request.body or b""
        body = body if isinstance(body, bytes) else body.encode()
        self._note(request.method, url.path, {**wire.form(url.query), **wire.form(body.decode())})
        target = f"{url.path}?{url.query}" if url.query else url.path
        begun = self.clock.ahead
        try:
            answer = wire.answer(self.node, wire.Request(request.method, target, request.headers, body))
        except faults.Dropped:
            dropped = http.client.RemoteDisconnected("Remote end closed connection without response")
            broken = urllib3.exceptions.ProtocolError("Connection aborted.", dropped)
            raise requests.exceptions.ConnectionError(broken, request=request) from broken
        limit = options.get("timeout")
        if isinstance(limit, (int, float)) and self.clock.ahead - begun > limit:
            raise requests.exceptions.ReadTimeout(f"Read timed out. (read timeout={limit})", request=request)
        response = requests.Response()
        response.status_code, response.reason = answer.status, answer.reason
        response.request, response.url, response._content = request, request.url, answer.data
        return response

    def _note(self, verb: str, path: str, params: dict[str, t.Any]) -> None:
        self.requests.append((verb, path.removeprefix("/api2/json").strip("/"), params))

    def run(self, command: str) -> tuple[str, str, int]:
        """A command on the node, as root: output, errors, exit status."""
        program, *words = shlex.split(command)
        if program == "sh":
            return self._shell(words)
        if program == "pvesh":
            verb, path, *rest = words
            given = cli.options(rest, {})
            given.pop("output-format", None)
            self._note(cli.VERBS[verb], path, given)
        out, errors, self.echo = io.StringIO(), io.StringIO(), True
        try:
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                status = cli.main(program, words)
        except HungUp:
            return "", "", -1  # what paramiko makes of it
        finally:
            self.echo = False
        return out.getvalue(), errors.getvalue(), status

    def _shell(self, words: list[str]) -> tuple[str, str, int]:
        """A script for the node: a real shell, with the node's folder where the script means the root of its files."""
        here = [word.replace("/var/lib/", f"{self.node.root}/var/lib/") for word in words]
        done = subprocess.run(
            ["sh", "-c", f"uname() {{ echo {self.node.name}; }}\n{here[1]}", *here[2:]], capture_output=True, text=True
        )
        return done.stdout, done.stderr, done.returncode


class Channel:
    """What paramiko's session does, with a command that runs in this process."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig

    def settimeout(self, seconds: float) -> None:
        pass

    def exec_command(self, command: str) -> None:
        self.out, self.errors, self.status = self.rig.run(command)

    def makefile(self, *mode: t.Any) -> io.BytesIO:
        return io.BytesIO(self.out.encode())

    def makefile_stderr(self, *mode: t.Any) -> io.BytesIO:
        return io.BytesIO(self.errors.encode())

    def recv_exit_status(self) -> int:
        return self.status


class Transport:
    """A connection that is always there."""

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.sock = socket.socket()  # for who wants to set its options

    def open_session(self, *arguments: t.Any, **options: t.Any) -> Channel:
        return Channel(self.rig)

    def is_active(self) -> bool:
        return True


def connected(node: Node, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Put a node where the code under test would reach one, and let its time and its tasks run in this process."""
    clock = Clock()
    rig = Rig(node, clock)
    perform = tasks.perform

    def in_thread(*what: t.Any, echo: bool) -> None:
        clock.run(lambda: perform(*what, echo=rig.echo))

    def hang_up() -> None:
        raise HungUp

    monkeypatch.setattr("time.monotonic", clock.monotonic)
    monkeypatch.setattr("time.sleep", clock.sleep)
    clock.rebind(monkeypatch)
    monkeypatch.setattr(tasks, "perform", in_thread)
    monkeypatch.setattr(cli, "this_node", lambda synchronous: node)
    monkeypatch.setattr(cli, "hang_up", hang_up)
    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", lambda *args, **options: rig.send(*args, **options))
    monkeypatch.setattr(paramiko.SSHClient, "connect", lambda *args, **options: None)
    monkeypatch.setattr(paramiko.SSHClient, "load_system_host_keys", lambda *args: None)
    monkeypatch.setattr(paramiko.SSHClient, "get_transport", lambda client: Transport(rig))
    # With no SSH configuration of whoever runs the tests.
    monkeypatch.setenv("HOME", str(node.root / "root"))
    for name in ("HOST", "PORT", "USER", "PASSWORD", "TOKEN_ID", "TOKEN_SECRET", "VALIDATE_CERTS", "CA_PATH"):
        monkeypatch.delenv(f"PROXMOX_{name}", raising=False)
    return rig
