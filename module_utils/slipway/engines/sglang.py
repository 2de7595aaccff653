# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang. Its server takes an API key on its command line alone and logs its arguments, so that Slipway's launcher gives it the key."""

from __future__ import annotations

from . import released, topology
from .rules_sglang import RULES
from .server import Derived, Request, ServerPlan

ENGINE = released.Engine(
    module="sglang.launch_server",
    launcher="sglang_server.py",
    fields={
        "model_path": "model-path",
        "model_name": "served-model-name",
        "host": "host",
        "port": "port",
        "server.tensor_parallel": "tensor-parallel-size",
        "server.context_length": "context-length",
        "server.kv_cache_dtype": "kv-cache-dtype",
    },
    # Weights lie on the guest; without this, a name that is mistyped is looked for on the hub.
    environment={"HF_HUB_OFFLINE": "1"},
    rules=RULES,
)


def plan(request: Request) -> ServerPlan:
    """Command line and environment. Raises ``SlipwayError`` whose message is the cause."""
    known = released.names(request, ENGINE)
    derived = topology.nccl(request) + _numa(request)
    argv, launcher = released.command(request, ENGINE, known)
    for one in derived:
        if not one.setting.isupper():
            argv += [one.setting, *one.value.split()]
    return ServerPlan(
        argv=argv,
        environment=released.environment(request, ENGINE, derived),
        findings=released.judge(request, ENGINE, known),
        launcher=launcher,
        derived=derived,
    )


def _numa(request: Request) -> list[Derived]:
    """Each rank near its GPU. SGLang counts ranks in CUDA's order, which is that of PCI addresses only when it is told so."""
    nodes = topology.numa_nodes(request)
    if not nodes or released.given(request, "numa-node", "SGLANG_AUTO_NUMA_BIND", "CUDA_VISIBLE_DEVICES"):
        return []
    if request.environment.get("CUDA_DEVICE_ORDER", "PCI_BUS_ID") != "PCI_BUS_ID":
        return []
    words = " ".join(map(str, nodes))
    found = [
        Derived("--numa-node", words, f"the GPUs, in the order of their PCI addresses, are on NUMA nodes {words}"),
        Derived("CUDA_DEVICE_ORDER", "PCI_BUS_ID", "--numa-node counts GPUs in CUDA's order"),
        Derived(
            "SGLANG_NUMA_BIND_V2",
            "0",
            "by numactl, its default, a rank dies without a word where a container may not bind memory; by libnuma it goes on",
            "sgl-project/sglang#28401",
        ),
    ]
    return [one for one in found if one.setting not in request.environment]
