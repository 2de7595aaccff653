# SPDX-License-Identifier: GPL-3.0-or-later
"""A Proxmox node behind the wire: proxmoxer and requests are real, only what would leave the machine is answered here.

And machines with simulated GPUs for ``gpu_p2p``.
"""

from __future__ import annotations

import functools
import json
import re
import shutil
import typing as t
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
import requests
from ansible.modules import gpu_host_info, gpu_p2p, nccl_all_reduce
from gpu import runfile
from simulated_gpus import VERSION, SimulatedMachine

UPID = "UPID:node1:0000ABCD:00001234:6731F2A0:{}:{}:deploy@pve!slipway:"


# Enough for everything that the modules do.
PRIVILEGES = (
    *("VM.Audit", "VM.Allocate", "VM.PowerMgmt", "Sys.Audit", "SDN.Use", "Datastore.AllocateSpace"),
    *(f"VM.Config.{part}" for part in ("CPU", "Disk", "Memory", "Network", "Options")),
)


class Proxmox:
    """Node ``node1`` of a cluster with its containers, and every request that it got.

    ``answers`` holds replies for a path in place of the usual ones; a list is used up one by one.
    """

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, dict[str, str]]] = []
        self.sent: list[t.Any] = []
        self.guests: dict[int, dict[str, t.Any]] = {}
        self.elsewhere: list[dict[str, t.Any]] = []
        self.answers: dict[str, list[t.Any]] = {}
        self.headers: list[t.Any] = []
        self.nodes = [{"node": "node1", "status": "online"}, {"node": "node2", "status": "offline"}]
        self.permissions: dict[str, dict[str, int]] = {"/": dict.fromkeys(PRIVILEGES, 1)}
        self.storages = [
            {"storage": "local", "type": "dir", "content": "vztmpl,iso", "enabled": 1, "active": 1, "avail": 2**40},
            {
                "storage": "local-zfs",
                "type": "zfspool",
                "content": "rootdir",
                "enabled": 1,
                "active": 1,
                "avail": 2**40,
            },
        ]
        self.templates = ["local:vztmpl/debian-13.tar.zst"]
        self.bridges = ["vmbr0"]
        # What disks cannot do: (vmid, snapshot, clone or copy).
        self.unable: set[tuple[int, str]] = set()
        self.machine = {"memory": {"total": 2**40}, "swap": {"total": 2**33}, "cpuinfo": {"cpus": 64}}

    def guest(self, vmid: int, status: str = "stopped", pending: list[t.Any] | None = None, **config: t.Any) -> None:
        config = {"memory": 512, "swap": 512, "unprivileged": 1, **config}
        self.guests[vmid] = {"status": status, "config": config, "pending": pending or [], "snapshots": []}

    def snapshot(self, vmid: int, name: str, time: int, description: str = "", **config: t.Any) -> None:
        """A snapshot of a guest, the child of the one before it, with its configuration of that time."""
        snapshots = self.guests[vmid]["snapshots"]
        parent = {"parent": snapshots[-1]["name"]} if snapshots else {}
        row = {"name": name, "snaptime": time, "description": description, **parent}
        snapshots.append({**row, "config": {**self.guests[vmid]["config"], **config}})

    @property
    def writes(self) -> list[tuple[str, str, dict[str, str]]]:
        return [request for request in self.requests if request[0] != "GET"]

    def send(self, _adapter: t.Any, request: t.Any, **options: t.Any) -> requests.Response:
        """In the place of HTTPAdapter.send."""
        self.sent.append(options)
        self.headers.append(request.headers)
        url = urlsplit(request.url)
        path = url.path.removeprefix("/api2/json/")
        arguments = dict(parse_qsl(request.body if request.body else url.query, keep_blank_values=True))
        self.requests.append((request.method, path, dict(arguments)))
        key = next((key for key in (f"{request.method} {path}", path) if self.answers.get(key)), None)
        answer = self.answers[key].pop(0) if key else self._answer(request.method, path.split("/"), arguments)
        if isinstance(answer, Exception):
            raise answer
        status, reason, data = answer if isinstance(answer, tuple) else (200, "OK", {"data": answer})
        response = requests.Response()
        response.status_code, response.reason, response.request, response.url = status, reason, request, request.url
        response._content = json.dumps(data).encode()
        return response

    def _answer(self, method: str, parts: list[str], arguments: dict[str, str]) -> t.Any:
        if parts == ["cluster", "nextid"]:
            taken = int(arguments["vmid"]) in [row["vmid"] for row in self.elsewhere]
            errors = {"data": None, "errors": {"vmid": f"VM {arguments['vmid']} already exists"}}
            return (400, "Parameter verification failed.", errors) if taken else arguments["vmid"]
        if parts == ["cluster", "resources"]:
            return self.elsewhere
        if parts in (["nodes"], ["access", "permissions"]):
            return self.nodes if parts == ["nodes"] else self.permissions
        if parts[2] in ("status", "network", "storage"):
            return self._of_node(parts[2:])
        if parts == ["nodes", "node1", "lxc"]:
            if method == "GET":
                return [
                    {"vmid": str(vmid), "status": guest["status"], "template": guest["config"].get("template", "")}
                    for vmid, guest in self.guests.items()
                ]
            hidden = ("vmid", "ostemplate", "storage", "ssh-public-keys")
            self.guest(int(arguments["vmid"]), **{k: v for k, v in arguments.items() if k not in hidden})
            return UPID.format("vzcreate", arguments["vmid"])
        if parts[2] == "tasks":
            return {"status": "stopped", "exitstatus": "OK"} if parts[-1] == "status" else []
        return self._of_guest(method, int(parts[3]), parts[4:], arguments)

    def _of_node(self, parts: list[str]) -> t.Any:
        if parts == ["status"]:
            return self.machine
        if parts == ["network"]:
            return [{"iface": name, "type": "bridge"} for name in self.bridges]
        if parts == ["storage"]:
            return self.storages
        return [{"volid": name, "size": 2**27} for name in self.templates if name.split(":")[0] == parts[1]]

    def _of_guest(self, method: str, vmid: int, parts: list[str], arguments: dict[str, str]) -> t.Any:
        guest = self.guests[vmid]
        if parts == ["config"] and method == "GET":
            rows = [row["config"] for row in guest["snapshots"] if row["name"] == arguments.get("snapshot")]
            return {**(rows[0] if rows else guest["config"]), "digest": "d1"}
        if parts == ["pending"]:
            return [{"key": key, "value": value} for key, value in guest["config"].items()] + guest["pending"]
        if parts == ["status", "current"]:
            return {"status": guest["status"], "vmid": vmid}
        if parts == ["config"]:
            arguments.pop("digest")
            for key in filter(None, arguments.pop("delete", "").split(",")):
                guest["config"].pop(key, None)
            guest["config"].update(arguments)
            return None
        if parts and parts[0] in ("feature", "clone", "template", "resize", "interfaces", "snapshot"):
            return getattr(self, f"_{parts[0]}")(method, vmid, parts[1:], arguments)
        if method == "DELETE":
            del self.guests[vmid]
            return UPID.format("vzdestroy", vmid)
        guest["status"] = "running" if parts[1] in ("start", "reboot") else "stopped"
        return UPID.format(f"vz{parts[1]}", vmid)

    def _feature(self, method: str, vmid: int, parts: list[str], arguments: dict[str, str]) -> t.Any:
        return {"hasFeature": 0 if (vmid, arguments["feature"]) in self.unable else 1}

    def _clone(self, method: str, vmid: int, parts: list[str], arguments: dict[str, str]) -> t.Any:
        config = {key: value for key, value in self.guests[vmid]["config"].items() if key != "template"}
        for key in [key for key in config if key.startswith("net")]:
            config[key] = re.sub(r"hwaddr=[^,]*", "hwaddr=BC:24:11:C1:0E:00", config[key])
        self.guest(int(arguments["newid"]), **{**config, "hostname": arguments["hostname"]})
        return UPID.format("vzclone", vmid)

    def _template(self, method: str, vmid: int, parts: list[str], arguments: dict[str, str]) -> None:
        self.guests[vmid]["config"]["template"] = 1

    def _resize(self, method: str, vmid: int, parts: list[str], arguments: dict[str, str]) -> t.Any:
        config = self.guests[vmid]["config"]
        config[arguments["disk"]] = re.sub(r"size=\w+", f"size={arguments['size']}", config[arguments["disk"]])
        return UPID.format("resize", vmid)

    def _interfaces(self, method: str, vmid: int, parts: list[str], arguments: dict[str, str]) -> t.Any:
        return [
            {"name": "lo", "hwaddr": "00:00:00:00:00:00", "inet": "127.0.0.1/8"},
            {"name": "eth0", "hwaddr": "bc:24:11:00:00:01", "inet": "192.0.2.21/24", "inet6": "2001:db8::1/64"},
        ]

    def _snapshot(self, method: str, vmid: int, parts: list[str], arguments: dict[str, str]) -> t.Any:
        guest = self.guests[vmid]
        if not parts and method == "GET":
            rows = [{key: value for key, value in row.items() if key != "config"} for row in guest["snapshots"]]
            return [*rows, {"name": "current", "description": "You are here!"}]
        if not parts:
            self.snapshot(vmid, arguments["snapname"], 2**31, arguments.get("description", ""))
            return UPID.format("vzsnapshot", vmid)
        row = next(row for row in guest["snapshots"] if row["name"] == parts[0])
        if method == "DELETE":
            guest["snapshots"].remove(row)
            return UPID.format("vzdelsnapshot", vmid)
        if parts[1] == "rollback":
            guest |= {"status": "stopped", "config": dict(row["config"]), "pending": []}
            return UPID.format("vzrollback", vmid)
        row["description"] = arguments["description"]
        return None


@pytest.fixture
def proxmox(monkeypatch: pytest.MonkeyPatch) -> Proxmox:
    """The node that ``pve_*`` modules reach in a test. Waiting takes no time."""
    server = Proxmox()
    monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", lambda *args, **options: server.send(*args, **options))
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    for name in ("HOST", "PORT", "USER", "PASSWORD", "TOKEN_ID", "TOKEN_SECRET", "VALIDATE_CERTS", "CA_PATH"):
        monkeypatch.delenv(f"PROXMOX_{name}", raising=False)
    return server


@pytest.fixture(scope="session")
def simulated_libcuda(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Where the rig's library looks for a machine, and the library."""
    if not shutil.which("gcc"):
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("libcuda")
    runfile.compile_libcuda(folder / "libcuda.so.1", VERSION, folder / "root")
    return folder / "root", folder / "libcuda.so.1"


@pytest.fixture
def gpus_on(
    simulated_libcuda: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> t.Callable[[int], SimulatedMachine]:
    """Let the modules that ask GPUs look at a machine with so many."""
    root, library = simulated_libcuda

    def make(gpus: int) -> SimulatedMachine:
        shutil.rmtree(root, ignore_errors=True)
        machine = SimulatedMachine(root, library, gpus)
        for module in (gpu_p2p, gpu_host_info, nccl_all_reduce):
            looked_at = functools.partial(module.run, root=str(root), library=str(library))
            monkeypatch.setattr(module, "run", looked_at)
        return machine

    return make
