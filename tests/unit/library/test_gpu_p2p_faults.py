# SPDX-License-Identifier: GPL-3.0-or-later
"""Each hazard of real machines, as the rig's GPUs have it: the finding that names it, and the pair that it names.

The reports are those of the fields' own trackers; what they rest on stands beside each entry of the catalogue.
"""

from __future__ import annotations

import time
import typing as t

import pytest
from ansible.modules import gpu_p2p
from simulated_gpus import SimulatedMachine

RunModule = t.Callable[..., dict[str, t.Any]]
Machine = t.Callable[..., SimulatedMachine]
SMALL = {"buffer_mib": 2}
# Where something else must not be taken for a hang, on a machine that is busy.
PATIENCE = 4


def told(result: dict[str, t.Any], *severities: str) -> list[tuple[str, str]]:
    """Findings that fail or are unknown (or of these severities), each once."""
    wanted = severities or ("fail", "unknown")
    return list(dict.fromkeys((f["id"], f["subject"]) for f in result["findings"] if f["severity"] in wanted))


def detail(result: dict[str, t.Any], fault: str) -> str:
    return next(found["detail"] for found in result["findings"] if found["id"] == fault)


def row(result: dict[str, t.Any], machine: SimulatedMachine, source: int, target: int) -> dict[str, t.Any]:
    ends = (machine.cards[source].address, machine.cards[target].address)
    return next(one for one in result["pairs"] if (one["source"], one["target"]) == ends)


def pair(machine: SimulatedMachine, source: int, target: int) -> str:
    return f"{machine.cards[source].address} -> {machine.cards[target].address}"


# What becomes of data: line of the fault, kind, and what a fault of a pair says.
DATA = [
    ("dropped from={0} to={2}", "dropped", 4, 4),
    ("zeros from={0} to={2}", "zeros", 4, 4),
    ("mirror from={0} to={2}", "zeros", 4, 4),
    ("partial from={0} to={2}", "partial", 2, 4),
    ("garbage from={0} to={2}", "garbage", 4, 4),
    ("dropped from={0} to={2} min=1M", "dropped", 2 << 20, 2 << 20),
    ("zeros from={0} to={2} at=1M bytes=64K", "partial", 64 << 10, 2 << 20),
    ("garbage from={0} to={2} at=2000000 bytes=1", "garbage", 1, 2 << 20),
]


@pytest.mark.parametrize(("line", "kind", "count", "size"), DATA)
def test_data_that_does_not_arrive(
    line: str, kind: str, count: int, size: int, run_module: RunModule, gpus_on: Machine
) -> None:
    machine = gpus_on(4)
    machine.faults(line)
    result = run_module(gpu_p2p, {**SMALL, "tests": ["integrity"]})
    assert result["verdict"] == "corrupt"
    assert told(result) == [("P2P_CORRUPT", pair(machine, 0, 2))]
    assert detail(result, "P2P_CORRUPT").startswith(f"{kind}: ")
    found = row(result, machine, 0, 2)
    assert found["integrity"] == "faulty"
    first = found["faults"][0]
    assert (first["kind"], first["count"], first["size"]) == (kind, count, size)
    assert not first["source_wrong"]
    assert {one["integrity"] for one in result["pairs"] if one is not found} == {"intact"}
    assert "corrupt" in result["matrix"]["html"]


def test_data_of_the_copy_before(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(3)
    machine.faults("stale from={0} to={2}")
    result = run_module(gpu_p2p, SMALL)
    assert told(result) == [("P2P_CORRUPT", pair(machine, 0, 2))]
    assert "stale" in {fault["kind"] for fault in row(result, machine, 0, 2)["faults"]}


def test_data_that_comes_late(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(2)
    machine.faults("late from={0} to={1} min=1M max=1M", "late from={0} to={1} min=64K max=64K")
    result = run_module(gpu_p2p, {**SMALL, "tests": ["integrity"]})
    assert told(result) == [("P2P_CORRUPT", pair(machine, 0, 1))]
    assert "the data was there a moment later" in detail(result, "P2P_CORRUPT")


@pytest.mark.parametrize(("issued", "way"), [("write", "source"), ("read", "target")])
def test_data_that_is_lost_as_one_side_issues_it(
    issued: str, way: str, run_module: RunModule, gpus_on: Machine
) -> None:
    machine = gpus_on(2)
    machine.faults(f"zeros from={{1}} to={{0}} issued={issued}")
    result = run_module(gpu_p2p, SMALL)
    assert told(result) == [("P2P_CORRUPT", pair(machine, 1, 0))]
    assert {fault["issued_by"] for fault in row(result, machine, 1, 0)["faults"]} == {way}


def test_data_that_is_lost_now_and_then(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(2)
    machine.faults("dropped from={0} to={1} every=17")
    assert told(run_module(gpu_p2p, SMALL)) == [("P2P_CORRUPT", pair(machine, 0, 1))]


def test_data_that_is_lost_only_under_load(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(8)
    machine.faults("dropped from={1} to={6} together=40")
    result = run_module(gpu_p2p, {**SMALL, "tests": ["integrity"]})
    assert told(result) == [("P2P_CORRUPT", pair(machine, 1, 6))]
    assert "only with all pairs at once" in detail(result, "P2P_CORRUPT")
    assert {fault["together"] for fault in row(result, machine, 1, 6)["faults"]} == {True}


def test_a_copy_that_does_not_come_back_costs_its_pair_alone(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(4)
    machine.faults("hang from={0} to={2} min=4096")
    began = time.monotonic()
    result = run_module(gpu_p2p, {**SMALL, "step_timeout_seconds": PATIENCE})
    assert time.monotonic() - began < 60
    assert result["verdict"] == "hung"
    assert told(result) == [("P2P_HUNG", pair(machine, 0, 2))]
    assert detail(result, "P2P_HUNG").startswith(
        "integrity: 4096 bytes issued by the source, round 1: nothing came back"
    )
    others = [one for one in result["pairs"] if one is not row(result, machine, 0, 2)]
    assert {one["integrity"] for one in others} == {"intact"}
    assert all(one["write_gbps"] and one["latency_us"] for one in others)
    assert row(result, machine, 0, 2)["write_gbps"] is None


def test_copies_that_hang_only_together(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(4)
    machine.faults("hang from={0} to={2} together=8")
    result = run_module(gpu_p2p, {**SMALL, "step_timeout_seconds": PATIENCE, "tests": ["integrity"]})
    assert result["verdict"] == "hung"
    assert told(result) == [("P2P_HUNG", f"integrity of all pairs at once (round {number})") for number in (1, 2, 3)]


def test_everything_that_hangs_ends_with_the_time_that_is_given(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(8)
    machine.faults("hang")
    began = time.monotonic()
    result = run_module(gpu_p2p, {**SMALL, "step_timeout_seconds": 1, "timeout_seconds": 5})
    assert time.monotonic() - began < 30
    assert result["verdict"] == "hung"
    assert ("P2P_HUNG", pair(machine, 0, 1)) in told(result)
    assert {found[0] for found in told(result)} == {"P2P_HUNG", "P2P_NOT_MEASURED"}
    assert {one["integrity"] for one in result["pairs"]} == {"unknown"}


@pytest.mark.parametrize("code", [226, 700, 719])
def test_an_error_that_stays_costs_its_pair_alone(code: int, run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(4)
    machine.faults(f"error from={{0}} to={{2}} code={code}")
    result = run_module(gpu_p2p, SMALL)
    assert result["verdict"] == "could_not_run"
    assert told(result) == [("P2P_ERROR", pair(machine, 0, 2))]
    assert f"returned {code} (CUDA_ERROR_" in detail(result, "P2P_ERROR")
    others = [one for one in result["pairs"] if one is not row(result, machine, 0, 2)]
    assert {one["integrity"] for one in others} == {"intact"}


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("no-access from={0} to={2}", "P2P_UNSUPPORTED"),
        ("false-access from={0} to={2}", "P2P_UNSUPPORTED"),
        ("false-access from={0} to={2} code=205", "P2P_MAP_FAILED"),
        ("false-access from={0} to={2} code=711", "P2P_TOO_MANY_PEERS"),
    ],
)
def test_access_that_there_is_not(line: str, fault: str, run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(4)
    machine.faults(line)
    result = run_module(gpu_p2p, SMALL)
    assert result["verdict"] == "could_not_run"
    # Access is opened from both ends, so that neither direction can be made.
    assert {found for found in told(result) if found[0] != "P2P_NOT_MEASURED"} >= {(fault, pair(machine, 0, 2))}
    found = row(result, machine, 0, 2)
    assert (found["integrity"], found["can_access"]) == ("unknown", line.startswith("false"))
    assert row(result, machine, 0, 1)["integrity"] == row(result, machine, 2, 3)["integrity"] == "intact"


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("slow from={0} to={2} gbps=9.9", "P2P_STAGED"),  # slower than without (NVIDIA/nccl#814)
        ("slow from={0} to={2} gbps=38", "P2P_SLOW"),  # ACS redirect
        ("staged from={0} to={2}", "P2P_STAGED"),
        ("latency from={0} to={2} us=14", "P2P_STAGED"),
    ],
)
def test_links_that_are_too_slow(line: str, fault: str, run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(4)
    machine.faults(line)
    result = run_module(gpu_p2p, {"buffer_mib": 16})
    assert result["verdict"] == "degraded"
    assert (fault, pair(machine, 0, 2)) in told(result)
    assert {subject for _fault, subject in told(result) if "->" in subject} == {pair(machine, 0, 2)}
    assert {one["integrity"] for one in result["pairs"]} == {"intact"}


def test_a_speed_that_cannot_be_is_a_failure(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(2)
    machine.faults("implausible from={0} to={1}")
    result = run_module(gpu_p2p, SMALL)
    assert result["verdict"] == "corrupt"
    assert ("P2P_IMPLAUSIBLE", pair(machine, 0, 1)) in told(result)
    assert "a way holds 63.0" in detail(result, "P2P_IMPLAUSIBLE")


def test_a_link_that_stays_slow_under_load(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(4)
    machine.faults("link device={2} generation=1")
    result = run_module(gpu_p2p, {**SMALL, "tests": ["integrity", "bandwidth"]})
    assert result["verdict"] == "degraded"
    assert ("P2P_LINK_SLOW", machine.cards[2].address) in told(result)
    assert "2.5 GT/s x16 with data on the way" in detail(result, "P2P_LINK_SLOW")
    named = {subject for fault, subject in told(result) if fault != "P2P_LINK_SLOW"}
    assert all(machine.cards[2].address in subject for subject in named)


def test_writes_that_collapse_only_together(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(8)
    machine.faults("collapse device=0000:01:00.0")
    result = run_module(gpu_p2p, {**SMALL, "tests": ["bandwidth", "concurrent"]})
    assert result["verdict"] == "degraded"
    assert {fault for fault, _subject in told(result)} == {"P2P_COLLAPSE"}
    assert all(one["write_gbps"] > 48 for one in result["pairs"]), "alone each is fine"
    details = " ".join(found["detail"] for found in result["findings"] if found["id"] == "P2P_COLLAPSE")
    assert machine.cards[0].address in details
    assert machine.cards[1].address in details


def test_other_work_is_seen_by_the_memory_that_it_has(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(2)
    machine.faults("occupied device={1} bytes=80G")
    result = run_module(gpu_p2p, SMALL)
    assert told(result) == [("GPU_BUSY", machine.cards[1].address)]
    assert detail(result, "GPU_BUSY") == "82432 MiB of its memory are used"
    assert result["verdict"] == "could_not_run"
    assert run_module(gpu_p2p, {**SMALL, "tests": ["integrity"], "allow_busy": True})["verdict"] == "ok"


def test_memory_that_does_not_suffice(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(3)
    machine.faults("occupied device={1} bytes=97250M")
    result = run_module(gpu_p2p, {**SMALL, "tests": ["integrity"], "allow_busy": True})
    assert ("GPU_BUSY", pair(machine, 0, 1)) in told(result)
    assert row(result, machine, 0, 2)["integrity"] == "intact"


def test_a_gpu_without_a_context_costs_its_pairs(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(3)
    machine.faults("error call=cuDevicePrimaryCtxRetain device={1} code=46")
    result = run_module(gpu_p2p, SMALL)
    assert result["verdict"] == "could_not_run"
    assert told(result)[0] == ("CUDA_CONTEXT_FAILED", machine.cards[1].address)
    assert "46 (CUDA_ERROR_DEVICE_UNAVAILABLE)" in detail(result, "CUDA_CONTEXT_FAILED")
    assert row(result, machine, 0, 2)["integrity"] == row(result, machine, 2, 0)["integrity"] == "intact"
    assert row(result, machine, 0, 1)["integrity"] == "unknown"


def test_a_driver_that_hangs(run_module: RunModule, gpus_on: Machine) -> None:
    gpus_on(2).faults("hang call=cuInit")
    result = run_module(gpu_p2p, {**SMALL, "step_timeout_seconds": 1})
    assert ("CUDA_HUNG", "CUDA") in told(result)
    assert result["verdict"] == "hung"


def test_a_gpu_whose_context_hangs(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(2)
    machine.faults("hang call=cuDevicePrimaryCtxRetain device={1}")
    result = run_module(gpu_p2p, {**SMALL, "step_timeout_seconds": 1, "tests": ["integrity"]})
    assert result["verdict"] == "hung"
    assert ("CUDA_HUNG", "CUDA") in told(result)
    assert machine.cards[1].address in detail(result, "CUDA_HUNG")


@pytest.mark.parametrize(
    "line", ["dropped from={0} to={1}", "hang from={0} to={1}", "no-access", "error call=cuInit code=999"]
)
def test_where_links_are_not_required_it_warns(line: str, run_module: RunModule, gpus_on: Machine) -> None:
    gpus_on(2).faults(line)
    options = {**SMALL, "step_timeout_seconds": PATIENCE, "tests": ["integrity"]}
    required, optional = (run_module(gpu_p2p, {**options, "required": required}) for required in (True, False))
    assert told(required)
    assert told(optional) == []
    assert set(told(optional, "warn")) >= set(told(required))
    assert optional["verdict"] == required["verdict"] != "ok"
