# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether this is the machine that has a kernel and hardware of its own, or a container on it."""

from __future__ import annotations

from . import host
from .tree import Tree

NODE, GUEST = "node", "guest"


def find(root: str = "/") -> str:
    """``node`` or ``guest``. Its tree is its own: only root may read the init's environment, and that is no fault."""
    tree = Tree(root)
    environment = (tree.text("/proc/1/environ") or "").split("\0")
    container = tree.exists("/run/systemd/container") or any(word.startswith("container=") for word in environment)
    guest = host.is_guest(tree.text("/proc/self/uid_map"), container, proxmox=tree.exists("/etc/pve"))
    return GUEST if guest else NODE
