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
# IORESOURCE_MEM of the kernel's include/linux/ioport.h.
_MEMORY_FLAG = 0x200


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


def link(tree: Tree, bus_id: str) -> dict[str, t.Any]:
    """``speed_gts width max_speed_gts max_width`` of a device's link; a GPU lowers its speed while it is idle."""
    folder = f"{DEVICES}/{bus_id}"
    return {
        "speed_gts": speed_gts(tree.attribute(f"{folder}/current_link_speed")),
        "width": width(tree.attribute(f"{folder}/current_link_width")),
        "max_speed_gts": speed_gts(tree.attribute(f"{folder}/max_link_speed")),
        "max_width": width(tree.attribute(f"{folder}/max_link_width")),
    }


def gpu(tree: Tree, bus_id: str) -> dict[str, t.Any]:
    """One GPU's ``vendor_id device_id numa_node link pci_driver``."""

    def value(name: str) -> str | None:
        return tree.attribute(f"{DEVICES}/{bus_id}/{name}")

    return {
        "vendor_id": value("vendor"),
        "device_id": value("device"),
        "numa_node": numa_node(value("numa_node")),
        "pci_driver": tree.link_name(f"{DEVICES}/{bus_id}/driver"),
        "link": link(tree, bus_id),
    }


def bar1(resource: str | None) -> tuple[int, int] | None:
    """From the file ``resource`` the PCI number and size in MiB of what NVIDIA calls BAR1, the window on a GPU's memory.

    It is the second memory region: PCI region 2 where the registers before it have a 64-bit address, else region 1.
    """
    regions = []
    for number, line in enumerate((resource or "").splitlines()[:6]):
        words = line.split()
        if len(words) == 3 and int(words[2], 16) & _MEMORY_FLAG:
            regions.append((number, (int(words[1], 16) - int(words[0], 16) + 1) >> 20))
    return regions[1] if len(regions) > 1 else None


def resizable_mib(text: str | None) -> list[int] | None:
    """Sizes that a region can have, from ``resourceN_resize``: a bit each, from 1 MiB up. ``None`` where it has one size."""
    try:
        bits = int(text or "", 16)
    except ValueError:
        return None
    return [1 << bit for bit in range(bits.bit_length()) if bits >> bit & 1]


def depth(tree: Tree, bus_id: str) -> dict[str, t.Any]:
    """What only a closer look asks of a GPU: ``local_cpus driver_override bar1_mib bar1_sizes_mib``."""
    folder = f"{DEVICES}/{bus_id}"
    window = bar1(tree.attribute(f"{folder}/resource"))
    override = tree.attribute(f"{folder}/driver_override")
    return {
        "local_cpus": tree.attribute(f"{folder}/local_cpulist"),
        "driver_override": None if override in (None, "", "(null)") else override,
        "bar1_mib": window[1] if window else None,
        "bar1_sizes_mib": resizable_mib(tree.attribute(f"{folder}/resource{window[0]}_resize")) if window else None,
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
