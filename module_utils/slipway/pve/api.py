# SPDX-License-Identifier: GPL-3.0-or-later
"""Calls of the Proxmox API, one thin function each. No logic; all raise ApiError.

``worked`` is what ``Client.call`` asks when the answer to a change was lost; without it such a change is not made again.
"""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .client import Client, Worked


def containers(client: Client, node: str) -> list[dict[str, t.Any]]:
    """All containers of a node, each with ``vmid``, ``status`` and, where set, ``lock``. The node itself answers."""
    return client.call("get", f"nodes/{node}/lxc")


def config(client: Client, node: str, vmid: int) -> dict[str, t.Any]:
    """A container's configuration as it is in force, with ``digest``; without ``current`` pending values would hide it."""
    return client.call("get", f"nodes/{node}/lxc/{vmid}/config", current=1)


def pending(client: Client, node: str, vmid: int) -> list[dict[str, t.Any]]:
    """Per key its value, and what it will be after a restart."""
    return client.call("get", f"nodes/{node}/lxc/{vmid}/pending")


def status(client: Client, node: str, vmid: int) -> dict[str, t.Any]:
    return client.call("get", f"nodes/{node}/lxc/{vmid}/status/current")


def claim_free(client: Client, vmid: int) -> None:
    """Ask whether a vmid is free in the whole cluster. Raises ApiError with status 400 where it is taken."""
    client.call("get", "cluster/nextid", vmid=vmid)


def guests_of_cluster(client: Client) -> list[dict[str, t.Any]]:
    """All guests of the cluster, from its status broadcast: seconds old, so good for a sentence and not for a decision."""
    return client.call("get", "cluster/resources", type="vm")


def nodes(client: Client) -> list[dict[str, t.Any]]:
    """The nodes of the cluster, each with ``node`` and ``status`` (online, offline, unknown)."""
    return client.call("get", "nodes")


def machine(client: Client, node: str) -> dict[str, t.Any]:
    """``memory`` and ``swap`` of a node with their ``total`` in bytes, ``cpuinfo`` with ``cpus``."""
    return client.call("get", f"nodes/{node}/status")


def storages(client: Client, node: str) -> list[dict[str, t.Any]]:
    """The storages that the identity may use or see, each with ``type``, ``content``, ``enabled``, ``active``, ``avail``."""
    return client.call("get", f"nodes/{node}/storage")


def templates(client: Client, node: str, storage: str) -> list[dict[str, t.Any]]:
    """The container templates on a storage, each with ``volid`` and ``size``."""
    return client.call("get", f"nodes/{node}/storage/{storage}/content", content="vztmpl")


def bridges(client: Client, node: str) -> list[dict[str, t.Any]]:
    """The bridges and virtual networks that the identity may use or see, each with ``iface`` and ``type``."""
    return client.call("get", f"nodes/{node}/network", type="any_bridge")


def own_permissions(client: Client) -> dict[str, dict[str, t.Any]]:
    """Path to privileges of the identity, each with whether it holds below the path too; a path without any is not there."""
    return client.call("get", "access/permissions")


def create(client: Client, node: str, arguments: Mapping[str, t.Any], worked: Worked | None = None) -> t.Any:
    return client.call("post", f"nodes/{node}/lxc", worked, **arguments)


def update(
    client: Client,
    node: str,
    vmid: int,
    arguments: Mapping[str, t.Any],
    delete: Sequence[str],
    digest: str | None,
    worked: Worked | None = None,
) -> None:
    """Set and unset keys. Synchronous. Refused where the configuration is not the one with ``digest`` any more."""
    client.call(
        "put",
        f"nodes/{node}/lxc/{vmid}/config",
        worked,
        **arguments,
        delete=",".join(delete) or None,
        digest=digest,
    )


def start(client: Client, node: str, vmid: int, worked: Worked | None = None, debug: bool = False) -> t.Any:
    """``debug`` puts what LXC says into the task's log, as ``pct start --debug`` shows it."""
    return client.call("post", f"nodes/{node}/lxc/{vmid}/status/start", worked, debug=1 if debug else None)


def shutdown(client: Client, node: str, vmid: int, timeout_seconds: int, worked: Worked | None = None) -> t.Any:
    """Shut down, and stop what has not ended after ``timeout_seconds``."""
    return client.call("post", f"nodes/{node}/lxc/{vmid}/status/shutdown", worked, timeout=timeout_seconds, forceStop=1)


def reboot(client: Client, node: str, vmid: int, timeout_seconds: int, worked: Worked | None = None) -> t.Any:
    """Shut down and start again; brings pending changes into force, and high availability knows of it."""
    return client.call("post", f"nodes/{node}/lxc/{vmid}/status/reboot", worked, timeout=timeout_seconds)


def stop(client: Client, node: str, vmid: int, worked: Worked | None = None) -> t.Any:
    return client.call("post", f"nodes/{node}/lxc/{vmid}/status/stop", worked)


def destroy(client: Client, node: str, vmid: int, purge: bool, worked: Worked | None = None) -> t.Any:
    return client.call("delete", f"nodes/{node}/lxc/{vmid}", worked, purge=1 if purge else None)


def resize(
    client: Client, node: str, vmid: int, disk: str, size_gib: int, digest: str | None, worked: Worked | None = None
) -> t.Any:
    """Grow a disk (``rootfs``, ``mpN``) to this size. Proxmox does not shrink one."""
    return client.call("put", f"nodes/{node}/lxc/{vmid}/resize", worked, disk=disk, size=f"{size_gib}G", digest=digest)


def feature(client: Client, node: str, vmid: int, name: str, snapshot: str | None = None) -> bool:
    """Whether every disk of a guest can do ``name``: snapshot, clone (linked) or copy (a full clone)."""
    answer = client.call("get", f"nodes/{node}/lxc/{vmid}/feature", feature=name, snapname=snapshot)
    return str((answer or {}).get("hasFeature", 0)) in ("1", "True", "true")


def clone(
    client: Client, node: str, source: int, arguments: Mapping[str, t.Any], worked: Worked | None = None
) -> t.Any:
    return client.call("post", f"nodes/{node}/lxc/{source}/clone", worked, **arguments)


def make_template(client: Client, node: str, vmid: int, worked: Worked | None = None) -> None:
    """Synchronous, and for ever: Proxmox has no way back."""
    client.call("post", f"nodes/{node}/lxc/{vmid}/template", worked)


def interfaces(client: Client, node: str, vmid: int) -> list[dict[str, t.Any]]:
    """The interfaces that a running guest has now, each with ``name``, ``hwaddr``, ``inet``, ``inet6`` where it has them."""
    return client.call("get", f"nodes/{node}/lxc/{vmid}/interfaces")


def snapshots(client: Client, node: str, vmid: int) -> list[dict[str, t.Any]]:
    """The snapshots, each with ``name``, ``description``, ``snaptime``, ``parent``; one ``current`` is the guest itself."""
    return client.call("get", f"nodes/{node}/lxc/{vmid}/snapshot")


def snapshot_config(client: Client, node: str, vmid: int, name: str) -> dict[str, t.Any]:
    """The configuration that a snapshot holds. Not from ``snapshot/NAME/config``, which leaves out the raw lines."""
    return client.call("get", f"nodes/{node}/lxc/{vmid}/config", snapshot=name)


def make_snapshot(
    client: Client, node: str, vmid: int, name: str, description: str | None, worked: Worked | None = None
) -> t.Any:
    path = f"nodes/{node}/lxc/{vmid}/snapshot"
    return client.call("post", path, worked, snapname=name, description=description)


def describe_snapshot(
    client: Client, node: str, vmid: int, name: str, description: str, worked: Worked | None = None
) -> None:
    """Give a snapshot another description. Synchronous."""
    client.call("put", f"nodes/{node}/lxc/{vmid}/snapshot/{name}/config", worked, description=description)


def remove_snapshot(client: Client, node: str, vmid: int, name: str, worked: Worked | None = None) -> t.Any:
    return client.call("delete", f"nodes/{node}/lxc/{vmid}/snapshot/{name}", worked)


def roll_back(client: Client, node: str, vmid: int, name: str, worked: Worked | None = None) -> t.Any:
    """Stop the guest, and bring its disks and its configuration back to a snapshot."""
    return client.call("post", f"nodes/{node}/lxc/{vmid}/snapshot/{name}/rollback", worked)


def tasks_of_guest(client: Client, node: str, vmid: int, kind: str) -> list[dict[str, t.Any]]:
    """The tasks of one kind on a guest that run, or have just ended, newest first, each with ``upid`` and ``status``.

    An identity sees its own ones without any privilege.
    """
    return client.call("get", f"nodes/{node}/tasks", vmid=vmid, typefilter=kind, source="active")


def task_status(client: Client, upid: str) -> dict[str, t.Any]:
    return client.call("get", f"nodes/{node_of(upid)}/tasks/{upid}/status")


def task_log(client: Client, upid: str) -> list[dict[str, t.Any]]:
    """The whole log: without ``limit=0`` the server gives the first 50 lines."""
    return client.call("get", f"nodes/{node_of(upid)}/tasks/{upid}/log", limit=0)


def node_of(upid: str) -> str:
    """The node that a task runs on: the second field of ``UPID:node:pid:pstart:start:type:id:user:``."""
    return upid.split(":")[1]
