# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import re
import typing as t
from pathlib import Path

import lspci
import pytest
from ansible.module_utils.slipway.gpu import hops
from ansible.module_utils.slipway.gpu.tree import Tree
from ansible.module_utils.slipway.p2p import paths
from ansible.module_utils.slipway.p2p.paths import Place

SWITCH = ("pci0000:00", "0000:00:01.1", "0000:01:00.0")


def place(*ancestors: str, node: int | None = 0) -> Place:
    return Place(ancestors, node)


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        # One switch: each has its own port below the switch's upstream port.
        (place(*SWITCH, "0000:02:00.0", "0000:03:00.0"), place(*SWITCH, "0000:02:01.0", "0000:04:00.0"), "PIX"),
        # Two functions of one bridge, no port of their own.
        (place("pci0000:00", "0000:00:01.1", "0000:03:00.0"), place("pci0000:00", "0000:00:01.1", "0000:03:00.1"), "PIX"),
        # A second switch below the first.
        (
            place(*SWITCH, "0000:02:00.0", "0000:03:00.0"),
            place(*SWITCH, "0000:02:01.0", "0000:05:00.0", "0000:06:00.0", "0000:07:00.0"),
            "PXB",
        ),
        (place("pci0000:00", "0000:00:01.1", "0000:03:00.0"), place("pci0000:00", "0000:00:01.2", "0000:04:00.0"), "PHB"),
        (place("pci0000:00", "0000:00:01.1", "0000:03:00.0"), place("pci0000:40", "0000:40:01.1", "0000:43:00.0"), "NODE"),
        (
            place("pci0000:00", "0000:00:01.1", "0000:03:00.0"),
            place("pci0000:80", "0000:80:01.1", "0000:83:00.0", node=1),
            "SYS",
        ),
        # A board of one node that says so of none.
        (
            place("pci0000:00", "0000:00:01.1", "0000:03:00.0", node=None),
            place("pci0000:40", "0000:40:01.1", "0000:43:00.0", node=None),
            "NODE",
        ),
        (place(), place("pci0000:40", "0000:40:01.1", "0000:43:00.0"), None),
    ],
)  # fmt: skip
def test_the_class_of_a_pair(one: Place, other: Place, expected: str | None) -> None:
    assert paths.path_class(one, other) == paths.path_class(other, one) == expected


def test_links_are_those_below_what_is_common() -> None:
    one = place(*SWITCH, "0000:02:00.0", "0000:03:00.0")
    other = place(*SWITCH, "0000:02:01.0", "0000:04:00.0")
    assert paths.links(one, other) == {
        ("up", "0000:02:00.0"),
        ("up", "0000:03:00.0"),
        ("down", "0000:02:01.0"),
        ("down", "0000:04:00.0"),
    }
    far = place("pci0000:40", "0000:40:01.1", "0000:43:00.0")
    assert ("up", "0000:00:01.1") in paths.links(one, far)
    assert ("up", "pci0000:00") not in paths.links(one, far)


@pytest.mark.parametrize(
    ("speed", "lanes", "rate"),
    [(32.0, 16, 63.0), (16.0, 16, 31.5), (8.0, 16, 15.8), (5.0, 16, 8.0), (2.5, 16, 4.0), (32.0, 8, 31.5), (64.0, 16, 121.0)],
)  # fmt: skip
def test_line_rates(speed: float, lanes: int, rate: float) -> None:
    assert paths.line_rate_gbps(speed, lanes) == pytest.approx(rate, abs=0.1)


def test_an_unknown_link_has_no_rate() -> None:
    assert paths.line_rate_gbps(None, 16) is paths.line_rate_gbps(32.0, None) is None


def hop(bus_id: str, speed: float | None = 32.0, lanes: int = 16) -> dict[str, t.Any]:
    return {"bus_id": bus_id, "link": {"max_speed_gts": speed, "max_width": lanes, "speed_gts": 2.5, "width": lanes}}


def test_a_place_is_that_of_the_path() -> None:
    way = [hop("0000:40:01.1", 16.0), hop("0000:41:00.0"), hop("0000:42:00.0", None), hop("0000:43:00.0")]
    found = paths.place({"path": way, "numa_node": 1, "link": way[-1]["link"]})
    assert found.ancestors == ("pci0000:40", "0000:40:01.1", "0000:41:00.0", "0000:42:00.0", "0000:43:00.0")
    assert found.numa_node == 1
    assert found.line_rate_gbps == pytest.approx(31.5, abs=0.1), "the slot is slower than the card"


def test_a_gpu_whose_path_cannot_be_seen_has_its_own_link() -> None:
    found = paths.place({"path": None, "numa_node": None, "link": hop("0000:03:00.0", 32.0, 8)["link"]})
    assert (found.ancestors, found.numa_node) == ((), None)
    assert found.line_rate_gbps == pytest.approx(31.5, abs=0.1)


def test_links_under_load_are_those_of_now(tmp_path: Path) -> None:
    for name, speed, lanes in (("0000:00:01.1", "32.0 GT/s PCIe", "16"), ("0000:03:00.0", "2.5 GT/s PCIe", "8")):
        folder = tmp_path / "sys/bus/pci/devices" / name
        folder.mkdir(parents=True)
        (folder / "current_link_speed").write_text(speed + "\n")
        (folder / "current_link_width").write_text(lanes + "\n")
    chain = ("pci0000:00", "0000:00:01.1", "0000:02:00.0", "0000:03:00.0")
    assert paths.under_load(Tree(str(tmp_path)), chain) == {"0000:00:01.1": (32.0, 16), "0000:03:00.0": (2.5, 8)}


def test_a_real_machine_agrees_with_nvidia_smi(shared_data: Path, tmp_path: Path) -> None:
    folder = shared_data / "field/8gpu-switches"
    known = lspci.devices((folder / "lspci-vvv.txt").read_text())
    lspci.sysfs(tmp_path, known)
    gpus = sorted(f"0000:{one}" for one, text in known.items() if "NVIDIA" in text.split("\n")[0] and "3D" in text)
    nodes = {gpu: int(re.findall(r"NUMA node: (\d+)", known[gpu[5:]])[0]) for gpu in gpus}
    ways = hops.paths(Tree(str(tmp_path)), gpus)
    places = [paths.place({"path": ways[gpu], "numa_node": nodes[gpu], "link": {}}) for gpu in gpus]
    table = [line.split() for line in (folder / "nvidia-smi-topo-m.txt").read_text().splitlines() if line[:3] == "GPU"]
    matrix = {(row, column): table[row][column + 1] for row in range(8) for column in range(8) if row != column}
    assert len(gpus) == 8
    assert {(row, column): paths.path_class(places[row], places[column]) for row, column in matrix} == matrix
