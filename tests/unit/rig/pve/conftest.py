# SPDX-License-Identifier: GPL-3.0-or-later
"""A node in a scratch folder whose containers are only remembered."""

from __future__ import annotations

import pytest
from pve.node import Node


@pytest.fixture
def node(scratch_node: Node) -> Node:
    """node1; its tasks run at once, and nothing is chowned, so that tests need not be root."""
    return scratch_node


@pytest.fixture
def guest(node: Node) -> int:
    """Guest 101 of that node, stopped."""
    volume = node.root / "rpool/data/subvol-101-disk-0"
    volume.mkdir(parents=True)
    node.conf_path(101).write_text(
        "cores: 4\ndev0: /dev/nvidia0,gid=44\nmemory: 4096\n"
        "rootfs: local-zfs:subvol-101-disk-0,size=8G\nunprivileged: 1\nlxc.prlimit.memlock: unlimited\n"
    )
    return 101
