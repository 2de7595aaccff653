# SPDX-License-Identifier: GPL-3.0-or-later
"""Coherence: does the model say what it must, and does it talk sense. Judged by rules that a person can read."""

from __future__ import annotations

import re
import time
import typing as t
import unicodedata
from dataclasses import dataclass

from ..findings import Finding, finding
from .client import Client, Unreachable

# A text counts as a loop when its end is one piece, said this often in a row.
REPEATS = 6
# Of all its characters; a good answer in any language has next to none of these.
GARBAGE_SHARE = 0.1


@dataclass(frozen=True)
class Case:
    """One question. Without ``expect`` the answer is only judged for sense."""

    id: str
    prompt: str
    expect: re.Pattern[str] | None
    max_tokens: int


def ask(client: Client, model: str, case: Case, timeout_seconds: float) -> tuple[dict[str, t.Any], list[Finding]]:
    """Put one question at temperature 0; the answer as the module returns it, with what is wrong with it."""
    request = {
        "model": model,
        "temperature": 0,
        "max_tokens": case.max_tokens,
        "messages": [{"role": "user", "content": case.prompt}],
    }
    started = time.monotonic()
    text = ""
    try:
        reply = client.chat(request, timeout_seconds)
        if reply.status == 200:
            text, fault = _judge_body(reply.body, case)
        else:
            fault = finding("ANSWER_MISSING", case.id, reply.words)
    except Unreachable as error:
        fault = finding("ANSWER_MISSING", case.id, str(error))
    answer = {
        "case": case.id,
        "question": case.prompt,
        "answer": text,
        "passed": fault is None,
        "seconds": round(time.monotonic() - started, 3),
    }
    return answer, [fault] if fault else []


def _judge_body(body: dict[str, t.Any], case: Case) -> tuple[str, Finding | None]:
    try:
        choice = body["choices"][0]
        message = choice["message"]
        text = (message.get("content") or "").strip()
    except (KeyError, IndexError, TypeError, AttributeError):
        return "", finding("ANSWER_MISSING", case.id, "the reply has no message")
    reasoning = message.get("reasoning_content") or message.get("reasoning") or ""
    if not text and reasoning and choice.get("finish_reason") == "length":
        detail = f"{len(reasoning)} characters of reasoning and no answer"
        return "", finding("REASONING_OVER_BUDGET", case.id, detail)
    return text, judge(text, case)


def judge(text: str, case: Case) -> Finding | None:
    """What is wrong with an answer, or ``None`` for a good one."""
    if not text.strip():
        return finding("ANSWER_EMPTY", case.id)
    soup = garbage_share(text)
    if soup > GARBAGE_SHARE:
        detail = f"{soup:.0%} of its characters are no text: {excerpt(text)}"
        return finding("ANSWER_INCOHERENT", case.id, detail)
    piece = repeated_piece(text)
    if piece:
        detail = f"it says '{piece.strip()[:60]}' over and over: {excerpt(text)}"
        return finding("ANSWER_INCOHERENT", case.id, detail)
    if case.expect and not case.expect.search(text):
        detail = f"expected something like '{case.expect.pattern}', got: {excerpt(text)}"
        return finding("ANSWER_WRONG", case.id, detail)
    return None


def garbage_share(text: str) -> float:
    """Share of characters that no language has: replacement, control, unassigned and private ones."""
    return sum(1 for char in text if char == "\ufffd" or _is_odd(char)) / len(text)


def _is_odd(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cn", "Co", "Cs") and char not in "\n\t\r"


def repeated_piece(text: str) -> str:
    """What the end of the text says ``REPEATS`` times in a row or more often; empty where it does not loop.

    A rule of dashes or dots is no loop as long as it is short; one character must fill forty places.
    """
    match = re.search(rf"((.{{1,80}}?)\2{{{REPEATS - 1},}}).{{0,80}}$", text.strip(), re.DOTALL)
    if not match or not match.group(2).strip() or len(match.group(1)) < 40:
        return ""
    return match.group(2)


def excerpt(text: str) -> str:
    """The beginning, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 160 else flat[:157] + "..."
