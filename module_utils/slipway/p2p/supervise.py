# SPDX-License-Identifier: GPL-3.0-or-later
"""The parent's side: children run the plan, one after the other, until each step has an end. It never waits without bound."""

from __future__ import annotations

import time
import typing as t
from dataclasses import dataclass, field, replace

from ..gpu import child
from ..gpu.cuda_codes import cause
from .plan import Flow, Plan, Step

Launch = t.Callable[[t.Mapping[int, Step], float], child.Outcome]


@dataclass
class Record:
    """How each step of a plan ended, by its number: a result, an error, or neither where it was not made.

    An error has ``kind`` (``hung``, ``died``, ``call`` or ``not made``), ``detail`` and, for a call, ``call code name sticky``. ``fatal`` is
    what kept all that is missing from being made; its kind can also be ``busy``. What was left out because of another error says that it ``follows``.
    """

    results: dict[int, dict[str, t.Any]] = field(default_factory=dict)
    errors: dict[int, dict[str, t.Any]] = field(default_factory=dict)
    took: dict[int, float] = field(default_factory=dict)
    fatal: dict[str, t.Any] | None = None
    children: int = 0


def run(plan: Plan, launch: Launch, timeout_seconds: float, silence_seconds: float) -> Record:
    """Run all steps. ``launch(steps, seconds)`` runs those steps, by their numbers, in a child within that time.

    A step in which the child hangs or dies, or after which it is of no use, ends that child; the pairs concerned are left
    alone from then on, and another child goes on with the rest.
    """
    record = Record()
    deadline = time.monotonic() + timeout_seconds
    left = dict(enumerate(plan.steps))
    while left and record.fatal is None:
        seconds = deadline - time.monotonic()
        if seconds <= 0:
            _not_made(record, left, f"the {timeout_seconds:g} seconds of timeout_seconds were over")
            break
        outcome = launch(left, seconds)
        record.children += 1
        _fold(record, plan, outcome, silence_seconds)
        left = _left(record, plan)
    if record.fatal:
        _not_made(record, left, record.fatal["detail"])
    return record


def _fold(record: Record, plan: Plan, outcome: child.Outcome, silence_seconds: float) -> None:
    """Take over what a child said, and what its end says of the step it was at."""
    current, place, ended = None, "", 0
    for message in outcome.messages:
        if "fatal" in message:
            record.fatal = {"kind": "call", "detail": message["fatal"]}
        elif "at" in message:
            place = message["at"]
        elif "took" in message:
            number, current = message["step"], None
            ended += 1
            record.took[number] = message["took"]
            if "error" in message:
                record.errors[number] = {**message["error"], "kind": "call", "detail": _said(message["error"], place)}
            else:
                record.results[number] = message["result"]
                if message["result"].get("busy"):
                    record.fatal = {"kind": "busy", "detail": "other work has the GPUs' memory"}
        else:
            current, place = message["step"], ""
    if record.fatal or (outcome.ended == "done" and current is None):
        if not record.fatal and not ended:
            record.fatal = {"kind": "died", "detail": "the child ended without a word"}
        return
    error = _end(outcome, place or "the driver's start", silence_seconds)
    if current is None:
        record.fatal = error
    else:
        record.errors[current] = error
        record.took[current] = outcome.quiet_seconds


def _end(outcome: child.Outcome, place: str, silence_seconds: float) -> dict[str, t.Any]:
    if outcome.ended == "died":
        return {"kind": "died", "detail": f"{place}: the process died ({outcome.cause})"}
    if outcome.quiet_seconds >= silence_seconds / 2:
        return {"kind": "hung", "detail": f"{place}: nothing came back for {outcome.quiet_seconds:.0f} seconds"}
    return {"kind": "not made", "detail": f"{place}: it was under way when timeout_seconds were over"}


def _said(error: dict[str, t.Any], place: str) -> str:
    code = error["code"]
    said = (
        f"{error['call']} returned {code} ({error['name']}), usually {cause(code)}"
        if code is not None
        else error["name"]
    )
    return f"{place}: {said}" if place else said


def _left(record: Record, plan: Plan) -> dict[int, Step]:
    """What is still to be made: not what would meet again an error that ends the child, or a GPU that did not start.

    Sets are made without the flows concerned.
    """
    flows, gpus = harmful(record, plan), failed_gpus(record)
    left = {}
    for number, step in enumerate(plan.steps):
        if number in record.results or number in record.errors:
            continue
        reasons = [flows.get(flow) or gpus.get(flow[0]) or gpus.get(flow[1]) for flow in step.flows]
        good = tuple(flow for flow, reason in zip(step.flows, reasons) if not reason)
        if len(good) == len(step.flows) or (step.is_set and good):
            left[number] = replace(step, flows=good)
        else:
            first = next(reason for reason in reasons if reason)
            record.errors[number] = {"kind": "not made", "detail": f"not made after this: {first}", "follows": True}
    return left


def harmful(record: Record, plan: Plan) -> dict[Flow, str]:
    """Ordered pairs on which a child hung, died or became useless, with what happened."""
    found: dict[Flow, str] = {}
    for number, error in record.errors.items():
        step = plan.steps[number]
        if (error["kind"] in ("hung", "died") or error.get("sticky")) and not step.is_set:
            found.update(dict.fromkeys(step.flows, error["detail"]))
    return found


def failed_gpus(record: Record) -> dict[str, str]:
    """GPUs that did not start, with what the driver said."""
    gpus = record.results.get(0, {}).get("gpus", {})
    return {bus_id: gpu["error"] for bus_id, gpu in gpus.items() if "error" in gpu}


def _not_made(record: Record, left: t.Iterable[int], reason: str) -> None:
    for number in left:
        record.errors[number] = {"kind": "not made", "detail": reason}
