# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of scenario ``links``, played on the rig's GPUs in this process's own machine: what it expects is what the modules say."""

from __future__ import annotations

import functools
import json
import shutil
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.slipway.gpu import cuda_codes
from ansible.modules import gpu_p2p, nccl_all_reduce
from gpu import runfile
from nccl_recordings import Stack
from simulated_gpus import VERSION, SimulatedMachine

RunModule = t.Callable[..., dict[str, t.Any]]
SCENARIO = Path(__file__).resolve().parents[3] / "molecule" / "links"
LISTED = yaml.safe_load((SCENARIO / "vars/cases.yml").read_text())
RECORDED = yaml.safe_load((SCENARIO / "vars/recordings.yml").read_text())
DECLARED = yaml.safe_load((SCENARIO / "converge.yml").read_text())[0]["vars"]["declared"]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if not shutil.which("gcc"):
        pytest.skip("no C compiler here")
    folder = tmp_path_factory.mktemp("libcuda")
    runfile.compile_libcuda(folder / "libcuda.so.1", VERSION, folder / "root")
    return folder / "root", folder / "libcuda.so.1"


@pytest.fixture
def machine(library: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> SimulatedMachine:
    root, path = library
    shutil.rmtree(root, ignore_errors=True)
    for module in (gpu_p2p, nccl_all_reduce):
        monkeypatch.setattr(module, "run", functools.partial(module.run, root=str(root), library=str(path)))
    return SimulatedMachine(root, path, 8)


def test_the_list_has_all_that_the_rig_can_do() -> None:
    kinds = {line.split()[0] for case in LISTED["links_cases"] for line in case["faults"]}
    # `latency` and `occupied` are no hazards of links; calls that fail are in the second list.
    assert kinds == {
        *("dropped", "zeros", "mirror", "partial", "stale", "late", "garbage", "implausible", "hang", "error"),
        *("no-access", "false-access", "slow", "staged", "link", "collapse"),
    }


@pytest.mark.parametrize("case", LISTED["links_cases"], ids=lambda case: case["name"])
def test_each_fault_is_named(case: dict[str, t.Any], run_module: RunModule, machine: SimulatedMachine) -> None:
    machine.file("proc/driver/gpu-faults", "".join(f"{line}\n" for line in case["faults"]))
    options = {**DECLARED, "step_timeout_seconds": 5, **({"tests": case["tests"]} if "tests" in case else {})}
    result = run_module(gpu_p2p, options)
    told = [one for one in result["findings"] if (one["id"], one["subject"]) == (case["id"], case["subject"])]
    assert told, result["findings"]
    assert told[0]["severity"] == "fail"
    assert [words for words in case["says"] if words not in told[0]["detail"]] == []
    assert result["verdict"] == case["verdict"]


@pytest.mark.parametrize("case", RECORDED["links_reductions"], ids=lambda case: case["name"])
def test_each_recording_is_understood(
    case: dict[str, t.Any], run_module: RunModule, machine: SimulatedMachine, tmp_path: Path
) -> None:
    stack = Stack(tmp_path / "venv")
    (stack.venv / "recording.json").write_text(json.dumps(case["recording"]))
    options = {"devices": DECLARED["devices"], "buffer_mib": 1, "step_timeout_seconds": 5}
    result = run_module(nccl_all_reduce, {**options, "venv": str(stack.venv)})
    subject = case.get("subject", "all-reduce").replace("/var/tmp/links-stack", str(stack.venv))
    found = {(one["id"], one["subject"], one["severity"]): one["detail"] for one in result["findings"]}
    assert result["verdict"] == case["verdict"]
    assert bool(found) == ("id" in case)
    if "id" in case:
        detail = found[(case["id"], subject, case.get("severity", "fail"))]
        assert [words for words in case["says"] if words not in detail] == []


def test_each_code_of_cuinit_is_listed_with_its_cause() -> None:
    """What the modules say to each is tested with them, in ``test_cuda_start``."""
    listed = {case["code"]: case["says"] for case in LISTED["links_codes"]}
    # Those of calls about peers and kernels are no answers to cuInit.
    others = {0, 205, 217, 221, 226, 700, 704, 705, 711, 719}
    assert set(listed) == set(cuda_codes.CODES) - others
    assert {code for code, says in listed.items() if says not in cuda_codes.cause(code)} == set()
