# SPDX-License-Identifier: GPL-3.0-or-later
"""What the IOMMU does to a GPU's traffic, from sysfs: the kernel log and the command line do not tell.

dmesg prints "Default domain type: Translated" also with ``amd_iommu=off``; what is so is ``/sys/class/iommu`` (empty where it
is off) and the type of the device's group (Documentation/ABI/testing/sysfs-kernel-iommu_groups).
"""

from __future__ import annotations

import typing as t

from .tree import Tree

_CLASS = "/sys/class/iommu"
OFF, PASSTHROUGH, TRANSLATED = "off", "passthrough", "translated"
_TYPES = {"identity": PASSTHROUGH, "DMA": TRANSLATED, "DMA-FQ": TRANSLATED}


def units(tree: Tree) -> list[str] | None:
    """The IOMMUs that are on; ``None`` where sysfs does not show them. A kernel that knows none has no such class at all."""
    found = tree.names(_CLASS)
    absent = found is None and tree.exists("/sys/class") and not tree.exists(_CLASS)
    return [] if absent else found


def group(tree: Tree, device: str) -> tuple[int | None, str | None]:
    """The IOMMU group of the device in this folder of sysfs, and the type of the group's domain."""
    name = tree.link_name(f"{device}/iommu_group")
    if name is None or not name.isdigit():
        return None, None
    return int(name), tree.attribute(f"/sys/kernel/iommu_groups/{name}/type")


def mode(present: t.Sequence[str] | None, number: int | None, domain: str | None) -> str | None:
    """What becomes of one device's addresses: ``off``, ``passthrough`` or ``translated``; ``None`` if it is not to be told.

    A device without a group is untouched only where no IOMMU is on at all.
    """
    if number is not None:
        return _TYPES.get(domain or "")
    return OFF if present is not None and not present else None


def overall(modes: t.Collection[str | None]) -> str | None:
    """The mode of several GPUs: the one that does most to their traffic, and not known if one is not known."""
    for worst in (TRANSLATED, None, PASSTHROUGH, OFF):
        if worst in modes:
            return worst
    return None
