# SPDX-License-Identifier: GPL-3.0-or-later
"""The node that this program runs on."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from .node import Node
from .runtime import Lxc

# Below the node's root; in it each request to the API is a line.
ACCESS_LOG = "var/log/pveproxy/access.log"


def this_node(synchronous: bool = False) -> Node:
    """This machine as a Proxmox node."""
    root = Path("/")
    return Node(os.uname().nodename.split(".")[0], root, Lxc(root), synchronous)


def hang_up() -> None:
    """Drop the SSH connection that this program was called over, if it was: kill the process that serves it."""
    if not Path(__file__).is_relative_to("/usr/share/rig"):  # not on a node of the rig
        return
    pid = os.getppid()
    while pid > 1:
        status = dict(line.split(":\t", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines())
        if status["Name"].startswith("sshd"):
            os.kill(pid, signal.SIGKILL)
            return
        pid = int(status["PPid"])
