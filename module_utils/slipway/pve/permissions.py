# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may set what on a container: the rules that Proxmox applies, decided before the first write. Pure.

The rules are those of pve-container's ``check_ct_modify_config_perm`` (6.1.10). Some keys are only for the literal
``root@pam``, which a token never is, not even root's own.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from . import properties

if t.TYPE_CHECKING:
    from collections.abc import Mapping

ROOT = "root@pam"
WAY_OUT = (
    "Set these with api_backend ssh_paramiko (root on the node) or the password of root@pam; a token never may, not even "
    "root's"
)

PRIVILEGES = (
    (r"cores|cpulimit|cpuunits", "VM.Config.CPU"),
    (r"memory|swap", "VM.Config.Memory"),
    (r"net\d+|nameserver|searchdomain|hostname", "VM.Config.Network"),
    (r"rootfs|mp\d+|unused\d+", "VM.Config.Disk"),
    (r"dev\d+|hookscript|features", None),
    (r".*", "VM.Config.Options"),
)


@dataclass(frozen=True)
class Verdict:
    """Whether Proxmox lets an identity change a key: ``reason`` is its own where not, ``privileges`` what it looks for."""

    allowed: bool
    reason: str = ""
    privileges: tuple[str, ...] = ()


def verdict(
    identity: str,
    key: str,
    value: object,
    unprivileged: bool,
    current: Mapping[str, object] | None = None,
) -> Verdict:
    """Decide one key. ``value`` None means that it is deleted; ``current`` is the configuration that it has now."""
    if identity == ROOT:
        return Verdict(True)
    if re.fullmatch(r"dev\d+", key):
        return Verdict(False, "configuring device passthrough is only allowed for root@pam")
    if key == "hookscript":
        return Verdict(False, "changing the hookscript is only allowed for root@pam")
    if key == "features":
        return _features(value, unprivileged, current or {})
    privileges = privileges_for(key)
    if re.fullmatch(r"rootfs|mp\d+", key) and value is not None:
        kind = mount_kind(str(value))
        if kind != "volume":
            return Verdict(False, f"mount point type {kind} is only allowed for root@pam", privileges)
    return Verdict(True, "", privileges)


def privileges_for(key: str) -> tuple[str, ...]:
    """The privilege on ``/vms/<vmid>`` that a key needs, as a tuple of none or one."""
    found = next(privilege for pattern, privilege in PRIVILEGES if re.fullmatch(pattern, key))
    return (found,) if found else ()


def refused(
    identity: str,
    changes: Mapping[str, object],
    unprivileged: bool,
    current: Mapping[str, object] | None = None,
) -> dict[str, str]:
    """The keys of ``changes`` (value None: deleted) that the identity may never set, with Proxmox's reason for each."""
    verdicts = {key: verdict(identity, key, value, unprivileged, current) for key, value in changes.items()}
    return {key: found.reason for key, found in verdicts.items() if not found.allowed}


def sentence(
    identity: str,
    changes: Mapping[str, object],
    unprivileged: bool,
    current: Mapping[str, object] | None = None,
) -> str | None:
    """What stands against these changes, with every key that is refused and Proxmox's reason; None where nothing does.

    No full stop at its end. The way out is always ``WAY_OUT``.
    """
    found = sorted(refused(identity, changes, unprivileged, current).items())
    if not found:
        return None
    reasons = "; ".join(f"{key}: {reason}" for key, reason in found)
    return f"'{identity}' may not set {', '.join(key for key, _ in found)} ({reasons})"


def mount_kind(value: str) -> str:
    """What a mount point's value is, as Proxmox classifies it: a volume of a storage, a device, or a bind mount."""
    volume = properties.parse(value, "volume").get("volume", "")
    if volume.startswith("/dev/"):
        return "device"
    return "bind" if volume.startswith("/") else "volume"


def _features(value: object, unprivileged: bool, current: Mapping[str, object]) -> Verdict:
    if not unprivileged:
        return Verdict(False, "changing feature flags for privileged container is only allowed for root@pam")
    old = properties.parse(str(current.get("features", "")))
    new = properties.parse("" if value is None else str(value))
    differing = {name for name in old.keys() | new.keys() if old.get(name) != new.get(name)}
    # Without flags before, Proxmox lets only a lone nesting that is on pass.
    alone = bool(old) or value is None or properties.truth(new.get("nesting", "0"))
    if differing <= {"nesting"} and alone:
        return Verdict(True, "", ("VM.Allocate",))
    return Verdict(False, "changing feature flags (except nesting) is only allowed for root@pam")
