# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig's GPUs on a folder that stands for ``/``, and its libcuda.so.1 through ctypes, each use in a process of its own."""

from __future__ import annotations

import ctypes
import faulthandler
import multiprocessing
import typing as t
from pathlib import Path

from gpu import pci

VERSION = "595.58.03"
# i an int, u a 32-bit value, n a size, a an address of device memory or of the host, h a handle, p where a result goes.
SIGNATURES = {
    "cuInit": "u",
    "cuDriverGetVersion": "p",
    "cuDeviceGetCount": "p",
    "cuDeviceGet": "pi",
    "cuDeviceGetName": "pii",
    "cuDeviceGetPCIBusId": "pii",
    "cuDeviceGetByPCIBusId": "pp",
    "cuDeviceGetUuid_v2": "pi",
    "cuDeviceGetAttribute": "pii",
    "cuDeviceTotalMem_v2": "pi",
    "cuDeviceCanAccessPeer": "pii",
    "cuDeviceGetP2PAttribute": "piii",
    "cuDevicePrimaryCtxRetain": "pi",
    "cuDevicePrimaryCtxRelease_v2": "i",
    "cuDevicePrimaryCtxReset_v2": "i",
    "cuDevicePrimaryCtxGetState": "ipp",
    "cuCtxCreate_v2": "pui",
    "cuCtxDestroy_v2": "h",
    "cuCtxSetCurrent": "h",
    "cuCtxGetCurrent": "p",
    "cuCtxGetDevice": "p",
    "cuCtxPushCurrent_v2": "h",
    "cuCtxPopCurrent_v2": "p",
    "cuCtxSynchronize": "",
    "cuCtxEnablePeerAccess": "hu",
    "cuCtxDisablePeerAccess": "h",
    "cuMemAlloc_v2": "pn",
    "cuMemFree_v2": "a",
    "cuMemGetInfo_v2": "pp",
    "cuMemAllocHost_v2": "pn",
    "cuMemHostAlloc": "pnu",
    "cuMemFreeHost": "a",
    "cuMemHostGetDevicePointer_v2": "pau",
    "cuMemcpyHtoD_v2": "apn",
    "cuMemcpyHtoDAsync_v2": "apnh",
    "cuMemcpyDtoH_v2": "pan",
    "cuMemcpyDtoHAsync_v2": "panh",
    "cuMemcpyDtoD_v2": "aan",
    "cuMemcpyDtoDAsync_v2": "aanh",
    "cuMemcpyPeer": "ahahn",
    "cuMemcpyPeerAsync": "ahahnh",
    "cuMemcpy": "aan",
    "cuMemcpyAsync": "aanh",
    "cuMemsetD8_v2": "aun",
    "cuMemsetD8Async": "aunh",
    "cuMemsetD32_v2": "aun",
    "cuMemsetD32Async": "aunh",
    "cuStreamCreate": "pu",
    "cuStreamDestroy_v2": "h",
    "cuStreamSynchronize": "h",
    "cuStreamQuery": "h",
    "cuStreamWaitEvent": "hhu",
    "cuStreamWaitValue32_v2": "hauu",
    "cuStreamWriteValue32_v2": "hauu",
    "cuEventCreate": "pu",
    "cuEventRecord": "hh",
    "cuEventQuery": "h",
    "cuEventSynchronize": "h",
    "cuEventElapsedTime": "phh",
    "cuEventElapsedTime_v2": "phh",
    "cuEventDestroy_v2": "h",
    "cuGetErrorName": "ip",
    "cuGetErrorString": "ip",
    "cuModuleLoadData": "pp",
    "cuLaunchKernel": "huuuuuuuhpp",
}
_TYPES: dict[str, t.Any] = {
    "i": ctypes.c_int,
    "u": ctypes.c_uint32,
    "n": ctypes.c_size_t,
    "a": ctypes.c_uint64,
    "h": ctypes.c_void_p,
    "p": ctypes.c_void_p,
}


class CudaError(Exception):
    """A call's code, where success was expected."""


class Cuda:
    """The driver API. ``call`` gives a call's code, ``ok`` expects 0; the rest are the sequences that every test needs."""

    def __init__(self, library: Path) -> None:
        self._library = ctypes.CDLL(str(library))
        self.contexts: dict[int, int] = {}

    def call(self, name: str, *arguments: t.Any) -> int:
        """The code of one call."""
        function = getattr(self._library, name)
        function.argtypes = [_TYPES[kind] for kind in SIGNATURES[name]]
        return int(function(*(ctypes.byref(a) if isinstance(a, ctypes._SimpleCData) else a for a in arguments)))

    def ok(self, name: str, *arguments: t.Any) -> None:
        """A call that must succeed. Errors: CudaError."""
        code = self.call(name, *arguments)
        if code:
            raise CudaError(f"{name}: {code}")

    def out(self, name: str, *arguments: t.Any, kind: t.Any = ctypes.c_uint64) -> t.Any:
        """What a call that must succeed writes through its first argument."""
        value = kind()
        self.ok(name, value, *arguments)
        return value.value

    def integer(self, name: str, *arguments: t.Any) -> int:
        """The same, of an ``int``."""
        return int(self.out(name, *arguments, kind=ctypes.c_int))

    def use(self, device: int) -> int:
        """Make the device's primary context the current one."""
        if device not in self.contexts:
            self.contexts[device] = self.out("cuDevicePrimaryCtxRetain", device)
        self.ok("cuCtxSetCurrent", self.contexts[device])
        return self.contexts[device]

    def start(self, *devices: int) -> list[int]:
        """cuInit, and a context for each of these devices, all with access to each other where there is any."""
        self.ok("cuInit", 0)
        found = [self.use(device) for device in devices]
        for device in devices:
            for peer in devices:
                if peer != device:
                    self.use(device)
                    self.call("cuCtxEnablePeerAccess", self.contexts[peer], 0)
        return found

    def memory(self, device: int, size: int, content: bytes | None = None) -> int:
        """Memory of a device, holding ``content`` over and over, or 0xA5."""
        self.use(device)
        address = int(self.out("cuMemAlloc_v2", size))
        if content is None:
            self.ok("cuMemsetD8_v2", address, 0xA5, size)
        else:
            self.ok("cuMemcpyHtoD_v2", address, (content * (size // len(content) + 1))[:size], size)
        self.ok("cuCtxSynchronize")
        return address

    def read(self, device: int, address: int, size: int) -> bytes:
        """What the memory holds, asked through this device's context."""
        self.use(device)
        buffer = ctypes.create_string_buffer(size)
        self.ok("cuMemcpyDtoH_v2", buffer, address, size)
        return buffer.raw

    def stream(self, device: int) -> int:
        """A stream that does not wait for the default one."""
        self.use(device)
        return int(self.out("cuStreamCreate", 1))

    def copy(self, source: tuple[int, int], target: tuple[int, int], size: int, issuer: int | None = None) -> int:
        """Copy between (device, address) pairs and wait for it, issued by the source if by no other; the code."""
        stream = self.stream(source[0] if issuer is None else issuer)
        ends = (target[1], self.contexts[target[0]], source[1], self.contexts[source[0]])
        return self.call("cuMemcpyPeerAsync", *ends, size, stream) or self.call("cuStreamSynchronize", stream)

    def gbps(self, copies: list[tuple[tuple[int, int], tuple[int, int]]], size: int, times: int = 8) -> list[float]:
        """Bandwidth of each of these copies, all at the same time, by events around ``times`` of each, issued by the sources."""
        timed = []
        for source, _target in copies:
            stream = self.stream(source[0])
            timed.append((stream, self.out("cuEventCreate", 0), self.out("cuEventCreate", 0)))
        for (stream, begin, _end), (source, _target) in zip(timed, copies):
            self.use(source[0])
            self.ok("cuEventRecord", begin, stream)
        for _ in range(times):
            for (stream, _begin, _end), (source, target) in zip(timed, copies):
                ends = (target[1], self.contexts[target[0]], source[1], self.contexts[source[0]])
                self.ok("cuMemcpyPeerAsync", *ends, size, stream)
        for (stream, _begin, end), (source, _target) in zip(timed, copies):
            self.use(source[0])
            self.ok("cuEventRecord", end, stream)
        found = []
        for stream, begin, end in timed:
            self.ok("cuStreamSynchronize", stream)
            found.append(size * times / self.out("cuEventElapsedTime_v2", begin, end, kind=ctypes.c_float) / 1e6)
        return found


def _child(function: t.Callable[..., t.Any], library: Path, arguments: tuple[t.Any, ...], pipe: t.Any) -> None:
    faulthandler.disable()  # a crash may be what is expected
    try:
        pipe.send((True, function(Cuda(library), *arguments)))
    except BaseException as error:
        pipe.send((False, f"{type(error).__name__}: {error}"))


class SimulatedMachine:
    """A node with GPUs whose driver is loaded and whose nodes open; nothing of it needs root. What is there already, stays."""

    def __init__(self, root: Path, library: Path, gpus: int = 8) -> None:
        self.root, self.library = root, library
        self.cards = pci.cards(gpus, "test")
        if root.exists():
            return
        (root / "sys/bus/pci").mkdir(parents=True)
        pci.write(root / "sys/bus/pci", self.cards)
        self.file(
            "proc/driver/nvidia/version",
            f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}  Release\n",
        )
        for card in self.cards:
            text = f"Model: \t {pci.MODEL}\nGPU UUID: \t {card.uuid}\nDevice Minor: \t {card.minor}\n"
            self.file(f"proc/driver/nvidia/gpus/{card.address}/information", text)
        self.file("proc/devices", "Character devices:\n  1 nvidia\n  1 nvidiactl\n  1 nvidia-uvm\n\nBlock devices:\n")
        self.file("sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "Y\n")
        (root / "dev").mkdir()
        for name in ("nvidiactl", "nvidia-uvm", *(f"nvidia{n}" for n in range(gpus))):
            (root / "dev" / name).symlink_to("/dev/null")

    def file(self, name: str, text: str) -> None:
        """Write a file below the root."""
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def faults(self, *lines: str) -> None:
        """What is wrong with the hardware. ``{3}`` in a line is the address of GPU 3."""
        addresses = [card.address for card in self.cards]
        self.file("proc/driver/gpu-faults", "".join(line.format(*addresses) + "\n" for line in lines))

    def start(self, function: t.Callable[..., t.Any], *arguments: t.Any) -> tuple[t.Any, t.Any]:
        """``function(Cuda, *arguments)`` in a process of its own; that, and where its result will come from."""
        ours, theirs = multiprocessing.Pipe()
        process = multiprocessing.get_context("fork").Process(
            target=_child, args=(function, self.library, arguments, theirs), daemon=True
        )
        process.start()
        theirs.close()
        return process, ours

    def run(self, function: t.Callable[..., t.Any], *arguments: t.Any, seconds: float = 30) -> t.Any:
        """Its result. Errors: AssertionError where it fails or does not answer in time."""
        process, pipe = self.start(function, *arguments)
        answered = pipe.poll(seconds)
        try:
            done, value = pipe.recv() if answered else (False, "no answer")
        except EOFError:
            process.join()
            done, value = False, f"ended with {process.exitcode}"
        process.kill()
        process.join()
        assert done, value
        return value
