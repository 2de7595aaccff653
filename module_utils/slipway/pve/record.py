# SPDX-License-Identifier: GPL-3.0-or-later
"""What Slipway did to a guest, kept on its node: ``/var/lib/slipway/guests/<vmid>.json``.

A lost record means that less is ours, never more; facts read from the machine win over it. A vmid is given out again when
its guest is destroyed, so a record holds which guest it is about (``guest``, as ``node.identity`` reads it) and says nothing
about any other.
"""

from __future__ import annotations

import json
import typing as t

from .. import files

if t.TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


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
