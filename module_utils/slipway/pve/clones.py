# SPDX-License-Identifier: GPL-3.0-or-later
"""Making a container as a clone of another one: what it will be, and what stands against it.

The rules are those of pve-container's ``clone_vm`` (API2/LXC.pm).
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ..findings import Finding, finding
from . import api, devices, permissions, properties

if t.TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .client import Client

# Keys that say something about the source alone.
OF_THE_SOURCE = ("digest", "lock", "parent", "snaptime", "snapstate", "template")
NO_ADDRESS = ("", "dhcp", "auto", "manual")


@dataclass(frozen=True)
class Source:
    """What is cloned. ``config`` is that of the snapshot, where one is named."""

    vmid: int
    node: str
    running: bool
    template: bool
    config: dict[str, t.Any]
    snapshot: str | None = None

    @property
    def unprivileged(self) -> bool:
        return properties.truth(self.config.get("unprivileged", 0))


class Obstacle(t.NamedTuple):
    """Why there is no clone: a cause and a remedy for the house's sentence, and a finding where there is one."""

    cause: str
    remedy: str
    finding: Finding | None = None


def read(client: Client, node: str, clone: Mapping[str, t.Any]) -> Source | None:
    """Read the source in two calls; None where the node has none of this number. Raises ApiError."""
    vmid, snapshot = clone["vmid"], clone.get("snapname")
    row = next((row for row in api.containers(client, node) if int(row["vmid"]) == vmid), None)
    if row is None:
        return None
    config = api.snapshot_config(client, node, vmid, snapshot) if snapshot else api.config(client, node, vmid)
    return Source(
        vmid=vmid,
        node=node,
        running=row.get("status") == "running",
        template=properties.truth(row.get("template") or config.get("template", 0)),
        config=config,
        snapshot=snapshot,
    )


def is_full(source: Source, clone: Mapping[str, t.Any]) -> bool:
    """Whether disks are copied; not said, Proxmox links those of a template and copies others. Pure."""
    return clone["full"] if clone.get("full") is not None else not source.template


def hostname(params: Mapping[str, t.Any]) -> str:
    """The clone's host name: never that of its source, so without a declared one what Proxmox gives a new container."""
    return params.get("hostname") or f"CT{params['vmid']}"


def expected(source: Source, params: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The configuration that the clone has before anything else is changed; its MAC addresses are Proxmox's choice. Pure."""
    config = {key: value for key, value in source.config.items() if key not in OF_THE_SOURCE}
    config = {key: value for key, value in config.items() if not key.startswith("unused")}
    for key, value in devices.numbered(config, "net").items():
        options = {name: text for name, text in properties.parse(value).items() if name != "hwaddr"}
        config[key] = properties.render(options)
    return {**config, "hostname": hostname(params)}


def arguments(source: Source, params: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """What is sent. Pure."""
    full = is_full(source, params["clone"])
    storage = params.get("storage") or (params.get("rootfs") or {}).get("storage")
    return {
        "newid": params["vmid"],
        "hostname": hostname(params),
        "full": int(full),
        "snapname": source.snapshot,
        "storage": storage if full else None,
    }


def obstacles(source: Source, params: Mapping[str, t.Any]) -> Iterator[Obstacle]:
    """What Proxmox would refuse, or what would make two guests with one address. Pure."""
    subject = f"container '{source.vmid}'"
    if not is_full(source, params["clone"]) and not source.template:
        yield Obstacle(
            f"{subject} is no template, and only the disks of a template can be linked to",
            f"Set clone.full to true, or make '{source.vmid}' a template (state: template)",
        )
    if source.running and not source.snapshot:
        yield Obstacle(
            f"{subject} runs, and a running container is cloned from a snapshot only",
            "Stop it, or make a snapshot of it (pve_snapshot) and name that in clone.snapname",
        )
    for key, value in devices.numbered(source.config, "mp").items():
        if (kind := permissions.mount_kind(value)) != "volume":
            detail = f"Its {key} is a {kind} mount ({value})."
            yield Obstacle(
                f"{subject} has {key}, a {kind} mount, with which Proxmox clones nothing",
                f"Mount it by a raw line (pve_container_raw, lxc.mount.entry) in place of {key}",
                finding("PVE_CLONE_UNSUPPORTED", subject, detail),
            )
    wanted = params.get("unprivileged")
    if wanted is not None and wanted != source.unprivileged:
        kinds = {True: "unprivileged", False: "privileged"}
        yield Obstacle(
            f"{subject} is {kinds[source.unprivileged]}, declared is {kinds[wanted]}, and a clone is what its source is",
            "Declare what the source is, or clone another one",
        )
    declared = {f"net{network['id']}" for network in params.get("net") or []}
    for key, address in _addresses(source.config):
        if key not in declared:
            yield Obstacle(
                f"{subject} has the address {address} on {key}, and the clone would have the same",
                f"Declare an address of its own for {key} in 'net'",
                finding("ADDRESS_IN_USE", f"container '{params['vmid']}'", f"{address} is {key} of {subject}."),
            )


def impossible(source: Source, params: Mapping[str, t.Any]) -> Obstacle:
    """What to say where ``GET feature`` says no. Pure."""
    kind = "full" if is_full(source, params["clone"]) else "linked"
    stores = sorted(
        {
            properties.parse(str(value), "volume").get("volume", "").partition(":")[0]
            for key, value in source.config.items()
            if key == "rootfs" or re.fullmatch(r"mp\d+", key)
        }
    )
    cause = f"Proxmox makes no {kind} clone of the disks of container '{source.vmid}' on {', '.join(stores)}"
    remedy = "Set clone.full to true" if kind == "linked" else "Stop the source and leave clone.snapname out"
    return Obstacle(cause, remedy, finding("PVE_CLONE_UNSUPPORTED", f"container '{source.vmid}'", f"{cause}."))


def _addresses(config: Mapping[str, t.Any]) -> Iterator[tuple[str, str]]:
    for key, value in devices.numbered(config, "net").items():
        options = properties.parse(value)
        for name in ("ip", "ip6"):
            if options.get(name, "") not in NO_ADDRESS:
                yield key, options[name]
