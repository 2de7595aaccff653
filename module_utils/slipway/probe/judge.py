# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with an answer, by rules that a person can read. Each looks at one thing; the first that objects decides. Pure."""

from __future__ import annotations

import re
import typing as t

from ..findings import Finding, finding
from . import characters, markup, repetition, scripts, words
from .cases import Case, Turn
from .reply import Said

# Of all its characters; a good answer in any language has next to none of these.
GARBAGE_SHARE = 0.1
MOJIBAKE_SHARE = 0.5
# Half of an answer may be names and terms from elsewhere.
SCRIPT_SHARE = 0.5
# What engines say of an answer that came to its end or was cut at the length that was asked for.
ENDED = ("stop", "length", "eos", "eos_token", "stop_sequence", "tool_calls", "")


def judge(said: Said, case: Case, turn: Turn) -> Finding | None:
    """The finding about an answer, or ``None`` for a good one."""
    return (
        _unfinished_reasoning(said, case)
        or _no_text(said, case)
        or _nonsense(said.text, case)
        or _not_it(said, case, turn)
    )


def _unfinished_reasoning(said: Said, case: Case) -> Finding | None:
    """It reasoned until its tokens were spent: no fault of its mind, as long as the reasoning itself makes sense."""
    if said.text or not said.reasoning:
        return None
    odd = _nonsense(said.reasoning, case)
    if odd:
        return finding(odd.id, case.id, f"in its reasoning: {odd.detail}")
    spent = f"{said.output_tokens} tokens" if said.output_tokens else f"{len(said.reasoning)} characters"
    if said.finish_reason == "length":
        detail = f"{spent} of reasoning at max_tokens {case.max_tokens} and no answer: ...{_end(said.reasoning)}"
        return finding("REASONING_OVER_BUDGET", case.id, detail)
    if said.unclosed:
        return finding("ANSWER_TOKENS_LEAKED", case.id, f"<think> is never closed: {excerpt(said.reasoning)}")
    return finding("ANSWER_EMPTY", case.id, f"{spent} of reasoning, and it stops without an answer")


def _no_text(said: Said, case: Case) -> Finding | None:
    if said.text:
        return None
    if said.tool_calls:
        return finding("ANSWER_EMPTY", case.id, "it calls a tool, although none was offered")
    if said.output_tokens and said.output_tokens > 1:
        return finding("ANSWER_EMPTY", case.id, f"{said.output_tokens} tokens were generated, and no text is in them")
    return finding("ANSWER_EMPTY", case.id)


def _nonsense(text: str, case: Case) -> Finding | None:
    """Whether it is language at all, whatever it says."""
    soup = characters.garbage_share(text)
    if soup > GARBAGE_SHARE:
        return finding("ANSWER_INCOHERENT", case.id, f"{soup:.0%} of its characters are no text: {excerpt(text)}")
    token = markup.leaked(text)
    if token:
        return finding("ANSWER_TOKENS_LEAKED", case.id, f"{token} in: {excerpt(text)}")
    piece = repetition.looped_piece(text)
    if piece:
        return finding(
            "ANSWER_LOOPS", case.id, f"it says '{' '.join(piece.split())[:60]}' over and over: {excerpt(text)}"
        )
    distinct = repetition.distinct_share(text)
    if distinct < repetition.DISTINCT_SHARE:
        detail = f"only {distinct:.0%} of its sequences of four words differ: {excerpt(text)}"
        return finding("ANSWER_LOOPS", case.id, detail)
    cause = _soup(text)
    return finding("ANSWER_INCOHERENT", case.id, f"{cause}: {excerpt(text)}") if cause else None


def _soup(text: str) -> str:
    """Why the text is a soup of letters, in words; empty where it is none."""
    misread = characters.mojibake_share(text)
    if misread > MOJIBAKE_SHARE:
        return f"{misread:.0%} of its letters beyond ASCII are UTF-8 read as something else"
    prose = markup.prose(text)
    measures = (
        (scripts.mixed_share(prose), scripts.MIXED_SHARE, "of its words mix alphabets"),
        (scripts.jumps_share(prose), scripts.JUMPS_SHARE, "of its words follow upon one of another script"),
        (words.odd_share(prose), words.ODD_SHARE, "of its words are none (too long, without vowels, capitals inside)"),
        (words.signs_share(prose), words.SIGNS_SHARE, "of it is signs"),
    )
    salad = "it is words in no order, glued together and without signs" if words.is_salad(prose) else ""
    return next((f"{share:.0%} {what}" for share, limit, what in measures if share > limit), salad)


def _not_it(said: Said, case: Case, turn: Turn) -> Finding | None:
    """Sense it makes; is it what was asked for?"""
    text = said.text
    if case.script and scripts.share(markup.prose(text), case.script) < SCRIPT_SHARE:
        detail = f"expected is {case.script}, it is mostly {scripts.most(markup.prose(text))}: {excerpt(text)}"
        return finding("ANSWER_LANGUAGE", case.id, detail)
    cut = said.finish_reason == "length"
    if turn.expect and not turn.expect.search(text):
        told = f"expected something like '{turn.expect.pattern}', got: {excerpt(text)}"
        if cut:
            return finding("ANSWER_CUT_SHORT", case.id, f"cut off at max_tokens {case.max_tokens}; {told}")
        return finding("ANSWER_WRONG", case.id, told)
    if len(text) < case.least_characters:
        detail = f"{len(text)} characters, at least {case.least_characters} are expected: {excerpt(text)}"
        return finding("ANSWER_CUT_SHORT", case.id, detail)
    if case.ends and cut:
        detail = f"it comes to no end within max_tokens {case.max_tokens}: ...{_end(text)}"
        return finding("ANSWER_CUT_SHORT", case.id, detail)
    if said.finish_reason not in ENDED:
        return finding("ANSWER_CUT_SHORT", case.id, f"the server ended it as '{said.finish_reason}': {excerpt(text)}")
    return None


def agreement(first: str, second: str) -> float:
    """How many words two answers share, 0 to 1, in whatever order (Dice's coefficient)."""
    one, other = (
        re.findall(r"\w", text) if _dense(text) else re.findall(r"\w+", text) for text in _folded(first, second)
    )
    if not one and not other:
        return 1.0
    rest = list(other)
    shared = 0
    for word in one:
        if word in rest:
            rest.remove(word)
            shared += 1
    return 2 * shared / (len(one) + len(other))


def _folded(*texts: str) -> t.Iterator[str]:
    return (text.casefold() for text in texts)


def _dense(text: str) -> bool:
    return scripts.most(text) in ("han", "hiragana", "katakana", "thai")


def excerpt(text: str) -> str:
    """The beginning, on one line."""
    flat = " ".join(text.split())
    return flat if len(flat) <= 160 else flat[:157] + "..."


def _end(text: str) -> str:
    return " ".join(text.split())[-80:]
