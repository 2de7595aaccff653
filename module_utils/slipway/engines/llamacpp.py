# SPDX-License-Identifier: GPL-3.0-or-later
"""llama.cpp from the package xllamacpp, which brings the server as a library; Slipway's launcher is its command."""

from __future__ import annotations

from ..errors import SlipwayError
from .arguments import render
from .server import Argument, Request, ServerPlan, lint, variables

LAUNCHER = "llamacpp_server.py"

# The options of the launcher, roles/inference_server/files/llamacpp_server.py.
ARGUMENTS = {
    "model": Argument("text", set_by="model_path"),
    "alias": Argument("text", set_by="model_name"),
    "host": Argument("text", set_by="host"),
    "port": Argument("count", set_by="port"),
    "context-length": Argument("count", set_by="server.context_length"),
    "api-key-file": Argument("text", set_by="api_key_file"),
    "parallel": Argument("count"),
    "threads": Argument("count"),
}


def plan(request: Request) -> ServerPlan:
    """Command line and environment. Raises ``SlipwayError`` whose message is the cause."""
    if request.tensor_parallel != 1:
        raise SlipwayError(f"tensor_parallel is {request.tensor_parallel} and llama.cpp runs on the CPU here, as one")
    if request.kv_cache_dtype != "auto":
        raise SlipwayError(f"kv_cache_dtype '{request.kv_cache_dtype}' cannot be chosen for llama.cpp here, only auto")
    if not request.launcher:
        raise SlipwayError(f"launcher is not given: the path on the guest of {LAUNCHER}")
    argv = [f"{request.venv}/bin/python", request.launcher, "--model", request.model_path]
    argv += ["--alias", request.model_name, "--host", request.host, "--port", str(request.port)]
    if request.context_length:
        argv += ["--context-length", str(request.context_length)]
    if request.api_key_file:
        argv += ["--api-key-file", request.api_key_file]
    return ServerPlan(
        argv=argv + render(request, ARGUMENTS),
        environment=variables(request, {"PYTHONUNBUFFERED": "1"}),
        findings=lint(request, ARGUMENTS),
        launcher=LAUNCHER,
    )
