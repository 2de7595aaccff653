# SPDX-License-Identifier: GPL-3.0-or-later
"""The module on machines with the rig's GPUs, and a stack whose Python plays what ranks have said elsewhere."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import nccl_recordings as recorded
import pytest
import yaml
from ansible.module_utils.slipway.all_reduce import ranks
from ansible.modules import nccl_all_reduce
from nccl_recordings import END, Recording, Stack, connected, fails, good, info, nccl_error, phase, sized, started
from simulated_gpus import SimulatedMachine

RunModule = t.Callable[..., dict[str, t.Any]]
Machine = t.Callable[..., SimulatedMachine]
Reduce = t.Callable[..., dict[str, t.Any]]
# Where ranks must have come to a place before they count as hung, on a machine that is busy.
PATIENCE = 4


@pytest.fixture
def stack(tmp_path: Path) -> Stack:
    return Stack(tmp_path / "venv")


@pytest.fixture
def reduce(run_module: RunModule, gpus_on: Machine, stack: Stack) -> Reduce:
    """Run the module with that stack on two GPUs."""
    gpus_on(2)

    def run(check: bool = False, **options: t.Any) -> dict[str, t.Any]:
        given = {"venv": str(stack.venv), "buffer_mib": 2, "step_timeout_seconds": 20, **options}
        return run_module(nccl_all_reduce, given, check=check)

    return run


def told(result: dict[str, t.Any]) -> list[tuple[str, str]]:
    return [(found["id"], found["severity"]) for found in result["findings"]]


def detail(result: dict[str, t.Any], fault: str) -> str:
    return next(found["detail"] for found in result["findings"] if found["id"] == fault)


def ended(pid: int) -> bool:
    """Whether it is gone, or about to be buried by whoever inherited it."""
    return ranks.survivors([pid]) == []


def test_a_good_run(reduce: Reduce, stack: Stack) -> None:
    stack.plays(good())
    result = reduce()
    assert (result["rc"], result["changed"], result["verdict"], result["findings"]) == (0, False, "ok", [])
    assert [row["ended"] for row in result["ranks"]] == ["done", "done"]
    assert [row["size"] for row in result["results"]] == [64, *recorded.SIZES]
    largest = result["results"][-1]
    assert (largest["busbw_gbps"], largest["algbw_gbps"]) == (40.0, 40.0), "two ranks have a factor of one"
    assert (largest["checked"], largest["wrong"], largest["ranks"]) == (2 * 2621440, 0, 2)
    assert result["transport"] == [
        {"source": 0, "target": 1, "via": "P2P/CUMEM", "channels": 4},
        {"source": 1, "target": 0, "via": "P2P/CUMEM", "channels": 2},
    ]
    assert (result["nccl_version"], result["torch_version"]) == ("2.27.5", "2.9.1+cu128")
    assert result["settings"] == {"NCCL_P2P_LEVEL": "SYS"}
    assert result["plan"]["took_seconds"] is not None


def test_the_documented_keys_are_the_returned_ones(reduce: Reduce, stack: Stack) -> None:
    stack.plays(good())
    result = reduce()
    documented = yaml.safe_load(nccl_all_reduce.RETURN)
    assert set(documented) == set(result) - {"changed", "rc", "invocation", "warnings", "deprecations"}
    assert set(documented["ranks"]["contains"]) == set(result["ranks"][0])
    assert set(documented["results"]["contains"]) == set(result["results"][0])


def test_check_mode_plans_and_starts_nothing(reduce: Reduce, stack: Stack) -> None:
    stack.plays([{"hang": True}])
    result = reduce(check=True, buffer_mib=256)
    assert (result["rc"], result["changed"], result["verdict"], result["findings"]) == (0, False, None, [])
    assert (result["plan"]["ranks"], len(result["plan"]["gpus"])) == (2, 2)
    assert result["plan"]["seconds"] < 60
    assert not list(stack.venv.glob("rank.*"))
    stack.python.unlink()
    assert reduce(check=True)["rc"] == 0, "an environment that a deploy will build is not there in check mode"


def test_what_the_ranks_get(
    run_module: RunModule, gpus_on: Machine, stack: Stack, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = gpus_on(4)
    monkeypatch.setenv("OF_THE_MODULE", "1")
    stack.plays(good())
    named = [machine.cards[3].address, machine.cards[1].address]
    environment = {
        "NCCL_P2P_LEVEL": "SYS",
        "NCCL_DEBUG": "WARN",
        "NCCL_DEBUG_FILE": "/var/log/nccl",
        "OMP_NUM_THREADS": 8,
    }
    options = {"venv": str(stack.venv), "buffer_mib": 2, "devices": named, "environment": environment}
    result = run_module(nccl_all_reduce, options)
    assert [row["bus_id"] for row in result["ranks"]] == sorted(named)
    first, second = stack.noted(0), stack.noted(1)
    assert (first["given"]["device"], second["given"]["device"], second["given"]["ranks"]) == (0, 1, 2)
    assert first["given"]["sizes"][-1] == {"bytes": 2097152, "iterations": 20}
    assert not os.path.exists(os.path.dirname(first["given"]["store"]))
    got = first["environment"]
    assert got["CUDA_VISIBLE_DEVICES"] == "1,3"
    assert (got["NCCL_P2P_LEVEL"], got["NCCL_DEBUG"], got["OMP_NUM_THREADS"]) == ("SYS", "INFO", "8")
    assert got["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert got["PATH"].startswith(f"{stack.venv}/bin:")
    assert {"OF_THE_MODULE", "NCCL_DEBUG_FILE"} & set(got) == set()
    assert "dist.all_reduce(buffer)" in first["program"]


def test_all_gpus_need_no_choice(reduce: Reduce, stack: Stack) -> None:
    stack.plays(good())
    reduce()
    assert "CUDA_VISIBLE_DEVICES" not in stack.noted(0)["environment"]


# --- It hangs ---

HANGS: list[tuple[str, Recording]] = [
    ("start", []),
    ("import", [phase("import")]),
    ("device", [phase("import"), phase("device")]),
    ("rendezvous", started()),
    ("first all-reduce", [*started(), *connected()[:-1]]),
    ("524288 bytes", [*started(), *connected(), *sized(sizes=(4096, 65536)), phase("524288 bytes")]),
    ("end", [*started(), *connected(), *sized(), phase("end")]),
]


@pytest.mark.parametrize(("where", "steps"), HANGS)
def test_a_hang_names_the_phase_and_nothing_is_left(where: str, steps: Recording, reduce: Reduce, stack: Stack) -> None:
    stack.plays([*steps, {"hang": True}])
    result = reduce(step_timeout_seconds=PATIENCE)
    assert (result["verdict"], told(result)) == ("hung", [("ALL_REDUCE_HUNG", "fail")])
    assert f"all ranks were last heard of in phase '{where}'" in detail(result, "ALL_REDUCE_HUNG")
    assert ended(stack.noted(0)["pid"])
    assert ended(stack.noted(1)["pid"])


def test_a_hang_tells_how_far_nccl_came(reduce: Reduce, stack: Stack) -> None:
    stack.plays([*started(), *connected()[:-1], {"hang": True}])
    said = detail(reduce(step_timeout_seconds=PATIENCE), "ALL_REDUCE_HUNG")
    assert said.endswith("; NCCL's communicator was complete, by way of P2P/CUMEM")
    stack.plays([*started(), phase("first all-reduce"), {"hang": True}])
    said = detail(reduce(step_timeout_seconds=PATIENCE), "ALL_REDUCE_HUNG")
    assert said.endswith("; NCCL's communicator was not complete, by way of nothing that it told")


def test_a_process_that_cannot_be_killed_is_told(reduce: Reduce, stack: Stack, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranks, "survivors", lambda pids: [*pids][:1])
    stack.plays([phase("import"), {"hang": True}])
    said = detail(reduce(step_timeout_seconds=PATIENCE), "ALL_REDUCE_HUNG")
    assert said.endswith(f"; processes {stack.noted(0)['pid']} cannot be killed, so the node needs a reboot")


def test_the_rank_that_is_behind_is_named(run_module: RunModule, gpus_on: Machine, stack: Stack) -> None:
    machine = gpus_on(4)
    stack.plays([*started(), {"hang": True}], r2=[phase("import"), {"hang": True}])
    result = run_module(nccl_all_reduce, {"venv": str(stack.venv), "step_timeout_seconds": PATIENCE})
    said = detail(result, "ALL_REDUCE_HUNG")
    assert f"rank 2 ({machine.cards[2].address}) in phase 'import'; 3 others in phase 'rendezvous'" in said


def test_ranks_that_work_when_the_time_is_over_have_not_hung(reduce: Reduce, stack: Stack) -> None:
    stack.plays([*started(), *[step for _ in range(100) for step in ({"sleep": 0.1}, phase("4096 bytes"))]])
    result = reduce(timeout_seconds=2)
    assert (result["verdict"], told(result)) == ("could_not_run", [("ALL_REDUCE_NOT_RUN", "unknown")])
    assert detail(result, "ALL_REDUCE_NOT_RUN").startswith("the time was over: ")


# --- It is wrong ---

FAULT = {"dtype": "bfloat16", "round": 1, "checked": 262144, "wrong": 131072, "zeros": 131072, "unchanged": 0}
FAULT |= {"offset": 65536, "got": 0.0, "expected": 133.0}


def test_wrong_sums(reduce: Reduce, stack: Stack) -> None:
    wrong = {"size": 524288, "seconds": 2e-5, "checked": 655360, "faults": [FAULT]}
    said: Recording = [phase("524288 bytes"), {"say": wrong}]
    steps = [*started(), *connected(), *sized(sizes=(4096, 65536)), *said, *sized(sizes=(1048576, 2097152)), *END]
    stack.plays(good(), r1=steps)
    result = reduce()
    assert (result["verdict"], told(result)) == ("corrupt", [("ALL_REDUCE_CORRUPT", "fail")])
    assert result["findings"][0]["subject"] == "524288 bytes"
    assert detail(result, "ALL_REDUCE_CORRUPT") == (
        "131072 of 1310720 sums are wrong, on ranks 1; worst on rank 1 (0000:04:00.0): 131072 of 262144 in bfloat16 "
        "(131072 zeros), the first at 65536: 0 where 133 is right"
    )
    assert next(row for row in result["results"] if row["wrong"])["faults"][0]["rank"] == 1


def test_the_first_all_reduce_is_looked_at_too(reduce: Reduce, stack: Stack) -> None:
    first = {"size": 64, "seconds": None, "checked": 32, "faults": [{**FAULT, "wrong": 1, "zeros": 0, "checked": 32}]}
    stack.plays([*started(), *connected()[:-1], {"say": first}, *sized(), *END])
    result = reduce()
    assert (result["verdict"], result["findings"][0]["subject"]) == ("corrupt", "64 bytes")


def test_sums_that_are_no_numbers(reduce: Reduce, stack: Stack) -> None:
    first = {"size": 64, "seconds": None, "checked": 32, "faults": [{**FAULT, "zeros": 0, "got": None}]}
    stack.plays([*started(), *connected()[:-1], {"say": first}, *sized(), *END])
    assert detail(reduce(), "ALL_REDUCE_CORRUPT").endswith("the first at 65536: no number where 133 is right")


# --- It fails ---

SHM = "Error while creating shared memory segment /dev/shm/nccl-LeXlEJ (size 9637888)"
FAILURES: list[tuple[str, Recording, str]] = [
    ("shared memory", nccl_error("ncclSystemError", SHM), "/dev/shm is too small or full: mount it larger (gpu_container_shm_mib)"),
    ("one GPU twice", nccl_error("ncclInvalidUsage", "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 3000"), "two ranks were given one GPU"),
    ("illegal access", nccl_error("ncclUnhandledCudaError", "Cuda failure 700 'an illegal memory access was encountered'"), "2.26.2 does this on SM120"),
    ("no peer access", nccl_error("ncclUnhandledCudaError", "Cuda failure 217 'peer access is not supported between these two devices'"), "prove the links (gpu_p2p)"),
    ("ranks that disagree", nccl_error("ncclSystemError", "Error while attaching to shared memory segment /dev/shm/nccl-\x10 (size 0)"), "NCCL_CUMEM_HOST_ENABLE=0"),
    ("out of memory", nccl_error("ncclUnhandledCudaError", "Failed to CUDA calloc 10485760 bytes"), "memory is held by other work"),
    ("another CUDA error", nccl_error("ncclUnhandledCudaError", "Cuda failure 719 'unspecified launch failure'"), "see Xid lines"),
    ("another system error", nccl_error("ncclSystemError", "Call to bind failed"), "a system call failed inside NCCL"),
    ("inside NCCL", nccl_error("ncclInternalError", "Attribute busid of node nic not found"), "NCCL contradicts itself"),
    ("an old driver", fails("RuntimeError", "The NVIDIA driver on your system is too old (found version 12040)."), "install a newer one"),
    ("another architecture", fails("AcceleratorError", "CUDA error: no kernel image is available for execution on the device"), "sm_120 needs CUDA 12.8"),
    ("CUDA does not start", fails("RuntimeError", "CUDA driver initialization failed: initialization error"), "uvm_disable_hmm=1"),
    ("a name of an interface", nccl_error("ncclInvalidUsage", "Bootstrap : no socket interface found"), "NCCL_SOCKET_IFNAME"),
    ("killed", [{"signal": 9}], "by signal 9; the kernel ran out of memory"),
    ("bus error", [{"signal": 7}], "/dev/shm ran full"),
    ("a crash", [{"err": "Fatal Python error: Segmentation fault"}, {"signal": 11}], "(Fatal Python error: Segmentation fault); a library crashed"),
    ("without a word", [{"exit": 0}], "it ended without a word"),
    ("with a status", [{"err": "numactl: membind blocked"}, {"exit": 3}], "it ended with status 3 (numactl: membind blocked)"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "last", "cause"), FAILURES, ids=[name for name, _steps, _cause in FAILURES])
def test_each_way_to_fail(name: str, last: Recording, cause: str, reduce: Reduce, stack: Stack) -> None:
    stack.plays([*started(), phase("first all-reduce"), *last])
    result = reduce()
    assert (result["rc"], result["verdict"], told(result)) == (0, "could_not_run", [("ALL_REDUCE_FAILED", "fail")])
    assert cause in detail(result, "ALL_REDUCE_FAILED")
    assert detail(result, "ALL_REDUCE_FAILED").startswith("rank 0 (0000:03:00.0) in phase 'first all-reduce': ")
    assert result["findings"][0]["remedy"]


NOT_RUN = [
    ("ModuleNotFoundError", "No module named 'torch'", "an engine without it needs no all-reduce"),
    ("AssertionError", "Torch not compiled with CUDA enabled", "this torch is for CPUs"),
    ("RuntimeError", "torch 2.9.1 was built without NCCL", "this torch is for CPUs"),
    (
        "ImportError",
        "libcudnn.so.9: cannot open shared object file: No such file or directory",
        "do not fit each other",
    ),
    ("OSError", "undefined symbol: ncclCommShrink", "do not fit each other"),
]


@pytest.mark.parametrize(("kind", "text", "cause"), NOT_RUN)
def test_a_stack_that_has_no_nccl(kind: str, text: str, cause: str, reduce: Reduce, stack: Stack) -> None:
    stack.plays([phase("import"), *fails(kind, text)])
    result = reduce()
    assert (result["verdict"], told(result)) == ("could_not_run", [("ALL_REDUCE_NOT_RUN", "unknown")])
    assert result["findings"][0]["subject"] == str(stack.python)
    assert cause in detail(result, "ALL_REDUCE_NOT_RUN")


def test_the_rank_that_failed_first_is_named_not_those_that_lost_it(reduce: Reduce, stack: Stack) -> None:
    lost = nccl_error("ncclRemoteError", "socketProgress: Connection closed by remote peer infer1<57557>")
    stack.plays([*started(), phase("first all-reduce"), *lost], r1=[*started(), phase("device"), {"signal": 11}])
    said = detail(reduce(), "ALL_REDUCE_FAILED")
    assert said.startswith("rank 1 (0000:04:00.0) in phase 'device': it ended by signal 11")
    assert said.endswith("1 other ranks did not end well either")


def test_a_warning_of_another_rank_explains_an_error_that_names_a_class_only(reduce: Reduce, stack: Stack) -> None:
    # NVIDIA/nccl#1838: peer access is named, and host memory is meant.
    warning = info("Cuda failure 217 'peer access is not supported between these two devices'", "transport/shm.cc:590")
    failed = nccl_error("ncclUnhandledCudaError", "Cuda failure")
    stack.plays([*started(), phase("first all-reduce"), *failed], r1=[*started(), warning, {"hang": True}])
    result = reduce()
    assert "set NCCL_CUMEM_HOST_ENABLE=0 (NVIDIA/nccl#1838)" in detail(result, "ALL_REDUCE_FAILED")
    assert result["nccl_warnings"] == [
        "transport/shm.cc:590 Cuda failure 217 'peer access is not supported between these two devices'"
    ]


def test_where_one_rank_ends_the_others_are_not_waited_for(reduce: Reduce, stack: Stack) -> None:
    stack.plays([*started(), {"hang": True}], r1=[*started(), *fails("RuntimeError", "broken")])
    result = reduce(step_timeout_seconds=600, timeout_seconds=600)
    assert [row["ended"] for row in result["ranks"]] == ["killed", "failed"]
    assert detail(result, "ALL_REDUCE_FAILED").startswith(
        "rank 1 (0000:04:00.0) in phase 'rendezvous': RuntimeError: broken"
    )
    assert ended(stack.noted(0)["pid"])


def test_a_rank_that_fails_and_does_not_end(reduce: Reduce, stack: Stack) -> None:
    broken = [{"say": {"error": "DistBackendError", "text": SHM}}, {"hang": True}]
    stack.plays([*started(), {"hang": True}], r1=[*started(), *broken])
    result = reduce(step_timeout_seconds=PATIENCE)
    assert told(result) == [("ALL_REDUCE_FAILED", "fail")]
    assert "/dev/shm is too small" in detail(result, "ALL_REDUCE_FAILED")


def test_junk_between_the_words_and_floods(reduce: Reduce, stack: Stack) -> None:
    junk: Recording = [{"out": "a library says hello"}, {"out": "[1, 2]"}, {"raw": "no end " * 20000}, {"out": ""}]
    stack.plays([*junk, {"flood": 5000}, *good()])
    result = reduce()
    assert (result["verdict"], result["findings"]) == ("ok", [])
    assert len(result["nccl_warnings"]) <= 1200


def test_a_flood_is_no_sign_of_life(reduce: Reduce, stack: Stack) -> None:
    stack.plays([*started(), *[{"flood": 2000}] * 10, {"hang": True}])
    assert reduce(step_timeout_seconds=3)["verdict"] == "hung"


def test_a_size_that_a_rank_did_not_tell(reduce: Reduce, stack: Stack) -> None:
    stack.plays(good(), r1=[*started(), *connected(), *sized(sizes=recorded.SIZES[:-1]), *END])
    result = reduce()
    assert (result["verdict"], told(result)) == ("could_not_run", [("ALL_REDUCE_NOT_RUN", "unknown")])
    assert detail(result, "ALL_REDUCE_NOT_RUN") == "not all ranks told of the sizes 2097152"
    assert result["results"][-1]["busbw_gbps"] is None


def test_ranks_on_other_gpus_than_planned(reduce: Reduce, stack: Stack) -> None:
    stack.plays(good(bus_id="0000:03:00.0"))
    result = reduce()
    assert result["verdict"] == "could_not_run"
    assert "rank 1 has 0000:03:00.0 in place of 0000:04:00.0" in detail(result, "ALL_REDUCE_NOT_RUN")


# --- It is slow ---


@pytest.mark.parametrize(
    ("gbps", "severity", "verdict"), [(36.0, None, "ok"), (34.0, "warn", "ok"), (22.2, "fail", "degraded")]
)
def test_bus_bandwidth(gbps: float, severity: str | None, verdict: str, reduce: Reduce, stack: Stack) -> None:
    stack.plays(good(gbps))
    result = reduce()
    assert (result["verdict"], told(result)) == (verdict, [("ALL_REDUCE_SLOW", severity)] if severity else [])
    assert reduce(thresholds={"bus_gbps": 20})["findings"] == []


def test_the_slowest_rank_counts(reduce: Reduce, stack: Stack) -> None:
    stack.plays(good(40.0), r1=good(20.0))
    result = reduce()
    assert result["results"][-1]["busbw_gbps"] == 20.0
    assert detail(result, "ALL_REDUCE_SLOW") == ("20.0 GB/s bus bandwidth with 2 MiB on 2 GPUs; 37.6 is the reference")


def test_kernels_whose_writes_are_staged(reduce: Reduce, stack: Stack) -> None:
    # rtx6kpro, optimization/pcie-oneshot-allreduce.md: 242 us in place of 17, copies unaffected.
    slow = [phase("4096 bytes"), {"say": {"size": 4096, "seconds": 242e-6, "checked": 5120, "faults": []}}]
    stack.plays([*started(), *connected(), *slow, *sized(sizes=recorded.SIZES[1:]), *END])
    result = reduce()
    assert (result["verdict"], told(result)) == ("ok", [("ALL_REDUCE_LATENCY_HIGH", "warn")])
    assert detail(result, "ALL_REDUCE_LATENCY_HIGH") == "242 us for 4096 bytes, more than 100"
    assert "RMPcieP2PType=2" in result["findings"][0]["remedy"]
    assert told(reduce(thresholds={"latency_us": 300})) == []


def test_eight_gpus_have_another_factor(run_module: RunModule, gpus_on: Machine, stack: Stack) -> None:
    gpus_on(8)
    stack.plays(good(20.0))
    result = run_module(nccl_all_reduce, {"venv": str(stack.venv), "buffer_mib": 2})
    assert (result["results"][-1]["algbw_gbps"], result["results"][-1]["busbw_gbps"]) == (20.0, 35.0)


@pytest.mark.parametrize("via", ["SHM/direct/direct", "SHM/CUMEM", "NET/Socket/0"])
def test_ways_through_the_host_where_peer_access_is_offered(via: str, reduce: Reduce, stack: Stack) -> None:
    stack.plays(good(via=via))
    result = reduce()
    assert (result["verdict"], told(result)) == ("ok", [("ALL_REDUCE_VIA_SHM", "warn")])
    assert f"rank 0 -> 1 via {via} and 1 other ways" in detail(result, "ALL_REDUCE_VIA_SHM")
    assert "NCCL_P2P_LEVEL=SYS" in result["findings"][0]["remedy"]


def test_ways_through_the_host_where_there_are_no_others(reduce: Reduce, stack: Stack) -> None:
    stack.plays([*started(peers=[]), *connected("SHM/direct/direct"), *sized(), *END])
    assert reduce()["findings"] == []


def test_ways_through_the_host_that_are_meant(reduce: Reduce, stack: Stack) -> None:
    steps = [*connected("SHM/direct/direct"), info("NCCL_P2P_DISABLE set by environment to 1.")]
    stack.plays([*started(), *steps, *sized(), *END])
    result = reduce()
    assert told(result) == [("ALL_REDUCE_VIA_SHM", "info")]
    assert "NCCL_P2P_DISABLE=1" in detail(result, "ALL_REDUCE_VIA_SHM")


def test_a_release_that_is_known_to_fail(reduce: Reduce, stack: Stack) -> None:
    up = [*started(nccl="2.26.2"), *connected(version="2.26.2"), *sized(sizes=(4096, 65536)), phase("524288 bytes")]
    stack.plays(
        [*up, *nccl_error("ncclUnhandledCudaError", "Cuda failure 700 'an illegal memory access was encountered'")]
    )
    result = reduce()
    assert told(result) == [("ALL_REDUCE_FAILED", "fail"), ("NCCL_VERSION_BROKEN", "fail")]
    assert detail(result, "ALL_REDUCE_FAILED").startswith("rank 0 (0000:03:00.0) in phase '524288 bytes'")
    stack.plays([*started(nccl="2.26.2"), *connected(version="2.26.2"), *sized(), *END])
    assert told(reduce()) == [("NCCL_VERSION_BROKEN", "warn")], "where all went well it is told all the same"
    stack.plays([*started(sm=90), *connected(version="2.26.2"), *sized(), *END])
    assert told(reduce()) == []


# --- It cannot begin ---


def test_one_gpu_has_nothing_to_prove(run_module: RunModule, gpus_on: Machine, stack: Stack) -> None:
    gpus_on(1)
    stack.plays([{"hang": True}])
    result = run_module(nccl_all_reduce, {"venv": str(stack.venv)})
    assert (result["verdict"], told(result), result["plan"]["seconds"]) == ("ok", [("P2P_NO_PAIRS", "info")], 0)
    assert not list(stack.venv.glob("rank.*"))


@pytest.mark.parametrize("gpus", [0, 2])
def test_gpus_that_are_missing(gpus: int, run_module: RunModule, gpus_on: Machine, stack: Stack) -> None:
    gpus_on(gpus)
    stack.plays(good())
    result = run_module(nccl_all_reduce, {"venv": str(stack.venv), "buffer_mib": 2, "devices": ["0000:99:00.0"]})
    assert result["verdict"] == "could_not_run"
    assert ("GPU_NODE_MISSING", "fail") in told(result)
    assert not list(stack.venv.glob("rank.*"))


def test_cuda_that_does_not_start(run_module: RunModule, gpus_on: Machine, stack: Stack) -> None:
    gpus_on(2).faults("error call=cuInit code=802")
    stack.plays(good())
    result = run_module(nccl_all_reduce, {"venv": str(stack.venv)})
    assert result["verdict"] == "could_not_run"
    assert "fabric manager" in detail(result, "CUDA_INIT_FAILED")


def test_other_work_on_the_gpus(run_module: RunModule, gpus_on: Machine, stack: Stack) -> None:
    machine = gpus_on(2)
    machine.file("proc/4711/comm", "server\n")
    (machine.root / "proc/4711/fd").mkdir()
    (machine.root / "proc/4711/fd/3").symlink_to("/dev/nvidia-uvm")
    stack.plays(good())
    options = {"venv": str(stack.venv), "buffer_mib": 2}
    result = run_module(nccl_all_reduce, options)
    assert (result["verdict"], told(result)) == ("could_not_run", [("GPU_BUSY", "fail")])
    assert run_module(nccl_all_reduce, {**options, "allow_busy": True})["verdict"] == "ok"


def test_a_program_that_is_no_python(reduce: Reduce, stack: Stack) -> None:
    stack.python.write_bytes(b"\x7fELF of another machine")
    result = reduce()
    assert (result["verdict"], told(result)) == ("could_not_run", [("ALL_REDUCE_NOT_RUN", "unknown")])
    assert "Exec format error" in detail(result, "ALL_REDUCE_NOT_RUN")


@pytest.mark.parametrize("last", [[{"hang": True}], nccl_error("ncclSystemError", SHM)])
def test_where_it_is_not_required_it_warns(last: Recording, reduce: Reduce, stack: Stack) -> None:
    stack.plays([*started(), *last])
    required, optional = (reduce(step_timeout_seconds=3, required=required) for required in (True, False))
    assert [severity for _id, severity in told(optional)] == ["warn"]
    assert [severity for _id, severity in told(required)] == ["fail"]
    assert optional["verdict"] == required["verdict"] != "ok"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"devices": ["gpu0"]}, "Cannot read option 'devices' on "),
        ({"buffer_mib": 0}, "Give a whole number from 1 to 4096."),
        ({"iterations": 0}, "Cannot read option 'iterations' on "),
        ({"timeout_seconds": 0}, "Cannot read option 'timeout_seconds' on "),
        ({"thresholds": {"bus_gbps": -1}}, "bus_gbps is -1.0, not a number above 0"),
        ({"environment": {"CUDA_VISIBLE_DEVICES": "0"}}, "Name the GPUs in devices by their PCI addresses"),
        ({"venv": "/nowhere"}, "Cannot start python '/nowhere/bin/python' on "),
        ({"user": "nobody-of-that-name"}, "Make the user first."),
    ],
)
def test_options_that_make_no_sense(options: dict[str, t.Any], said: str, reduce: Reduce, stack: Stack) -> None:
    result = reduce(**options)
    assert result["rc"] == 1
    assert said in result["msg"]
    assert not list(stack.venv.glob("rank.*"))
