# SPDX-License-Identifier: GPL-3.0-or-later
"""Virtual machines of a Proxmox node that get its GPUs (``hostpciN``), whether they run or not."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ..pve import claims, neighbours


def look(root: str, gpus: t.Sequence[t.Mapping[str, t.Any]]) -> dict[str, list[dict[str, t.Any]]]:
    """By PCI address the machines that have a GPU: ``vmid name key running onboot``. A template has none, as it never runs."""
    hardware = neighbours.hardware(Path(root), gpus)
    found: dict[str, list[dict[str, t.Any]]] = {gpu["bus_id"]: [] for gpu in gpus}
    for guest in neighbours.guests(Path(root), hardware, [claims.MACHINE]):
        for address, key in guest.gpus.items():
            if not guest.template:
                told = {"vmid": guest.vmid, "name": guest.name, "key": key}
                found[address].append({**told, "running": guest.running, "onboot": guest.onboot})
    return found
