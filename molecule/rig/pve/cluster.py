# SPDX-License-Identifier: GPL-3.0-or-later
"""The methods around the containers: login, version, cluster, node, storages, tasks."""

from __future__ import annotations

import json
import os
import re
import shutil
import typing as t
from pathlib import Path

from . import containers, tasks
from .api import Call, method
from .errors import refused
from .formats import split_list
from .node import Node

VERSION = "9.1.4"
RELEASE = "9.1"
REPOSITORY_ID = "5ac30dfe265fb00e"
AUDIT = ["Sys.Audit"]


@method("POST /access/ticket")
def log_in(call: Call) -> dict[str, t.Any]:
    user = call.params["username"]
    if "@" not in user:
        user = f"{user}@{call.params.get('realm', 'pam')}"
    return call.node.access.log_in(user, call.params["password"])


@method("GET /access/permissions")
def permissions(call: Call) -> dict[str, dict[str, int]]:
    """Of oneself and of one's own tokens anybody may ask, of others who has Sys.Audit on /access."""
    who = call.params.get("userid", call.user)
    if call.user not in (who, who.partition("!")[0]):
        call.require("/access", AUDIT)
    path, access = call.params.get("path"), call.node.access
    if path is None:
        return access.tree(who)
    found = access.rights(who, path)
    return {path: found} if found else {}


@method("GET /version")
@method("GET /nodes/{node}/version")
def version(call: Call) -> dict[str, str]:
    return {"version": VERSION, "release": RELEASE, "repoid": REPOSITORY_ID}


def set_quorum(node: Node, quorate: bool, folder: Path | None = None) -> None:
    """Let ``.members`` of /etc/pve, or of ``folder``, say whether the cluster has quorum; with no cluster, one of this node."""
    path = (folder or node.etc_pve) / ".members"
    alone: dict[str, t.Any] = {"nodename": node.name, "nodelist": {node.name: {"id": 1, "online": 1}}}
    found = json.loads(path.read_text()) if path.exists() else alone
    names = {"name": "rig", "version": 1, "nodes": len(found["nodelist"]), **found.get("cluster", {})}
    path.write_text(json.dumps({**found, "cluster": {**names, "quorate": int(quorate)}}))


def manager_version() -> str:
    return f"pve-manager/{VERSION}/{REPOSITORY_ID}"


def _memory() -> dict[str, int]:
    found = _meminfo()
    total, available = found["MemTotal"], found["MemAvailable"]
    return {"total": total, "available": available, "free": found["MemFree"], "used": total - available}


def _swap() -> dict[str, int]:
    found = _meminfo()
    total, free = found["SwapTotal"], found["SwapFree"]
    return {"total": total, "free": free, "used": total - free}


def _meminfo() -> dict[str, int]:
    with open("/proc/meminfo") as lines:
        return {line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines}


def _uptime() -> int:
    with open("/proc/uptime") as line:
        return int(float(line.read().split()[0]))


def _node(call: Call) -> dict[str, t.Any]:
    memory = _memory()
    return {
        "node": call.node.name,
        "id": f"node/{call.node.name}",
        "type": "node",
        "status": "online",
        "cpu": 0,
        "maxcpu": os.cpu_count(),
        "mem": memory["used"],
        "maxmem": memory["total"],
        "uptime": _uptime(),
        "level": "",
    }


@method("GET /nodes")
def nodes(call: Call) -> list[dict[str, t.Any]]:
    """Every node of the cluster; what it does is only for who may see that."""
    found = []
    for name, online in call.node.members().items():
        entry: dict[str, t.Any] = {"node": name, "id": f"node/{name}", "type": "node"}
        entry |= {"status": "online" if online else "offline", "level": ""}
        if name == call.node.name and call.may(f"/nodes/{name}", AUDIT):
            entry |= _node(call)
        found.append(entry)
    return found


@method("GET /nodes/{node}/status", "/nodes/{node}", AUDIT)
def node_status(call: Call) -> dict[str, t.Any]:
    system = os.uname()
    disk = shutil.disk_usage(call.node.root)
    return {
        "pveversion": manager_version(),
        "kversion": f"{system.sysname} {system.release} {system.version}",
        "current-kernel": {
            "sysname": system.sysname,
            "release": system.release,
            "version": system.version,
            "machine": system.machine,
        },
        "boot-info": {"mode": "efi", "secureboot": 0},
        "cpu": 0,
        "cpuinfo": {"cpus": os.cpu_count(), "cores": os.cpu_count(), "sockets": 1, "model": system.machine},
        "loadavg": [f"{load:.2f}" for load in os.getloadavg()],
        "memory": _memory(),
        "swap": _swap(),
        "rootfs": {"total": disk.total, "used": disk.used, "free": disk.free, "avail": disk.free},
        "uptime": _uptime(),
    }


@method("GET /cluster/nextid")
def next_id(call: Call) -> str:
    taken = set(call.node.guests())
    if (wanted := call.params.get("vmid")) is not None:
        if wanted in taken:
            raise refused({"vmid": f"VM {wanted} already exists"})
        return str(wanted)
    return str(next(vmid for vmid in range(100, 10**6) if vmid not in taken))


@method("GET /cluster/resources")
def resources(call: Call) -> list[dict[str, t.Any]]:
    kind, name = call.params.get("type"), call.node.name
    found: list[dict[str, t.Any]] = []
    if kind in (None, "vm"):
        for guest in containers.listed(call):
            number = {"id": f"lxc/{guest['vmid']}", "node": name, "maxcpu": guest.pop("cpus")}
            found.append({"template": 0, **guest, **number})
        for vmid, (type_, where) in call.node.guests().items():
            if (type_, where) != ("lxc", name) and call.may(f"/vms/{vmid}", ["VM.Audit"]):
                found.append({"id": f"{type_}/{vmid}", "type": type_, "vmid": vmid, "node": where, "status": "unknown"})
    if kind in (None, "storage"):
        for storage in call.node.storages.status():
            if call.may(f"/storage/{storage['storage']}", ["Datastore.Audit", "Datastore.AllocateSpace"], any_of=True):
                entry = {"id": f"storage/{name}/{storage['storage']}", "type": "storage", "node": name}
                entry |= {"plugintype": storage["type"], "status": "available", "disk": storage["used"]}
                found.append({**entry, "maxdisk": storage["total"], "storage": storage["storage"], "shared": 0})
    if kind in (None, "node") and call.may(f"/nodes/{name}", AUDIT):
        found.append(_node(call))
    return found


@method("GET /nodes/{node}/network")
def interfaces(call: Call) -> list[dict[str, t.Any]]:
    """Bridges are only for who may use or see them."""
    wanted, found = call.params.get("type"), []
    for folder in sorted((call.node.root / "sys/class/net").glob("*")):
        name, is_bridge = folder.name, (folder / "bridge").is_dir()
        if name == "lo" or (wanted == "include_sdn"):
            continue
        if is_bridge and not call.may(f"/sdn/zones/localnetwork/{name}", ["SDN.Audit", "SDN.Use"], any_of=True):
            continue
        entry: dict[str, t.Any] = {
            "iface": name,
            "type": "bridge" if is_bridge else "eth",
            "active": 1,
            "method": "manual",
        }
        if is_bridge:
            ports = sorted(port.name for port in (folder / "brif").glob("*") if not port.name.startswith("veth"))
            entry |= {"autostart": 1, "bridge_ports": " ".join(ports), "bridge_stp": "off", "bridge_fd": "0"}
        if wanted in (None, entry["type"]) or (is_bridge and wanted in ("any_bridge", "any_local_bridge")):
            found.append(entry)
    return found


@method("GET /nodes/{node}/storage")
def storages(call: Call) -> list[dict[str, t.Any]]:
    wanted = set(split_list(call.params.get("content", "")))
    return [
        entry
        for entry in call.node.storages.status()
        if call.may(f"/storage/{entry['storage']}", ["Datastore.Audit", "Datastore.AllocateSpace"], any_of=True)
        and call.params.get("storage", entry["storage"]) == entry["storage"]
        and (not wanted or wanted & set(entry["content"].split(",")))
    ]


@method(
    "GET /nodes/{node}/storage/{storage}/content",
    "/storage/{storage}",
    ["Datastore.Audit", "Datastore.AllocateSpace"],
    any_of=True,
)
def storage_content(call: Call) -> list[dict[str, t.Any]]:
    params = call.params
    return call.node.storages.content(params["storage"], params.get("content"), params.get("vmid"))


def _task(call: Call) -> tasks.Task:
    """The task that is asked for; its owner may see it, others need Sys.Audit on the node."""
    task = tasks.Task(call.node, call.params["upid"])
    owner = task.parts["user"]
    if owner != call.user and owner.split("!")[0] != call.user:
        call.require(f"/nodes/{call.node.name}", AUDIT)
    return task


@method("GET /nodes/{node}/tasks")
def task_list(call: Call) -> list[dict[str, t.Any]]:
    everything = call.may(f"/nodes/{call.node.name}", AUDIT)
    params, found = call.params, []
    source = params.get("source", "archive")
    for task in tasks.every(call.node):
        entry = task.status()
        running = entry.pop("status") == "running"
        if not running:
            entry["status"] = entry.pop("exitstatus")
            entry["endtime"] = int(task.log_path.stat().st_mtime)
        if (
            (everything or entry["user"] == call.user.split("!")[0])
            and (source == "all" or running == (source == "active"))
            and params.get("vmid") in (None, int(entry["id"] or 0))
            and params.get("typefilter") in (None, entry["type"])
            and params.get("since", 0) <= entry["starttime"] <= params.get("until", 2**40)
            and not (params.get("errors") and re.match("OK|WARNINGS", entry.get("status", "OK")))
        ):
            found.append(entry)
    start = params.get("start", 0)
    return found[start : start + params.get("limit", 50)]


@method("GET /nodes/{node}/tasks/{upid}")
def task_index(call: Call) -> list[dict[str, str]]:
    return [{"name": "log"}, {"name": "status"}]


@method("GET /nodes/{node}/tasks/{upid}/status")
def task_status(call: Call) -> dict[str, t.Any]:
    return _task(call).status()


@method("GET /nodes/{node}/tasks/{upid}/log")
def task_log(call: Call) -> list[dict[str, t.Any]]:
    return _task(call).lines(call.params.get("start", 0), call.params.get("limit", 50))
