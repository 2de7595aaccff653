# SPDX-License-Identifier: GPL-3.0-or-later
"""The disks that a configuration names: rootfs, mpN and unusedN. Pure."""

from __future__ import annotations

import re
import typing as t

from .conf import Conf
from .errors import died
from .formats import parse_property_string, print_property_string
from .permissions import mount_type
from .schema import MOUNT, NUMBERED, ROOTFS, UNUSED

SIZE = re.compile(r"(\d+(?:\.\d+)?)([KMGT]?)")
UNITS = " KMGT"


def form(key: str) -> dict[str, t.Any]:
    """The description of a disk's property string."""
    return {"rootfs": ROOTFS, "unused": UNUSED}.get(key.rstrip("0123456789"), MOUNT)


def entries(content: Conf) -> dict[str, str]:
    """rootfs and mpN of a part, the root first, with what each mounts: a volume, a folder or a device of the node."""
    keys = [key for key in content if key == "rootfs" or re.fullmatch(r"mp\d+", key)]
    keys.sort(key=lambda key: (key != "rootfs", int(key[2:]) if key != "rootfs" else 0))
    return {key: parse_property_string(form(key), content[key])["volume"] for key in keys}


def volumes(content: Conf) -> dict[str, str]:
    """Those of a storage."""
    return {key: volume for key, volume in entries(content).items() if mount_type(volume) == "volume"}


def unused(content: Conf) -> dict[str, str]:
    """Volumes that the guest has and does not mount."""
    return {key: str(content[key]) for key in content if re.fullmatch(r"unused\d+", key)}


def owned(content: Conf) -> list[str]:
    """Every volume of the guest, also those that only a snapshot knows."""
    parts = [content, *content.get("snapshots", {}).values()]
    return list(dict.fromkeys(volid for part in parts for volid in [*volumes(part).values(), *unused(part).values()]))


def in_use(content: Conf, volid: str, snapshots: bool = True) -> bool:
    """Whether the guest mounts a volume, will after its next start, or did in a snapshot."""
    parts = [content, content.get("pending", {})] + (list(content.get("snapshots", {}).values()) if snapshots else [])
    return any(volid in volumes(part).values() for part in parts)


def add_unused(content: Conf, volid: str) -> None:
    """Keep a volume under the lowest free number. Raises ApiError where there is none."""
    if volid in unused(content).values():
        return
    free = (f"unused{number}" for number in range(NUMBERED["unused"]) if f"unused{number}" not in content)
    if (key := next(free, None)) is None:
        raise died("Too many unused volumes")
    content[key] = volid


def with_options(key: str, value: str, **changed: str) -> str:
    """A disk's property string with other values for some of its options."""
    return print_property_string(form(key), {**parse_property_string(form(key), value), **changed})


def parse_size(text: str) -> int:
    """Bytes of ``8G``, ``512M`` or ``4096``."""
    found = SIZE.fullmatch(text)
    if not found:
        raise died("invalid size string")
    return int(float(found[1]) * 1024 ** UNITS.index(found[2] or " "))


def format_size(size: int) -> str:
    """Bytes in the largest unit that has no fraction."""
    unit = 0
    while size and size % 1024 == 0 and unit < len(UNITS) - 1:
        size, unit = size // 1024, unit + 1
    return f"{size}{UNITS[unit].strip()}"
