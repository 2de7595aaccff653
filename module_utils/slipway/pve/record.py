# SPDX-License-Identifier: GPL-3.0-or-later
"""What Slipway did to a guest, kept on its node: ``/var/lib/slipway/guests/<vmid>.json``.

A lost record means that less is ours, never more; facts read from the machine win over it. A vmid is given out again when
its guest is destroyed, so a record holds which guest it is about (``guest``, as ``node.identity`` reads it) and says nothing
about any other.
"""

from __future__ import annotations

import base64
import binascii
import json
import typing as t
from dataclasses import dataclass

from .. import files
from . import claims, devices
from .client import ApiError

if t.TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .client import Client

# For each vmid its record and the birth of its mount point, as ``node.identity`` takes it, with one command for all.
_READ = """
uname -n
for vmid in "$@"; do
  born=$(stat --format=%W "/var/lib/lxc/$vmid/rootfs" 2>/dev/null) || born=0
  echo "$vmid $born $(base64 -w0 "/var/lib/slipway/guests/$vmid.json" 2>/dev/null)"
done
"""
# As ``files.replace`` does it: beside its place, synced, renamed.
_WRITE = """
set -e
umask 077
mkdir -p -m 0755 /var/lib/slipway # others keep things there too
mkdir -p /var/lib/slipway/guests
trap 'rm -f "$2.new.$$"' EXIT
printf %s "$1" | base64 -d > "$2.new.$$"
sync "$2.new.$$"
mv "$2.new.$$" "$2"
"""


@dataclass(frozen=True)
class Remote:
    """The record of a guest as it is seen from elsewhere: what is in it, and which guest it has to be about."""

    content: dict[str, t.Any]
    identity: dict[str, t.Any]


def read(path: Path, identity: Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The record of the guest with this identity; an empty one where there is none, it is not one, or about another guest."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) and is_of(content, identity) else {}


def is_of(content: Mapping[str, t.Any], identity: Mapping[str, t.Any]) -> bool:
    """Whether a record is about the guest with this identity ``{hwaddr, created}``.

    Both must be the same. A birth that the file system cannot tell (None) says nothing, and then the MAC address alone
    decides, which Proxmox chooses at random; where that is not known either, the record proves nothing.
    """
    known = content.get("guest")
    if not isinstance(known, dict):
        return False
    facts = [(known.get(name), identity.get(name)) for name in ("hwaddr", "created")]
    told = [then == now for then, now in facts if then is not None and now is not None]
    return known.get("hwaddr") == identity.get("hwaddr") and bool(told) and all(told)


def write(path: Path, content: Mapping[str, t.Any]) -> None:
    """Replace the record, readable by root alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.replace(path, json.dumps(content, indent=2, sort_keys=True) + "\n", mode=0o600)


def read_over(client: Client, node: str, configs: Mapping[int, Mapping[str, t.Any]]) -> dict[int, Remote]:
    """The records of guests of a node, by vmid, with one command over the connection. ``configs`` are theirs, in force.

    Empty where the connection is one to the API alone, or to another node of the cluster: a record that is not seen makes
    nothing ours. Raises ApiError.
    """
    ran = client.run(["sh", "-c", _READ, "record", *(str(vmid) for vmid in configs)]) if configs else None
    if ran is None:
        return {}
    here, *lines = ran[0].splitlines() or [""]
    if here.partition(".")[0] != node:
        return {}
    found = {}
    for line in lines:
        vmid, born, encoded = (*line.split(" "), "", "")[:3]
        if vmid.isdigit() and int(vmid) in configs:
            networks = devices.numbered(configs[int(vmid)], "net")
            hwaddr = claims.hwaddr("".join(f"{key}: {value}\n" for key, value in networks.items()))
            identity = {"hwaddr": hwaddr, "created": int(born) if born.isdigit() and born != "0" else None}
            content = _decoded(encoded)
            found[int(vmid)] = Remote(content if is_of(content, identity) else {}, identity)
    return found


def write_over(client: Client, vmid: int, content: Mapping[str, t.Any]) -> None:
    """Replace the record of a guest over the connection, which must be one to its node. Raises ApiError."""
    text = json.dumps(content, indent=2, sort_keys=True) + "\n"
    path = f"/var/lib/slipway/guests/{vmid}.json"
    ran = client.run(["sh", "-c", _WRITE, "record", base64.b64encode(text.encode()).decode(), path])
    if ran is None or ran[2] != 0:
        words = " ".join(ran[1].split()) if ran else "there is no way to it but the API"
        raise ApiError(f"its record {path} cannot be written ({words})", "Check that folder on the node")


def _decoded(encoded: str) -> dict[str, t.Any]:
    try:
        content = json.loads(base64.b64decode(encoded, validate=True))
    except (ValueError, binascii.Error):
        return {}
    return content if isinstance(content, dict) else {}
