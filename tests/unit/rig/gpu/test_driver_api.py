# SPDX-License-Identifier: GPL-3.0-or-later
"""The simulated driver API, call by call: what a program that copies between GPUs uses."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time
import typing as t

import pytest
from simulated_gpus import Cuda, SimulatedMachine

MIB = 1 << 20
DATA = bytes(range(1, 252))


def test_devices(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        before = cuda.call("cuDeviceGetCount", ctypes.c_int())
        cuda.ok("cuInit", 0)
        name = ctypes.create_string_buffer(64)
        cuda.ok("cuDeviceGetPCIBusId", name, 64, 7)
        short = cuda.call("cuDeviceGetPCIBusId", ctypes.create_string_buffer(12), 12, 7)
        by_address = cuda.integer("cuDeviceGetByPCIBusId", b"0000:c3:00.0")
        attributes = [cuda.integer("cuDeviceGetAttribute", a, 7) for a in (33, 40, 41, 75, 76, 134)]
        return [before, cuda.integer("cuDeviceGetCount"), name.value, short, by_address, attributes]

    assert gpus.run(ask) == [3, 8, b"0000:C4:00.0", 1, 6, [0xC4, 4, 1, 12, 0, 1]]


def test_peers(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        cuda.ok("cuInit", 0)
        twin = cuda.out("cuCtxCreate_v2", 0, 0)
        first, second = cuda.use(0), cuda.use(1)
        cuda.use(0)
        return [
            cuda.integer("cuDeviceCanAccessPeer", 0, 7),
            cuda.integer("cuDeviceCanAccessPeer", 0, 0),
            cuda.call("cuDeviceCanAccessPeer", ctypes.c_int(), 0, 8),
            [cuda.integer("cuDeviceGetP2PAttribute", attribute, 0, 7) for attribute in (1, 2, 3, 4, 5)],
            cuda.call("cuDeviceGetP2PAttribute", ctypes.c_int(), 2, 3, 3),
            cuda.call("cuCtxDisablePeerAccess", second),
            cuda.call("cuCtxEnablePeerAccess", second, 0),
            cuda.call("cuCtxEnablePeerAccess", second, 0),
            cuda.call("cuCtxEnablePeerAccess", second, 1),
            cuda.call("cuCtxEnablePeerAccess", first, 0),
            cuda.call("cuCtxEnablePeerAccess", twin, 0),
            cuda.call("cuCtxEnablePeerAccess", 12345, 0),
            cuda.call("cuCtxDisablePeerAccess", second),
        ]

    assert gpus.run(ask) == [1, 0, 101, [0, 1, 0, 1, 0], 101, 705, 0, 704, 1, 201, 217, 201, 0]


def test_contexts(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        cuda.ok("cuInit", 0)
        none = cuda.call("cuMemAlloc_v2", ctypes.c_uint64(), 4)
        first = cuda.use(0)
        own = cuda.out("cuCtxCreate_v2", 0, 1)
        device = cuda.integer("cuCtxGetDevice")
        popped = cuda.out("cuCtxPopCurrent_v2")
        current = cuda.out("cuCtxGetCurrent")
        cuda.ok("cuCtxPushCurrent_v2", own)
        memory = cuda.out("cuMemAlloc_v2", 4096)
        cuda.ok("cuCtxDestroy_v2", own)
        gone = [cuda.call("cuCtxSetCurrent", own), cuda.call("cuCtxDestroy_v2", own), cuda.call("cuMemFree_v2", memory)]
        primary = cuda.call("cuCtxDestroy_v2", first)
        cuda.ok("cuDevicePrimaryCtxRelease_v2", 0)
        released = [cuda.call("cuCtxSynchronize"), cuda.call("cuDevicePrimaryCtxRelease_v2", 0)]
        return [none, device, popped == own, current == first, gone, primary, released]

    assert gpus.run(ask) == [201, 1, True, True, [709, 709, 1], 201, [709, 201]]


def test_a_reset_takes_the_memory_back_and_is_no_release(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        cuda.ok("cuInit", 0)
        memory = cuda.memory(0, MIB)
        cuda.ok("cuDevicePrimaryCtxReset_v2", 0)
        flags, active = ctypes.c_uint32(), ctypes.c_int()
        cuda.ok("cuDevicePrimaryCtxGetState", 0, flags, active)
        gone = [active.value, cuda.call("cuCtxSetCurrent", cuda.contexts.pop(0))]
        cuda.use(0)
        freed = cuda.call("cuMemFree_v2", memory)
        return [*gone, freed, [cuda.call("cuDevicePrimaryCtxRelease_v2", 0) for _ in range(3)]]

    assert gpus.run(ask) == [0, 709, 1, [0, 0, 201]]


def test_memory_has_an_end_and_counts_what_is_taken(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[int]:
        cuda.ok("cuInit", 0)
        cuda.use(0)
        free, total, after = ctypes.c_size_t(), ctypes.c_size_t(), ctypes.c_size_t()
        cuda.ok("cuMemGetInfo_v2", free, total)
        address = cuda.out("cuMemAlloc_v2", 64 << 30)
        cuda.ok("cuMemGetInfo_v2", after, total)
        too_much = cuda.call("cuMemAlloc_v2", ctypes.c_uint64(), 64 << 30)
        cuda.ok("cuMemFree_v2", address)
        again = cuda.out("cuMemAlloc_v2", 64 << 30)
        return [total.value >> 20, (free.value - after.value) >> 30, too_much, again == address]

    assert gpus.run(ask) == [97251, 64, 2, True]


def test_addresses_differ_between_devices_and_are_closed_to_the_host(gpus: SimulatedMachine) -> None:
    def addresses(cuda: Cuda) -> list[int]:
        cuda.ok("cuInit", 0)
        return [cuda.memory(device, MIB) for device in range(8)]

    def follow(cuda: Cuda) -> bytes:
        cuda.ok("cuInit", 0)
        return ctypes.string_at(cuda.memory(0, MIB), 1)

    found = gpus.run(addresses)
    assert len(set(found)) == 8
    assert min(abs(a - b) for a in found for b in found if a != b) > 96 << 30
    with pytest.raises(AssertionError, match=f"ended with -{signal.SIGSEGV.value}"):
        gpus.run(follow)


def test_copies_from_and_to_the_host(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        cuda.ok("cuInit", 0)
        memory = cuda.memory(0, 4096)
        cuda.ok("cuMemcpyHtoD_v2", memory + 3, DATA, len(DATA))
        whole = cuda.read(0, memory, 260)
        stream = cuda.stream(0)
        pinned = cuda.out("cuMemHostAlloc", 4096, 3)
        other = cuda.out("cuMemAllocHost_v2", 4096)
        seen_by_device = cuda.out("cuMemHostGetDevicePointer_v2", pinned, 0)
        ctypes.memmove(pinned, b"pinned", 6)
        cuda.ok("cuMemcpyHtoDAsync_v2", memory, pinned, 6, stream)
        cuda.ok("cuMemcpyDtoHAsync_v2", other, memory, 6, stream)
        early = ctypes.string_at(other, 6)
        cuda.ok("cuStreamSynchronize", stream)
        late = ctypes.string_at(other, 6)
        buffer = ctypes.create_string_buffer(b"unified", 7)
        cuda.ok("cuMemcpy", memory, ctypes.addressof(buffer), 7)
        cuda.ok("cuMemcpyAsync", other, memory, 7, stream)
        cuda.ok("cuStreamSynchronize", stream)
        freed = [
            cuda.call("cuMemFreeHost", pinned),
            cuda.call("cuMemFreeHost", pinned),
            cuda.call("cuMemFreeHost", other + 1),
        ]
        return [whole, early, late, ctypes.string_at(other, 7), seen_by_device == pinned, freed]

    whole = b"\xa5" * 3 + DATA + b"\xa5" * (260 - 3 - len(DATA))
    assert gpus.run(ask) == [whole, bytes(6), b"pinned", b"unified", True, [0, 1, 1]]


def test_fills(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        cuda.ok("cuInit", 0)
        memory, stream = cuda.memory(0, 64), cuda.stream(0)
        cuda.ok("cuMemsetD32_v2", memory, 0x01020304, 2)
        cuda.ok("cuMemsetD8_v2", memory + 8, 7, 2)
        cuda.ok("cuMemsetD32Async", memory + 12, 0x0A0B0C0D, 1, stream)
        cuda.ok("cuMemsetD8Async", memory + 16, 8, 1, stream)
        cuda.ok("cuCtxSynchronize")
        return [
            cuda.read(0, memory, 18),
            cuda.call("cuMemsetD32_v2", memory + 2, 0, 1),
            cuda.call("cuMemsetD8_v2", memory, 0, 513),
        ]

    assert gpus.run(ask) == [bytes.fromhex("0403020104030201 0707a5a5 0d0c0b0a 08a5"), 1, 1]


@pytest.mark.parametrize("issuer", [0, 5, 3])
def test_bytes_cross_whoever_issues_the_copy(gpus: SimulatedMachine, issuer: int) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        cuda.start(0, 3, 5)
        source, target = cuda.memory(0, MIB, DATA), cuda.memory(5, MIB)
        code = cuda.copy((0, source), (5, target), MIB, issuer)
        return [code, cuda.read(5, target, MIB) == cuda.read(0, source, MIB)]

    assert gpus.run(ask) == [0, True]


@pytest.mark.parametrize(
    "call", ["cuMemcpyDtoD_v2", "cuMemcpyDtoDAsync_v2", "cuMemcpyPeer", "cuMemcpy", "cuMemcpyAsync"]
)
def test_every_call_that_copies_between_devices(gpus: SimulatedMachine, call: str) -> None:
    def ask(cuda: Cuda) -> bool:
        contexts = cuda.start(1, 2)
        source, target = cuda.memory(1, 4096, DATA), cuda.memory(2, 4096)
        cuda.use(1)
        ends = (target, contexts[1], source, contexts[0]) if "Peer" in call else (target, source)
        cuda.ok(call, *ends, 4096, *([0] if "Async" in call else []))
        cuda.ok("cuCtxSynchronize")
        return cuda.read(2, target, 4096) == cuda.read(1, source, 4096)

    assert gpus.run(ask)


def test_what_is_out_of_bounds_is_refused(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[int]:
        contexts = cuda.start(0, 1)
        first, second = cuda.memory(0, 512), cuda.memory(1, 512)
        return [
            cuda.call("cuMemcpyPeerAsync", second, contexts[1], first, contexts[0], 513, 0),
            cuda.call("cuMemcpyPeerAsync", second, contexts[0], first, contexts[0], 512, 0),
            cuda.call("cuMemcpyPeerAsync", second, 99, first, contexts[0], 512, 0),
            cuda.call("cuMemcpyDtoD_v2", first + (1 << 30), second, 4),
            cuda.call("cuMemcpyHtoD_v2", 0, DATA, 4),
            cuda.call("cuMemcpyDtoH_v2", second, first, 4),
            cuda.call("cuMemFree_v2", first + 8),
            cuda.call("cuMemcpyHtoDAsync_v2", first, DATA, 4, 99),
            cuda.call("cuMemcpyHtoD_v2", first, DATA, 0),
        ]

    assert gpus.run(ask) == [1, 1, 201, 1, 1, 1, 1, 400, 0]


def test_a_copy_has_not_arrived_before_its_stream_was_waited_for(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        contexts = cuda.start(0, 1)
        size = 64 * MIB
        source, target, stream = cuda.memory(0, size, DATA), cuda.memory(1, size), cuda.stream(0)
        cuda.ok("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], size, stream)
        queried = cuda.call("cuStreamQuery", stream)
        return [queried, cuda.call("cuStreamQuery", stream), cuda.read(1, target, 8)]

    assert gpus.run(ask) == [600, 0, DATA[:8]]

    def hasty(cuda: Cuda) -> bytes:
        contexts = cuda.start(0, 1)
        size = 64 * MIB
        source, target, stream = cuda.memory(0, size, DATA), cuda.memory(1, size), cuda.stream(0)
        cuda.ok("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], size, stream)
        return cuda.read(1, target, 8)

    assert gpus.run(hasty) == b"\xa5" * 8


def test_memory_outlives_the_copies_that_others_make_into_it(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[int]:
        contexts = cuda.start(0, 1)
        size = 64 * MIB
        source, target, stream = cuda.memory(0, size, DATA), cuda.memory(1, size), cuda.stream(0)
        cuda.ok("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], size, stream)
        cuda.use(1)
        return [cuda.call("cuMemFree_v2", target), cuda.call("cuStreamQuery", stream)]

    assert gpus.run(ask) == [0, 0]


def test_streams_wait_for_events_of_others(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        contexts = cuda.start(0, 1, 2)
        size = 16 * MIB
        memory = [cuda.memory(0, size, DATA), cuda.memory(1, size), cuda.memory(2, size)]
        first, second = cuda.stream(0), cuda.stream(1)
        cuda.use(0)
        event = cuda.out("cuEventCreate", 2)
        cuda.ok("cuMemcpyPeerAsync", memory[1], contexts[1], memory[0], contexts[0], size, first)
        cuda.ok("cuEventRecord", event, first)
        cuda.ok("cuStreamWaitEvent", second, event, 0)
        cuda.ok("cuMemcpyPeerAsync", memory[2], contexts[2], memory[1], contexts[1], size, second)
        cuda.ok("cuStreamSynchronize", second)
        return [cuda.read(2, memory[2], size) == cuda.read(0, memory[0], size), cuda.call("cuEventQuery", event)]

    assert gpus.run(ask) == [True, 0]


def test_the_default_stream_waits_for_blocking_ones_only(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda, flags: int) -> bytes:
        contexts = cuda.start(0, 1)
        size = 16 * MIB
        source, target = cuda.memory(0, size, DATA), cuda.memory(1, size)
        cuda.use(1)
        stream = cuda.out("cuStreamCreate", flags)
        cuda.ok("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], size, stream)
        return cuda.read(1, target, 4)

    assert gpus.run(ask, 0) == DATA[:4]
    assert gpus.run(ask, 1) == b"\xa5" * 4


def test_events(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        contexts = cuda.start(0, 1)
        size = 64 * MIB
        source, target, stream = cuda.memory(0, size, DATA), cuda.memory(1, size), cuda.stream(0)
        begin, end, untimed = (cuda.out("cuEventCreate", flags) for flags in (0, 1, 2))
        cuda.use(1)
        foreign = cuda.out("cuEventCreate", 0)
        time = ctypes.c_float()
        never = cuda.call("cuEventQuery", begin), cuda.call("cuEventElapsedTime", time, begin, end)
        cuda.use(0)
        cuda.ok("cuEventRecord", begin, stream)
        cuda.ok("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], size, stream)
        cuda.ok("cuEventRecord", end, stream)
        early = [cuda.call("cuEventElapsedTime_v2", time, begin, end), cuda.call("cuEventQuery", end)]
        cuda.ok("cuEventSynchronize", end)
        cuda.ok("cuEventElapsedTime", time, begin, end)
        wrong = [
            cuda.call("cuEventRecord", foreign, stream),
            cuda.call("cuEventElapsedTime", time, begin, foreign),
            cuda.call("cuEventElapsedTime", time, begin, untimed),
        ]
        cuda.ok("cuEventDestroy_v2", begin)
        wrong.append(cuda.call("cuEventQuery", begin))
        cuda.ok("cuStreamDestroy_v2", stream)
        wrong.append(cuda.call("cuStreamQuery", stream))
        return [never, early, 1.2 < time.value < 1.4, wrong]

    assert gpus.run(ask) == [(0, 400), [600, 600], True, [400, 400, 400, 400, 400]]


def test_a_word_of_the_host_holds_a_stream_back(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        contexts = cuda.start(0, 1)
        source, target, stream = cuda.memory(0, 4096, DATA), cuda.memory(1, 4096), cuda.stream(0)
        word = cuda.out("cuMemHostAlloc", 4, 3)
        done = cuda.out("cuMemHostAlloc", 4, 3)
        cuda.ok("cuStreamWaitValue32_v2", stream, word, 1, 1)
        cuda.ok("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], 4096, stream)
        cuda.ok("cuStreamWriteValue32_v2", stream, done, 7, 0)
        held = [cuda.call("cuStreamQuery", stream) for _ in range(5)]
        ctypes.c_uint32.from_address(word).value = 1
        cuda.ok("cuStreamSynchronize", stream)
        return [
            held,
            cuda.read(1, target, 4),
            ctypes.c_uint32.from_address(done).value,
            cuda.call("cuStreamWaitValue32_v2", stream, 8, 1, 1),
        ]

    assert gpus.run(ask) == [[600] * 5, DATA[:4], 7, 1]


def test_another_thread_may_let_go_who_waits(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[int]:
        cuda.start(0)
        stream, word = cuda.stream(0), cuda.out("cuMemHostAlloc", 4, 3)
        cuda.ok("cuStreamWaitValue32_v2", stream, word, 1, 1)
        codes: list[int] = []
        waiting = threading.Thread(target=lambda: codes.append(cuda.call("cuStreamSynchronize", stream)))
        waiting.start()
        time.sleep(0.1)
        codes.append(cuda.call("cuStreamQuery", stream))
        ctypes.c_uint32.from_address(word).value = 1
        waiting.join()
        return codes

    assert gpus.run(ask) == [600, 0]


def test_who_waits_for_a_word_that_nobody_writes_waits_for_ever(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> None:
        cuda.start(0)
        stream, word = cuda.stream(0), cuda.out("cuMemHostAlloc", 4, 3)
        cuda.ok("cuStreamWaitValue32_v2", stream, word, 1, 1)
        cuda.ok("cuStreamSynchronize", stream)

    with pytest.raises(AssertionError, match="no answer"):
        gpus.run(ask, seconds=1)


def test_a_stream_that_is_held_back_takes_only_so_much(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda, count: int) -> int:
        cuda.start(0)
        memory, stream, word = cuda.memory(0, 4), cuda.stream(0), cuda.out("cuMemHostAlloc", 4, 3)
        cuda.ok("cuStreamWaitValue32_v2", stream, word, 1, 1)
        for _ in range(count):
            cuda.ok("cuMemsetD8Async", memory, 0, 4, stream)
        return cuda.call("cuStreamQuery", stream)

    assert gpus.run(ask, 1000) == 600
    with pytest.raises(AssertionError, match="no answer"):
        gpus.run(ask, 1100, seconds=1)


def test_a_fork_of_a_process_with_cuda_has_none(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> int:
        cuda.start(0)
        pid = os.fork()
        if not pid:
            os._exit(cuda.call("cuCtxSynchronize"))
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

    assert gpus.run(ask) == 3


def test_kernels_are_not_supported(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[int]:
        cuda.start(0)
        return [
            cuda.call("cuModuleLoadData", ctypes.c_uint64(), b".version 8.0"),
            cuda.call("cuLaunchKernel", 1, *[1] * 7, 0, None, None),
        ]

    assert gpus.run(ask) == [801, 801]


def test_names_of_errors(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> list[t.Any]:
        text = ctypes.c_char_p()
        found: list[t.Any] = []
        for code in (0, 217, 704, 919, 999):
            cuda.ok("cuGetErrorName", code, text)
            found.append(text.value)
        cuda.ok("cuGetErrorString", 2, text)
        return [*found, text.value, cuda.call("cuGetErrorName", 12345, text)]

    assert gpus.run(ask) == [
        b"CUDA_SUCCESS",
        b"CUDA_ERROR_PEER_ACCESS_UNSUPPORTED",
        b"CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED",
        b"CUDA_ERROR_FABRIC_NOT_READY",
        b"CUDA_ERROR_UNKNOWN",
        b"out of memory",
        1,
    ]


def test_nobody_waits_for_the_modelled_time(gpus: SimulatedMachine) -> None:
    def ask(cuda: Cuda) -> float:
        contexts = cuda.start(0, 7)
        size = 64 * MIB
        source, target = cuda.memory(0, size, DATA), cuda.memory(7, size)
        stream = cuda.stream(0)
        begin, end = cuda.out("cuEventCreate", 0), cuda.out("cuEventCreate", 0)
        cuda.ok("cuEventRecord", begin, stream)
        for _ in range(2000):
            cuda.ok("cuMemcpyPeerAsync", target, contexts[1], source, contexts[0], size, stream)
        cuda.ok("cuEventRecord", end, stream)
        cuda.ok("cuEventSynchronize", end)
        return float(cuda.out("cuEventElapsedTime", begin, end, kind=ctypes.c_float))

    started = time.monotonic()
    assert gpus.run(ask) > 2400, "milliseconds"
    assert time.monotonic() - started < 2
