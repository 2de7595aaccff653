# SPDX-License-Identifier: GPL-3.0-or-later
"""A load of streams on a server: so many at one time, each with its times and with what the server counted."""

from __future__ import annotations

import secrets
import threading
import time
import typing as t
from dataclasses import dataclass

from . import prompts, reply
from .client import Client, Unreachable

# So many tokens of each stream show that it runs; they are generated before anything is measured.
BURST_TOKENS = 4
# A refusal of a request with a field that the server does not know.
_REFUSED = (400, 422)


@dataclass(frozen=True)
class Shape:
    """What is sent: lengths in tokens, and requests that each stream sends one after the other. ``fixed`` asks for no early end."""

    model: str
    prompt_tokens: int
    output_tokens: int
    rounds: int = 1
    fixed: bool = True
    characters_per_token: float = prompts.CHARACTERS_PER_TOKEN


@dataclass(frozen=True)
class Stream:
    """One request. Times are seconds of one clock; ``first`` is of its first text, ``last`` of its last token. ``error`` in words."""

    started: float
    first: float = 0.0
    last: float = 0.0
    output_tokens: int = 0
    prompt_tokens: int = 0
    error: str = ""


def takes_fixed_length(client: Client, shape: Shape, timeout_seconds: float) -> bool:
    """Whether the server knows ``ignore_eos`` (SGLang, vLLM and llama.cpp do). Raises ``Unreachable`` where it does not answer at all."""
    for fixed in (True, False):
        request = _request(shape, BURST_TOKENS, fixed)
        try:
            list(client.stream(request, timeout_seconds))
            return fixed
        except Unreachable as error:
            if not fixed or error.status not in _REFUSED:
                raise
    raise AssertionError("not reached")


def run(
    client: Client,
    shape: Shape,
    concurrency: int,
    timeout_seconds: float,
    clock: t.Callable[[], float] = time.monotonic,
) -> list[Stream]:
    """Run the load after a short burst of the same width, which is left out: kernels for that many requests are compiled in it."""
    if concurrency > 1:
        _run(client, shape, concurrency, timeout_seconds, clock, BURST_TOKENS, rounds=1)
    return _run(client, shape, concurrency, timeout_seconds, clock, shape.output_tokens, shape.rounds)


def _run(
    client: Client,
    shape: Shape,
    concurrency: int,
    timeout_seconds: float,
    clock: t.Callable[[], float],
    output_tokens: int,
    rounds: int,
) -> list[Stream]:
    streams: list[Stream] = []
    together = threading.Barrier(concurrency)

    def one_after_the_other() -> None:
        requests = [_request(shape, output_tokens, shape.fixed) for _round in range(rounds)]
        together.wait()
        for request in requests:
            streams.append(_stream(client, request, timeout_seconds, clock))  # appending is atomic

    threads = [threading.Thread(target=one_after_the_other, daemon=True) for _number in range(concurrency)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return streams


def _stream(client: Client, request: dict[str, t.Any], timeout_seconds: float, clock: t.Callable[[], float]) -> Stream:
    started = clock()
    first = last = 0.0
    usage: dict[str, t.Any] = {}
    try:
        for event in client.stream(request, timeout_seconds):
            usage = event.get("usage") or usage
            # Tokens after the end of the text bring none (ignore_eos), and are counted all the same: they take their time too.
            if event.get("choices"):
                last = clock()
            if reply.has_text(event):
                first = first or last
    except Unreachable as error:
        return Stream(started, error=str(error))
    tokens, prompt = usage.get("completion_tokens"), usage.get("prompt_tokens")
    # With fewer than two tokens there is no time between tokens.
    if not isinstance(tokens, int) or tokens < 2 or not first or last <= first:
        return Stream(started, error=f"the server counted {tokens} tokens")
    return Stream(started, first, last, tokens, prompt if isinstance(prompt, int) else 0)


def _request(shape: Shape, output_tokens: int, fixed: bool) -> dict[str, t.Any]:
    # Another number at the head of each prompt, so that none is answered from the cache of prefixes: prefill is measured too.
    start = prompts.FIRST + secrets.randbelow(prompts.LAST - prompts.FIRST)
    text = prompts.filler(int(shape.prompt_tokens * shape.characters_per_token), start)
    return {
        "model": shape.model,
        "temperature": 0,
        "max_tokens": output_tokens,
        "messages": [{"role": "user", "content": f"{text}\n\nWrite a long story about these crates."}],
        "stream_options": {"include_usage": True},
        **({"ignore_eos": True} if fixed else {}),
    }
