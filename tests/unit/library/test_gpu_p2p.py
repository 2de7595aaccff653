# SPDX-License-Identifier: GPL-3.0-or-later
"""The module against the rig's GPUs, whose libcuda does in a process of its own what a driver would do."""

from __future__ import annotations

import hashlib
import json
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.modules import gpu_p2p
from simulated_gpus import SimulatedMachine

RunModule = t.Callable[..., dict[str, t.Any]]
Machine = t.Callable[..., SimulatedMachine]
SMALL = {"buffer_mib": 2}


def state_of(folder: Path) -> dict[str, str]:
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def told(result: dict[str, t.Any]) -> list[tuple[str, str, str]]:
    return [(found["id"], found["severity"], found["subject"]) for found in result["findings"]]


def pair(machine: SimulatedMachine, source: int, target: int) -> str:
    return f"{machine.cards[source].address} -> {machine.cards[target].address}"


def test_good_links_are_proven(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(4)
    result = run_module(gpu_p2p, SMALL)
    assert (result["rc"], result["changed"], result["findings"], result["verdict"]) == (0, False, [], "ok")
    assert [gpu["bus_id"] for gpu in result["gpus"]] == [card.address for card in machine.cards]
    assert len(result["pairs"]) == 12
    for row in result["pairs"]:
        assert (row["integrity"], row["copies"], row["faulty_copies"], row["errors"]) == ("intact", 22, 0, [])
        assert 50 < row["write_gbps"] < 60
        assert 50 < row["read_gbps"] < 60
        assert row["staged_gbps"] < row["write_gbps"] / 1.5
        assert row["latency_us"] < 1 < 13 < row["staged_latency_us"]
        assert row["bidirectional_gbps"] > 95
    assert {row["path_class"] for row in result["pairs"]} == {"PIX", "NODE"}
    assert {row["error"] for row in result["concurrent"]} == {None}
    assert all(part["took_seconds"] is not None for part in result["plan"]["parts"])
    assert "| 03:00.0 |" in result["matrix"]["markdown"]


def test_the_documented_keys_are_the_returned_ones(run_module: RunModule, gpus_on: Machine) -> None:
    gpus_on(2)
    documented = yaml.safe_load(gpu_p2p.RETURN)
    result = run_module(gpu_p2p, {**SMALL, "tests": ["integrity"]})
    assert set(documented) == set(result) - {"changed", "rc", "invocation", "warnings", "deprecations"}
    assert set(documented["pairs"]["contains"]) == set(result["pairs"][0])


def test_check_mode_plans_and_touches_nothing(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(8)
    machine.faults("hang call=cuInit")
    before = state_of(machine.root)
    result = run_module(gpu_p2p, {"baseline": str(machine.root / "b"), "record_baseline": True}, check=True)
    assert (result["rc"], result["changed"], result["findings"], result["verdict"]) == (0, False, [], None)
    assert (result["plan"]["pairs"], result["pairs"]) == (56, [])
    assert result["plan"]["seconds"] <= 60
    assert state_of(machine.root) == before


def test_one_gpu_has_no_pairs_and_says_so(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(1)
    result = run_module(gpu_p2p, SMALL)
    assert told(result) == [("P2P_NO_PAIRS", "info", machine.cards[0].address)]
    assert (result["verdict"], result["pairs"], result["plan"]["seconds"]) == ("ok", [], 0)


def test_no_gpu_proves_nothing(run_module: RunModule, gpus_on: Machine) -> None:
    gpus_on(0)
    result = run_module(gpu_p2p, SMALL)
    assert result["verdict"] == "could_not_run"
    assert ("NO_GPU", "fail", "GPUs") in told(result)


def test_only_the_devices_that_are_named(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(4)
    named = [machine.cards[1].address.upper(), machine.cards[3].address[5:]]
    result = run_module(gpu_p2p, {**SMALL, "devices": named})
    assert (result["verdict"], len(result["pairs"])) == ("ok", 2)
    assert {row["path_class"] for row in result["pairs"]} == {"NODE"}


def test_a_device_that_is_named_and_not_there(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(2)
    named = [*(card.address for card in machine.cards), "0000:99:00.0"]
    result = run_module(gpu_p2p, {**SMALL, "devices": named, "tests": ["integrity"]})
    assert told(result) == [("GPU_NODE_MISSING", "fail", "0000:99:00.0")]
    assert len(result["pairs"]) == 2
    assert result["verdict"] == "could_not_run"
    assert {row["integrity"] for row in result["pairs"]} == {"intact"}, "the others are proven all the same"


def test_a_baseline_is_recorded_once_and_compared_with(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(2)
    path = machine.root / "var/lib/slipway/p2p.json"
    options = {**SMALL, "baseline": str(path), "record_baseline": True}
    first, second = (run_module(gpu_p2p, options) for _ in range(2))
    assert (first["changed"], second["changed"], second["verdict"]) == (True, False, "ok")
    assert first["diff"]["after"] == path.read_text()
    assert first["baseline"] == second["baseline"]
    stored = json.loads(path.read_text())
    name = f"{pair(machine, 0, 1)} write_gbps"
    stored["speeds"][name] *= 2
    path.write_text(json.dumps(stored))
    third = run_module(gpu_p2p, options)
    assert told(third) == [("P2P_BELOW_BASELINE", "fail", name)]
    assert (third["verdict"], third["changed"]) == ("degraded", False)
    path.write_text("nothing")
    assert told(run_module(gpu_p2p, options)) == [("P2P_BASELINE_UNUSABLE", "unknown", str(path))]


def test_a_baseline_that_cannot_be_read_or_written(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(2)
    options = {**SMALL, "tests": ["integrity"], "record_baseline": True}
    below_a_file = f"{machine.root}/proc/devices/b"
    assert told(run_module(gpu_p2p, {**options, "baseline": below_a_file})) == [
        ("P2P_BASELINE_UNUSABLE", "unknown", below_a_file)
    ]
    result = run_module(gpu_p2p, {**options, "baseline": "/proc/none/b"})
    assert result["rc"] == 1
    assert result["msg"].startswith("Cannot write baseline '/proc/none/b' on ")


def test_it_refuses_beside_other_work_unless_told(run_module: RunModule, gpus_on: Machine) -> None:
    machine = gpus_on(2)
    machine.file("proc/4711/comm", "server\n")
    machine.file("proc/4711/cgroup", "0::/lxc/101/ns/system.slice\n")
    for pid, name, node in ((1, "nvidia-smi", "nvidiactl"), (2, "nvidia-persiste", "nvidia0")):
        machine.file(f"proc/{pid}/comm", f"{name}\n")
        (machine.root / f"proc/{pid}/fd").mkdir()
        (machine.root / f"proc/{pid}/fd/3").symlink_to(f"/dev/{node}")
    (machine.root / "proc/4711/fd").mkdir()
    (machine.root / "proc/4711/fd/3").symlink_to("/dev/nvidia-uvm")
    result = run_module(gpu_p2p, SMALL)
    assert told(result) == [("GPU_BUSY", "fail", "GPUs")]
    assert result["findings"][0]["detail"] == "server (4711, guest 101)"
    assert (result["verdict"], result["pairs"]) == ("could_not_run", [])
    assert run_module(gpu_p2p, {**SMALL, "tests": ["integrity"], "allow_busy": True})["verdict"] == "ok"
    (machine.root / "proc/4711/fd/4").symlink_to("/dev/nvidia7")
    assert run_module(gpu_p2p, {**SMALL, "tests": ["integrity"]})["verdict"] == "ok", "that one is on another GPU"
    (machine.root / "proc/4711/fd/5").symlink_to("/dev/nvidia1")
    assert told(run_module(gpu_p2p, {**SMALL, "tests": ["integrity"]})) == [("GPU_BUSY", "fail", "GPUs")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"devices": ["gpu0"]}, "Cannot read option 'devices' on "),
        ({"buffer_mib": 0}, "Cannot read option 'buffer_mib' on "),
        ({"buffer_mib": 4096}, "Give a whole number from 1 to 1024."),
        ({"timeout_seconds": 0}, "Cannot read option 'timeout_seconds' on "),
        ({"tests": []}, "so nothing would be proven"),
        ({"thresholds": {"reference_gbps": {"XYZ": 1}}}, "reference_gbps has 'XYZ', which is none of "),
        ({"thresholds": {"warn_ratio": -1}}, "warn_ratio is -1.0, not a number above 0"),
    ],
)
def test_options_that_make_no_sense(
    options: dict[str, t.Any], said: str, run_module: RunModule, gpus_on: Machine
) -> None:
    gpus_on(2)
    result = run_module(gpu_p2p, options)
    assert result["rc"] == 1
    assert said in result["msg"]
