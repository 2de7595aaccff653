# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import functools
import hashlib
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.slipway import errors
from ansible.modules import gpu_host_info

RunModule = t.Callable[..., dict[str, t.Any]]
GpuMachine = t.Any  # tests/unit/conftest.py


@pytest.fixture
def on_machine(gpu_machine: GpuMachine, monkeypatch: pytest.MonkeyPatch) -> GpuMachine:
    """Let main() look at the folder instead of at this machine, with a libcuda that is not there."""
    there = {"root": str(gpu_machine.root), "library": str(gpu_machine.root / "libcuda.so.1")}
    monkeypatch.setattr(gpu_host_info, "run", functools.partial(gpu_host_info.run, **there))
    return gpu_machine


def state_of(folder: Path) -> dict[str, str]:
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "" for path in folder.rglob("*")
    }


def test_a_healthy_node(run_module: RunModule, on_machine: GpuMachine) -> None:
    result = run_module(gpu_host_info, {})
    assert (result["rc"], result["changed"], result["findings"]) == (0, False, [])
    assert result["place"] == "node"
    assert [gpu["bus_id"] for gpu in result["gpus"]] == ["0000:06:00.0", "0000:07:00.0"]
    assert result["driver"]["kernel_version"] == result["driver"]["user_version"] == "595.58.03"
    assert result["cuda"] is None


def test_the_documented_keys_are_the_returned_ones(run_module: RunModule, on_machine: GpuMachine) -> None:
    documented = yaml.safe_load(gpu_host_info.RETURN)
    result = run_module(gpu_host_info, {})
    assert set(documented) == set(result) - {"changed", "rc", "invocation", "warnings", "deprecations"}
    assert set(documented["gpus"]["contains"]) == set(result["gpus"][0])


def test_a_repeat_and_check_mode_say_the_same_and_write_nothing(run_module: RunModule, on_machine: GpuMachine) -> None:
    on_machine.drop("dev/nvidia-uvm")
    before = state_of(on_machine.root)
    results = [run_module(gpu_host_info, {}, check=check) for check in (False, False, True)]
    for result in results:
        result.pop("invocation", None)
    assert results[0] == results[1] == results[2]
    assert [found["id"] for found in results[0]["findings"]] == ["UVM_NODE_MISSING"]
    assert state_of(on_machine.root) == before


def test_an_expected_gpu_that_a_guest_did_not_get(run_module: RunModule, on_machine: GpuMachine) -> None:
    on_machine.as_guest("nvidia0", "nvidiactl", "nvidia-uvm")
    assert run_module(gpu_host_info, {})["findings"] == []
    (found,) = run_module(gpu_host_info, {"expected_gpus": ["06:00.0", "00000000:07:00.0"]})["findings"]
    assert (found["id"], found["severity"], found["subject"]) == ("GPU_NODE_MISSING", "fail", "0000:06:00.0")
    assert found["detail"] == "/dev/nvidia1 does not exist"
    assert found["remedy"]


def test_a_gpu_that_a_guest_was_not_to_get(run_module: RunModule, on_machine: GpuMachine) -> None:
    on_machine.as_guest("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm")
    (found,) = run_module(gpu_host_info, {"expected_gpus": ["07:00.0"]})["findings"]
    assert (found["id"], found["subject"]) == ("GPU_UNEXPECTED", "0000:06:00.0")


def test_cuda_is_asked_for(run_module: RunModule, on_machine: GpuMachine) -> None:
    on_machine.drop("usr/lib")
    result = run_module(gpu_host_info, {"cuda": True})
    assert result["cuda"]["result"] is None
    assert "cannot be loaded" in result["cuda"]["error"]
    assert [found["id"] for found in result["findings"]] == ["DRIVER_USERSPACE_MISSING"]


def test_a_key_is_asked_for_where_secure_boot_is_on(run_module: RunModule, on_machine: GpuMachine) -> None:
    options = {"signing": {"key": "/root/k", "certificate": "/root/c"}}
    assert run_module(gpu_host_info, options)["findings"] == []
    on_machine.file("sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c", b"\6\0\0\0\1")
    assert run_module(gpu_host_info, {})["findings"] == []
    result = run_module(gpu_host_info, options)
    assert result["secure_boot"] is True
    assert [(found["id"], found["severity"]) for found in result["findings"]] == [("SECURE_BOOT_UNSIGNED", "fail")]


def test_what_modprobe_said_is_told(run_module: RunModule, on_machine: GpuMachine) -> None:
    on_machine.drop("proc/driver", "sys/module")
    said = "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service\n"
    (found,) = run_module(gpu_host_info, {"modprobe_error": said})["findings"]
    assert (found["id"], found["detail"]) == ("SECURE_BOOT_MODULE_REFUSED", said.strip())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"expected_gpus": ["0"]},
            "Cannot read option 'expected_gpus' on guest1: '0' is not a PCI address such as 0000:01:00.0. "
            "Give PCI addresses.",
        ),
        (
            {"timeout_seconds": 0},
            "Cannot read option 'timeout_seconds' on guest1: it is below 1. Give whole seconds from 1 up.",
        ),
    ],
)
def test_options_that_make_no_sense(
    options: dict[str, t.Any], message: str, run_module: RunModule, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errors.platform, "node", lambda: "guest1")
    result = run_module(gpu_host_info, options)
    assert (result["rc"], result["msg"]) == (1, message)


def test_this_machine_whatever_it_is(run_module: RunModule) -> None:
    result = run_module(gpu_host_info, {})
    assert (result["rc"], result["changed"]) == (0, False)
    assert result["gpus"] or [found["id"] for found in result["findings"]]
