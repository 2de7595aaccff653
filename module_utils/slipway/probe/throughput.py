# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed of one stream: time to the first token, and tokens a second after it."""

from __future__ import annotations

import time
import typing as t

from ..findings import Finding, finding
from .client import Client, Unreachable

PROMPT = "Write a long story about a ship that leaves the harbour at dawn."


def measure(
    client: Client,
    model: str,
    max_tokens: int,
    timeout_seconds: float,
    clock: t.Callable[[], float] = time.monotonic,
) -> tuple[dict[str, t.Any] | None, list[Finding]]:
    """Generate one answer and time it by the tokens that the server counted; ``None`` where that was not possible."""
    request = {
        "model": model,
        "temperature": 0,
        "max_tokens": max_tokens,
        "messages": [{"role": "user", "content": PROMPT}],
        "stream_options": {"include_usage": True},
    }
    started = clock()
    first = last = None
    tokens = None
    try:
        for event in client.stream(request, timeout_seconds):
            usage = event.get("usage")
            tokens = usage.get("completion_tokens") if isinstance(usage, dict) else tokens
            if _has_text(event):
                last = clock()
                first = last if first is None else first
    except Unreachable as error:
        return None, [finding("THROUGHPUT_UNKNOWN", client.endpoint, str(error))]
    # With fewer than two tokens there is no time between tokens.
    if first is None or last is None or not isinstance(tokens, int) or tokens < 2 or last <= first:
        return None, [finding("THROUGHPUT_UNKNOWN", client.endpoint, f"the server counted {tokens} tokens")]
    return {
        "output_tokens": tokens,
        "seconds": round(last - started, 3),
        "time_to_first_token_seconds": round(first - started, 3),
        "output_tokens_per_second": round((tokens - 1) / (last - first), 2),
    }, []


def compare(measured: dict[str, t.Any], thresholds: t.Mapping[str, float | None], subject: str) -> list[Finding]:
    """A finding where it is slower than the threshold."""
    wanted = thresholds.get("output_tokens_per_second")
    got = measured["output_tokens_per_second"]
    if wanted is None or got >= wanted:
        return []
    return [finding("THROUGHPUT_LOW", subject, f"{got} output tokens a second, at least {wanted} are expected")]


def _has_text(event: dict[str, t.Any]) -> bool:
    choices = event.get("choices") or [{}]
    delta = choices[0].get("delta") or {}
    return bool(delta.get("content") or delta.get("reasoning_content") or delta.get("reasoning"))
