# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the modules' own code on the NVIDIA GPUs of this machine, one included, and print JSON. Needs Python and the driver, nothing else.

    python3 tools/gpu_check.py [--buffer-mib N] [--venv PATH]

Each GPU copies within itself by the code that proves links: patterns are compared, a byte that is changed on purpose must be found, and copies are
timed by events. With two GPUs and more ``gpu_p2p`` follows, in which no pair may be faster than a GPU is within itself. ``--venv`` names an environment that has torch: its
NCCL makes an all-reduce (with one GPU a single rank, which shows that it starts).

Exit status: 0 all is well, 1 something is wrong, 2 it could not be run (no GPU, CUDA does not start). Other work on the GPUs makes speeds worthless.
"""

from __future__ import annotations

import argparse
import datetime
import json
import platform
import sys
import time
import typing as t
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "module_utils"))

from slipway.all_reduce import plan as reduce_plan
from slipway.all_reduce import prove as reduce
from slipway.all_reduce import record as reduce_record
from slipway.all_reduce import thresholds as reduce_thresholds
from slipway.gpu import child, faults, machine, userspace
from slipway.gpu.driver import CallError, Driver
from slipway.gpu.tree import Tree
from slipway.p2p import classify, integrity, paths, pattern, plan, prove, speed, thresholds
from slipway.p2p.session import Session

OK, WRONG, COULD_NOT_RUN = 0, 1, 2
_MIB = 1024 * 1024
_GPU_SECONDS, _ALL_SECONDS, _STEP_SECONDS = 120.0, 600.0, 60.0


def check(buffer_mib: int, venv: str = "", root: str = "/", library: str = userspace.LIBRARY) -> dict[str, t.Any]:
    """Everything, as plain values. ``status`` is the exit status, ``problems`` are sentences that explain it.

    ``root`` and ``library`` are where the machine's files and ``libcuda`` are.
    """
    facts = machine.look("auto", True, _STEP_SECONDS, root, library)
    cuda, gpus = facts["cuda"], [gpu for gpu in facts["gpus"] if gpu["driven"]]
    told: dict[str, t.Any] = {
        "date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "place": facts["place"],
        "driver": {key: facts["driver"][key] for key in ("kernel_version", "open_kernel_module", "user_version")},
        "cuda": {key: cuda[key] for key in ("result", "name", "call", "driver_version", "devices", "error")},
        "findings": [one.as_dict() for one in faults.faults(facts) if one.severity != "info"],
        "devices": [],
        "links": None,
        "all_reduce": None,
    }
    if cuda["error"] or not gpus:
        return {**told, "status": COULD_NOT_RUN, "problems": [cuda["error"] or "no NVIDIA GPU can be used here"]}
    places = {gpu["bus_id"]: paths.place(gpu) for gpu in gpus}
    told["devices"] = [_device(gpu, places, buffer_mib, root, library) for gpu in gpus]
    if len(gpus) > 1:
        told["links"] = _links(buffer_mib, facts["place"], root, library)
    if venv:
        told["all_reduce"] = _all_reduce(
            venv, buffer_mib, [gpu["bus_id"] for gpu in gpus], facts["place"], root, library
        )
    found = problems(told)
    return {**told, "status": WRONG if found else OK, "problems": found}


def problems(told: t.Mapping[str, t.Any]) -> list[str]:
    """What is wrong with what was measured. Pure."""
    found = []
    for device in told["devices"]:
        name = device["bus_id"]
        if device["error"]:
            found.append(f"{name}: {device['error']}")
            continue
        if device["faults"]:
            found.append(f"{name}: {len(device['faults'])} of {device['copies']} copies within it are wrong")
        if not device["change_found"]:
            found.append(f"{name}: a byte that was changed on purpose was not found at its place")
        if not device["own_copy_gbps"]:
            found.append(f"{name}: events gave no time for a copy")
        elif device["events_over_clock"] > 1.1:
            found.append(f"{name}: events say that copies took longer than the clock on the wall")
    if told["links"]:
        if told["links"]["verdict"] != "ok":
            found.append(f"links: {told['links']['verdict']}")
        own = {device["bus_id"]: device["own_copy_gbps"] for device in told["devices"]}
        for row in told["links"]["pairs"]:
            limit = min(own.get(row[end]) or float("inf") for end in ("source", "target"))
            if (row["write_gbps"] or 0) > limit:
                found.append(f"{row['source']} -> {row['target']}: faster than a GPU copies within itself")
    if told["all_reduce"] and told["all_reduce"]["verdict"] != "ok":
        found.append(f"all-reduce: {told['all_reduce']['verdict']}")
    return found


def _device(
    gpu: t.Mapping[str, t.Any], places: t.Mapping[str, paths.Place], buffer_mib: int, root: str, library: str
) -> dict[str, t.Any]:
    """One GPU by itself, in a child with a limit."""
    told: dict[str, t.Any] = {key: gpu[key] for key in ("bus_id", "name", "sm", "memory_mib", "bar1_mib", "link")}
    told["error"] = ""

    def work(emit: child.Emit) -> None:
        _alone(emit, gpu["bus_id"], places, buffer_mib * _MIB, root, library)

    outcome = child.run(work, _GPU_SECONDS, silence_seconds=_STEP_SECONDS)
    place = "loading libcuda"
    for message in outcome.messages:
        place = message.pop("at", place)
        told.update(message)
    if outcome.ended != "done":
        told["error"] = f"{place}: " + ("nothing came back" if outcome.ended == "hung" else outcome.cause)
    return told


def _alone(
    emit: child.Emit, bus_id: str, places: t.Mapping[str, paths.Place], buffer: int, root: str, library: str
) -> None:
    """Runs in the child: what links are proven with, from a GPU to itself."""

    def tell(at: str) -> None:
        emit({"at": at})

    try:
        driver = Driver(library)
        tell("cuInit")
        driver.call("cuInit", 0)
        session = Session(driver, buffer, buffer)
        flow = ((bus_id, bus_id),)
        tell("its context")
        free, total = session.gpu(bus_id).memory()
        emit({"used_mib": (total - free) // _MIB})
        emit(integrity.pair(session, plan.Step("integrity", "pair", flow, buffer, 0, 0, 0), tell))
        tell("a byte that is changed on purpose")
        emit({"change_found": _finds_a_change(session, bus_id, buffer)})
        emit(_copies(session, bus_id, buffer, tell, root, places))
        emit(_latency(session, flow, tell))
        tell("reading back")
        began = time.perf_counter()
        session.gpu(bus_id).read_back(session.inbox(bus_id), buffer, session.host("read back", buffer))
        emit({"read_back_gbps": round(buffer / (time.perf_counter() - began) / 1e9, 2)})
    except (OSError, CallError) as error:
        emit({"error": str(error)})


def _finds_a_change(session: Session, bus_id: str, size: int) -> bool:
    """Whether the comparison sees one wrong byte of what the GPU holds, and sees it where it is."""
    gpu, held, at = session.gpu(bus_id), session.inbox(bus_id), size // 3
    seed = pattern.seed(bus_id, bus_id, size, "check", 0)
    gpu.fill_pattern(held, seed, size)
    host = session.host("read back", size)
    gpu.read_back(held, size, host)
    if classify.compare(host, size, seed) is not None:
        return False
    gpu.use()
    session.driver.call("cuMemsetD8_v2", held.address + at, 0xFF, 1)
    session.driver.call("cuCtxSynchronize")
    gpu.read_back(held, size, host)
    wrong = classify.compare(host, size, seed)
    return wrong is not None and (wrong.offset, wrong.count) == (at, 1)


def _copies(
    session: Session, bus_id: str, size: int, tell: integrity.Tell, root: str, places: t.Mapping[str, paths.Place]
) -> dict[str, t.Any]:
    """Its own copy rate by events, which can at most be as long as the same calls on the wall's clock; and its link with data on the way."""
    step = plan.Step("bandwidth", "pair", ((bus_id, bus_id),), size, 0, 0, 0)
    began = time.perf_counter()
    made = speed.bandwidth(session, step, tell, Tree(root), places)
    wall = time.perf_counter() - began
    rate = made["write_gbps"]
    timed = sum(size * count / value / 1e9 for count, value in _timed(made)) if rate else 0.0
    return {
        "own_copy_gbps": round(rate, 1) if rate else None,
        "events_over_clock": round(timed / wall, 3),
        "link_at_work": made["links"],
    }


def _timed(made: t.Mapping[str, t.Any]) -> list[tuple[int, float]]:
    counts = {"write_gbps": plan.COPIES, "read_gbps": plan.COPIES, "staged_gbps": plan.STAGED_COPIES}
    return [(count, made[name]) for name, count in counts.items() if made[name]]


def _latency(session: Session, flow: tuple[plan.Flow, ...], tell: integrity.Tell) -> dict[str, t.Any]:
    made = speed.latency(session, plan.Step("latency", "pair", flow, plan.LATENCY_BYTES, 0, 0, 0), tell)
    return {name: None if value is None else round(value, 2) for name, value in made.items() if name == "latency_us"}


def _links(buffer_mib: int, place: str, root: str, library: str) -> dict[str, t.Any]:
    options = prove.Options(
        tests=plan.TESTS,
        devices=(),
        buffer_mib=buffer_mib,
        required=True,
        thresholds=thresholds.Thresholds(),
        baseline="",
        record_baseline=False,
        timeout_seconds=_ALL_SECONDS,
        step_timeout_seconds=_STEP_SECONDS,
        allow_busy=True,
        place=place,
        root=root,
        library=library,
    )
    made = prove.prove(options, check_mode=False)
    return {key: made[key] for key in ("verdict", "findings", "pairs", "concurrent", "plan")}


def _all_reduce(venv: str, buffer_mib: int, gpus: list[str], place: str, root: str, library: str) -> dict[str, t.Any]:
    options = reduce.Options(
        venv=venv,
        devices=(),
        environment={},
        buffer_mib=buffer_mib,
        iterations=20,
        thresholds=reduce_thresholds.Thresholds(),
        required=True,
        timeout_seconds=_ALL_SECONDS,
        step_timeout_seconds=_STEP_SECONDS,
        user=None,
        allow_busy=True,
        place=place,
        root=root,
        library=library,
    )
    if len(gpus) > 1:
        return reduce.prove(options, check_mode=False)
    sizes = reduce_plan.make([*gpus, "another"], buffer_mib, options.iterations).sizes
    planned = reduce_plan.Plan(tuple(gpus), sizes)
    made = reduce_record.fold(planned, reduce.launch(planned, gpus, options), options.step_timeout_seconds)
    whole = all(row["ended"] == "done" for row in made.ranks) and len(made.results) > len(sizes)
    wrong = any(result["wrong"] for result in made.results)
    verdict = "corrupt" if wrong else "ok" if whole else "hung" if made.hung else "could_not_run"
    return {"verdict": verdict, "ranks": made.ranks, "results": made.results, "nccl_warnings": made.log["warnings"]}


def main() -> int:
    """Check, print, and say by the status how it went."""
    parser = argparse.ArgumentParser(description="Slipway's GPU code on this machine's GPUs; prints JSON")
    parser.add_argument("--buffer-mib", type=int, default=256, help="size of the largest copy (256)")
    parser.add_argument("--venv", default="", help="an environment with torch, whose NCCL is run too")
    given = parser.parse_args()
    told = check(given.buffer_mib, given.venv)
    print(json.dumps(told, indent=2))
    return int(told["status"])


if __name__ == "__main__":
    sys.exit(main())
