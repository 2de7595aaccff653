# SPDX-License-Identifier: GPL-3.0-or-later
"""The board of a real machine: eight RTX PRO 6000 behind four switches on two sockets, idle, with redirection off."""

from __future__ import annotations

import typing as t
from pathlib import Path

import lspci
import pytest
from ansible.module_utils.slipway.gpu import board, cards, hops, pci
from ansible.module_utils.slipway.gpu.tree import Tree


@pytest.fixture
def tree(shared_data: Path, tmp_path: Path) -> Tree:
    lspci.sysfs(tmp_path, lspci.devices((shared_data / "field/8gpu-switches/lspci-vvv.txt").read_text()))
    return Tree(str(tmp_path))


@pytest.fixture
def gpus(tree: Tree) -> list[dict[str, t.Any]]:
    found = cards.look(tree)
    ways = hops.paths(tree, [gpu["bus_id"] for gpu in found])
    return [{**gpu, **pci.depth(tree, gpu["bus_id"]), "path": ways[gpu["bus_id"]]} for gpu in found]


def test_the_gpus_and_the_ways_to_them(gpus: list[dict[str, t.Any]]) -> None:
    ways = [[hop["bus_id"][5:] for hop in gpu["path"]] for gpu in gpus]
    assert ways[0] == ["00:01.1", "01:00.0", "02:03.0", "06:00.0"]
    assert [way[0] for way in ways] == ["00:01.1"] * 2 + ["70:01.1"] * 2 + ["80:01.1"] * 2 + ["f0:01.1"] * 2
    kinds = {tuple(hop["kind"] for hop in gpu["path"]) for gpu in gpus}
    assert kinds == {("root port", "upstream port", "downstream port", "endpoint")}


def test_nothing_redirects(gpus: list[dict[str, t.Any]]) -> None:
    found = hops.acs(gpu["path"] for gpu in gpus)
    # Four root ports, four upstream ports and a downstream port for each GPU. The upstream ports have no ACS.
    assert (found["redirect"], len(found["hops"])) == (False, 16)
    assert {hop["acs_control"] for hop in found["hops"]} == {0x11, None}


def test_the_window_on_the_memory(gpus: list[dict[str, t.Any]]) -> None:
    assert {gpu["bar1_mib"] for gpu in gpus} == {131072}


def test_links_at_rest_and_under_load(gpus: list[dict[str, t.Any]]) -> None:
    assert [board.links(gpu, under_load=False) for gpu in gpus] == [[]] * 8
    loud = [board.links(gpu, under_load=True) for gpu in gpus]
    assert {(found.id, found.severity) for one in loud for found in one} == {("LINK_SLOW", "fail")}
    assert loud[0][0].detail == "0000:02:03.0 to 0000:06:00.0: 2.5 GT/s of 32 GT/s"


def test_payloads_along_the_way(gpus: list[dict[str, t.Any]]) -> None:
    ways = {tuple((hop["max_payload_bytes"], hop["max_read_request_bytes"]) for hop in gpu["path"]) for gpu in gpus}
    assert ways == {((256, 512), (256, 128), (256, 128), (256, 512))}
