# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may change which key of a container's configuration.

Some keys are for the literal ``root@pam`` only: no token has them, not even one of root's, whatever its privileges.
"""

from __future__ import annotations

import re
import typing as t

from .errors import forbidden
from .formats import parse_property_string
from .schema import FEATURES, MOUNT, NETWORK, ROOTFS

Check = t.Callable[[str, list[str]], None]  # path, privileges: raises where they are missing

ROOT_ONLY_DEVICE = "configuring device passthrough is only allowed for root@pam"
ROOT_ONLY_HOOK = "changing the hookscript is only allowed for root@pam"
ROOT_ONLY_FEATURES = "changing feature flags (except nesting) is only allowed for root@pam"
ROOT_ONLY_PRIVILEGED = "changing feature flags for privileged container is only allowed for root@pam"

PRIVILEGES = [
    (r"cores|cpuunits|cpulimit", "VM.Config.CPU"),
    (r"memory|swap", "VM.Config.Memory"),
    (r"net\d+|nameserver|searchdomain|hostname", "VM.Config.Network"),
    (r"rootfs|mp\d+|unused\d+", "VM.Config.Disk"),
    (r".*", "VM.Config.Options"),
]
NEW_VOLUME = re.compile(r"([^:\s]+):(\d+(?:\.\d+)?)")


def mount_type(volume: str) -> str:
    """``volume`` on a storage, ``bind`` of a folder of the node, or ``device``."""
    if not volume.startswith("/"):
        return "volume"
    return "device" if volume.startswith("/dev/") else "bind"


def may_change(
    user: str,
    check: Check,
    vmid: int,
    new: dict[str, t.Any],
    delete: list[str] | None = None,
    old: dict[str, t.Any] | None = None,
    unprivileged: bool = True,
) -> None:
    """Raise ApiError 403 unless ``user`` may set the keys of ``new`` and delete those of ``delete``."""
    if user == "root@pam":
        return
    for key in delete or []:
        _may(check, vmid, key, None, old or {}, unprivileged)
    for key, value in new.items():
        _may(check, vmid, key, str(value), old or {}, unprivileged)


def _may(check: Check, vmid: int, key: str, value: str | None, old: dict[str, t.Any], unprivileged: bool) -> None:
    guest = f"/vms/{vmid}"
    if re.fullmatch(r"dev\d+", key):
        raise forbidden(ROOT_ONLY_DEVICE)
    if key == "hookscript":
        raise forbidden(ROOT_ONLY_HOOK)
    if key == "features":
        if not unprivileged:
            raise forbidden(ROOT_ONLY_PRIVILEGED)
        changed = _changed_features(old.get(key), value)
        if changed - {"nesting"}:
            raise forbidden(ROOT_ONLY_FEATURES)
        if changed:
            check(guest, ["VM.Allocate"])
        return
    check(guest, [next(privilege for pattern, privilege in PRIVILEGES if re.fullmatch(pattern, key))])
    if re.fullmatch(r"net\d+", key):
        for network in filter(None, (old.get(key), value)):
            may_use_bridge(check, network)
    elif value is not None and (key == "rootfs" or re.fullmatch(r"mp\d+", key)):
        _may_use_volume(check, parse_property_string(ROOTFS if key == "rootfs" else MOUNT, value)["volume"])


def _changed_features(old: str | None, new: str | None) -> set[str]:
    """Names of the features that differ; a feature that is off is one that is not there, also when all are deleted."""
    before = parse_property_string(FEATURES, old or "")
    after = parse_property_string(FEATURES, new or "")
    return {name for name in before.keys() | after.keys() if (before.get(name) or 0) != (after.get(name) or 0)}


def _may_use_volume(check: Check, volume: str) -> None:
    kind = mount_type(volume)
    if kind != "volume":
        raise forbidden(f"mount point type {kind} is only allowed for root@pam")
    if new := NEW_VOLUME.fullmatch(volume):
        check(f"/storage/{new[1]}", ["Datastore.AllocateSpace"])


def may_use_bridge(check: Check, text: str) -> None:
    """A bridge needs SDN.Use since Proxmox VE 8, the one that the guest has as well as the one that it gets."""
    network = parse_property_string(NETWORK, text)
    if network.get("bridge"):
        tag = f"/{network['tag']}" if network.get("tag") else ""
        check(f"/sdn/zones/localnetwork/{network['bridge']}{tag}", ["SDN.Use"])
