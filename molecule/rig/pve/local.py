# SPDX-License-Identifier: GPL-3.0-or-later
"""The node that this program runs on."""

from __future__ import annotations

import os
from pathlib import Path

from .node import Node
from .runtime import Lxc

# Below the node's root; in it each request to the API is a line.
ACCESS_LOG = "var/log/pveproxy/access.log"


def this_node(synchronous: bool = False) -> Node:
    """This machine as a Proxmox node."""
    root = Path("/")
    return Node(os.uname().nodename.split(".")[0], root, Lxc(root), synchronous)
