# SPDX-License-Identifier: GPL-3.0-or-later
"""Each reason for which CUDA does not start (the codes that cuInit gives, and what shows in its place): the finding that names it.

The codes are those of the reference's table of errors; the rig's libcuda answers them as a driver would. ``gpu_host_info``, which looks at a
machine, and ``gpu_p2p``, which would prove its links, must say the same.
"""

from __future__ import annotations

import functools
import typing as t

import pytest
from ansible.modules import gpu_host_info, gpu_p2p
from simulated_gpus import SimulatedMachine

RunModule = t.Callable[..., dict[str, t.Any]]
Machine = t.Callable[..., SimulatedMachine]
Ask = t.Callable[[t.Any], list[dict[str, t.Any]]]
MODULES = [gpu_host_info, gpu_p2p]
OPTIONS = {gpu_host_info: {"cuda": True}, gpu_p2p: {"buffer_mib": 2, "tests": ["integrity"]}}
# By code: its name in cuda.h, and what the cause must name.
CODES = {
    1: ("INVALID_VALUE", "an argument"),
    2: ("OUT_OF_MEMORY", "held by another process"),
    3: ("NOT_INITIALIZED", "HMM"),
    34: ("STUB_LIBRARY", "stub"),
    46: ("DEVICE_UNAVAILABLE", "compute mode"),
    100: ("NO_DEVICE", "/dev/nvidia<N>"),
    101: ("INVALID_DEVICE", "only some of the device nodes"),
    214: ("ECC_UNCORRECTABLE", "cannot correct"),
    304: ("OPERATING_SYSTEM", "refused"),
    800: ("NOT_PERMITTED", "not permit"),
    801: ("NOT_SUPPORTED", "does not have the call"),
    802: ("SYSTEM_NOT_READY", "fabric manager"),
    803: ("SYSTEM_DRIVER_MISMATCH", "another version than the node's kernel module"),
    804: ("COMPAT_NOT_SUPPORTED_ON_DEVICE", "forward-compatibility"),
    **dict.fromkeys(range(805, 811), ("MPS_", "MPS")),
    909: ("TIMEOUT", "gave up waiting"),
    919: ("", "fabric is not ready"),
    999: ("UNKNOWN", "/dev/nvidia-uvm is missing, has a stale major number, or is denied"),
}


@pytest.fixture
def ask(run_module: RunModule) -> Ask:
    """What a module finds that fails or is unknown."""

    def run(module: t.Any) -> list[dict[str, t.Any]]:
        result = run_module(module, OPTIONS[module])
        assert result["rc"] == 0
        assert result.get("verdict", "could_not_run") == "could_not_run"
        return [found for found in result["findings"] if found["severity"] in ("fail", "unknown")]

    return run


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize("code", CODES)
def test_each_code_of_cuinit_has_its_cause_and_a_remedy(code: int, module: t.Any, ask: Ask, gpus_on: Machine) -> None:
    gpus_on(2).faults(f"error call=cuInit code={code}")
    told = next(one for one in ask(module) if one["id"] == "CUDA_INIT_FAILED")
    name, cause = CODES[code]
    assert (told["severity"], told["subject"]) == ("fail", "CUDA")
    assert f"cuInit returned {code} (CUDA" in told["detail"]
    assert name in told["detail"]
    assert cause in told["detail"]
    assert told["remedy"]


def on_disk(name: str, text: str | None) -> t.Callable[[SimulatedMachine], None]:
    def change(machine: SimulatedMachine) -> None:
        if text is not None:
            machine.file(name, text)
        else:
            (machine.root / name).unlink()

    return change


MAJOR = "Character devices:\n  1 nvidia\n  1 nvidiactl\n511 nvidia-uvm\n\nBlock devices:\n"
OTHER = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  590.48.01  Release\n"
# What is wrong with the machine, and the finding that must name it: what no code tells apart.
CAUSES = {
    "HMM is on": (on_disk("sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "N\n"), "HMM_CONFLICT", "uvm_disable_hmm"),
    "no uvm node": (on_disk("dev/nvidia-uvm", None), "UVM_NODE_MISSING", "/dev/nvidia-uvm"),
    "a stale uvm node": (on_disk("proc/devices", MAJOR), "UVM_NODE_STALE", "/dev/nvidia-uvm"),
    "no control node": (on_disk("dev/nvidiactl", None), "GPU_NODE_MISSING", "/dev/nvidiactl"),
    "no driver": (on_disk("proc/driver/nvidia/version", None), "DRIVER_NOT_LOADED", "driver"),
}  # fmt: skip


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
@pytest.mark.parametrize("name", CAUSES)
def test_what_no_code_tells_apart(name: str, module: t.Any, ask: Ask, gpus_on: Machine) -> None:
    change, fault, subject = CAUSES[name]
    change(gpus_on(2))
    assert (fault, subject) in [(one["id"], one["subject"]) for one in ask(module)]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_no_library(module: t.Any, ask: Ask, gpus_on: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    gpus_on(2)
    monkeypatch.setattr(module, "run", functools.partial(module.run, library="libcuda-that-is-not-here.so.1"))
    told = {one["id"]: one for one in ask(module)}
    assert "DRIVER_USERSPACE_MISSING" in told
    assert "CUDA_INIT_FAILED" not in told, "it is told once, by its cause"
