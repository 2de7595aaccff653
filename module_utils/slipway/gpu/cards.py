# SPDX-License-Identifier: GPL-3.0-or-later
"""The GPUs of a machine: those of the PCI bus and those of the driver's list, as one."""

from __future__ import annotations

import typing as t

from . import host, pci
from .tree import Tree

VFIO = "vfio-pci"
_GPUS = "/proc/driver/nvidia/gpus"


def is_hosts(gpu: t.Mapping[str, t.Any]) -> bool:
    """Whether a GPU is the host's to use, and not kept for virtual machines; it may have no driver yet."""
    return bool(gpu["pci_driver"] != VFIO)


def look(tree: Tree) -> list[dict[str, t.Any]]:
    """GPUs of the PCI bus and of the driver's list; ``minor`` is ``None`` where the driver does not have the GPU."""
    information = {}
    for name in tree.names(f"{_GPUS}") or []:
        text = tree.text(f"{_GPUS}/{name}/information")
        information[name.lower()] = host.gpu_information(text or "")
    found = []
    for address in sorted({*information, *(pci.gpu_bus_ids(tree) or [])}):
        told = information.get(address) or host.gpu_information("")
        minor = told.pop("minor")
        found.append(
            {
                "bus_id": address,
                "minor": minor,
                "device": f"/dev/nvidia{minor}" if minor is not None else None,
                **told,
                "driven": address in information,
                **pci.gpu(tree, address),
                "memory_mib": None,
                "sm": None,
            }
        )
    return found
