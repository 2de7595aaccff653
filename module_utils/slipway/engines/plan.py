# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of ``server_plan`` to its result: the request, checked, planned by its engine. Pure."""

from __future__ import annotations

import json
import typing as t
from dataclasses import asdict

from ..errors import SlipwayError, cannot, here
from . import llamacpp, moe_config, sglang, vllm
from .server import (
    Request,
    ServerPlan,
    check_request,
    command_line,
    environment_lines,
    service_settings,
    unit_settings,
)

# A new engine is one file beside this and one line here.
ENGINES: dict[str, t.Callable[[Request], ServerPlan]] = {
    "llamacpp": llamacpp.plan,
    "sglang": sglang.plan,
    "vllm": vllm.plan,
}
DEFAULT_PORT = 8000


def plan(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The module's result. Raises ``SlipwayError`` for a request that cannot be served."""
    try:
        request = _request(params)
        check_request(request)
        made = ENGINES[request.engine](request)
        kernels = _kernels(params, request, made)
    except SlipwayError as error:
        remedy = "Correct it in the profile or the inventory"
        raise cannot("plan", f"server '{params['model_name']}'", here(), str(error), remedy) from None
    return {
        "changed": False,
        "argv": made.argv,
        "environment": made.environment,
        "unit": service_settings(request),
        "exec_start": command_line(made.argv),
        "environment_lines": environment_lines(made.environment),
        "unit_section": unit_settings(),
        "launcher": made.launcher,
        "kernels": kernels,
        "derived": [asdict(one) for one in made.derived],
        "findings": [found.as_dict() for found in made.findings],
    }


def _request(params: t.Mapping[str, t.Any]) -> Request:
    server = params["server"]
    of_task = (
        *("engine", "engine_version", "venv", "model_path", "model_name", "model_type", "host", "launcher"),
        *("api_key_file", "links"),
    )
    of_server = ("tensor_parallel", "context_length", "kv_cache_dtype", "arguments", "environment", "open_devices")
    return Request(
        **{name: params[name] for name in of_task},
        **{name: server[name] for name in of_server},
        port=next(port for port in (params["port"], server["port"], DEFAULT_PORT) if port is not None),
        devices=_device_nodes(params["gpus"]) if server["open_devices"] else (),
        gpus=tuple(params["gpus"]),
        sm=_capability(params),
    )


def _capability(params: t.Mapping[str, t.Any]) -> int | None:
    """What the GPUs say, the least of them, else what the profile is for."""
    seen = [gpu["sm"] for gpu in params["gpus"] if isinstance(gpu.get("sm"), int)]
    return min(seen) if seen else params["sm"]


def _kernels(params: t.Mapping[str, t.Any], request: Request, made: ServerPlan) -> list[dict[str, str]]:
    """Tuned settings with their places on the guest; the engine is told of their folder, and what is wrong with them is added to the findings."""
    variable = moe_config.VARIABLES.get(request.engine)
    if not params["kernels"] or not variable:
        return []
    devices = {str(gpu["name"]) for gpu in request.gpus if gpu.get("name")}
    if request.engine == "sglang" and not params["triton_version"]:
        raise SlipwayError("kernels are given without triton_version, by which SGLang finds them")
    if not params["kernels_directory"]:
        raise SlipwayError("kernels are given without kernels_directory, their folder on the guest")
    placed = []
    for file, content in sorted(params["kernels"].items()):
        text = content if isinstance(content, str) else json.dumps(content)
        made.findings.extend(moe_config.check(file, text, request.engine, request.sm, devices))
        inner = moe_config.place(request.engine, file, params["triton_version"])
        placed.append({"path": f"{params['kernels_directory']}/{inner}", "content": text})
    made.environment.setdefault(variable, params["kernels_directory"])
    return placed


def _device_nodes(gpus: list[dict[str, t.Any]]) -> tuple[str, ...]:
    """The device node of each GPU, in order. Raises ``SlipwayError`` for one that has none."""
    nodes = []
    for gpu in gpus:
        node = gpu.get("device") or gpu.get("path")
        if not isinstance(node, str) or not node.startswith("/dev/"):
            raise SlipwayError(f"GPU '{gpu.get('bus_id', gpu)}' has no device node; is its driver loaded?")
        nodes.append(node)
    return tuple(nodes)
