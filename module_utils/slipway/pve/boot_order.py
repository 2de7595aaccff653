# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's guests in the order in which Proxmox starts them at boot; it shuts them down in the reverse one.

The rule is that of pve-manager (PVE/API2/Nodes.pm, get_start_stop_list): by ``order`` of ``startup``, those without one last, and by
their numbers where that is the same.
"""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass
from pathlib import Path

from . import claims, conf, neighbours, properties

_LAST = 2**31


@dataclass(frozen=True)
class Guest:
    """``kind`` is ``lxc`` or ``qemu``; ``order`` is ``None`` where none is set; ``passes_through`` whether it has a PCI device."""

    vmid: int
    kind: str
    name: str
    running: bool
    onboot: bool
    order: int | None
    passes_through: bool

    def as_dict(self) -> dict[str, t.Any]:
        """The guest as the module returns it."""
        return asdict(self)


def look(root: Path) -> list[Guest]:
    """The node's guests in their order, without templates, which never run. Raises OSError."""
    folders = {claims.CONTAINER: "lxc", claims.MACHINE: "qemu-server"}
    found = []
    for one in neighbours.guests(root, claims.Hardware()):
        if one.template:
            continue
        settings = conf.settings(
            (root / "etc/pve" / folders[one.kind] / f"{one.vmid}.conf").read_text("utf-8", "replace")
        )
        passes_through = any(key.startswith("hostpci") for key in settings)
        order = start_order(settings.get("startup", ""))
        found.append(Guest(one.vmid, one.kind, one.name, one.running, one.onboot, order, passes_through))
    return sorted(found, key=lambda guest: (_LAST if guest.order is None else guest.order, guest.vmid))


def start_order(startup: str) -> int | None:
    """The ``order`` of ``[[order=]N][,up=N][,down=N]``; ``None`` where there is none."""
    try:
        order = properties.parse(startup, "order").get("order", "")
    except ValueError:
        return None
    return int(order) if order.isdecimal() else None
