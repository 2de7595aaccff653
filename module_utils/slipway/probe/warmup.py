# SPDX-License-Identifier: GPL-3.0-or-later
"""The request before the first that counts: kernels are compiled in it, and it shows how long a token is in this model's eyes."""

from __future__ import annotations

import time
import typing as t
from dataclasses import dataclass

from ..findings import Finding, finding
from . import prompts, reply
from .client import Client, Unreachable

CHARACTERS = 300
OUTPUT_TOKENS = 8
# Of one token, in characters: outside of these the server has counted something else.
_PLAUSIBLE = (0.5, 12.0)


@dataclass(frozen=True)
class Warm:
    """What the request took, which no figure holds, and how many characters of the filler make a token."""

    seconds: float = 0.0
    prompt_tokens: int | None = None
    output_tokens: int | None = None
    characters_per_token: float = prompts.CHARACTERS_PER_TOKEN

    def as_dict(self) -> dict[str, t.Any]:
        """As the module returns it."""
        return {"seconds": self.seconds, "prompt_tokens": self.prompt_tokens, "output_tokens": self.output_tokens}


def warm_up(client: Client, model: str, template_tokens: int, timeout_seconds: float) -> tuple[Warm, Finding | None]:
    """Ask once. A first request was seen to run at 0.12 tokens a second (rtx6kpro, models/glm5), so it has a limit of its own.

    ``template_tokens`` are those of the chat template, which come to every prompt.
    """
    text = f"{prompts.filler(CHARACTERS, start=prompts.LAST)} Which of these was sealed?"
    request = {
        "model": model,
        "temperature": 0,
        "max_tokens": OUTPUT_TOKENS,
        "messages": [{"role": "user", "content": text}],
    }
    started = time.monotonic()
    try:
        got = client.chat(request, timeout_seconds)
        if got.status != 200:
            raise Unreachable(got.words)
        said = reply.whole(got.body)
    except (Unreachable, ValueError) as error:
        return Warm(), finding("SERVER_NOT_READY", client.endpoint, f"warm-up: {error}")
    ratio = len(text) / max(1, said.prompt_tokens - template_tokens) if said.prompt_tokens else 0.0
    known = _PLAUSIBLE[0] <= ratio <= _PLAUSIBLE[1]
    return Warm(
        round(time.monotonic() - started, 3),
        said.prompt_tokens,
        said.output_tokens,
        ratio if known else prompts.CHARACTERS_PER_TOKEN,
    ), None
