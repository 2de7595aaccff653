# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast is it? Copies between two events, alone and in sets, with peer access and without it. Runs in the child."""

from __future__ import annotations

import ctypes
import threading
import typing as t

from ..gpu.driver import CallError, Handle, Pointer
from ..gpu.tree import Tree
from . import paths
from .plan import CONCURRENT_COPIES, COPIES, LATENCY_BYTES, LATENCY_COPIES, STAGED_COPIES, WAYS, Flow, Step
from .session import Buffer, Gpu, Session

Tell = t.Callable[[str], None]
_NOT_READY, _NOT_SUPPORTED = 600, 801
_EQUAL = 1
_SAMPLES = 8
# Beyond this the driver's queue may be full and wait for the very stream that waits for us (cuda-samples' "DANGER").
_GATE_SECONDS = 0.5


def bandwidth(
    session: Session, step: Step, tell: Tell, tree: Tree, places: t.Mapping[str, paths.Place]
) -> dict[str, t.Any]:
    """One ordered pair: ``write_gbps`` (the source pushes), ``read_gbps`` (the target pulls), ``staged_gbps`` (no peer access).

    ``links`` holds the slowest speed in GT/s and width of each link of the two GPUs while data was on the way.
    """
    ((source, target),) = step.flows
    session.connect(source, target)
    seen: dict[str, tuple[float, int]] = {}
    chains = [places[name].ancestors or ("", name) for name in step.flows[0]]

    def sample() -> None:
        for chain in chains:
            for name, link in paths.under_load(tree, chain).items():
                seen[name] = max(seen.get(name, link), link)

    found: dict[str, t.Any] = {}
    for way, name in zip(WAYS, ("write_gbps", "read_gbps")):
        tell(f"{session.buffer_bytes} bytes issued by the {way}")
        found[name] = _timed(session, [(source, target)], session.buffer_bytes, way, COPIES, sample)[0]
    tell("staged through the host")
    session.disconnect(source, target)
    found["staged_gbps"] = _timed(session, [(source, target)], session.slot_bytes, "source", STAGED_COPIES)[0]
    session.connect(source, target)
    return {**found, "links": {name: list(link) for name, link in seen.items()}}


def both_ways(session: Session, step: Step, tell: Tell) -> dict[str, t.Any]:
    """Two GPUs sending to each other at one time: ``gbps``, one for each of the step's flows."""
    tell(f"{session.buffer_bytes} bytes both ways")
    session.connect(*step.flows[0])
    return {"gbps": _timed(session, step.flows, session.buffer_bytes, "source", COPIES)}


def concurrent(session: Session, step: Step, tell: Tell) -> dict[str, t.Any]:
    """A set of flows at one time, pushed: ``flows`` that were made, and ``gbps``, one for each of them."""
    for flow in step.flows:
        session.connect(*flow)
    tell(f"{len(step.flows)} copies at one time")
    speeds = _timed(session, step.flows, session.slot_bytes, "source", CONCURRENT_COPIES, slots=True)
    return {"flows": [list(flow) for flow in step.flows], "gbps": speeds}


def latency(session: Session, step: Step, tell: Tell) -> dict[str, t.Any]:
    """Time of one small copy: ``latency_us`` with peer access, ``staged_latency_us`` without; ``None`` if it has none.

    A call costs more than such a copy takes. Copies are queued behind a gate (a word of host memory that the stream waits
    for) and run without a pause once it opens. Where that fails nothing is known of the latency. Staged ones take longer
    than a call, and the driver may not queue them, so they have no gate.
    """
    ((source, target),) = step.flows
    session.connect(source, target)
    tell("small copies behind a gate")
    direct = _gated(session, session.outbox(source), session.inbox(target))
    session.disconnect(source, target)
    tell("small copies staged through the host")
    staged = _timed(session, [(source, target)], LATENCY_BYTES, "source", LATENCY_COPIES)[0]
    session.connect(source, target)
    return {"latency_us": direct, "staged_latency_us": LATENCY_BYTES / staged / 1e3 if staged else None}


def _timed(
    session: Session,
    flows: t.Sequence[Flow],
    size: int,
    way: str,
    copies: int,
    meanwhile: t.Callable[[], None] | None = None,
    slots: bool = False,
) -> list[float | None]:
    """Speeds of flows that run at one time, in GB/s and the flows' order; ``None`` for one of which the clock says nothing."""
    queued = []
    for source, target in flows:
        sent = session.outbox(source, target if slots else "")
        received = session.inbox(target, source if slots else "")
        issuer = sent.gpu if way == "source" else received.gpu
        name = f"{way} {source} {target}"
        events = [issuer.event(f"{name} {edge}") for edge in ("start", "stop")]
        issuer.stream(name)
        queued.append((sent, received, issuer, name, events))
    for sent, received, _issuer, name, _events in queued:
        session.copy(sent, received, size, way, name)
    for sent, received, issuer, name, events in queued:
        issuer.use()
        session.driver.call("cuEventRecord", events[0], issuer.stream(name))
        for _number in range(copies):
            session.copy(sent, received, size, way, name)
        session.driver.call("cuEventRecord", events[1], issuer.stream(name))
    if meanwhile:
        _while_running(session, queued[-1][2], queued[-1][4][1], meanwhile)
    return [_speed(session, issuer, events, size * copies) for _sent, _received, issuer, _name, events in queued]


def _while_running(session: Session, gpu: Gpu, event: Handle, act: t.Callable[[], None]) -> None:
    gpu.use()
    for _number in range(_SAMPLES):
        act()
        if session.driver.result("cuEventQuery", event) != _NOT_READY:
            return


def _speed(session: Session, gpu: Gpu, events: t.Sequence[Handle], size: int) -> float | None:
    seconds = _elapsed(session, gpu, events)
    return size / seconds / 1e9 if seconds else None


def _elapsed(session: Session, gpu: Gpu, events: t.Sequence[Handle]) -> float | None:
    """Seconds between two events once the second is over, ``None`` where they are not above zero."""
    gpu.use()
    session.driver.call("cuEventSynchronize", events[1])
    milliseconds = ctypes.c_float()
    newer = "cuEventElapsedTime_v2"
    symbol = newer if session.driver.has(newer) else "cuEventElapsedTime"
    session.driver.call(symbol, ctypes.byref(milliseconds), events[0], events[1])
    return milliseconds.value / 1e3 if milliseconds.value > 0 else None


def _gated(session: Session, sent: Buffer, received: Buffer) -> float | None:
    """Microseconds of one of many small copies that were queued behind a gate, ``None`` if there can be none."""
    gpu = sent.gpu
    stream, events = gpu.stream("gate"), [gpu.event(f"gate {edge}") for edge in ("start", "stop")]
    word = ctypes.c_uint32.from_address(session.host("gate", 4))
    address = Pointer()
    gpu.use()
    session.driver.call("cuMemHostGetDevicePointer_v2", ctypes.byref(address), ctypes.addressof(word), 0)
    word.value = 0
    forced = threading.Event()

    def open_gate() -> None:
        forced.set()
        word.value = 1

    timer = threading.Timer(_GATE_SECONDS, open_gate)
    timer.daemon = True
    session.copy(sent, received, LATENCY_BYTES, "source", "gate")
    timer.start()
    try:
        gpu.use()
        session.driver.call("cuStreamWaitValue32_v2", stream, address, 1, _EQUAL)
        session.driver.call("cuEventRecord", events[0], stream)
        for _number in range(LATENCY_COPIES):
            session.copy(sent, received, LATENCY_BYTES, "source", "gate")
        session.driver.call("cuEventRecord", events[1], stream)
    except CallError as error:
        if error.code not in (None, _NOT_SUPPORTED):
            raise
        return None
    finally:
        timer.cancel()
        early = forced.is_set()
        word.value = 1
    seconds = _elapsed(session, gpu, events)
    return seconds / LATENCY_COPIES * 1e6 if seconds and not early else None
