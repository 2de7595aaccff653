# SPDX-License-Identifier: GPL-3.0-or-later
"""The CUDA driver API as functions with types, and its results as errors with a name. Only ever loaded in a child.

Names are those that the library exports: those of ``cuda.h`` are macros, and an unsuffixed symbol may be an older ABI.
"""

from __future__ import annotations

import ctypes
import typing as t

from . import cuda_codes

Device = ctypes.c_int
Pointer = ctypes.c_uint64
Handle = ctypes.c_void_p
Size = ctypes.c_size_t
_UNSIGNED, _OUT, _TEXT = ctypes.c_uint, ctypes.c_void_p, ctypes.c_char_p
# Arguments by symbol. What is given back comes through a pointer (``byref``), here without its type.
SIGNATURES: dict[str, tuple[t.Any, ...]] = {
    "cuInit": (_UNSIGNED,),
    "cuDriverGetVersion": (_OUT,),
    "cuDeviceGetCount": (_OUT,),
    "cuDeviceGet": (_OUT, ctypes.c_int),
    "cuDeviceGetByPCIBusId": (_OUT, _TEXT),
    "cuDeviceGetPCIBusId": (_OUT, ctypes.c_int, Device),
    "cuDeviceGetName": (_OUT, ctypes.c_int, Device),
    "cuDeviceTotalMem_v2": (_OUT, Device),
    "cuDeviceGetAttribute": (_OUT, ctypes.c_int, Device),
    "cuDeviceCanAccessPeer": (_OUT, Device, Device),
    "cuDevicePrimaryCtxRetain": (_OUT, Device),
    "cuCtxSetCurrent": (Handle,),
    "cuCtxSynchronize": (),
    "cuCtxEnablePeerAccess": (Handle, _UNSIGNED),
    "cuCtxDisablePeerAccess": (Handle,),
    "cuMemAlloc_v2": (_OUT, Size),
    "cuMemGetInfo_v2": (_OUT, _OUT),
    "cuMemHostAlloc": (_OUT, Size, _UNSIGNED),
    "cuMemHostGetDevicePointer_v2": (_OUT, Handle, _UNSIGNED),
    "cuMemcpyHtoD_v2": (Pointer, Handle, Size),
    "cuMemcpyDtoH_v2": (Handle, Pointer, Size),
    "cuMemcpyDtoDAsync_v2": (Pointer, Pointer, Size, Handle),
    "cuMemcpyPeerAsync": (Pointer, Handle, Pointer, Handle, Size, Handle),
    "cuMemsetD8_v2": (Pointer, ctypes.c_ubyte, Size),
    "cuStreamCreate": (_OUT, _UNSIGNED),
    "cuStreamWaitValue32_v2": (Handle, Pointer, ctypes.c_uint32, _UNSIGNED),
    "cuEventCreate": (_OUT, _UNSIGNED),
    "cuEventRecord": (Handle, Handle),
    "cuEventQuery": (Handle,),
    "cuEventSynchronize": (Handle,),
    "cuEventElapsedTime": (_OUT, Handle, Handle),
    "cuEventElapsedTime_v2": (_OUT, Handle, Handle),
}


class CallError(Exception):
    """A call that gave a code other than 0. ``code`` is ``None`` where the library does not have the call."""

    def __init__(self, symbol: str, code: int | None, name: str) -> None:
        super().__init__(f"{symbol} returned {code} ({name})" if code is not None else name)
        self.symbol, self.code, self.name = symbol, code, name


class Driver:
    """A loaded ``libcuda``. Raises ``OSError`` where it cannot be loaded."""

    def __init__(self, library: str) -> None:
        self.library = library
        self._loaded = ctypes.CDLL(library)
        self._functions: dict[str, t.Any] = {}

    def has(self, symbol: str) -> bool:
        """Whether this version of the library exports it."""
        return hasattr(self._loaded, symbol)

    def result(self, symbol: str, *arguments: t.Any) -> int:
        """Call and return the code. Raises ``CallError`` only where there is no such call."""
        function = self._functions.get(symbol)
        if function is None:
            try:
                function = getattr(self._loaded, symbol)
            except AttributeError:
                raise CallError(symbol, None, f"{self.library} has no {symbol}") from None
            function.restype, function.argtypes = ctypes.c_int, SIGNATURES[symbol]
            self._functions[symbol] = function
        return int(function(*arguments))

    def call(self, symbol: str, *arguments: t.Any, accept: t.Container[int] = ()) -> int:
        """Call and return the code, which is 0 or one to ``accept``. Raises ``CallError`` for every other."""
        code = self.result(symbol, *arguments)
        if code and code not in accept:
            raise CallError(symbol, code, self.name(code))
        return code

    def name(self, code: int) -> str:
        """What the code is called."""
        return cuda_codes.name(code, self._told(code))

    def _told(self, code: int) -> str:
        """The library's own name for a code, if it has one."""
        try:
            function = self._loaded.cuGetErrorName
        except AttributeError:
            return ""
        function.restype = ctypes.c_int
        pointer = ctypes.c_char_p()
        if function(ctypes.c_int(code), ctypes.byref(pointer)) != 0 or not pointer.value:
            return ""
        return pointer.value.decode("ascii", "replace")
