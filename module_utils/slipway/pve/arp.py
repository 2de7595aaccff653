# SPDX-License-Identifier: GPL-3.0-or-later
"""Asking a network who has an address, on the node as root.

By ARP, which no host may leave unanswered as it may a ping, and with the probe of RFC 5227 (sender 0.0.0.0), which enters
nobody's neighbour table and needs no address of the node's own on that bridge.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import struct
import time
import typing as t
from pathlib import Path

from .claims import Answer

if t.TYPE_CHECKING:
    from collections.abc import Mapping

# Three probes, and some time for an answer after the last; after the first answer only as long as another may take.
PROBES, PAUSE_SECONDS, LINGER_SECONDS = 3, 0.3, 0.1
_ETH_P_ARP = 0x0806
_FRAME = struct.Struct("!6s6sHHHBBH6s4s6s4s")


def ask(address: str, network: Mapping[str, t.Any]) -> Answer:
    """Who answers for ``address`` on the bridge and VLAN of ``network`` (``bridge``, ``tag``)."""
    if _is_own(address):
        return Answer(own=True)
    if ipaddress.ip_address(address).version == 6:
        return Answer(not_asked="that is done for IPv4")
    tag = network.get("tag")
    interface = f"{network.get('bridge')}.{tag}" if tag else str(network.get("bridge"))
    if not Path("/sys/class/net", interface).exists():
        return Answer(not_asked=f"the node has no interface {interface}")
    try:
        return Answer(macs=tuple(sorted(_probe(address, interface))))
    except OSError as error:
        return Answer(trouble=f"{interface}: {error.strerror}")


def _is_own(address: str) -> bool:
    """Whether this machine has the address: only then can a socket be bound to it."""
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_DGRAM) as tried:
            tried.bind((address, 0))
    except OSError:
        return False
    return True


def _probe(address: str, interface: str) -> set[str]:
    """The MAC addresses that answer. Raises OSError."""
    wanted = ipaddress.IPv4Address(address).packed
    found: set[str] = set()
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_P_ARP)) as link:
        link.bind((interface, 0))
        mine = link.getsockname()[4]
        question = _FRAME.pack(b"\xff" * 6, mine, _ETH_P_ARP, 1, 0x0800, 6, 4, 1, mine, bytes(4), bytes(6), wanted)
        for _ in range(PROBES):
            link.send(question)
            deadline = time.monotonic() + PAUSE_SECONDS
            while (left := deadline - time.monotonic()) > 0 and select.select([link], [], [], left)[0]:
                frame = link.recv(2048)
                if len(frame) >= _FRAME.size:
                    sender, owner = _FRAME.unpack_from(frame)[8:10]
                    if owner == wanted and sender != mine:
                        found.add(sender.hex(":").upper())
                        deadline = min(deadline, time.monotonic() + LINGER_SECONDS)
            if found:
                break
    return found
