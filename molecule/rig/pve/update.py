# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing a configuration: what is asked for first becomes pending, then what can take effect now does. Pure."""

from __future__ import annotations

import os
import re
import typing as t

from . import disks
from .conf import Conf, pending_deletes, set_pending_deletes
from .errors import died
from .formats import parse_property_string, print_property_string
from .node import check_protection
from .schema import DEVICE, MOUNT, NETWORK, ROOTFS

# A running guest takes these at once (pve-container, vmconfig_hotplug_pending), and networks, and disks and devices that are
# new. Everything else waits for its next start, also networks whose addresses come from a server: those would take a DHCP client.
LIVE = {
    "cores",
    "cpulimit",
    "cpuunits",
    "description",
    "hookscript",
    "hostname",
    "lock",
    "memory",
    "onboot",
    "protection",
    "startup",
    "swap",
    "tags",
}
# Their deletion cannot be applied to a running guest; all other live keys can also be deleted live.
LIVE_DELETE = LIVE - {"memory"}
KEPT = {"memory", "rootfs", "ostype"}


class Machine(t.Protocol):
    """What a change asks of the machine."""

    def device(self, path: str) -> tuple[int, int]:
        """Mode and device number of a device node of the node; raises ApiError in Proxmox's words."""

    def plug_device(self, vmid: int, key: str, value: str) -> bool:
        """Give a running guest one more device; False where that has to wait for a restart."""

    def plug_network(self, vmid: int, key: str, old: str | None, new: str) -> bool:
        """Give a running guest a network interface or change one; False where that has to wait for a restart."""

    def unplug_network(self, vmid: int, key: str) -> bool:
        """Take a network interface away from a running guest."""

    def limit(self, vmid: int, content: Conf) -> None:
        """Bring the limits of a running guest in line with its configuration."""


def request(
    content: Conf, vmid: int, new: dict[str, t.Any], delete: list[str], revert: list[str], machine: Machine
) -> None:
    """Put a change into the pending part of a configuration."""
    pending = content["pending"]
    deletes = pending_deletes(content)
    for key in revert:
        pending.pop(key, None)
        deletes.pop(key, None)
    for key in delete:
        if key not in content and key not in pending:
            continue  # Proxmox only warns
        if key in KEPT:
            raise died(f"unable to delete required option '{key}'")
        if key == "unprivileged":
            raise died("unable to delete read-only option: 'unprivileged'")
        if re.fullmatch(r"(mp|unused)\d+", key):
            check_protection(content, f"can't remove CT {vmid} drive '{key}'")
        pending.pop(key, None)
        deletes[key] = 1
    for key in sorted(new):
        pending[key] = _accepted(content, vmid, key, new[key], machine)
        deletes.pop(key, None)
    set_pending_deletes(content, deletes)
    _clean(content)


def _accepted(content: Conf, vmid: int, key: str, value: t.Any, machine: Machine) -> t.Any:
    """A value as it is stored, after the checks that are made when it is set."""
    if key == "unprivileged":
        raise died("unable to modify read-only option: 'unprivileged'")
    if key == "rootfs" or re.fullmatch(r"mp\d+", key):
        check_protection(content, f"can't update CT {vmid} drive '{key}'")
    if re.fullmatch(r"dev\d+", key):
        device = parse_property_string(DEVICE, value)
        if "path" not in device:
            raise died("Path has to be defined")
        machine.device(device["path"])
    if key == "tags":
        return ";".join(sorted({part.lower() for part in re.split(r"[,;\s]+", value) if part}))
    if key == "description":
        return value + "\n" if value and not value.endswith("\n") else value
    return value


def _clean(content: Conf) -> None:
    """Forget pending changes that change nothing."""
    pending = content["pending"]
    deletes = {key: force for key, force in pending_deletes(content).items() if key in content}
    set_pending_deletes(content, deletes)
    for key in [key for key, value in pending.items() if key != "delete" and content.get(key) == value]:
        del pending[key]


def _address() -> str:
    return f"BC:24:11:{os.urandom(3).hex(':').upper()}"


def with_new_address(network: str) -> str:
    """A network interface with another address: that of a clone."""
    return print_property_string(NETWORK, {**parse_property_string(NETWORK, network), "hwaddr": _address()})


def canonical(key: str, value: t.Any) -> t.Any:
    """A value as it is written once it takes effect: networks get an address and a type."""
    if re.fullmatch(r"net\d+", key):
        network = {"hwaddr": _address(), **parse_property_string(NETWORK, value), "type": "veth"}
        return print_property_string(NETWORK, network)
    if re.fullmatch(r"mp\d+", key):
        return print_property_string(MOUNT, parse_property_string(MOUNT, value))
    if key == "rootfs":
        return print_property_string(ROOTFS, parse_property_string(ROOTFS, value))
    return value


def apply_stopped(content: Conf) -> None:
    """All pending changes of a guest that does not run. Volumes that it does not mount any more become unused ones."""
    pending = content["pending"]
    mounted = disks.volumes(content)
    for key in pending_deletes(content):
        content.pop(key, None)
    pending.pop("delete", None)
    for key in list(pending):
        content[key] = canonical(key, pending.pop(key))
    for volid in mounted.values():
        if not disks.in_use(content, volid):
            disks.add_unused(content, volid)


def apply_running(content: Conf, vmid: int, machine: Machine) -> None:
    """Those pending changes that a running guest can take; the others stay pending. Disks are not plugged here."""
    pending = content["pending"]
    deletes = pending_deletes(content)
    for key in list(deletes):
        is_network = re.fullmatch(r"net\d+", key)
        if key in LIVE_DELETE or key.startswith("unused") or (is_network and machine.unplug_network(vmid, key)):
            content.pop(key, None)
            del deletes[key]
    set_pending_deletes(content, deletes)
    for key in sorted(pending.keys() - {"delete"}):
        value = canonical(key, pending[key])
        if _taken(content, vmid, key, value, machine):
            content[key] = value
            del pending[key]
    machine.limit(vmid, content)


def _taken(content: Conf, vmid: int, key: str, value: t.Any, machine: Machine) -> bool:
    if re.fullmatch(r"net\d+", key):
        return machine.plug_network(vmid, key, content.get(key), value)
    if re.fullmatch(r"dev\d+", key):
        return key not in content and machine.plug_device(vmid, key, value)
    return key in LIVE
