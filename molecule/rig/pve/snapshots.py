# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of a container: the methods below /nodes/{node}/lxc/{vmid}/snapshot and the work of their tasks.

The steps, their order and the words are those of pve-guest-common (AbstractConfig.pm): a section is written before the volumes
are touched and says so (``snapstate``), and the guest is locked until the work is done, also where that failed.
"""

from __future__ import annotations

import time
import typing as t

from . import disks, guests
from .api import Call, method
from .conf import Conf
from .containers import GUEST, ONE
from .errors import ApiError, died
from .node import Node, check_lock
from .tasks import Say

LIST = f"{ONE}/snapshot"
NAMED = f"{LIST}/{{snapname}}"
RESERVED = ("current", "vzdump")
# What a snapshot does not take over from the guest, nor the guest from a snapshot. Other than pending and unusedN.
NOT_COPIED = {"digest", "description", "lock", "pending", "snapshots", "snapstate", "snaptime"}
READERS = ["VM.Snapshot", "VM.Snapshot.Rollback", "VM.Audit"]


@method(f"GET {LIST}", GUEST, ["VM.Audit"])
def listed(call: Call) -> list[dict[str, t.Any]]:
    """The snapshots, and the guest as it is now as a last one, named ``current``."""
    content = call.node.load(call.vmid)
    found = [_entry(name, part) for name, part in sorted(content["snapshots"].items())]
    running = int(call.node.runtime.running(call.vmid))
    now = {"name": "current", "description": "You are here!", "digest": content["digest"], "running": running}
    return [*found, now | _some(content, "parent")]


def _entry(name: str, part: Conf) -> dict[str, t.Any]:
    told = {"name": name, "snaptime": part.get("snaptime", 0), "description": part.get("description", "")}
    return told | _some(part, "parent", "snapstate")


def _some(part: Conf, *keys: str) -> dict[str, t.Any]:
    return {key: part[key] for key in keys if key in part}


@method(f"POST {LIST}", GUEST, ["VM.Snapshot"])
def take(call: Call) -> str:
    name = call.params["snapname"]
    if name in RESERVED:
        raise died(f"unable to use snapshot name '{name}' (reserved name)")
    return call.start("vzsnapshot", create, snapname=name, description=call.params.get("description"))


@method(f"GET {NAMED}")
def index(call: Call) -> list[dict[str, str]]:
    return [{"cmd": "rollback"}, {"cmd": "config"}]


@method(f"DELETE {NAMED}", GUEST, ["VM.Snapshot"])
def remove(call: Call) -> str:
    force = bool(call.params.get("force"))
    return call.start("vzdelsnapshot", delete, snapname=call.params["snapname"], force=force)


@method(f"POST {NAMED}/rollback", GUEST, ["VM.Snapshot", "VM.Snapshot.Rollback"], any_of=True)
def go_back(call: Call) -> str:
    run = bool(call.params.get("start"))
    return call.start("vzrollback", rollback, snapname=call.params["snapname"], run=run)


@method(f"GET {NAMED}/config", GUEST, READERS, any_of=True)
def config(call: Call) -> Conf:
    """A snapshot's section, without its raw lines."""
    found = section(call.node.load(call.vmid), call.params["snapname"])
    return {key: value for key, value in found.items() if key != "lxc"}


@method(f"PUT {NAMED}/config", GUEST, ["VM.Snapshot"])
def describe(call: Call) -> None:
    if "description" in call.params:
        with call.node.changing(call.vmid) as content:
            check_lock(content)
            section(content, call.params["snapname"])["description"] = call.params["description"]


def section(content: Conf, name: str) -> Conf:
    """A snapshot's part of a configuration. Raises ApiError where there is none."""
    if name not in content["snapshots"]:
        raise died(f"snapshot '{name}' does not exist")
    return t.cast("Conf", content["snapshots"][name])


def has_feature(node: Node, content: Conf, feature: str, snapname: str | None = None) -> bool:
    """Whether every disk of a part can do something: on none that is a folder or device of the node anything is possible."""
    return all(node.storages.has_feature(volume, feature, snapname) for volume in disks.entries(content).values())


def _copied(part: Conf) -> Conf:
    return {key: value for key, value in part.items() if key not in NOT_COPIED and key not in disks.unused(part)}


def create(node: Node, say: Say, vmid: int, snapname: str, description: str | None = None) -> None:
    """Snapshot configuration and volumes. Where a volume fails, those before it are undone."""
    with node.changing(vmid) as content:
        if content.get("template"):
            raise died("you can't take a snapshot if it's a template")
        check_lock(content)
        if snapname in content["snapshots"]:
            raise died(f"snapshot name '{snapname}' already used")
        if not has_feature(node, content, "snapshot"):
            raise died("snapshot feature is not available")
        for other, part in content["snapshots"].items():
            if part.get("parent") == snapname:
                say(f"deleting parent '{snapname}' reference from '{other}' to avoid bogus snapshot cycle.")
                del part["parent"]
        made = {**_copied(content), "snapstate": "prepare", "snaptime": int(time.time())}
        if description:
            made["description"] = description
        content["snapshots"][snapname] = made
        content["lock"] = "snapshot"
    done: list[str] = []
    running = node.runtime.running(vmid)
    try:
        if running and not node.runtime.freeze(vmid, True):
            say(f"WARN: this machine can not freeze CT {vmid}, its files are copied while it writes them")
        for key, volid in disks.volumes(made).items():
            node.storages.snapshot(volid, snapname)
            done.append(key)
    except (ApiError, OSError) as error:
        say("snapshot create failed: starting cleanup")
        _forget(node, say, vmid, snapname, force=True, only=done)
        raise died(getattr(error, "message", str(error))) from error
    finally:
        if running:
            node.runtime.freeze(vmid, False)
    with node.changing(vmid) as content:
        if content.get("lock") != "snapshot":
            raise died("missing snapshot lock")
        del section(content, snapname)["snapstate"]
        del content["lock"]
        content["parent"] = snapname


def delete(node: Node, say: Say, vmid: int, snapname: str, force: bool = False) -> None:
    """Remove a snapshot; with ``force`` also where its volumes' snapshots can not be removed."""
    section(node.load(vmid), snapname)
    with node.changing(vmid) as content:
        check_lock(content)
        content["lock"] = "snapshot-delete"
    with node.changing(vmid) as content:
        if content.get("template"):
            raise died("you can't delete a snapshot if vm is a template")
        section(content, snapname)["snapstate"] = "delete"
    _forget(node, say, vmid, snapname, force)


def _forget(node: Node, say: Say, vmid: int, snapname: str, force: bool, only: list[str] | None = None) -> None:
    """Remove the snapshots of the volumes (of ``only`` these disks), then the section; the guest is locked already."""
    for key, volid in disks.volumes(section(node.load(vmid), snapname)).items():
        if only is None or key in only:
            try:
                node.storages.delete_snapshot(volid, snapname)
            except (ApiError, OSError) as error:
                if not force:
                    raise
                say(getattr(error, "message", str(error)))
        if not force:
            with node.changing(vmid) as content:
                del section(content, snapname)[key]
                disks.add_unused(section(content, snapname), volid)
    with node.changing(vmid) as content:
        gone = content["snapshots"].pop(snapname)
        for part in (content, *content["snapshots"].values()):
            if part.get("parent") == snapname:
                part.pop("parent")
                part.update(_some(gone, "parent"))
        content.pop("lock", None)
        for volid in [*disks.volumes(gone).values(), *disks.unused(gone).values()]:
            if not disks.in_use(content, volid):
                disks.add_unused(content, volid)


def rollback(node: Node, say: Say, vmid: int, snapname: str, run: bool = False) -> None:
    """Stop the guest, bring volumes and configuration back; its description and unused disks stay."""
    with node.changing(vmid) as content:
        kept = _to_go_back_to(content, snapname)
        for volid in disks.volumes(kept).values():
            node.storages.check_rollback(volid, snapname)
        if "snapstate" in kept:
            raise died(f"unable to rollback to incomplete snapshot (snapstate = {kept['snapstate']})")
        check_lock(content)
        if node.runtime.running(vmid):
            node.runtime.stop(vmid, None)
        if node.runtime.running(vmid):
            raise died(f"unable to rollback vm {vmid}: vm is running")
        content["lock"] = "rollback"
    for volid in disks.volumes(kept).values():
        node.storages.rollback(volid, snapname)
    with node.changing(vmid) as content:
        kept = _to_go_back_to(content, snapname)
        if content.get("lock") != "rollback":
            raise died("got wrong lock")
        for volid in disks.volumes(content).values():
            if volid not in disks.volumes(kept).values():
                disks.add_unused(content, volid)
        stays = {"snapshots": content["snapshots"], "pending": {}} | _some(
            content, "description", *disks.unused(content)
        )
        content.clear()
        content.update({**stays, **_copied(kept), "parent": snapname})
    if run:
        guests.start(node, say, vmid)


def _to_go_back_to(content: Conf, snapname: str) -> Conf:
    if content.get("template"):
        raise died("you can't rollback if vm is a template")
    return section(content, snapname)
