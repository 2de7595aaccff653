# SPDX-License-Identifier: GPL-3.0-or-later
"""The module around the engines."""

from __future__ import annotations

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
