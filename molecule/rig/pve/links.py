# SPDX-License-Identifier: GPL-3.0-or-later
"""Network interfaces of a running container: a veth pair, whose one end is on a bridge of the node.

Addresses are set as Proxmox does it, from outside with ``ip``. Those that come from a server (dhcp, auto) are not: that would
take a client in the guest, so such changes wait for a restart.
"""

from __future__ import annotations

import subprocess
import typing as t

from .formats import parse_property_string
from .schema import NETWORK

FROM_SERVER = ("dhcp", "auto")
FAMILIES = (("-4", "ip", "gw"), ("-6", "ip6", "gw6"))

Network = dict[str, t.Any]


def plug(pid: int, link: str, old: str | None, new: str) -> bool:
    """Make an interface of the container that ``pid`` runs in, or change it from ``old``; False where it has to wait."""
    before = parse_property_string(NETWORK, old) if old else {}
    after = parse_property_string(NETWORK, new)
    if any(network.get(key) in FROM_SERVER for network in (before, after) for key in ("ip", "ip6")):
        return False
    if any(before.get(key) != after.get(key) for key in ("hwaddr", "name")):
        return (not before or unplug(link)) and (_made(pid, link, after) or (unplug(link) and False))
    return _wired(link, after) and _addressed(pid, before, after)


def unplug(link: str) -> bool:
    """Remove the pair; the end in the container goes with it."""
    return _ip("link", "delete", link)


def _made(pid: int, link: str, network: Network) -> bool:
    peer, name = f"{link}p", network["name"]
    return (
        _ip("link", "add", link, "type", "veth", "peer", "name", peer)
        and _ip("link", "set", peer, "address", network["hwaddr"])
        and _ip("link", "set", peer, "mtu", network.get("mtu", "1500"))
        and _wired(link, network)
        and _ip("link", "set", peer, "netns", str(pid), "name", name)
        and (bool(network.get("link_down")) or _ip("link", "set", name, "up", inside=pid))
        and _addressed(pid, {}, network)
    )


def _wired(link: str, network: Network) -> bool:
    bridge = ["master", network["bridge"]] if network.get("bridge") and not network.get("link_down") else ["nomaster"]
    return _ip("link", "set", link, *bridge, "down" if network.get("link_down") else "up")


def _addressed(pid: int, before: Network, after: Network) -> bool:
    """Addresses and gateways that differ; a gateway goes with the address that it was reached by."""
    name, done = after["name"], True
    for family, address, gateway in FAMILIES:
        moved = before.get(address) != after.get(address)
        if moved and "/" in before.get(address, ""):
            done = done and _ip(family, "address", "delete", before[address], "dev", name, inside=pid)
        if moved and "/" in after.get(address, ""):
            done = done and _ip(family, "address", "add", after[address], "dev", name, inside=pid)
        if after.get(gateway) and (moved or before.get(gateway) != after[gateway]):
            done = done and _ip(family, "route", "replace", "default", "via", after[gateway], "dev", name, inside=pid)
        elif before.get(gateway) and not after.get(gateway):
            _ip(family, "route", "delete", "default", "dev", name, inside=pid)
    return done


def _ip(*words: str, inside: int | None = None) -> bool:
    enter = ["nsenter", "--net", "--target", str(inside), "--"] if inside else []
    return subprocess.run([*enter, "ip", *words], capture_output=True, stdin=subprocess.DEVNULL).returncode == 0
