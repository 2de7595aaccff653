# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that describe a guest, the same for the module that makes it and for the one that looks ahead. Pure."""

from __future__ import annotations

import typing as t


def _keys(**options: str) -> dict[str, t.Any]:
    """Suboptions of these types; one that ends in an exclamation mark is required."""
    return {
        name: {"type": kind.rstrip("!"), "required": True} if kind.endswith("!") else {"type": kind}
        for name, kind in options.items()
    }


def list_of(**suboptions: str) -> dict[str, t.Any]:
    """A list of dictionaries with these keys."""
    return {"type": "list", "elements": "dict", "options": _keys(**suboptions)}


GUEST_OPTIONS: dict[str, t.Any] = {
    "vmid": {"type": "int", "required": True},
    "node": {"type": "str", "required": True},
    "ostemplate": {"type": "str"},
    "storage": {"type": "str"},
    "rootfs": {"type": "dict", "options": _keys(storage="str!", size_gib="int!")},
    "unprivileged": {"type": "bool"},
    "ssh_public_keys": {"type": "list", "elements": "str", "no_log": False},
    "hostname": {"type": "str"},
    "cores": {"type": "int"},
    "memory_mib": {"type": "int"},
    "swap_mib": {"type": "int"},
    "net": list_of(
        id="int!",
        name="str!",
        bridge="str",
        ip="str",
        gw="str",
        ip6="str",
        gw6="str",
        hwaddr="str",
        firewall="bool",
        tag="int",
        mtu="int",
        link_down="bool",
    ),
    "features": {
        "type": "dict",
        "options": _keys(nesting="bool", keyctl="bool", fuse="bool", mknod="bool", mount="str", force_rw_sys="bool"),
    },
    "devices": list_of(path="str!", gid="int", uid="int", mode="str", deny_write="bool"),
    "mounts": list_of(path="str!", storage="str!", size_gib="int!"),
    "onboot": {"type": "bool"},
    "startup": {"type": "str"},
    "tags": {"type": "list", "elements": "str"},
    "description": {"type": "str"},
}
