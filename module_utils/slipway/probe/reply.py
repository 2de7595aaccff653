# SPDX-License-Identifier: GPL-3.0-or-later
"""What a server answered, taken apart: the answer, the reasoning before it, why it ended, what was counted. Pure."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

_OPEN, _CLOSE = "<think>", "</think>"


@dataclass(frozen=True)
class Said:
    """One answer. Counts are ``None`` where the server did not count. ``unclosed``: reasoning began in the answer and never ended."""

    text: str = ""
    reasoning: str = ""
    finish_reason: str = ""
    prompt_tokens: int | None = None
    cached_tokens: int | None = None
    output_tokens: int | None = None
    unclosed: bool = False
    tool_calls: bool = False


def whole(body: t.Mapping[str, t.Any]) -> Said:
    """The answer in the body of a reply. Raises ``ValueError`` where it has no message."""
    try:
        choice = body["choices"][0]
        message = choice["message"]
        content, reasoning = message.get("content"), _reasoning(message)
        calls = bool(message.get("tool_calls"))
    except (KeyError, IndexError, TypeError, AttributeError):
        raise ValueError("the reply has no message") from None
    return _said(_text(content), reasoning, choice.get("finish_reason"), calls, body.get("usage"))


def streamed(events: t.Iterable[t.Mapping[str, t.Any]]) -> Said:
    """The answer of a stream. Raises ``ValueError`` where no event had a choice, and what the events raise."""
    texts, thoughts, finish, usage, calls, any_choice = [], [], None, None, False, False
    for event in events:
        usage = event.get("usage") or usage
        for choice in (event.get("choices") or [])[:1]:
            any_choice = True
            delta = choice.get("delta") or {}
            texts.append(_text(delta.get("content")))
            thoughts.append(_reasoning(delta))
            calls = calls or bool(delta.get("tool_calls"))
            finish = choice.get("finish_reason") or finish
    if not any_choice:
        raise ValueError("the stream has no answer")
    return _said("".join(texts), "".join(thoughts), finish, calls, usage)


def has_text(event: t.Mapping[str, t.Any]) -> bool:
    """Whether an event of a stream brings something of answer or reasoning."""
    delta = ((event.get("choices") or [{}])[0] or {}).get("delta") or {}
    return bool(delta.get("content") or _reasoning(delta))


def _said(text: str, reasoning: str, finish: t.Any, calls: bool, usage: t.Any) -> Said:
    answer, inline, unclosed = split_reasoning(text)
    counts = usage if isinstance(usage, dict) else {}
    details = counts.get("prompt_tokens_details")
    return Said(
        text=answer.strip(),
        reasoning=(reasoning + inline).strip(),
        finish_reason=finish if isinstance(finish, str) else "",
        prompt_tokens=_count(counts.get("prompt_tokens")),
        cached_tokens=_count(details.get("cached_tokens")) if isinstance(details, dict) else None,
        output_tokens=_count(counts.get("completion_tokens")),
        unclosed=unclosed,
        tool_calls=calls,
    )


def split_reasoning(text: str) -> tuple[str, str, bool]:
    """Answer, reasoning that a server without a parser for it left inside, and whether that never ended.

    Some templates put the opening tag into the prompt, so that only the closing one is there.
    """
    head, closed, rest = text.rpartition(_CLOSE)
    if closed:
        return rest, re.sub(_OPEN, "", head), False
    if text.lstrip().startswith(_OPEN):
        return "", text.lstrip()[len(_OPEN) :], True
    return text, "", False


def _reasoning(message: t.Mapping[str, t.Any]) -> str:
    """SGLang and vLLM say ``reasoning_content``, later versions of vLLM ``reasoning``."""
    return _text(message.get("reasoning_content") or message.get("reasoning"))


def _text(value: t.Any) -> str:
    return value if isinstance(value, str) else ""


def _count(value: t.Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
