# SPDX-License-Identifier: GPL-3.0-or-later
"""Where GPUs are in the PCI tree: the class of the path between two, the links that a copy crosses, and their line rate.

The classes are those of ``nvidia-smi topo -m``. Pure over what ``machine.look`` tells of GPUs, but for ``under_load``.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..gpu import pci
from ..gpu.tree import Tree

CLASSES = ("PIX", "PXB", "PHB", "NODE", "SYS")


@dataclass(frozen=True)
class Place:
    """``ancestors`` from the root complex (``pci0000:00``) down to the GPU itself, empty where the tree cannot be seen.

    ``line_rate_gbps`` is what the narrowest of its links can carry one way at full speed, or ``None``.
    """

    ancestors: tuple[str, ...] = ()
    numa_node: int | None = None
    line_rate_gbps: float | None = None


def place(gpu: t.Mapping[str, t.Any]) -> Place:
    """The place of a GPU by its ``path`` (root port first, itself last, ``None`` if sysfs does not show it) and ``numa_node``."""
    way = gpu["path"] or []
    if not way:
        link = gpu["link"]
        return Place((), gpu["numa_node"], line_rate_gbps(link["max_speed_gts"], link["max_width"]))
    addresses = [hop["bus_id"] for hop in way]
    root_complex = f"pci{addresses[0].rsplit(':', 1)[0]}"
    rates = [line_rate_gbps(hop["link"]["max_speed_gts"], hop["link"]["max_width"]) for hop in way]
    return Place((root_complex, *addresses), gpu["numa_node"], min((rate for rate in rates if rate), default=None))


def path_class(one: Place, other: Place) -> str | None:
    """``PIX`` (one switch), ``PXB`` (several), ``PHB`` (one root complex), ``NODE``, ``SYS``; ``None`` if not known.

    Each switch is two bridges in the tree: a port towards the root, and below it one for each device. Two GPUs of which
    neither has more than its own port between itself and the common bridge are behind one switch. Boards with one NUMA
    node may say that there is none; then different root complexes are still one node.
    """
    if not one.ancestors or not other.ancestors:
        return None
    common = _common(one, other)
    if common == 0:
        return "NODE" if one.numa_node == other.numa_node else "SYS"
    if common == 1:
        return "PHB"
    between = max(len(place.ancestors) - common - 1 for place in (one, other))
    return "PIX" if between <= 1 else "PXB"


def links(source: Place, target: Place) -> set[tuple[str, str]]:
    """Links that a copy crosses, as (``up`` or ``down``, the device below the link): each carries both ways by itself."""
    common = max(_common(source, target), 1)
    up = {("up", name) for name in source.ancestors[common:]}
    return up | {("down", name) for name in target.ancestors[common:]}


def line_rate_gbps(speed_gts: float | None, width: int | None) -> float | None:
    """What a PCIe link carries one way before packet overhead, in GB/s: 32 GT/s x16 is 63.0. ``None`` if not known.

    Up to 5 GT/s eight bits take ten on the wire, from 8 GT/s on 128 take 130, and with 64 GT/s 242 bytes take 256.
    """
    if not speed_gts or not width:
        return None
    coding = 8 / 10 if speed_gts <= 5 else 128 / 130 if speed_gts <= 32 else 242 / 256
    return speed_gts * width * coding / 8


def under_load(tree: Tree, chain: t.Sequence[str]) -> dict[str, tuple[float, int]]:
    """Speed in GT/s and lanes of each link of a GPU now, by device. Only with data on the way do they mean anything."""
    links_now = {name: pci.link(tree, name) for name in chain[1:]}
    return {
        name: (link["speed_gts"], link["width"])
        for name, link in links_now.items()
        if link["speed_gts"] and link["width"]
    }


def _common(one: Place, other: Place) -> int:
    """How many ancestors two GPUs share, from the root on."""
    count = 0
    for mine, theirs in zip(one.ancestors, other.ancestors):
        if mine != theirs:
            break
        count += 1
    return count
