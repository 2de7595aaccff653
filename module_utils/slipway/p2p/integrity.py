# SPDX-License-Identifier: GPL-3.0-or-later
"""Does the data arrive? Copies of patterns over a sentinel, read back by the GPU that owns the memory. Runs in the child."""

from __future__ import annotations

import time
import typing as t

from . import pattern
from .classify import compare, intact
from .plan import ROUNDS, WAYS, Flow, Step, sizes_up_to
from .session import Buffer, Session

Tell = t.Callable[[str], None]
_LATE_SECONDS = 0.2


def pair(session: Session, step: Step, tell: Tell) -> dict[str, t.Any]:
    """One ordered pair by itself: each size, issued from either side, in rounds. Returns ``copies`` and ``faults``."""
    ((source, target),) = step.flows
    session.connect(source, target)
    sent, received = session.outbox(source), session.inbox(target)
    faults: list[dict[str, t.Any]] = []
    copies = 0
    for number in range(ROUNDS):
        if faults:
            break  # what is known to lose data is not asked again
        for size in sizes_up_to(session.buffer_bytes):
            for way in WAYS:
                tell(f"{size} bytes issued by the {way}, round {number + 1}")
                seed = pattern.seed(source, target, size, way, number)
                earlier = _prepare(sent, received, seed, size)
                session.copy(sent, received, size, way)
                sent.gpu.synchronize()
                received.gpu.synchronize()
                about = {"issued_by": way, "round": number + 1}
                faults += _faults(session, sent, received, seed, size, earlier, about, wait=not faults)
                copies += 1
    return {"copies": copies, "faults": faults}


def together(session: Session, step: Step, tell: Tell) -> dict[str, t.Any]:
    """All pairs at one time, which shows what load alone shows (unslothai/unsloth#10613).

    Returns ``copies``, ``flows`` that were made, and ``faults``, each of which names its ``source`` and ``target``.
    """
    faults: list[dict[str, t.Any]] = []
    size = session.slot_bytes
    for source, target in step.flows:
        session.connect(source, target)
    for way in WAYS:
        tell(f"all pairs at once, issued by the {way}, {step.name}")
        flows: list[tuple[Flow, Buffer, Buffer, str, list[str]]] = []
        for source, target in step.flows:
            sent, received = session.outbox(source, target), session.inbox(target, source)
            seed = pattern.seed(source, target, size, way, step.name)
            flows.append(((source, target), sent, received, seed, _prepare(sent, received, seed, size)))
        for flow, sent, received, _seed, _earlier in flows:
            session.copy(sent, received, size, way, f"{way} {flow}")
        for gpu in {buffer.gpu.bus_id for _flow, sent, received, *_rest in flows for buffer in (sent, received)}:
            session.gpu(gpu).synchronize()
        for (source, target), sent, received, seed, earlier in flows:
            about = {"issued_by": way, "round": step.name, "source": source, "target": target}
            faults += _faults(session, sent, received, seed, size, earlier, about, wait=not faults)
    return {"copies": len(WAYS) * len(step.flows), "faults": faults, "flows": [list(flow) for flow in step.flows]}


def _prepare(sent: Buffer, received: Buffer, seed: str, size: int) -> list[str]:
    """Sentinel at the receiver, pattern at the sender. Returns the seeds of what was in either before."""
    earlier = [*sent.seeds, *received.seeds]
    received.gpu.fill_sentinel(received, size)
    sent.gpu.fill_pattern(sent, seed, size)
    return earlier


def _faults(
    session: Session,
    sent: Buffer,
    received: Buffer,
    seed: str,
    size: int,
    earlier: t.Sequence[str],
    about: dict[str, t.Any],
    wait: bool,
) -> list[dict[str, t.Any]]:
    """Nothing, or what is wrong with a copy.

    ``late`` says whether the data was there a moment after the copy had ended, which is looked at if it is to ``wait`` (once a step:
    a machine on which nothing arrives would take for ever), else ``None``. ``source_wrong`` says that the sender's own
    memory does not hold what it was to send, which is no fault of the link.
    """
    host = session.host("read back", session.buffer_bytes)
    received.gpu.read_back(received, size, host)
    wrong = compare(host, size, seed, earlier)
    received.remember(seed)
    if wrong is None:
        return []
    late = None
    if wait:
        time.sleep(_LATE_SECONDS)
        received.gpu.read_back(received, size, host)
        late = intact(host, size, seed)
    sent.gpu.read_back(sent, size, host)
    return [{**about, **wrong.as_dict(), "late": late, "source_wrong": not intact(host, size, seed)}]
