# SPDX-License-Identifier: GPL-3.0-or-later
"""The devices between a GPU and its root port, each with its link and what it does to peer traffic, as sysfs shows them.

A GPU's own link says little of the way: the one between its switch and the root port may be the narrow one (nccl#1614,
nokyan/resources#512), and any port of the way may send peer traffic up (nccl#2079).
"""

from __future__ import annotations

import os
import re
import typing as t

from . import config_space, pci
from .tree import Tree

_ROOT = re.compile(r"^pci[0-9a-f]{4,8}:[0-9a-f]{2}$")
_DEVICE = re.compile(r"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\.[0-7]$")


def paths(tree: Tree, bus_ids: t.Iterable[str]) -> dict[str, list[dict[str, t.Any]] | None]:
    """For each GPU its path, the root port first and the GPU last; ``None`` where sysfs does not show what it hangs on.

    Each device on the way is read once, however many GPUs are behind it.
    """
    read: dict[str, dict[str, t.Any]] = {}
    found: dict[str, list[dict[str, t.Any]] | None] = {}
    for bus_id in bus_ids:
        addresses = _addresses(os.path.realpath(tree.path(f"{pci.DEVICES}/{bus_id}")))
        for address in addresses or []:
            if address not in read:
                read[address] = _hop(tree, address)
        found[bus_id] = [read[address] for address in addresses] if addresses else None
    return found


def _addresses(real_path: str) -> list[str] | None:
    """``.../pci0000:00/0000:00:01.1/0000:01:00.0`` as its two addresses."""
    parts = real_path.split("/")
    roots = [number for number, part in enumerate(parts) if _ROOT.match(part)]
    if not roots:
        return None
    below = parts[roots[-1] + 1 :]
    return below if below and all(_DEVICE.match(part) for part in below) else None


def _hop(tree: Tree, address: str) -> dict[str, t.Any]:
    port = config_space.read(tree.binary_attribute(f"{pci.DEVICES}/{address}/config"))
    return {
        "bus_id": address,
        "kind": port.kind,
        "link": pci.link(tree, address),
        "max_payload_bytes": port.max_payload_bytes,
        "max_read_request_bytes": port.max_read_request_bytes,
        "acs_control": port.acs_control,
        "request_redirect": port.request_redirect,
        "completion_redirect": port.completion_redirect,
    }


def acs(ways: t.Iterable[list[dict[str, t.Any]] | None]) -> dict[str, t.Any]:
    """``redirect`` over all ports of these paths, and the ``hops`` it rests on. The GPUs themselves do not count: what a
    function does to its own siblings says nothing of other cards.

    One port that redirects makes it ``True``; without one, a port that cannot be read makes it ``None``.
    """
    ports: dict[str, dict[str, t.Any]] = {}
    unknown = False
    for way in ways:
        unknown = unknown or way is None
        ports.update({hop["bus_id"]: hop for hop in (way or [])[:-1]})
    bits = [hop[bit] for hop in ports.values() for bit in ("request_redirect", "completion_redirect")]
    redirect = True if True in bits else None if unknown or None in bits or not bits else False
    keys = ("bus_id", "acs_control", "request_redirect", "completion_redirect")
    return {"redirect": redirect, "hops": [{key: hop[key] for key in keys} for _, hop in sorted(ports.items())]}


def links(way: t.Sequence[dict[str, t.Any]]) -> list[tuple[dict[str, t.Any], dict[str, t.Any]]]:
    """The links of a path, each as its upper and lower end. From one port of a switch to another there is none."""
    kinds = [hop["kind"] for hop in way]
    if None in kinds:
        # Where the ports cannot be read: they come in pairs, as long as nothing but ports and switches is on the way.
        return [(way[at], way[at + 1]) for at in range(0, len(way) - 1, 2)] if len(way) % 2 == 0 else []
    upper = (config_space.ROOT_PORT, config_space.DOWNSTREAM)
    return [(above, below) for above, below in zip(way, way[1:]) if above["kind"] in upper]
