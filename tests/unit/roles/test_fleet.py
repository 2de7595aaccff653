# SPDX-License-Identifier: GPL-3.0-or-later
"""The nodes of which no two may be down together, as deploy.yml tells the role of them."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from evaluate import evaluate


@pytest.mark.parametrize(
    ("inventory", "fleet"),
    [({}, ["node1", "node2"]), ({"pve_host_fleet": ["node1", "elsewhere"]}, ["node1", "elsewhere"])],
)
def test_it_is_the_inventorys_own_or_all_nodes(root: Path, inventory: dict[str, t.Any], fleet: list[str]) -> None:
    plays = yaml.safe_load((root / "playbooks/deploy.yml").read_text())
    (told,) = [play["vars"]["pve_host_fleet"] for play in plays if "pve_host_fleet" in play.get("vars", {})]
    given = {
        "inventory_hostname": "node1",
        "hostvars": {"node1": inventory},
        "groups": {"pve_nodes": ["node1", "node2"]},
    }
    assert evaluate(told, given) == fleet
