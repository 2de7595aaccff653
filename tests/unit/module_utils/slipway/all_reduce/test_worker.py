# SPDX-License-Identifier: GPL-3.0-or-later
"""What a rank sends and what it does. The runs need a Python that has torch, which SLIPWAY_TORCH_PYTHON names; theirs is gloo, on the CPU."""

from __future__ import annotations

import inspect
import json
import os
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.all_reduce import judge, plan, ranks, record, thresholds, worker
from ansible.module_utils.slipway.gpu import child

SIZES = [{"bytes": 4096, "iterations": 3}, {"bytes": 3 * 1024 * 1024, "iterations": 2}]
# Put before the worker's own start: what a machine does to an all-reduce.
ZEROS = "real = dist.all_reduce\ndef all_reduce(b):\n    real(b)\n    if b.numel() > 4096: b[1000:1010] = 0\n"
UNCHANGED = "real = dist.all_reduce\ndef all_reduce(b):\n    own = b.clone()\n    real(b)\n    if b.numel() > 4096: b.copy_(own)\n"
HANGS = "def all_reduce(b):\n    time.sleep(600)\n"


@pytest.mark.parametrize("count", [2, 3, 4, 8, 16])
def test_sums_are_exact_and_each_place_is_its_own(count: int) -> None:
    places = range(0, worker.TILE, 1009)
    for number in (1, 2, 3):
        sent = [[worker.value(place, rank, count, number) for place in places] for rank in range(count)]
        sums = [sum(column) for column in zip(*sent)]
        assert min(min(row) for row in sent) >= 1, "zeros are what lost memory gives"
        assert max(sums) <= worker.EXACT
        assert len(set(sums)) > 10
        assert len({tuple(row) for row in sent}) == count, "ranks differ"
    assert [worker.value(n, 0, count, 1) for n in range(50)] != [worker.value(n, 0, count, 2) for n in range(50)]


def test_it_goes_through_a_pipe_and_needs_nothing_of_slipway() -> None:
    source = inspect.getsource(worker)
    assert len(source.encode()) < 60000, "a pipe holds 64 KiB, and nobody reads before the interpreter starts"
    assert "slipway" not in source.lower().partition('"""')[2].partition('"""')[2]


@pytest.fixture
def torch_python() -> str:
    named = os.environ.get("SLIPWAY_TORCH_PYTHON")
    if not named:
        pytest.skip("SLIPWAY_TORCH_PYTHON names no Python that has torch")
    return named


def run(python: str, folder: Path, count: int, patch: str = "", silence: float = 60) -> record.Record:
    """Ranks of the real worker; ``patch`` is what becomes of its all-reduce on rank 1."""
    start = "\nif __name__ =="
    source = inspect.getsource(worker)
    if patch:
        patched = f"{patch}\nif json.loads(sys.argv[1])['rank'] == 1: dist.all_reduce = all_reduce\n"
        source = source.replace(start, f"\nimport torch.distributed as dist\n{patched}{start}")
    common = {"ranks": count, "backend": "gloo", "store": str(folder / "store"), "device": 0, "sizes": SIZES}
    arguments = [json.dumps({**common, "rank": rank}) for rank in range(count)]

    def work(emit: child.Emit) -> None:
        ranks.run(emit, python, source, arguments, {"PATH": os.environ["PATH"], "OMP_NUM_THREADS": "1"})

    outcome = child.run(work, 300, silence_seconds=silence)
    sizes = tuple(plan.Size(size["bytes"], size["iterations"]) for size in SIZES)
    return record.fold(plan.Plan(tuple(str(n) for n in range(count)), sizes), outcome, silence)


def ids(made: record.Record) -> list[str]:
    sizes = tuple(plan.Size(size["bytes"], size["iterations"]) for size in SIZES)
    planned = plan.Plan(tuple(row["bus_id"] for row in made.ranks), sizes)
    return [
        one.id for one in judge.judge(planned, made, thresholds.Thresholds(bus_gbps=1e-6, latency_us=1e9), "python")
    ]


@pytest.mark.parametrize("count", [2, 3])
def test_torch_makes_it(count: int, torch_python: str, tmp_path: Path) -> None:
    made = run(torch_python, tmp_path, count)
    assert [row["ended"] for row in made.ranks] == ["done"] * count, made
    assert [(one["size"], one["wrong"], one["ranks"]) for one in made.results] == [
        (64, 0, count),
        (4096, 0, count),
        (3 * 1024 * 1024, 0, count),
    ]
    # bfloat16 twice and float32 once, on each rank.
    assert made.results[-1]["checked"] == count * (2 * 1572864 + 786432)
    assert made.results[-1]["busbw_gbps"] > 0
    assert ids(made) == []


def test_torch_finds_zeros(torch_python: str, tmp_path: Path) -> None:
    made = run(torch_python, tmp_path, 2, ZEROS)
    assert ids(made) == ["ALL_REDUCE_CORRUPT"]
    fault: dict[str, t.Any] = made.results[-1]["faults"][0]
    assert (fault["rank"], fault["wrong"], fault["zeros"], fault["offset"], fault["got"]) == (1, 10, 10, 1000, 0.0)


def test_torch_finds_what_was_not_added(torch_python: str, tmp_path: Path) -> None:
    made = run(torch_python, tmp_path, 2, UNCHANGED)
    assert ids(made) == ["ALL_REDUCE_CORRUPT"]
    assert {(fault["wrong"], fault["unchanged"]) for fault in made.results[-1]["faults"]} == {
        (1572864, 1572864),
        (786432, 786432),
    }


def test_torch_finds_what_is_no_number(torch_python: str, tmp_path: Path) -> None:
    made = run(torch_python, tmp_path, 2, ZEROS.replace("= 0", "= float('nan')"))
    assert ids(made) == ["ALL_REDUCE_CORRUPT"]
    fault = made.results[-1]["faults"][0]
    assert (fault["wrong"], fault["zeros"], fault["offset"], fault["got"]) == (10, 0, 1000, None)


def test_torch_that_hangs(torch_python: str, tmp_path: Path) -> None:
    made = run(torch_python, tmp_path, 2, HANGS, silence=20)
    assert made.hung is not None
    assert {row["phase"] for row in made.ranks} == {"first all-reduce"}
    assert ids(made) == ["ALL_REDUCE_HUNG"]


def test_torch_whose_rank_dies(torch_python: str, tmp_path: Path) -> None:
    made = run(torch_python, tmp_path, 2, "def all_reduce(b):\n    os.kill(os.getpid(), 11)\n")
    assert ids(made)[0] == "ALL_REDUCE_FAILED"
    assert (made.ranks[1]["ended"], made.ranks[1]["status"]) == ("failed", -11)
    assert made.ranks[0]["ended"] in ("failed", "killed")
