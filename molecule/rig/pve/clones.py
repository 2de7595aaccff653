# SPDX-License-Identifier: GPL-3.0-or-later
"""What is made of a container: clones, a template, bigger disks; and what its storages let be made of it (``feature``).

The steps, their order and the words are those of pve-container (API2/LXC.pm).
"""

from __future__ import annotations

import re
import typing as t

from . import disks, guests, permissions, snapshots, update
from .api import Call, method
from .conf import Conf
from .containers import GUEST, ONE
from .errors import ApiError, died
from .node import Node, check_digest, check_lock
from .tasks import Say

# What a clone does not take over.
NOT_COPIED = {"digest", "lock", "parent", "pending", "snapshots", "snapstate", "snaptime", "template"}


@method(f"GET {ONE}/feature", GUEST, ["VM.Audit"])
def feature(call: Call) -> dict[str, int]:
    """Whether the guest, or a snapshot of it, can be snapshotted, cloned or copied."""
    content, snapname = call.node.load(call.vmid), call.params.get("snapname")
    part = snapshots.section(content, snapname) if snapname else content
    return {"hasFeature": int(snapshots.has_feature(call.node, part, call.params["feature"], snapname))}


@method(f"POST {ONE}/clone", GUEST, ["VM.Clone"])
def clone(call: Call) -> str:
    """Check everything and reserve the vmid; the disks are copied by the task, with the source locked until then."""
    params, node, vmid, newid = call.params, call.node, call.vmid, call.params["newid"]
    if params.get("pool"):
        raise died("'pool' is not part of this rig")
    call.require(f"/vms/{newid}", ["VM.Allocate"])
    target = params.get("target", node.name)
    if target not in (*node.members(), "localhost"):
        raise died(f"no such cluster node '{target}'")
    storage = params.get("storage")
    if storage:
        node.storages.for_containers(storage)
    node.check_quorum()
    with node.changing(vmid) as source:
        check_lock(source)
        source["lock"] = "disk"
    reserved = False
    try:
        guests.reserve(node, newid)
        reserved = True
        made, copies = _planned(call, source)
        if target not in (node.name, "localhost"):
            raise died(f"can't clone CT to node '{target}' (CT uses local storage)")
        made |= {key: params[key] for key in ("hostname", "description") if params.get(key)}
        node.save(newid, {**made, "lock": "create"})
    except ApiError:
        _unlock(node, vmid)
        if reserved:
            node.conf_path(newid).unlink()
        raise
    arguments = {"newid": newid, "copies": copies, "snapname": params.get("snapname"), "storage": storage}
    return call.start("vzclone", copy, **arguments)


def _planned(call: Call, source: Conf) -> tuple[Conf, dict[str, bool]]:
    """The clone's configuration without its disks, and the disks, each with whether it becomes a full copy."""
    params, node = call.params, call.node
    full, snapname = bool(params.get("full", not source.get("template"))), params.get("snapname")
    if params.get("storage") and not full:
        raise died("parameter 'storage' not allowed for linked clones")
    part = snapshots.section(source, snapname) if snapname else source
    copies: dict[str, bool] = {}
    for key, volume in disks.entries(part).items():
        kind = permissions.mount_type(volume)
        if kind != "volume":
            raise died(f"unable to clone mountpoint '{key}' (type {kind})")
        where = params.get("storage") or volume.partition(":")[0]
        call.require(f"/storage/{where}", ["Datastore.AllocateSpace"])
        if full and node.runtime.running(call.vmid) and not snapname:
            raise died("Cannot do full clones on a running container without snapshots")
        if not full and not node.storages.has_feature(volume, "clone", snapname):
            raise died(f"Linked clone feature for '{volume}' is not available")
        copies[key] = full
    left = NOT_COPIED | copies.keys() | disks.unused(part).keys()
    made = {key: value for key, value in part.items() if key not in left}
    for key in [key for key in made if re.fullmatch(r"net\d+", key)]:
        made[key] = update.with_new_address(made[key])
        permissions.may_use_bridge(call.require, made[key])
    return made, copies


def copy(
    node: Node, say: Say, vmid: int, newid: int, copies: dict[str, bool], snapname: str | None, storage: str | None
) -> None:
    """Copy the disks. What failed leaves no clone behind, and in any case the source is unlocked."""
    made: list[str] = []
    try:
        content = node.load(vmid)
        part = snapshots.section(content, snapname) if snapname else content
        for key, full in copies.items():
            volid = disks.entries(part)[key]
            if full:
                say(f"create full clone of mountpoint {key} ({volid})")
                made.append(node.storages.copy(volid, snapname, storage or volid.partition(":")[0], newid))
            else:
                say(f"create linked clone of mount point {key} ({volid})")
                made.append(node.storages.clone(volid, newid))
            with _reserved(node, newid) as clone_content:
                clone_content[key] = disks.with_options(key, part[key], volume=made[-1])
        guests.after_clone(node, newid)
    except Exception as error:
        _unlock(node, vmid)
        for volid in made:
            node.storages.free(volid)
        node.conf_path(newid).unlink(missing_ok=True)
        raise died(f"clone failed: {getattr(error, 'message', error)}") from error
    _unlock(node, vmid)
    with _reserved(node, newid) as clone_content:
        del clone_content["lock"]


def _reserved(node: Node, newid: int) -> t.ContextManager[Conf]:
    if node.load(newid).get("lock") != "create":
        raise died("Lost 'create' config lock, aborting.")
    return node.changing(newid)


def _unlock(node: Node, vmid: int) -> None:
    with node.changing(vmid) as content:
        content.pop("lock", None)


@method(f"POST {ONE}/template", GUEST, ["VM.Allocate"])
def template(call: Call) -> None:
    """Begin to turn a guest into a template. Proxmox does not tell of the task that does it."""
    _may_become_template(call.node, call.vmid, call.node.load(call.vmid))
    call.start("vztemplate", make_template)


def _may_become_template(node: Node, vmid: int, content: Conf) -> None:
    check_lock(content)
    if content["snapshots"]:
        raise died("unable to create template, because CT contains snapshots")
    if content.get("template"):
        raise died("you can't convert a template to a template")
    if node.runtime.running(vmid):
        raise died("you can't convert a CT to template if the CT is running")


def make_template(node: Node, say: Say, vmid: int) -> None:
    """Turn a guest into a template; its volumes become base volumes."""
    with node.changing(vmid) as content:
        _may_become_template(node, vmid, content)
        for key, volid in disks.volumes(content).items():
            content[key] = disks.with_options(key, content[key], volume=node.storages.make_base(volid))
        content["template"] = 1


@method(f"PUT {ONE}/resize", GUEST, ["VM.Config.Disk"], any_of=True)
def resize(call: Call) -> str:
    disk, size = call.params["disk"], call.params["size"]
    content = call.node.load(call.vmid)
    check_digest(content, call.params.get("digest"))
    _grown(call.node, call.vmid, content, disk, size)
    call.require(f"/storage/{disks.entries(content)[disk].partition(':')[0]}", ["Datastore.AllocateSpace"])
    return call.start("resize", grow, disk=disk, size=size)


def _grown(node: Node, vmid: int, content: Conf, disk: str, size: str) -> int:
    """The size in bytes that a disk is to get. Raises ApiError where it can not get it."""
    check_lock(content)
    if disk not in content:
        raise died(f"no such disk '{disk}'")
    owner = node.storages.owner(disks.entries(content)[disk])
    if owner != vmid:
        raise died(f"can't resize mount point owned by another container ({owner})")
    found = re.search(r"(?:^|,)size=([^,]+)", content[disk])
    if not found:
        raise died(f"Could not determine current size of volume '{disks.entries(content)[disk]}'")
    now = disks.parse_size(found[1])
    wanted = disks.parse_size(size.lstrip("+")) + (now if size.startswith("+") else 0)
    if wanted < now:
        raise died("unable to shrink disk size")
    if wanted == now:
        raise died("disk is already at specified size")
    return wanted


def grow(node: Node, say: Say, vmid: int, disk: str, size: str) -> None:
    """Give a disk its new size, which here is only told: the folders of the rig have no quota."""
    with node.changing(vmid) as content:
        new = disks.format_size(_grown(node, vmid, content, disk, size))
        content[disk] = disks.with_options(disk, content[disk], size=new)
