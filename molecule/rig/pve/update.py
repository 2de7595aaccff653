# SPDX-License-Identifier: GPL-3.0-or-later
"""Changing a configuration: what is asked for first becomes pending, then what can take effect now does. Pure."""

from __future__ import annotations

import os
import re
import typing as t

from .conf import Conf, pending_deletes, set_pending_deletes
from .errors import died
from .formats import parse_property_string, print_property_string
from .node import check_protection
from .schema import DEVICE, MOUNT, NETWORK, ROOTFS

# A running guest takes these at once. Proxmox also changes networks and mounts live; here they wait for a restart.
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

    def limit(self, vmid: int, content: Conf) -> None:
        """Bring the limits of a running guest in line with its configuration."""


def request(content: Conf, new: dict[str, t.Any], delete: list[str], revert: list[str], machine: Machine) -> None:
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
            check_protection(content, f"can't remove CT drive '{key}'")
        pending.pop(key, None)
        deletes[key] = 1
    for key in sorted(new):
        pending[key] = _accepted(content, key, new[key], machine)
        deletes.pop(key, None)
    set_pending_deletes(content, deletes)
    _clean(content)


def _accepted(content: Conf, key: str, value: t.Any, machine: Machine) -> t.Any:
    """A value as it is stored, after the checks that are made when it is set."""
    if key == "unprivileged":
        raise died("unable to modify read-only option: 'unprivileged'")
    if key == "rootfs" or re.fullmatch(r"mp\d+", key):
        check_protection(content, f"can't update CT drive '{key}'")
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
    """All pending changes of a guest that does not run."""
    pending = content["pending"]
    for key in pending_deletes(content):
        content.pop(key, None)
    pending.pop("delete", None)
    for key in list(pending):
        content[key] = canonical(key, pending.pop(key))


def apply_running(content: Conf, vmid: int, machine: Machine) -> None:
    """Those pending changes that a running guest can take; the others stay pending."""
    pending = content["pending"]
    deletes = pending_deletes(content)
    for key in [key for key in deletes if key in LIVE_DELETE or key.startswith("unused")]:
        content.pop(key, None)
        del deletes[key]
    set_pending_deletes(content, deletes)
    for key in sorted(pending.keys() - {"delete"}):
        new_device = re.fullmatch(r"dev\d+", key) and key not in content
        if key in LIVE or (new_device and machine.plug_device(vmid, key, pending[key])):
            content[key] = pending.pop(key)
    machine.limit(vmid, content)
