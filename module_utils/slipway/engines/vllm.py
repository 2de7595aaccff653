# SPDX-License-Identifier: GPL-3.0-or-later
"""vLLM. Its server takes an API key from its environment; Slipway's launcher puts it there in the server's own process, not in the unit."""

from __future__ import annotations

from . import released, topology
from .rules_vllm import RULES
from .server import Request, ServerPlan

ENGINE = released.Engine(
    module="vllm.entrypoints.openai.api_server",
    launcher="vllm_server.py",
    fields={
        "model_path": "model",
        "model_name": "served-model-name",
        "host": "host",
        "port": "port",
        "server.tensor_parallel": "tensor-parallel-size",
        "server.context_length": "max-model-len",
        "server.kv_cache_dtype": "kv-cache-dtype",
    },
    # Weights lie on the guest; nothing of it is sent anywhere, or looked for on the hub.
    environment={"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"},
    rules=RULES,
)


def plan(request: Request) -> ServerPlan:
    """Command line and environment. Raises ``SlipwayError`` whose message is the cause."""
    known = released.names(request, ENGINE)
    derived = topology.nccl(request)
    argv, launcher = released.command(request, ENGINE, known)
    return ServerPlan(
        argv=argv,
        environment=released.environment(request, ENGINE, derived),
        findings=released.judge(request, ENGINE, known),
        launcher=launcher,
        derived=derived,
    )
