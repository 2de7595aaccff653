# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a server have somebody to serve at this moment, by its own figures."""

from __future__ import annotations

import re

from .client import Client, Unreachable

# Requests that run or wait, as vLLM, SGLang (with --enable-metrics) and llama.cpp (with its metrics endpoint) call them.
_GAUGES = re.compile(
    r"^(?:vllm:num_requests_(?:running|waiting)|sglang:num_(?:running|queue)_reqs|llamacpp:requests_(?:processing|deferred))"
    r"(?:\{[^}]*\})?\s+([0-9.eE+]+)",
    re.MULTILINE,
)
_QUICK_SECONDS = 10


def requests(client: Client) -> int | None:
    """How many requests run or wait; ``None`` where the server does not say."""
    try:
        reply = client.metrics(_QUICK_SECONDS)
    except Unreachable:
        return None
    found = _GAUGES.findall(reply.text) if reply.status == 200 else []
    return round(sum(map(float, found))) if found else None
