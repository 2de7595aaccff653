# SPDX-License-Identifier: GPL-3.0-or-later
"""The check of a machine's own GPUs, on the rig's: what it prints, and how it ends."""

from __future__ import annotations

import importlib.util
import json
import shutil
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from gpu import runfile
from nccl_recordings import END, Stack, connected, fails, phase, sized, started
from simulated_gpus import VERSION, SimulatedMachine

PATH = Path(__file__).parents[3] / "tools/gpu_check.py"
spec = importlib.util.spec_from_file_location("gpu_check", PATH)
assert spec
assert spec.loader
gpu_check = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gpu_check)
Machine = t.Callable[[int], SimulatedMachine]
Check = t.Callable[..., dict[str, t.Any]]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if not shutil.which("gcc"):
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("libcuda")
    runfile.compile_libcuda(folder / "libcuda.so.1", VERSION, folder / "root")
    return folder / "root", folder / "libcuda.so.1"


@pytest.fixture
def gpus(library: tuple[Path, Path]) -> Machine:
    def make(count: int) -> SimulatedMachine:
        shutil.rmtree(library[0], ignore_errors=True)
        return SimulatedMachine(*library, count)

    return make


@pytest.fixture
def check(library: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> Check:
    def run(venv: str = "", **changes: t.Any) -> dict[str, t.Any]:
        for name, value in changes.items():
            monkeypatch.setattr(gpu_check, name, value)
        root, path = library
        told = gpu_check.check(2, venv, str(root), str(path))
        return t.cast("dict[str, t.Any]", json.loads(json.dumps(told)))

    return run


def test_one_gpu(check: Check, gpus: Machine) -> None:
    machine = gpus(1)
    told = check()
    assert (told["status"], told["problems"], told["links"], told["all_reduce"]) == (0, [], None, None)
    (device,) = told["devices"]
    assert (device["bus_id"], device["error"], device["faults"]) == (machine.cards[0].address, "", [])
    assert device["copies"] == 16
    assert device["change_found"] is True
    assert device["own_copy_gbps"] > 0
    assert device["latency_us"] > 0
    assert device["read_back_gbps"] > 0
    assert told["driver"]["kernel_version"] == VERSION
    assert told["cuda"]["devices"] == 1


def test_several_gpus_have_links_too(check: Check, gpus: Machine) -> None:
    gpus(2)
    told = check()
    assert (told["status"], told["problems"]) == (0, [])
    assert (len(told["devices"]), len(told["links"]["pairs"]), told["links"]["verdict"]) == (2, 2, "ok")


def test_links_that_lose_data(check: Check, gpus: Machine) -> None:
    gpus(2).faults("zeros from={0} to={1}")
    told = check()
    assert (told["status"], told["problems"]) == (1, ["links: corrupt"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("error call=cuInit code=999", "cuInit returned 999 (CUDA_ERROR_UNKNOWN)"),
        ("error call=cuInit code=3", "cuInit returned 3 (CUDA_ERROR_NOT_INITIALIZED)"),
    ],
)
def test_cuda_that_does_not_start(line: str, said: str, check: Check, gpus: Machine) -> None:
    gpus(1).faults(line)
    told = check()
    assert told["status"] == 2
    assert said in told["problems"][0]
    assert "CUDA_INIT_FAILED" in [one["id"] for one in told["findings"]]


def test_no_gpu(check: Check, gpus: Machine) -> None:
    gpus(0)
    assert check()["status"] == 2


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("error call=cuMemAlloc_v2 code=2", "cuMemAlloc_v2 returned 2"),
        ("error call=cuDevicePrimaryCtxRetain code=46", "cuDevicePrimaryCtxRetain returned 46"),
        ("error call=cuEventSynchronize code=700", "cuEventSynchronize returned 700"),
    ],
)
def test_a_call_that_fails(line: str, said: str, check: Check, gpus: Machine) -> None:
    gpus(1).faults(line)
    told = check()
    assert told["status"] == 1
    assert said in told["problems"][0]


def test_a_call_that_hangs(check: Check, gpus: Machine) -> None:
    machine = gpus(1)
    machine.faults("hang call=cuMemsetD8_v2")
    told = check(_STEP_SECONDS=3.0)
    assert told["status"] == 1
    assert "issued by the source, round 1: nothing came back" in told["problems"][0]


GOOD = {
    "bus_id": "a",
    "error": "",
    "faults": [],
    "copies": 16,
    "change_found": True,
    "own_copy_gbps": 700.0,
    "events_over_clock": 0.8,
}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, None),
        ({"faults": [{}, {}]}, "a: 2 of 16 copies within it are wrong"),
        ({"change_found": False}, "a: a byte that was changed on purpose was not found at its place"),
        ({"own_copy_gbps": None}, "a: events gave no time for a copy"),
        ({"events_over_clock": 2.0}, "a: events say that copies took longer than the clock on the wall"),
        ({"error": "cuInit: nothing came back"}, "a: cuInit: nothing came back"),
    ],
)
def test_what_is_wrong_with_a_gpu(changes: dict[str, t.Any], said: str | None) -> None:
    told = {"devices": [{**GOOD, **changes}], "links": None, "all_reduce": None}
    assert gpu_check.problems(told) == ([said] if said else [])


def test_a_link_that_is_faster_than_a_gpu_within_itself() -> None:
    row = {"source": "a", "target": "b", "write_gbps": 701.0}
    told = {"devices": [GOOD, {**GOOD, "bus_id": "b"}], "links": {"verdict": "ok", "pairs": [row]}, "all_reduce": None}
    assert gpu_check.problems(told) == ["a -> b: faster than a GPU copies within itself"]


def test_nccl_with_one_rank_and_with_two(check: Check, gpus: Machine, tmp_path: Path) -> None:
    stack = Stack(tmp_path / "venv")
    stack.plays([*started(peers=[]), *connected(), *sized(sizes=(4096, 65536, 524288, 1048576, 2097152)), *END])
    for count in (1, 2):
        gpus(count)
        told = check(str(stack.venv))
        assert (told["status"], told["problems"], told["all_reduce"]["verdict"]) == (0, [], "ok")
        assert stack.noted(0)["given"]["ranks"] == count


@pytest.mark.parametrize(
    ("last", "verdict"),
    [([], "could_not_run"), ([{"hang": True}], "hung"), (fails("RuntimeError", "broken"), "could_not_run")],
)
def test_nccl_that_does_not_start(
    last: list[dict[str, t.Any]], verdict: str, check: Check, gpus: Machine, tmp_path: Path
) -> None:
    stack = Stack(tmp_path / "venv")
    stack.plays([*started(), phase("first all-reduce"), *last])
    gpus(1)
    told = check(str(stack.venv), _STEP_SECONDS=5.0)
    assert (told["status"], told["problems"]) == (1, [f"all-reduce: {verdict}"])


def test_it_runs_by_itself_and_prints_json() -> None:
    """As the target of make calls it, with this machine's own libcuda, or none."""
    made = subprocess.run([sys.executable, "-S", str(PATH)], capture_output=True, text=True, timeout=300, check=False)
    told = json.loads(made.stdout)
    assert made.returncode == told["status"]
