# SPDX-License-Identifier: GPL-3.0-or-later
"""The CUDA driver API by ctypes, asked in a child: does it initialise here, and which GPUs does it have?

``libcuda`` is loaded in the child alone.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import typing as t

from . import child
from .driver import CallError, Driver
from .host import bus_id
from .userspace import LIBRARY

_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
_MIB = 1024 * 1024


def probe(timeout_seconds: float, library: str = LIBRARY, user: str | None = None) -> dict[str, t.Any]:
    """Initialise CUDA in a child, as ``user`` if one is given, and list its devices in the order of their PCI addresses.

    Returns ``result`` (the code of the last call made, ``None`` if none returned), ``name``, ``call`` (that call),
    ``driver_version`` (``13.2``), ``devices`` (how many), ``gpus`` (``bus_id name memory_mib sm``, where sm is 120 for
    12.0), ``visible_devices`` (``CUDA_VISIBLE_DEVICES`` if set), ``hung`` and ``error`` (empty if all went well).
    """
    outcome = child.run(lambda emit: _ask(emit, library), timeout_seconds, user)
    facts: dict[str, t.Any] = {
        "result": None,
        "name": None,
        "call": None,
        "driver_version": None,
        "devices": None,
        "gpus": [],
        "visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "hung": outcome.ended == "hung",
        "error": "",
    }
    for message in outcome.messages:
        facts["gpus"] += [message.pop("gpu")] if "gpu" in message else []
        facts.update(message)
    if outcome.ended == "hung":
        facts["result"] = facts["name"] = None
        facts["error"] = f"{facts['call'] or 'loading ' + library} did not return within {timeout_seconds:g} seconds"
    elif outcome.ended == "died":
        facts["result"] = facts["name"] = None
        facts["error"] = f"the process died in {facts['call'] or 'loading ' + library}: {outcome.cause}"
    return facts


def _ask(emit: child.Emit, library: str) -> None:
    """Runs in the child. Tells each call before it is made, so that the one that never returns is known."""
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    try:
        driver = Driver(library)
    except OSError as error:
        emit({"error": f"{library} cannot be loaded: {error}"})
        return

    def call(symbol: str, *arguments: t.Any) -> None:
        emit({"call": symbol, "result": None, "name": None, "error": ""})
        try:
            driver.call(symbol, *arguments)
        except CallError as error:
            emit({"result": error.code, "name": error.name if error.code is not None else None, "error": str(error)})
            raise
        emit({"result": 0, "name": driver.name(0)})

    try:
        number = ctypes.c_int(0)
        # Before cuInit, and whatever comes of it: it needs no device, and the version helps to read what cuInit says.
        with contextlib.suppress(CallError):
            call("cuDriverGetVersion", ctypes.byref(number))
            emit({"driver_version": f"{number.value // 1000}.{number.value % 1000 // 10}"})
        call("cuInit", ctypes.c_uint(0))
        call("cuDeviceGetCount", ctypes.byref(number))
        count = number.value
        emit({"devices": count})
        for ordinal in range(count):
            emit({"gpu": _device(call, ordinal)})
    except CallError:
        return


def _device(call: t.Callable[..., None], ordinal: int) -> dict[str, t.Any]:
    device, text, size, number = ctypes.c_int(0), ctypes.create_string_buffer(256), ctypes.c_size_t(0), ctypes.c_int(0)
    call("cuDeviceGet", ctypes.byref(device), ctypes.c_int(ordinal))
    call("cuDeviceGetPCIBusId", text, ctypes.c_int(len(text)), device)
    address = bus_id(text.value.decode("ascii", "replace"))
    call("cuDeviceGetName", text, ctypes.c_int(len(text)), device)
    call("cuDeviceTotalMem_v2", ctypes.byref(size), device)
    capability = []
    for attribute in (_MAJOR, _MINOR):
        call("cuDeviceGetAttribute", ctypes.byref(number), ctypes.c_int(attribute), device)
        capability.append(number.value)
    return {
        "bus_id": address,
        "name": text.value.decode("utf-8", "replace"),
        "memory_mib": size.value // _MIB,
        "sm": capability[0] * 10 + capability[1],
    }
