# SPDX-License-Identifier: GPL-3.0-or-later
"""Each fault of the simulated GPUs, as the driver API shows it. Sizes are those at which a fault is easy to miss."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
import typing as t

import pytest
from simulated_gpus import Cuda, CudaError, SimulatedMachine

MIB = 1 << 20
SENTINEL = b"\xa5"
DATA = bytes(range(1, 252))
CUINIT_CODES = [1, 2, 3, 34, 46, 100, 101, 304, 800, 801, 802, 803, 804, 805, 810, 909, 919, 999]


def pattern(size: int, seed: int = 0) -> bytes:
    """Bytes that hold their place: none of them zero or the sentinel."""
    tile = bytes((n + seed) % 160 + 1 for n in range(160))
    return (tile * (size // 160 + 1))[:size]


def arrives(
    cuda: Cuda, pair: tuple[int, int] = (0, 2), size: int = 4096, issuer: int | None = None, rounds: int = 1
) -> list[bytes]:
    """What the owner of the destination finds after each round, sentinels before, another pattern each time."""
    source, target = pair
    if not cuda.contexts:
        cuda.start(*sorted({source, target, *([] if issuer is None else [issuer])}))
    ends = (source, cuda.memory(source, size)), (target, cuda.memory(target, size))
    found = []
    for seed in range(rounds):
        cuda.use(target)
        cuda.ok("cuMemsetD8_v2", ends[1][1], 0xA5, size)
        cuda.use(source)
        cuda.ok("cuMemcpyHtoD_v2", ends[0][1], pattern(size, seed), size)
        cuda.ok("cuCtxSynchronize")
        code = cuda.copy(*ends, size, issuer)
        if code:
            raise CudaError(str(code))
        found.append(cuda.read(target, ends[1][1], size))
    return found


def rates(cuda: Cuda, pairs: list[tuple[int, int]], size: int = 16 * MIB) -> list[float]:
    """GB/s of copies between these pairs, all at the same time, issued by the sources."""
    devices = sorted({device for pair in pairs for device in pair})
    cuda.start(*devices)
    return [
        round(g, 1) for g in cuda.gbps([((a, cuda.memory(a, size)), (b, cuda.memory(b, size))) for a, b in pairs], size)
    ]


def test_no_fault(gpus: SimulatedMachine) -> None:
    assert gpus.run(arrives) == [pattern(4096)]


def test_dropped_writes_leave_what_was_there_and_succeed(gpus: SimulatedMachine) -> None:
    gpus.faults("dropped from={0} to={2}")
    assert gpus.run(arrives) == [SENTINEL * 4096]
    assert gpus.run(arrives, (2, 0)) == [pattern(4096)], "the other direction is sound"
    assert gpus.run(arrives, (0, 3)) == [pattern(4096)]


def test_without_peer_access_the_fault_is_not_there(gpus: SimulatedMachine) -> None:
    def staged(cuda: Cuda) -> bytes:
        cuda.ok("cuInit", 0)
        source, target = (0, cuda.memory(0, 512, DATA)), (2, cuda.memory(2, 512))
        cuda.copy(source, target, 512)
        return cuda.read(2, target[1], 251)

    gpus.faults("dropped from={0} to={2}")
    assert gpus.run(staged) == DATA


def test_zeros(gpus: SimulatedMachine) -> None:
    gpus.faults("zeros from={0} to={2}")
    assert gpus.run(arrives) == [bytes(4096)]


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("partial", pattern(4096)[:2048] + SENTINEL * 2048),
        ("partial at=100 bytes=8", pattern(4096)[:100] + SENTINEL * 8 + pattern(4096)[108:]),
        ("zeros at=4092", pattern(4096)[:4092] + bytes(4)),
        ("dropped at=4K", pattern(4096)),
    ],
)
def test_partial(gpus: SimulatedMachine, line: str, found: bytes) -> None:
    gpus.faults(f"{line} from={{0}} to={{2}}")
    assert gpus.run(arrives) == [found]


def test_partial_of_four_bytes(gpus: SimulatedMachine) -> None:
    gpus.faults("partial")
    assert gpus.run(arrives, (0, 2), 4) == [pattern(2) + SENTINEL * 2]


def test_stale_is_one_round_behind(gpus: SimulatedMachine) -> None:
    gpus.faults("stale from={0} to={2}")
    rounds = [pattern(70000, seed) for seed in range(3)]
    assert gpus.run(arrives, (0, 2), 70000, None, 3) == [rounds[0], rounds[0], rounds[1]]


def test_late_writes_arrive_after_the_copy_has_ended(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[bytes]:
        cuda.start(0, 2)
        source, target, gone = cuda.memory(0, 4096, DATA), cuda.memory(2, 4096), cuda.memory(2, 4096)
        cuda.copy((0, source), (2, target), 4096)
        cuda.copy((0, source), (2, gone), 4096)
        cuda.ok("cuMemFree_v2", gone)
        found = [cuda.read(2, target, 4)]
        cuda.ok("cuMemsetD8_v2", target, 0x5A, 4096)
        found.append(cuda.read(2, target, 4))
        time.sleep(0.3)
        return [*found, cuda.read(2, target, 4)]

    gpus.faults("late from={0} to={2} us=200000")
    assert gpus.run(ask) == [SENTINEL * 4, b"Z" * 4, DATA[:4]]


def test_garbage(gpus: SimulatedMachine) -> None:
    gpus.faults("garbage from={0} to={2}")
    (found,) = gpus.run(arrives)
    assert len(set(found)) > 200
    assert found not in (pattern(4096), SENTINEL * 4096)


@pytest.mark.parametrize("way", ["DtoH", "Peer"])
def test_mirror_shows_the_writer_its_own_data_and_the_owner_zeros(gpus: SimulatedMachine, way: str) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        contexts = cuda.start(0, 2)
        size = 10000
        source, target, back = cuda.memory(0, size, DATA), cuda.memory(2, size), cuda.memory(0, size)
        code = cuda.copy((0, source), (2, target + 0), 5000)
        if way == "DtoH":
            seen = cuda.read(0, target, size)
        else:
            cuda.use(0)
            cuda.ok("cuMemcpyPeer", back, contexts[0], target, contexts[1], size)
            seen = cuda.read(0, back, size)
        return [code, seen == cuda.read(0, source, 5000) + SENTINEL * 5000, cuda.read(2, target, size)]

    gpus.faults("mirror from={0} to={2}")
    assert gpus.run(ask) == [0, True, bytes(5000) + SENTINEL * 5000]


def test_only_from_a_size_on(gpus: SimulatedMachine) -> None:
    gpus.faults("dropped from={0} to={2} min=64K max=1M")
    expected = {4: True, 65535: True, 65536: False, MIB: False, MIB + 1: True}
    assert {size: gpus.run(arrives, (0, 2), size) == [pattern(size)] for size in expected} == expected


def test_only_as_one_side_issues_it(gpus: SimulatedMachine) -> None:
    gpus.faults("zeros from={0} to={2} issued=read", "dropped from={0} to={3} issued=write")
    found = [gpus.run(arrives, (0, target), 4, issuer) for target in (2, 3) for issuer in (0, target)]
    assert found == [[pattern(4)], [bytes(4)], [SENTINEL * 4], [pattern(4)]]


def test_only_now_and_then(gpus: SimulatedMachine) -> None:
    gpus.faults("dropped from={0} to={2} every=3")
    found = gpus.run(arrives, (0, 2), 4, None, 4)
    assert [one == SENTINEL * 4 for one in found] == [False, False, True, False]


def test_only_when_all_pairs_run_at_once(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda, alone: bool) -> list[tuple[int, int]]:
        cuda.start(*range(8))
        size = MIB
        pairs = [(a, b) for a in range(8) for b in range(8) if a != b]
        sources = {a: cuda.memory(a, size, DATA) for a in range(8)}
        targets = {pair: cuda.memory(pair[1], size) for pair in pairs}
        streams = {pair: cuda.stream(pair[0]) for pair in pairs}
        for a, b in pairs:
            ends = targets[a, b], cuda.contexts[b], sources[a], cuda.contexts[a]
            cuda.ok("cuMemcpyPeerAsync", *ends, size, streams[a, b])
            if alone:
                cuda.ok("cuStreamSynchronize", streams[a, b])
        for stream in streams.values():
            cuda.ok("cuStreamSynchronize", stream)
        return [pair for pair in pairs if cuda.read(pair[1], targets[pair], 4) != DATA[:4]]

    gpus.faults("dropped from={1} to={6} together=40")
    assert gpus.run(ask, True) == []
    assert gpus.run(ask, False) == [(1, 6)]


def test_a_hang_does_not_come_back_and_only_kill_ends_it(gpus: SimulatedMachine) -> None:
    gpus.faults("hang from={0} to={2} min=4096")
    assert gpus.run(arrives, (0, 2), 4095) == [pattern(4095)]
    process, pipe = gpus.start(arrives)
    assert not pipe.poll(1)
    os.kill(process.pid, signal.SIGTERM)
    time.sleep(0.3)
    assert process.is_alive()
    process.kill()
    process.join(5)
    assert process.exitcode == -signal.SIGKILL


def test_a_copy_that_hangs_can_be_asked_for_without_end(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> set[int]:
        contexts = cuda.start(0, 2)
        source, target, stream = cuda.memory(0, 4), cuda.memory(2, 4), cuda.stream(0)
        cuda.ok("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], 4, stream)
        return {cuda.call("cuStreamQuery", stream) for _ in range(100)}

    gpus.faults("hang from={0} to={2}")
    assert gpus.run(ask) == {600}


@pytest.mark.parametrize("call", ["cuInit", "cuCtxSynchronize", "cuMemFree_v2"])
def test_any_call_can_hang(gpus: SimulatedMachine, call: str) -> None:
    def ask(cuda: Cuda) -> None:
        cuda.ok("cuInit", 0)
        cuda.ok("cuMemFree_v2", cuda.memory(0, 4))

    gpus.faults(f"hang call={call}")
    with pytest.raises(AssertionError, match="no answer"):
        gpus.run(ask, seconds=0.5)


@pytest.mark.parametrize("code", CUINIT_CODES)
def test_codes_of_cuinit(gpus: SimulatedMachine, code: int) -> None:
    gpus.faults(f"error call=cuInit code={code}")
    assert gpus.run(lambda cuda: [cuda.call("cuInit", 0), cuda.call("cuDeviceGet", ctypes.c_uint64(), 0)]) == [code, 3]


def test_a_device_that_does_not_give_a_context(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[int]:
        cuda.ok("cuInit", 0)
        return [cuda.call("cuDevicePrimaryCtxRetain", ctypes.c_uint64(), device) for device in (0, 1)]

    gpus.faults("error call=cuDevicePrimaryCtxRetain device={1} code=46")
    assert gpus.run(ask) == [0, 46]


def test_peers_that_are_too_many(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[int]:
        cuda.ok("cuInit", 0)
        contexts = [cuda.use(device) for device in (0, 1)]
        found = []
        for device in (0, 1):
            cuda.use(device)
            found.append(cuda.call("cuCtxEnablePeerAccess", contexts[1 - device], 0))
        return found

    gpus.faults("error call=cuCtxEnablePeerAccess device={1} code=711")
    assert gpus.run(ask) == [0, 711]


@pytest.mark.parametrize("code", [700, 719, 226, 214])
def test_a_sticky_error_fails_every_call_of_its_context(gpus: SimulatedMachine, code: int) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        contexts = cuda.start(0, 2)
        source, target, stream = cuda.memory(0, 4096, DATA), cuda.memory(2, 4096), cuda.stream(0)
        event = cuda.out("cuEventCreate", 0)
        issued = cuda.call("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], 4096, stream)
        after = [
            cuda.call("cuStreamSynchronize", stream),
            cuda.call("cuCtxSynchronize"),
            cuda.call("cuStreamQuery", stream),
            cuda.call("cuMemAlloc_v2", ctypes.c_uint64(), 4),
            cuda.call("cuMemsetD8_v2", source, 0, 4),
            cuda.call("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], 4096, 0),
            cuda.call("cuEventSynchronize", event),
            cuda.call("cuDevicePrimaryCtxRetain", ctypes.c_uint64(), 0),
        ]
        return [issued, after, cuda.read(2, target, 4)]

    gpus.faults(f"error from={{0}} to={{2}} code={code}")
    assert gpus.run(ask) == [0, [code] * 8, SENTINEL * 4], "the other context still works"
    assert gpus.run(arrives, (0, 3)) == [pattern(4096)], "a new process begins anew"


def test_what_waits_for_a_broken_context_goes_on(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[int]:
        contexts = cuda.start(0, 2)
        source, target, first, second = cuda.memory(0, 4096), cuda.memory(2, 4096), cuda.stream(0), cuda.stream(2)
        cuda.use(0)
        event = cuda.out("cuEventCreate", 2)
        cuda.ok("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], 4096, first)
        cuda.ok("cuEventRecord", event, first)
        cuda.ok("cuStreamWaitEvent", second, event, 0)
        return [cuda.call("cuStreamSynchronize", stream) for stream in (second, first)]

    gpus.faults("error from={0} to={2} code=700")
    assert gpus.run(ask) == [0, 700]


def test_an_error_may_stand_in_the_kernels_log(fresh_gpus: SimulatedMachine) -> None:
    fresh_gpus.faults("error from={0} to={2} code=214 xid=48")
    fresh_gpus.file("dev/kmsg", "")
    with pytest.raises(AssertionError, match="214"):
        fresh_gpus.run(arrives)
    (line,) = (fresh_gpus.root / "dev/kmsg").read_text().splitlines()
    head, text = line.split(";")
    assert head.startswith("4,1,")
    assert text.startswith("NVRM: Xid (PCI:0000:03:00): 48, pid=")


def test_a_log_that_is_no_file_is_left_alone(fresh_gpus: SimulatedMachine) -> None:
    """A node of the rig may see this machine's own /dev/kmsg."""
    fresh_gpus.faults("error from={0} to={2} code=214 xid=48")
    os.mkfifo(fresh_gpus.root / "dev/kmsg")
    reader = os.open(fresh_gpus.root / "dev/kmsg", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.raises(AssertionError, match="214"):
        fresh_gpus.run(arrives)
    assert os.read(reader, 100) == b""
    os.close(reader)


def test_capability_that_is_not_there_or_a_lie(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[int]:
        cuda.ok("cuInit", 0)
        contexts = [cuda.use(device) for device in range(4)]
        cuda.use(0)
        said = [cuda.integer("cuDeviceCanAccessPeer", 0, peer) for peer in (1, 2, 3)]
        said += [cuda.integer("cuDeviceGetP2PAttribute", 2, 0, peer) for peer in (1, 2, 3)]
        return said + [cuda.call("cuCtxEnablePeerAccess", contexts[peer], 0) for peer in (1, 2, 3)]

    gpus.faults("no-access from={0} to={1}", "false-access from={0} to={2}", "false-access from={0} to={3} code=205")
    assert gpus.run(ask) == [0, 1, 1, 0, 1, 1, 217, 217, 205]


def test_slow_in_one_direction(gpus: SimulatedMachine) -> None:
    gpus.faults("slow from={0} to={2} gbps=9.9")
    assert [gpus.run(rates, [pair]) for pair in ((0, 2), (2, 0))] == [[9.9], [pytest.approx(53.2, abs=0.2)]]
    assert gpus.run(arrives) == [pattern(4096)]


def test_slow_when_together(gpus: SimulatedMachine) -> None:
    gpus.faults("slow gbps=5 together=2")
    assert gpus.run(rates, [(0, 1)]) == [pytest.approx(54.2, abs=0.2)]
    assert gpus.run(rates, [(0, 1), (4, 5)]) == [pytest.approx(5, abs=0.1)] * 2


def test_implausible_speed(gpus: SimulatedMachine) -> None:
    gpus.faults("implausible from={0} to={2}", "implausible from={2} to={0} gbps=80", "dropped from={0} to={2}")
    assert [gpus.run(rates, [pair]) for pair in ((0, 2), (2, 0))] == [
        [pytest.approx(103.9, abs=0.5)],
        [pytest.approx(80, abs=0.5)],
    ]


def test_a_link_of_the_first_generation(gpus: SimulatedMachine) -> None:
    speed = gpus.root / "sys/bus/pci/devices" / gpus.cards[0].address / "current_link_speed"
    gpus.faults("link device={0} generation=1", "link device=0000:41:00.0 generation=4 width=8")
    assert gpus.run(rates, [(0, 1)]) == [pytest.approx(3.4, abs=0.1)]
    assert speed.read_text() == "2.5 GT/s PCIe\n", "also under load"
    assert gpus.run(rates, [(2, 4)]) == [pytest.approx(12.8, abs=0.2)]


def test_staging_in_spite_of_peer_access(gpus: SimulatedMachine) -> None:
    gpus.faults("staged from={0} to={2}")
    assert gpus.run(rates, [(0, 2)]) == [pytest.approx(26.5, abs=0.7)]
    assert gpus.run(arrives) == [pattern(4096)]


def test_latency(gpus: SimulatedMachine) -> None:
    gpus.faults("latency from={0} to={2} us=1000")
    assert gpus.run(rates, [(0, 2)])[0] == pytest.approx(16 * MIB / (1e-3 + 16 * MIB / 53.2e9) / 1e9, abs=0.3)


def test_posted_writes_of_two_gpus_collapse_where_isolated_pairs_do_not(gpus: SimulatedMachine) -> None:
    gpus.faults("collapse device=0000:01:00.0")
    assert gpus.run(rates, [(0, 2)]) == [pytest.approx(53.2, abs=0.2)]
    assert sum(gpus.run(rates, [(0, 2), (1, 4)])) == pytest.approx(2.7, abs=0.1)
    assert min(gpus.run(rates, [(2, 0), (3, 5)])) > 20, "another switch"
    assert min(gpus.run(rates, [(0, 1), (1, 0)])) > 50, "nothing leaves the switch"


def test_memory_that_another_process_holds(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda, device: int) -> int:
        cuda.ok("cuInit", 0)
        cuda.use(device)
        return cuda.call("cuMemAlloc_v2", ctypes.c_uint64(), 256 * MIB)

    gpus.faults("occupied device={1} bytes=94.4G")
    assert [gpus.run(ask, device) for device in (0, 1)] == [0, 2]


@pytest.mark.parametrize(
    "line",
    [
        "droped from={0}",
        "dropped form={0}",
        "dropped from=0000:99:00.0",
        "dropped from",
        "dropped from={0} call=cuInit",
        "dropped min=4X",
        "stale from={0}",
        "slow from={0}",
        "link device={0}",
        "error code=x",
        "error call=cuInot code=3",
        "error device={0}",
    ],
)
def test_a_line_that_makes_no_sense_ends_the_process(gpus: SimulatedMachine, line: str) -> None:
    gpus.faults(line)
    script = "import sys; from simulated_gpus import Cuda; Cuda(sys.argv[1]).call('cuInit', 0)"
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run([sys.executable, "-c", script, gpus.library], capture_output=True, text=True, env=environment)
    assert done.returncode == -signal.SIGABRT
    assert "makes no sense" in done.stderr


def test_comments_and_empty_lines(gpus: SimulatedMachine) -> None:
    gpus.faults("# all well", "", "  dropped from={0} to={2} # not quite")
    assert gpus.run(arrives) == [SENTINEL * 4096]
