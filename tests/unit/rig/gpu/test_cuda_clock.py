# SPDX-License-Identifier: GPL-3.0-or-later
"""The modelled clock of the simulated GPUs: bandwidth and latency by what lies between two of them, and links that are shared."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import typing as t

import pytest
from simulated_gpus import Cuda, SimulatedMachine

MIB = 1 << 20
SIZE = 64 * MIB
# (source, target) by index: GPUs 0 and 1 on a switch, 0 to 3 on a socket.
SAME_SWITCH, SAME_SOCKET, ACROSS = (0, 1), (0, 2), (0, 7)


def measure(cuda: Cuda, pairs: list[tuple[int, int]], size: int = SIZE, peers: bool = True) -> list[float]:
    """GB/s of copies between these pairs, all at the same time."""
    devices = sorted({device for pair in pairs for device in pair})
    if peers:
        cuda.start(*devices)
    else:
        cuda.ok("cuInit", 0)
        for device in devices:
            cuda.use(device)
    ends = [((a, cuda.memory(a, size)), (b, cuda.memory(b, size))) for a, b in pairs]
    return [round(value, 1) for value in cuda.gbps(ends, size)]


def microseconds(cuda: Cuda, pair: tuple[int, int], peers: bool = True, held: bool = True) -> float:
    """Of one 16-byte copy, by 100 of them; held back until all are in the stream, or as fast as the host can issue them."""
    source, target = pair
    if peers:
        cuda.start(source, target)
    else:
        cuda.ok("cuInit", 0)
    ends = cuda.memory(target, 16), cuda.memory(source, 16)
    contexts = cuda.contexts[target], cuda.contexts[source]
    stream, word = cuda.stream(source), cuda.out("cuMemHostAlloc", 4, 3)
    begin, end = cuda.out("cuEventCreate", 0), cuda.out("cuEventCreate", 0)
    if held:
        cuda.ok("cuStreamWaitValue32_v2", stream, word, 1, 1)
    cuda.ok("cuEventRecord", begin, stream)
    for _ in range(100):
        cuda.ok("cuMemcpyPeerAsync", ends[0], contexts[0], ends[1], contexts[1], 16, stream)
    cuda.ok("cuEventRecord", end, stream)
    ctypes.c_uint32.from_address(word).value = 1
    cuda.ok("cuEventSynchronize", end)
    return round(cuda.out("cuEventElapsedTime_v2", begin, end, kind=ctypes.c_float) * 10, 2)


@pytest.mark.parametrize(("pair", "gbps"), [(SAME_SWITCH, 54.2), (SAME_SOCKET, 53.2), (ACROSS, 51.0)])
def test_one_pair_alone(gpus: SimulatedMachine, pair: tuple[int, int], gbps: float) -> None:
    assert gpus.run(measure, [pair]) == [pytest.approx(gbps, abs=0.2)]


@pytest.mark.parametrize(("pair", "gbps"), [(SAME_SWITCH, 26.5), (SAME_SOCKET, 26.5), (ACROSS, 20.8)])
def test_without_peer_access_copies_go_through_the_host(
    gpus: SimulatedMachine, pair: tuple[int, int], gbps: float
) -> None:
    assert gpus.run(measure, [pair], SIZE, False) == [pytest.approx(gbps, abs=0.3)]


def test_both_directions_at_once(gpus: SimulatedMachine) -> None:
    assert sum(gpus.run(measure, [(0, 1), (1, 0)])) == pytest.approx(105.3, abs=0.5)
    assert sum(gpus.run(measure, [(0, 7), (7, 0)])) == pytest.approx(102.1, abs=0.5)


def test_two_gpus_share_the_uplink_of_their_switch(gpus: SimulatedMachine) -> None:
    assert gpus.run(measure, [(0, 2), (1, 3)]) == [pytest.approx(27.7, abs=0.3)] * 2
    assert gpus.run(measure, [(0, 1), (2, 3)]) == [pytest.approx(54.2, abs=0.3)] * 2, "nothing in common"


def test_all_to_one_share_its_link(gpus: SimulatedMachine) -> None:
    found = gpus.run(measure, [(source, 0) for source in range(1, 8)], 16 * MIB)
    assert sum(found) == pytest.approx(55.4, abs=1.5)
    assert max(found) < 8.5


def test_a_ring_over_the_sockets(gpus: SimulatedMachine) -> None:
    """Each uplink carries one way up and one down, so that the ring runs at what a link gives both ways."""
    found = gpus.run(measure, [(n, (n + 1) % 8) for n in range(8)], 16 * MIB)
    assert min(found) == pytest.approx(50.9, abs=0.5)


@pytest.mark.parametrize(("pair", "us"), [(SAME_SWITCH, 0.38), (SAME_SOCKET, 0.5), (ACROSS, 0.9)])
def test_latency_of_copies_that_wait_in_the_stream(gpus: SimulatedMachine, pair: tuple[int, int], us: float) -> None:
    assert gpus.run(microseconds, pair) == pytest.approx(us, abs=0.01)


def test_latency_of_copies_as_the_host_issues_them(gpus: SimulatedMachine) -> None:
    assert gpus.run(microseconds, SAME_SWITCH, True, False) == pytest.approx(1.5, abs=0.05)


def test_latency_tells_copies_through_the_host(gpus: SimulatedMachine) -> None:
    assert gpus.run(microseconds, SAME_SWITCH, False) == pytest.approx(14, abs=0.1)


@pytest.mark.parametrize(
    ("address", "name", "value", "pair", "gbps"),
    [
        ("0000:02:00.0", "current_link_width", "8", (0, 1), 27.1),
        ("0000:02:00.0", "current_link_width", "8", (2, 3), 54.2),
        ("0000:01:00.0", "current_link_speed", "16.0 GT/s PCIe", (0, 1), 54.2),
        ("0000:01:00.0", "current_link_speed", "16.0 GT/s PCIe", (0, 2), 26.6),
        ("0000:03:00.0", "max_link_speed", "16.0 GT/s PCIe", (1, 0), 27.1),
        ("0000:03:00.0", "current_link_speed", "2.5 GT/s PCIe", (1, 0), 54.2),
    ],
)
def test_the_slowest_hop_decides(
    fresh_gpus: SimulatedMachine, address: str, name: str, value: str, pair: tuple[int, int], gbps: float
) -> None:
    path = fresh_gpus.root / "sys/bus/pci/devices" / address / name
    path.chmod(0o644)
    path.write_text(value + "\n")
    assert fresh_gpus.run(measure, [pair]) == [pytest.approx(gbps, abs=0.2)]


# Bridges from the root complex down to GPUs 0 and 1.
TREES = {
    "one root port each, no switch": (["0000:00:01.1"], ["0000:00:01.2"], 53.6),
    "two root complexes": (["0000:00:01.1"], ["0000:40:01.1"], 53.2),
    "switches below a switch": (
        ["0000:00:01.1", "0000:01:00.0", "0000:02:00.0", "0000:05:00.0", "0000:06:00.0"],
        ["0000:00:01.1", "0000:01:00.0", "0000:02:01.0", "0000:07:00.0", "0000:08:00.0"],
        53.9,
    ),
}


@pytest.mark.parametrize("tree", TREES)
def test_other_trees(fresh_gpus: SimulatedMachine, tree: str) -> None:
    *chains, gbps = TREES[tree]
    devices = fresh_gpus.root / "sys/bus/pci/devices"
    shutil.rmtree(fresh_gpus.root / "sys/bus/pci/tree")
    for link in devices.iterdir():
        link.unlink()
    for card, chain in zip(fresh_gpus.cards, chains):
        folder = fresh_gpus.root / "sys/bus/pci/tree" / f"pci{chain[0][:7]}"  # type: ignore[index]
        for name in [*chain, card.address]:  # type: ignore[misc]
            folder /= name
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "numa_node").write_text("0\n")
            for attribute in ("max_link_speed", "current_link_speed"):
                (folder / attribute).write_text("32.0 GT/s PCIe\n")
            (folder / "current_link_width").write_text("16\n")
            if not (devices / name).exists():
                (devices / name).symlink_to(folder)
    assert fresh_gpus.run(measure, [(0, 1)]) == [pytest.approx(gbps, abs=0.2)]


def test_an_idle_link_comes_up_for_work_and_goes_down_after_it(fresh_gpus: SimulatedMachine) -> None:
    speed = fresh_gpus.root / "sys/bus/pci/devices" / fresh_gpus.cards[0].address / "current_link_speed"
    script = (
        "import sys; from pathlib import Path; from simulated_gpus import Cuda; cuda = Cuda(sys.argv[1]); speed = Path(sys.argv[2])\n"
        "cuda.start(0, 1); before = speed.read_text()\n"
        "ends = [(d, cuda.memory(d, 4096)) for d in (0, 1)]; cuda.copy(ends[0], ends[1], 4096)\n"
        "print(before, speed.read_text(), sep='', end='')"
    )
    environment: dict[str, t.Any] = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    line = [sys.executable, "-c", script, str(fresh_gpus.library), str(speed)]
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.splitlines() == ["2.5 GT/s PCIe", "32.0 GT/s PCIe"]
    assert speed.read_text() == "2.5 GT/s PCIe\n"
