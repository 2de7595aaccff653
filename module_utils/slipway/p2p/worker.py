# SPDX-License-Identifier: GPL-3.0-or-later
"""The child's work: it runs the steps of a plan and tells of each when it begins, where it is, and how it ended."""

from __future__ import annotations

import functools
import os
import time
import typing as t

from ..gpu.child import Emit
from ..gpu.driver import CallError, Driver
from ..gpu.tree import Tree
from . import integrity, paths, speed
from .plan import Plan, Step
from .session import Session, sticky

# DCGM asks for at most a tenth before it measures. The driver itself and our context take less than a GiB.
_USED_RATIO, _USED_BYTES = 0.1, 2 << 30


def work(
    emit: Emit,
    plan: Plan,
    steps: t.Mapping[int, Step],
    places: t.Mapping[str, paths.Place],
    library: str,
    root: str,
    allow_busy: bool = True,
) -> None:
    """Run these ``steps`` of the plan, by their numbers.

    Emits ``{step}`` when one begins, ``{at}`` as it goes, then ``{step, result, took}`` or ``{step, error, took}``; an error is
    ``call code name sticky``. After a sticky one nothing more is tried: the process is of no use. ``{fatal}`` is an error before the
    first step, whose time is counted from the beginning. Where others have much of a GPU's memory and that is not allowed its start says ``busy``, and it ends there.
    """
    os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"
    began = time.monotonic()
    try:
        driver = Driver(library)
        driver.call("cuInit", 0)
    except OSError as error:
        emit({"fatal": f"{library} cannot be loaded: {error}"})
        return
    except CallError as error:
        emit({"fatal": str(error)})
        return
    session = Session(driver, plan.buffer_bytes, plan.slot_bytes)
    for number, step in steps.items():
        emit({"step": number})
        try:
            result = _action(step, places, root, allow_busy)(session, step, lambda at: emit({"at": at}))
            emit({"step": number, "result": result, "took": time.monotonic() - began})
            if result.get("sticky") or result.get("busy"):
                return
        except CallError as error:
            told = {"call": error.symbol, "code": error.code, "name": error.name, "sticky": sticky(error)}
            emit({"step": number, "error": told, "took": time.monotonic() - began})
            if told["sticky"]:
                return
        began = time.monotonic()


def _action(
    step: Step, places: t.Mapping[str, paths.Place], root: str, allow_busy: bool
) -> t.Callable[[Session, Step, integrity.Tell], dict[str, t.Any]]:
    if step.test == "start":
        return functools.partial(_start, places=places, allow_busy=allow_busy)
    if step.test == "integrity":
        return integrity.pair if step.kind == "pair" else integrity.together
    if step.test == "latency":
        return speed.latency
    if step.test == "bandwidth" and step.kind == "pair":
        return functools.partial(speed.bandwidth, tree=Tree(root), places=places)
    return speed.both_ways if step.test == "bandwidth" else speed.concurrent


def _start(
    session: Session,
    step: Step,
    tell: integrity.Tell,
    places: t.Mapping[str, paths.Place],
    allow_busy: bool,
) -> dict[str, t.Any]:
    """Bring up each GPU. One that fails is told and left out; the others go on, here or (``sticky``) in another process.

    Returns by PCI address ``used_mib total_mib`` or ``error code``, and ``can_access``, what the driver says of each pair.
    """
    gpus: dict[str, dict[str, t.Any]] = {}
    busy = []
    for bus_id in places:
        tell(f"the context of {bus_id}")
        try:
            free, total = session.gpu(bus_id).memory()
            gpus[bus_id] = {"used_mib": (total - free) >> 20, "total_mib": total >> 20}
            if not allow_busy and total - free > max(total * _USED_RATIO, _USED_BYTES):
                busy.append(bus_id)
        except CallError as error:
            gpus[bus_id] = {"error": str(error), "code": error.code}
            if sticky(error):
                return {"gpus": gpus, "can_access": [], "sticky": True}
    if busy:
        return {"gpus": gpus, "can_access": [], "busy": busy}
    up = [bus_id for bus_id, gpu in gpus.items() if "error" not in gpu]
    said = [[one, other, session.can_access(one, other)] for one in up for other in up if one != other]
    return {"gpus": gpus, "can_access": said}
