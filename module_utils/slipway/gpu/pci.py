# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs on the PCI bus as sysfs shows them. Needs no driver; the tree above a GPU is for whoever judges links."""

from __future__ import annotations

import re
import typing as t

from .tree import Tree

DEVICES = "/sys/bus/pci/devices"
NVIDIA = "0x10de"
# Display controllers: VGA (0300) and 3D (0302). The sound function of the same card (0403) is not a GPU.
_GPU_CLASSES = ("0x0300", "0x0302")


def speed_gts(text: str | None) -> float | None:
    """``32.0 GT/s PCIe`` as 32.0; ``Unknown`` or nothing as ``None``."""
    found = re.match(r"(\d+(?:\.\d+)?) ?GT/s", text or "")
    return float(found[1]) if found else None


def width(text: str | None) -> int | None:
    """Lanes; sysfs has 0 or 255 where the link does not tell."""
    lanes = int(text) if text and text.isdigit() else 0
    return lanes if 0 < lanes <= 32 else None


def numa_node(text: str | None) -> int | None:
    """``-1`` is the kernel's word for unknown (normal on one-socket boards), so it is ``None``."""
    return int(text) if text and text.isdigit() else None


def is_nvidia_gpu(vendor: str | None, device_class: str | None) -> bool:
    """Whether the ``vendor`` and ``class`` files are those of an NVIDIA GPU."""
    return vendor == NVIDIA and (device_class or "").startswith(_GPU_CLASSES)


def gpu(tree: Tree, bus_id: str) -> dict[str, t.Any]:
    """One GPU's ``vendor_id device_id numa_node link pci_driver``; the link at idle is often in a low speed."""

    def value(name: str) -> str | None:
        return tree.attribute(f"{DEVICES}/{bus_id}/{name}")

    return {
        "vendor_id": value("vendor"),
        "device_id": value("device"),
        "numa_node": numa_node(value("numa_node")),
        "pci_driver": tree.link_name(f"{DEVICES}/{bus_id}/driver"),
        "link": {
            "speed_gts": speed_gts(value("current_link_speed")),
            "width": width(value("current_link_width")),
            "max_speed_gts": speed_gts(value("max_link_speed")),
            "max_width": width(value("max_link_width")),
        },
    }


def gpu_bus_ids(tree: Tree) -> list[str] | None:
    """Addresses of the NVIDIA GPUs on the bus, sorted; ``None`` where the bus cannot be seen."""
    names = tree.names(DEVICES)
    if names is None:
        return None
    found = []
    for name in names:
        if is_nvidia_gpu(tree.attribute(f"{DEVICES}/{name}/vendor"), tree.attribute(f"{DEVICES}/{name}/class")):
            found.append(name.lower())
    return sorted(found)
