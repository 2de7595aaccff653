# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the engines."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.modules import server_plan

ARGS: dict[str, t.Any] = {
    "engine": "llamacpp",
    "venv": "/opt/env",
    "model_path": "/srv/m.gguf",
    "model_name": "m",
    "launcher": "/opt/bin/serve",
}


def test_returns_the_plan(run_module: t.Callable[..., dict[str, t.Any]]) -> None:
    server = {"context_length": 512, "open_devices": True, "environment": {"A": "x y"}, "arguments": {"paralel": 2}}
    gpus = [{"bus_id": "0000:01:00.0", "device": "/dev/nvidia0"}, {"path": "/dev/nvidia3"}]
    result = run_module(server_plan, {**ARGS, "server": server, "gpus": gpus}, check=True)
    assert (result["rc"], result["changed"], result["launcher"]) == (0, False, "llamacpp_server.py")
    assert result["argv"][-4:] == ["--port", "8000", "--context-length", "512"]
    assert result["exec_start"].startswith("/opt/env/bin/python /opt/bin/serve --model /srv/m.gguf")
    assert result["environment"] == {"A": "x y", "PYTHONUNBUFFERED": "1"}
    assert result["environment_lines"] == ['"A=x y"', "PYTHONUNBUFFERED=1"]
    assert result["unit"]["OpenFile"] == ["/dev/nvidia0", "/dev/nvidia3"]
    assert result["unit_section"]["StartLimitBurst"] == "5"
    assert [one["id"] for one in result["findings"]] == ["FLAG_UNKNOWN"]


@pytest.mark.parametrize(("port", "used"), [(None, "8123"), (9000, "9000")])
def test_the_port_is_the_tasks_before_the_profiles(
    run_module: t.Callable[..., dict[str, t.Any]], port: int | None, used: str
) -> None:
    args = {**ARGS, "server": {"port": 8123}, **({"port": port} if port else {})}
    argv = run_module(server_plan, args)["argv"]
    assert argv[argv.index("--port") + 1] == used


@pytest.mark.parametrize(
    ("args", "cause"),
    [
        ({"port": 70000}, "port 70000 is not one of 1 to 65535"),
        ({"server": {"port": 0}}, "port 0 is not one of 1 to 65535"),
        (
            {"server": {"open_devices": True}, "gpus": [{"bus_id": "0000:01:00.0", "device": None}]},
            "GPU '0000:01:00.0' has no device node; is its driver loaded?",
        ),
    ],
)
def test_refuses(run_module: t.Callable[..., dict[str, t.Any]], args: dict[str, t.Any], cause: str) -> None:
    result = run_module(server_plan, {**ARGS, **args})
    assert result["rc"] == 1
    assert result["msg"].startswith("Cannot plan server 'm' on ")
    assert f": {cause}" in result["msg"]
    assert result["msg"].endswith("Correct it in the profile or the inventory.")


KERNEL = "E=257,N=256,device_name=NVIDIA_X,dtype=fp8_w8a8.json"
SETTING = {
    "BLOCK_SIZE_M": 64,
    "BLOCK_SIZE_N": 128,
    "BLOCK_SIZE_K": 128,
    "GROUP_SIZE_M": 1,
    "num_warps": 4,
    "num_stages": 3,
}
SGLANG = {**ARGS, "engine": "sglang", "engine_version": "0.5.9", "kernels": {KERNEL: json.dumps({"1": SETTING})}}


def test_tuned_kernels_are_placed_where_the_engine_finds_them(run_module: t.Callable[..., dict[str, t.Any]]) -> None:
    args = {**SGLANG, "kernels_directory": "/opt/k", "triton_version": "3.5.1", "gpus": [{"name": "NVIDIA X"}]}
    result = run_module(server_plan, args)
    assert result["kernels"] == [
        {"path": f"/opt/k/configs/triton_3_5_1/{KERNEL}", "content": json.dumps({"1": SETTING})}
    ]
    assert "SGLANG_MOE_CONFIG_DIR=/opt/k" in result["environment_lines"]
    assert result["findings"] == []
    (found,) = run_module(server_plan, {**args, "gpus": [{"name": "NVIDIA Y"}]})["findings"]
    assert found["id"] == "MOE_CONFIG_OTHER_GPU"


@pytest.mark.parametrize("missing", ["kernels_directory", "triton_version"])
def test_tuned_kernels_without_a_place_are_refused(run_module: t.Callable[..., dict[str, t.Any]], missing: str) -> None:
    args = {**SGLANG, "kernels_directory": "/opt/k", "triton_version": "3.5.1"}
    result = run_module(server_plan, {name: value for name, value in args.items() if name != missing})
    assert result["rc"] == 1
    assert f"kernels are given without {missing}" in result["msg"]


def test_the_capability_of_the_gpus_goes_before_the_profiles(run_module: t.Callable[..., dict[str, t.Any]]) -> None:
    args = {**SGLANG, "kernels": {}, "sm": 120, "model_type": "glm_moe_dsa"}
    assert [one["id"] for one in run_module(server_plan, {**args, "gpus": [{"sm": 90}]})["findings"]] == []
    assert "FP8_KV_UNSUPPORTED" in [one["id"] for one in run_module(server_plan, args)["findings"]]
