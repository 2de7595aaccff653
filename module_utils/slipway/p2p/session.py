# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs of one process: contexts, buffers, streams and peer access, made when they are first needed. Runs in the child."""

from __future__ import annotations

import ctypes
import typing as t

from ..gpu.driver import CallError, Driver, Handle, Pointer
from .pattern import SENTINEL, doublings, tile
from .plan import Flow

ALREADY_ENABLED, NOT_ENABLED = 704, 705
_NON_BLOCKING, _PORTABLE, _MAPPED = 1, 1, 2
_REMEMBERED = 4


class Buffer:
    """Device memory of one GPU. ``seeds`` are the patterns that were in it, the latest last."""

    def __init__(self, gpu: Gpu, size: int) -> None:
        address = Pointer()
        gpu.driver.call("cuMemAlloc_v2", ctypes.byref(address), size)
        self.gpu, self.size, self.address, self.seeds = gpu, size, address.value, t.cast("list[str]", [])

    def remember(self, seed: str) -> None:
        """What is in it now."""
        self.seeds = [*self.seeds, seed][-_REMEMBERED:]


class Gpu:
    """One GPU with its primary context. Every call here makes that context the current one first."""

    def __init__(self, driver: Driver, bus_id: str) -> None:
        self.driver, self.bus_id = driver, bus_id
        self.device, self.context = ctypes.c_int(), Handle()
        driver.call("cuDeviceGetByPCIBusId", ctypes.byref(self.device), bus_id.encode())
        driver.call("cuDevicePrimaryCtxRetain", ctypes.byref(self.context), self.device)
        self._buffers: dict[str, Buffer] = {}
        self._streams: dict[str, Handle] = {}
        self._events: dict[str, Handle] = {}

    def use(self) -> None:
        """Make its context the current one."""
        self.driver.call("cuCtxSetCurrent", self.context)

    def synchronize(self) -> None:
        """Wait for all that this GPU was given."""
        self.use()
        self.driver.call("cuCtxSynchronize")

    def buffer(self, name: str, size: int) -> Buffer:
        """Its buffer of that name."""
        if name not in self._buffers:
            self.use()
            self._buffers[name] = Buffer(self, size)
        return self._buffers[name]

    def stream(self, name: str = "") -> Handle:
        """Its stream of that name."""
        if name not in self._streams:
            self.use()
            made = Handle()
            self.driver.call("cuStreamCreate", ctypes.byref(made), _NON_BLOCKING)
            self._streams[name] = made
        return self._streams[name]

    def event(self, name: str) -> Handle:
        """Its event of that name; events belong to the context that they were made in."""
        if name not in self._events:
            self.use()
            made = Handle()
            self.driver.call("cuEventCreate", ctypes.byref(made), 0)
            self._events[name] = made
        return self._events[name]

    def memory(self) -> tuple[int, int]:
        """Free and total bytes, whoever holds the rest."""
        self.use()
        free, total = ctypes.c_size_t(), ctypes.c_size_t()
        self.driver.call("cuMemGetInfo_v2", ctypes.byref(free), ctypes.byref(total))
        return free.value, total.value

    def fill_sentinel(self, buffer: Buffer, size: int) -> None:
        """What must be overwritten."""
        self.use()
        self.driver.call("cuMemsetD8_v2", buffer.address, SENTINEL, size)
        self.driver.call("cuCtxSynchronize")

    def fill_pattern(self, buffer: Buffer, seed: str, size: int) -> None:
        """A tile from the host, doubled here until the buffer is full."""
        self.use()
        text = tile(seed, size)
        self.driver.call("cuMemcpyHtoD_v2", buffer.address, ctypes.create_string_buffer(text, len(text)), len(text))
        # From pageable memory the call may return before the data is there, and this stream does not wait for the one it is on.
        self.driver.call("cuCtxSynchronize")
        stream = self.stream()
        for offset, count in doublings(size):
            self.driver.call("cuMemcpyDtoDAsync_v2", buffer.address + offset, buffer.address, count, stream)
        self.driver.call("cuCtxSynchronize")
        buffer.remember(seed)

    def read_back(self, buffer: Buffer, size: int, address: int) -> None:
        """Copy the buffer to the host, by the GPU that owns it: a writer may read a mirror of its own (NVIDIA/nccl#2335)."""
        self.use()
        self.driver.call("cuMemcpyDtoH_v2", address, buffer.address, size)


class Session:
    """All GPUs of this process. Raises ``CallError`` where the driver refuses."""

    def __init__(self, driver: Driver, buffer_bytes: int, slot_bytes: int) -> None:
        self.driver, self.buffer_bytes, self.slot_bytes = driver, buffer_bytes, slot_bytes
        self._gpus: dict[str, Gpu] = {}
        self._peers: dict[Flow, bool] = {}
        self._host: dict[str, int] = {}

    def gpu(self, bus_id: str) -> Gpu:
        """The GPU at that address, its context made when it is first asked for."""
        if bus_id not in self._gpus:
            self._gpus[bus_id] = Gpu(self.driver, bus_id)
        return self._gpus[bus_id]

    def host(self, name: str, size: int) -> int:
        """The address of pinned memory of that name, which every context and every GPU sees."""
        if name not in self._host:
            address = Handle()
            self.driver.call("cuMemHostAlloc", ctypes.byref(address), size, _PORTABLE | _MAPPED)
            self._host[name] = address.value or 0
        return self._host[name]

    def can_access(self, accessing: str, owner: str) -> bool:
        """What the driver says of the pair: told, and never taken for proof."""
        answer = ctypes.c_int()
        one, other = self.gpu(accessing).device, self.gpu(owner).device
        self.driver.call("cuDeviceCanAccessPeer", ctypes.byref(answer), one, other)
        return bool(answer.value)

    def connect(self, source: str, target: str) -> None:
        """Peer access both ways; each call opens one. A GPU needs none to itself."""
        for accessing, owner in ((source, target), (target, source)):
            if accessing != owner and not self._peers.get((accessing, owner)):
                context = self.gpu(owner).context
                self.gpu(accessing).use()
                self.driver.call("cuCtxEnablePeerAccess", context, 0, accept=(ALREADY_ENABLED,))
                self._peers[(accessing, owner)] = True

    def disconnect(self, source: str, target: str) -> None:
        """No peer access either way: copies are then staged through the host."""
        for accessing, owner in ((source, target), (target, source)):
            if self._peers.get((accessing, owner)):
                context = self.gpu(owner).context
                self.gpu(accessing).synchronize()
                self.driver.call("cuCtxDisablePeerAccess", context, accept=(NOT_ENABLED,))
                self._peers[(accessing, owner)] = False

    def outbox(self, source: str, target: str = "") -> Buffer:
        """What ``source`` sends: its large buffer, or with a ``target`` the slot of that flow."""
        return self.gpu(source).buffer(f"to {target}", self.slot_bytes if target else self.buffer_bytes)

    def inbox(self, target: str, source: str = "") -> Buffer:
        """Where ``target`` receives: its large buffer, or with a ``source`` the slot of that flow."""
        return self.gpu(target).buffer(f"from {source}", self.slot_bytes if source else self.buffer_bytes)

    def copy(self, sent: Buffer, received: Buffer, size: int, issued_by: str, stream: str = "") -> None:
        """Give a copy to the stream of the GPU that issues it (``source`` or ``target``), and do not wait for it.

        With peer access it goes over the link, without it the driver stages it through the host.
        """
        issuer = sent.gpu if issued_by == "source" else received.gpu
        queue = issuer.stream(stream)
        issuer.use()
        arguments = (received.address, received.gpu.context, sent.address, sent.gpu.context, size, queue)
        self.driver.call("cuMemcpyPeerAsync", *arguments)


def sticky(error: CallError) -> bool:
    """Whether the process must end: known to be harmless are only calls that were refused as such."""
    return error.code not in (None, 1, 2, 46, 101, 205, 217, 704, 705, 711, 800, 801)
