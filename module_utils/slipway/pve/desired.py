# SPDX-License-Identifier: GPL-3.0-or-later
"""What the options of ``pve_container`` ask for, in the keys and values of Proxmox's API. Pure.

One builder for creation and for update, so that what can be changed can also be created (bpg#1721 was two of them).
An option that is not given yields no key; an empty one yields None, which means: unset it.
"""

from __future__ import annotations

import typing as t

from . import devices, properties, values

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .guest import Guest

Value = t.Union[str, int, None]

PLAIN = {
    "hostname": "hostname",
    "cores": "cores",
    "memory_mib": "memory",
    "swap_mib": "swap",
    "startup": "startup",
    "description": "description",
}
# Proxmox refuses to delete memory and swap; cores: 0 is how this module says "all of them".
UNSET_BY_ZERO = {"cores"}


def configuration(params: Mapping[str, t.Any], guest: Guest) -> dict[str, Value]:
    """The configuration keys that the options declare. Raises ``ValueError`` for an option that no guest can have."""
    wanted: dict[str, Value] = {}
    for option, key in PLAIN.items():
        value = params.get(option)
        if value is not None:
            unset = value == "" or (option in UNSET_BY_ZERO and value == 0)
            wanted[key] = None if unset else value
    if params.get("onboot") is not None:
        wanted["onboot"] = int(params["onboot"])
    if params.get("tags") is not None:
        tags = [tag for tag in params["tags"] if tag.strip()]
        if tags or not params["tags"]:  # a list of empty texts asks for nothing
            wanted["tags"] = ";".join(tags) or None
    if params.get("features") is not None:
        for fault in values.of_features(params["features"]):
            raise ValueError(fault)
        wanted["features"] = properties.render(_given(params["features"])) or None
    wanted.update(_networks(params.get("net") or []))
    wanted.update(_devices(params.get("devices") or [], guest))
    wanted.update(_new_mounts(params.get("mounts") or [], guest))
    return wanted


def creation(params: Mapping[str, t.Any]) -> dict[str, Value]:
    """The keys that count only when the guest is made: template, storage, root disk, privileges, keys."""
    wanted: dict[str, Value] = {"vmid": params["vmid"], "ostemplate": params["ostemplate"]}
    if params.get("storage"):
        wanted["storage"] = params["storage"]
    if params.get("rootfs"):
        wanted["rootfs"] = f"{params['rootfs']['storage']}:{params['rootfs']['size_gib']}"
    if params.get("unprivileged") is not None:
        wanted["unprivileged"] = int(params["unprivileged"])
    if params.get("ssh_public_keys"):
        wanted["ssh-public-keys"] = "\n".join(key.strip() for key in params["ssh_public_keys"])
    return wanted


class Disk(t.NamedTuple):
    """A disk that is there and was declared: its key, its name in sentences, its options, and the declaration."""

    key: str
    name: str
    options: dict[str, str]
    declared: Mapping[str, t.Any]

    @property
    def storage(self) -> str:
        return self.options.get("volume", "").partition(":")[0]

    @property
    def size_gib(self) -> float | None:
        """None where Proxmox does not tell it."""
        return properties.gibibytes(self.options["size"]) if "size" in self.options else None

    @property
    def value(self) -> str:
        return properties.render(self.options, "volume")

    @property
    def grown(self) -> str:
        """Its value when it has the declared size."""
        return properties.render({**self.options, "size": f"{self.declared['size_gib']}G"}, "volume")


def growth(params: Mapping[str, t.Any], guest: Guest) -> list[Disk]:
    """The disks that are smaller than declared: Proxmox can grow a disk, never shrink or move it by a setting."""
    return [disk for disk in _disks(params, guest) if disk.size_gib and disk.size_gib < disk.declared["size_gib"]]


def unlike(params: Mapping[str, t.Any], guest: Guest) -> list[str]:
    """Sentences about disks that are not as declared and stay so, those apart that are grown."""
    grown = [disk.key for disk in growth(params, guest)] if params.get("grow_disks") else []
    sentences = []
    for disk in _disks(params, guest):
        wanted = disk.declared
        if disk.storage != wanted["storage"]:
            sentences.append(
                f"{disk.name} is on '{disk.storage}', not on '{wanted['storage']}' as declared; it was left there"
            )
        if disk.size_gib and disk.size_gib != wanted["size_gib"] and disk.key not in grown:
            way = "; grow_disks would let it grow" if disk.size_gib < wanted["size_gib"] else ""
            sentences.append(
                f"{disk.name} has {disk.options['size']}, not {wanted['size_gib']}G as declared; it was left so{way}"
            )
    return sentences


def _disks(params: Mapping[str, t.Any], guest: Guest) -> list[Disk]:
    found = []
    if params.get("rootfs") and "rootfs" in guest.config:
        options = properties.parse(str(guest.config["rootfs"]), "volume")
        found.append(Disk("rootfs", "rootfs", options, params["rootfs"]))
    for mount in params.get("mounts") or []:
        for key, value in devices.numbered(guest.declared, "mp").items():
            if devices.mount_path(value) == devices.clean(mount["path"]):
                found.append(Disk(key, f"{key} ({mount['path']})", properties.parse(value, "volume"), mount))
    return found


def _given(options: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """Options that say something: no nulls, no booleans that are off (Proxmox's default), booleans as 1."""
    return {
        name.replace("_", "-") if name in ("deny_write", "host_managed") else name: 1 if value is True else value
        for name, value in options.items()
        if value is not None and value is not False and value != ""
    }


def _networks(networks: Sequence[Mapping[str, t.Any]]) -> dict[str, Value]:
    for fault in values.of_networks(networks):
        raise ValueError(fault)
    wanted: dict[str, Value] = {}
    for network in networks:
        wanted[f"net{network['id']}"] = properties.render(
            _given({name: value for name, value in network.items() if name != "id"})
        )
    return wanted


def _devices(declared: Sequence[Mapping[str, t.Any]], guest: Guest) -> dict[str, Value]:
    paths = [device["path"] for device in declared]
    for fault in values.of_devices(declared):
        raise ValueError(fault)
    keys = devices.assign(paths, (guest.declared, guest.config), "dev", devices.device_path)
    return {keys[device["path"]]: properties.render(_given(device), "path") for device in declared}


def _new_mounts(declared: Sequence[Mapping[str, t.Any]], guest: Guest) -> dict[str, Value]:
    """Only mounts that are not there yet: STORAGE:SIZE allocates a new disk each time it is sent (c.general#8407)."""
    for fault in values.of_mounts(declared):
        raise ValueError(fault)
    there = {devices.mount_path(value) for value in devices.numbered(guest.declared, "mp").values()}
    declared = [{**mount, "path": devices.clean(mount["path"])} for mount in declared]
    new = [mount for mount in declared if mount["path"] not in there]
    # A mount whose removal is pending has its number still, so it is asked for as new under another one.
    keys = devices.assign([mount["path"] for mount in new], (guest.declared, guest.config), "mp", lambda value: None)
    return {keys[m["path"]]: f"{m['storage']}:{m['size_gib']},mp={m['path']}" for m in new}
