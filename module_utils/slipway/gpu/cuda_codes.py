# SPDX-License-Identifier: GPL-3.0-or-later
"""Results of the CUDA driver API that matter on a host or in a guest: their name and what is usually behind them."""

from __future__ import annotations

import typing as t


class Code(t.NamedTuple):
    """``name`` as ``cuda.h`` has it (empty where only the number is certain), ``cause`` as one clause."""

    name: str
    cause: str


NOT_INITIALIZED = 3
_STICKY = "an error that stays with the process: it must end, and a new one begin"
_MPS = "the MPS daemon (nvidia-cuda-mps-control) refuses or does not answer"

CODES: dict[int, Code] = {
    0: Code("CUDA_SUCCESS", ""),
    1: Code("CUDA_ERROR_INVALID_VALUE", "an argument the driver does not take"),
    2: Code("CUDA_ERROR_OUT_OF_MEMORY", "the GPU's memory is held by another process"),
    3: Code("CUDA_ERROR_NOT_INITIALIZED", "nvidia_uvm has HMM on, which conflicts with this kernel"),
    34: Code("CUDA_ERROR_STUB_LIBRARY", "the linker's stub libcuda.so is found before the driver's"),
    46: Code("CUDA_ERROR_DEVICE_UNAVAILABLE", "the GPU's compute mode is exclusive or prohibited"),
    100: Code("CUDA_ERROR_NO_DEVICE", "no /dev/nvidia<N> that opens is here, or CUDA_VISIBLE_DEVICES hides them all"),
    101: Code("CUDA_ERROR_INVALID_DEVICE", "an ordinal out of range, or only some of the device nodes were passed in"),
    205: Code("CUDA_ERROR_MAP_FAILED", "the peer's BAR1 could not be mapped (resizable BAR off, modified modules)"),
    214: Code("CUDA_ERROR_ECC_UNCORRECTABLE", "the GPU's memory has an error it cannot correct"),
    217: Code("CUDA_ERROR_PEER_ACCESS_UNSUPPORTED", "the driver offers no peer access for this pair"),
    221: Code("CUDA_ERROR_JIT_COMPILER_NOT_FOUND", "libnvidia-ptxjitcompiler.so.1 is missing"),
    226: Code("CUDA_ERROR_CONTAINED", _STICKY),
    304: Code("CUDA_ERROR_OPERATING_SYSTEM", "opening or mapping a device node was refused"),
    700: Code("CUDA_ERROR_ILLEGAL_ADDRESS", _STICKY),
    704: Code("CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access was on already; harmless"),
    705: Code("CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access was not turned on before"),
    711: Code("CUDA_ERROR_TOO_MANY_PEERS", "the hardware's resources for peer access are used up"),
    719: Code("CUDA_ERROR_LAUNCH_FAILED", _STICKY),
    800: Code("CUDA_ERROR_NOT_PERMITTED", "the driver does not permit the call here"),
    801: Code("CUDA_ERROR_NOT_SUPPORTED", "the driver or the GPU does not have the call"),
    802: Code("CUDA_ERROR_SYSTEM_NOT_READY", "the fabric manager is not running (only GPUs with NVSwitch need it)"),
    803: Code(
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH",
        "libcuda here is of another version than the node's kernel module, or a CUDA compat library is on the path",
    ),
    804: Code(
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE",
        "a forward-compatibility libcuda (cuda-compat) is found first, and this GPU does not support it",
    ),
    805: Code("CUDA_ERROR_MPS_CONNECTION_FAILED", _MPS),
    806: Code("CUDA_ERROR_MPS_RPC_FAILURE", _MPS),
    807: Code("CUDA_ERROR_MPS_SERVER_NOT_READY", _MPS),
    808: Code("CUDA_ERROR_MPS_MAX_CLIENTS_REACHED", _MPS),
    809: Code("CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED", _MPS),
    810: Code("CUDA_ERROR_MPS_CLIENT_TERMINATED", _MPS),
    909: Code("CUDA_ERROR_TIMEOUT", "the driver gave up waiting"),
    919: Code("", "the GPU fabric is not ready"),
    999: Code("CUDA_ERROR_UNKNOWN", "/dev/nvidia-uvm is missing, has a stale major number, or is denied by the cgroup"),
}


def name(code: int, told: str = "") -> str:
    """The code's name; ``told`` is what the library itself called it, for codes that are not in the table."""
    return (CODES[code].name if code in CODES else "") or told or f"CUDA error {code}"


def cause(code: int) -> str:
    """What is usually behind the code, as one clause."""
    return CODES[code].cause if code in CODES else "a code that has no usual cause here"
