# SPDX-License-Identifier: GPL-3.0-or-later
"""What a PCI device's configuration space says of its link and of peer traffic: pure, bytes in (PCI Express Base Specification).

The kernel gives all of it only to an opener with CAP_SYS_ADMIN in the initial user namespace, and else the first 64 bytes
(pci_read_config in drivers/pci/pci-sysfs.c). What is not there is ``None``, which is never "off".
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

# ACS control bits that send a peer's requests, or the answers to them, up to the root complex. SrcValid (1) and UpstreamFwd
# (0x10), which most documents look at, do not (reference: lspci of hosts whose links are fast with 0x0011).
REQUEST_REDIRECT, COMPLETION_REDIRECT = 0x04, 0x08
ROOT_PORT, UPSTREAM, DOWNSTREAM, ENDPOINT = "root port", "upstream port", "downstream port", "endpoint"

_HEADER, _EXTENDED = 64, 256
_STATUS, _CAPABILITIES, _HAS_LIST = 0x06, 0x34, 0x10
_EXPRESS, _ACS = 0x10, 0x000D
_KINDS = {0: ENDPOINT, 1: ENDPOINT, 4: ROOT_PORT, 5: UPSTREAM, 6: DOWNSTREAM}


@dataclass(frozen=True)
class Port:
    """``kind`` is one of the four, or ``None``. Sizes are in bytes. ``acs_control`` is the register, ``None`` without one.

    Whether a redirect is on is ``None`` where that cannot be told, and ``False`` where the device has no such control.
    """

    kind: str | None = None
    max_payload_bytes: int | None = None
    max_read_request_bytes: int | None = None
    acs_control: int | None = None
    request_redirect: bool | None = None
    completion_redirect: bool | None = None


def read(data: bytes | None) -> Port:
    """Read the file ``config`` of a device; with 64 bytes, or of a device that does not answer, nothing is known."""
    if not data or len(data) <= _HEADER or data[:2] == b"\xff\xff":
        return Port()
    express = _capability(data, _EXPRESS)
    if express is None:
        # No PCI Express (a bridge to conventional PCI, a function inside the root complex): there is no ACS without it.
        return Port(request_redirect=False, completion_redirect=False)
    kind = _KINDS.get(_word(data, express + 2) >> 4 & 0xF)
    control = _word(data, express + 8)
    sizes = (128 << (control >> 5 & 7), 128 << (control >> 12 & 7))
    if len(data) <= _EXTENDED or data[_EXTENDED : _EXTENDED + 4] == b"\xff\xff\xff\xff":
        return Port(kind, *sizes)
    acs = _extended_capability(data, _ACS)
    if acs is None:
        return Port(kind, *sizes, None, False, False)
    bits = _word(data, acs + 6)
    return Port(kind, *sizes, bits, bool(bits & REQUEST_REDIRECT), bool(bits & COMPLETION_REDIRECT))


def _word(data: bytes, at: int) -> int:
    return int(struct.unpack_from("<H", data, at)[0]) if at + 2 <= len(data) else 0


def _capability(data: bytes, wanted: int) -> int | None:
    """Where a capability of the first 256 bytes is. The list is followed once around at most."""
    at = data[_CAPABILITIES] & 0xFC if _word(data, _STATUS) & _HAS_LIST else 0
    seen: set[int] = set()
    while _HEADER <= at < min(len(data), _EXTENDED) - 1 and at not in seen:
        seen.add(at)
        if data[at] == wanted:
            return at
        at = data[at + 1] & 0xFC
    return None


def _extended_capability(data: bytes, wanted: int) -> int | None:
    at = _EXTENDED
    seen: set[int] = set()
    while _EXTENDED <= at <= len(data) - 8 and at not in seen:
        seen.add(at)
        (header,) = struct.unpack_from("<I", data, at)
        if header & 0xFFFF == wanted:
            return at
        at = header >> 20 & 0xFFC
    return None
