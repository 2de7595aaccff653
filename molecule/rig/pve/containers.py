# SPDX-License-Identifier: GPL-3.0-or-later
"""The methods below /nodes/{node}/lxc."""

from __future__ import annotations

import os
import re
import time
import typing as t

from . import conf, disks, guests, permissions, update
from .api import Call, method
from .conf import Conf
from .errors import ApiError, died, refused
from .formats import split_list
from .node import check_digest, check_lock
from .schema import CONFIG, config_option, numbered
from .tasks import process_start

LXC = "/nodes/{node}/lxc"
ONE = "/nodes/{node}/lxc/{vmid}"
GUEST = "/vms/{vmid}"
SSH_KEY = re.compile(r"(?:^|\s)(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\S+|sk-\S+@openssh\.com) [A-Za-z0-9+/]+=*(?:\s|$)")
TEMPLATE_READERS = ["Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.Audit"]
ANY_CONFIG = [f"VM.Config.{part}" for part in ("Disk", "CPU", "Memory", "Network", "Options")]


def status(call: Call, vmid: int, content: Conf) -> dict[str, t.Any]:
    """State and size of a guest."""
    running = call.node.runtime.running(vmid)
    size = re.search(r"size=(\d+)G", content.get("rootfs", ""))
    result: dict[str, t.Any] = {
        "vmid": vmid,
        "type": "lxc",
        "status": "running" if running else "stopped",
        "name": content.get("hostname", f"CT{vmid}"),
        "cpus": content.get("cores") or os.cpu_count(),
        "cpu": 0,
        "maxmem": content.get("memory", 512) * 1024**2,
        "maxswap": content.get("swap", 512) * 1024**2,
        "maxdisk": int(size[1]) * 1024**3 if size else 0,
        **dict.fromkeys(("mem", "swap", "disk", "diskread", "diskwrite", "netin", "netout", "uptime"), 0),
    }
    result |= {key: content[key] for key in ("tags", "lock", "template") if key in content}
    if running and (pid := call.node.runtime.pid(vmid)):
        result["pid"] = pid
        ticks = process_start(pid) or 0
        result["uptime"] = max(0, int(time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")))
    return result


@method(f"GET {LXC}")
def listed(call: Call) -> list[dict[str, t.Any]]:
    return [
        status(call, vmid, call.node.load(vmid)) for vmid in call.node.vmids() if call.may(f"/vms/{vmid}", ["VM.Audit"])
    ]


@method(f"POST {LXC}")
def create(call: Call) -> str:
    vmid, params = call.vmid, dict(call.params)
    for key in ("restore", "force", "ha-managed", "pool", "unique"):
        if params.get(key):
            raise died(f"'{key}' is not part of this rig")
    call.require(f"/vms/{vmid}", ["VM.Allocate"])
    unprivileged = params.pop("unprivileged", 1)
    if not unprivileged:
        call.require("/", ["Sys.Modify"])
    for line in params.get("ssh-public-keys", "").splitlines():
        if line.strip() and not line.startswith("#") and not SSH_KEY.search(line):
            raise died("SSH public key validation error")
    wanted = {key: value for key, value in params.items() if numbered(CONFIG, key)}
    storage = params.get("storage", "local")
    for key in [key for key in wanted if key == "rootfs" or re.fullmatch(r"mp\d+", key)]:
        if re.fullmatch(r"\d+(\.\d+)?", wanted[key].split(",")[0]):
            wanted[key] = f"{storage}:{wanted[key]}"
    permissions.may_change(call.user, call.require, vmid, wanted, unprivileged=bool(unprivileged))
    ostemplate = params["ostemplate"]
    call.require(f"/storage/{ostemplate.split(':')[0]}", TEMPLATE_READERS, any_of=True)
    template = call.node.storages.template(ostemplate)
    if not template.is_file():
        raise died(f"volume '{ostemplate}' does not exist")
    wanted.setdefault("rootfs", f"{storage}:4")
    for volume in disks.volumes(wanted).values():
        sid = call.node.storages.for_containers(volume.split(":")[0]).name
        call.require(f"/storage/{sid}", ["Datastore.AllocateSpace"])
    content: Conf = {"pending": {}, "snapshots": {}}
    update.request(content, vmid, wanted, [], [], call.node.runtime)
    update.apply_stopped(content)
    if unprivileged:
        content["unprivileged"] = 1
    try:
        guests.reserve(call.node, vmid)
    except ApiError as error:
        raise died(f"unable to create CT {vmid} - {error.message}") from None
    arguments = {"password": params.get("password"), "ssh_public_keys": params.get("ssh-public-keys")}
    arguments |= {"content": content, "ostemplate": ostemplate, "run": bool(params.get("start"))}
    return call.start("vzcreate", guests.create, **arguments)


@method(f"GET {ONE}")
def index(call: Call) -> list[dict[str, str]]:
    call.node.load(call.vmid)
    names = ("clone", "config", "feature", "interfaces", "pending", "resize", "snapshot", "status", "template")
    return [{"subdir": name} for name in names]


@method(f"DELETE {ONE}", GUEST, ["VM.Allocate"])
def destroy(call: Call) -> str:
    force = bool(call.params.get("force"))
    guests.check_destroyable(call.node, call.vmid, call.node.load(call.vmid), force)
    return call.start("vzdestroy", guests.destroy, force=force)


@method(f"GET {ONE}/config", GUEST, ["VM.Audit"])
def config(call: Call) -> Conf:
    current, snapshot = call.params.get("current"), call.params.get("snapshot")
    if snapshot and current:
        raise refused(dict.fromkeys(("snapshot", "current"), "cannot use 'snapshot' parameter with 'current'"))
    content = call.node.load(call.vmid)
    if snapshot:
        if snapshot not in content["snapshots"]:
            raise died(f"snapshot '{snapshot}' does not exist")
        return {**content["snapshots"][snapshot], "digest": content["digest"]}
    return conf.current(content) if current else conf.merged(content)


@method(f"PUT {ONE}/config", GUEST, ANY_CONFIG, any_of=True)
def change(call: Call) -> None:
    params = {key: value for key, value in call.params.items() if key not in ("node", "vmid", "digest")}
    if not params:
        raise died("no options specified")
    delete, revert = (split_list(params.pop(key, "")) for key in ("delete", "revert"))
    _check_lists(params, delete, revert)
    node, vmid = call.node, call.vmid
    old = node.load(vmid)
    permissions.may_change(
        call.user, call.require, vmid, params, [*delete, *revert], old, bool(old.get("unprivileged"))
    )
    with node.locked(vmid):
        content = node.load(vmid)
        check_lock(content)
        check_digest(content, call.params.get("digest"))
        update.request(content, vmid, params, delete, revert, node.runtime)
        had = disks.unused(content)
        if node.runtime.running(vmid):
            update.apply_running(content, vmid, node.runtime)
            guests.plug_mounts(node, vmid, content)
        else:
            update.apply_stopped(content)
            guests.allocate(node, vmid, content)
        node.save(vmid, content)
        for volid in set(had.values()) - set(disks.owned(content)):
            node.storages.free(volid)


def _check_lists(params: dict[str, t.Any], delete: list[str], revert: list[str]) -> None:
    for name, keys in (("revert", revert), ("delete", delete)):
        for key in keys:
            if config_option(key) is None:
                raise refused({name: f"unknown option '{key}'"})
            if key in params:
                raise refused({name: f"you can't use '-{key}' and '-{name} {key}' at the same time"})
    for key in set(delete) & set(revert):
        raise refused({"delete": f"you can't use '-delete {key}' and '-revert {key}' at the same time"})


@method(f"GET {ONE}/pending", GUEST, ["VM.Audit"])
def pending(call: Call) -> list[dict[str, t.Any]]:
    return conf.pending_items(call.node.load(call.vmid))


@method(f"GET {ONE}/interfaces", GUEST, ["VM.Audit"])
def interfaces(call: Call) -> list[dict[str, t.Any]]:
    call.node.load(call.vmid)
    if not call.node.runtime.running(call.vmid):
        raise died(f"CT {call.vmid} not running")
    return call.node.runtime.interfaces(call.vmid)


@method(f"GET {ONE}/status")
def status_index(call: Call) -> list[dict[str, str]]:
    call.node.load(call.vmid)
    return [{"subdir": name} for name in ("current", "start", "stop", "shutdown", "reboot")]


@method(f"GET {ONE}/status/current", GUEST, ["VM.Audit"])
def current(call: Call) -> dict[str, t.Any]:
    return {**status(call, call.vmid, call.node.load(call.vmid)), "ha": {"managed": 0}}


def _running(call: Call, wanted: bool) -> None:
    if call.params.get("skiplock") and call.user != "root@pam":
        raise refused({"skiplock": "Only root may use this option."})
    call.node.load(call.vmid)
    if call.node.runtime.running(call.vmid) != wanted:
        raise died(f"CT {call.vmid} {'not' if wanted else 'already'} running")


@method(f"POST {ONE}/status/start", GUEST, ["VM.PowerMgmt"])
def start(call: Call) -> str:
    _running(call, False)
    call.node.check_quorum()
    skiplock, debug = (bool(call.params.get(name)) for name in ("skiplock", "debug"))
    return call.start("vzstart", guests.start, skiplock=skiplock, debug=debug)


@method(f"POST {ONE}/status/stop", GUEST, ["VM.PowerMgmt"])
def stop(call: Call) -> str:
    _running(call, True)
    return call.start("vzstop", guests.stop, skiplock=bool(call.params.get("skiplock")))


@method(f"POST {ONE}/status/shutdown", GUEST, ["VM.PowerMgmt"])
def shutdown(call: Call) -> str:
    _running(call, True)
    force, timeout = bool(call.params.get("forceStop")), call.params.get("timeout", 60)
    return call.start("vzshutdown", guests.shutdown, timeout_seconds=timeout, force=force)


@method(f"POST {ONE}/status/reboot", GUEST, ["VM.PowerMgmt"])
def reboot(call: Call) -> str:
    _running(call, True)
    return call.start("vzreboot", guests.reboot, timeout_seconds=call.params.get("timeout", 60))
