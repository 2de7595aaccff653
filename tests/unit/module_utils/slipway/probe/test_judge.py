# SPDX-License-Identifier: GPL-3.0-or-later
"""Sense and nonsense, in several languages."""

from __future__ import annotations

import re
import typing as t

import pytest
from ansible.module_utils.slipway.probe import judge
from ansible.module_utils.slipway.probe.cases import Case, Turn
from ansible.module_utils.slipway.probe.reply import Said
from answers import BAD, GOOD


def fault(text: str = "", expect: str | None = None, said: dict[str, t.Any] | None = None, **case: t.Any) -> t.Any:
    turn = Turn("?", re.compile(expect, re.IGNORECASE) if expect else None)
    given = {"finish_reason": "stop", **(said or {})}
    return judge.judge(Said(text=text.strip(), **given), Case("case", (turn,), **case), turn)


@pytest.mark.parametrize("name", GOOD)
def test_a_good_answer_is_good(name: str) -> None:
    assert fault(GOOD[name]) is None


@pytest.mark.parametrize("name", BAD)
def test_a_bad_one_is_named(name: str) -> None:
    text, finding_id = BAD[name]
    found = fault(text)
    assert (found.id, found.subject, found.severity) == (finding_id, "case", "fail")
    assert len(found.detail) < 400


@pytest.mark.parametrize("name", BAD)
def test_a_bad_one_is_bad_also_where_the_expected_is_in_it(name: str) -> None:
    assert fault(BAD[name][0], expect=".*").id == BAD[name][1]


@pytest.mark.parametrize(
    ("text", "expect", "said", "case", "finding_id", "detail"),
    [
        ("It is Tokyo.", r"\btokyo\b", {}, {}, None, ""),
        ("It is Kyoto.", r"\bTokyo\b", {}, {}, "ANSWER_WRONG", r"expected something like '\bTokyo\b', got: It is Kyoto."),
        ("It is", "Tokyo", {"finish_reason": "length"}, {}, "ANSWER_CUT_SHORT", "cut off at max_tokens 64; expected something like"),
        ("It is Tokyo, and", "Tokyo", {"finish_reason": "length"}, {}, None, ""),
        ("It is Tokyo, and", "Tokyo", {"finish_reason": "length"}, {"ends": True}, "ANSWER_CUT_SHORT", "comes to no end within"),
        ("It is Tokyo.", "Tokyo", {"finish_reason": "abort"}, {}, "ANSWER_CUT_SHORT", "the server ended it as 'abort'"),
        ("It is Tokyo.", "Tokyo", {"finish_reason": ""}, {}, None, ""),
        ("Once", None, {}, {"least_characters": 50}, "ANSWER_CUT_SHORT", "4 characters, at least 50 are expected: Once"),
        (GOOD["chinese"], None, {}, {"script": "latin"}, "ANSWER_LANGUAGE", "expected is latin, it is mostly han"),
        (GOOD["chinese"], None, {}, {"script": "chinese"}, None, ""),
        (GOOD["japanese"], None, {}, {"script": "japanese"}, None, ""),
        (GOOD["korean"], None, {}, {"script": "korean"}, None, ""),
        (GOOD["fact"], None, {}, {"script": "cyrillic"}, "ANSWER_LANGUAGE", "mostly latin"),
        (GOOD["python"], None, {}, {"script": "latin"}, None, ""),
        (GOOD["number"], None, {}, {"script": "arabic"}, None, ""),
    ],
)  # fmt: skip
def test_what_was_asked_for(
    text: str, expect: str | None, said: dict[str, t.Any], case: dict[str, t.Any], finding_id: str | None, detail: str
) -> None:
    found = fault(text, expect, said, **case)
    assert (found and found.id) == finding_id
    assert detail in (found.detail if found else "")


THOUGHT = "The user asks for the capital of Japan. I know that this is Tokyo, since 1868, when the emperor moved there."


@pytest.mark.parametrize(
    ("said", "finding_id", "detail"),
    [
        ({"reasoning": THOUGHT, "finish_reason": "length", "output_tokens": 64}, "REASONING_OVER_BUDGET", "64 tokens of reasoning at max_tokens 64"),
        ({"reasoning": THOUGHT, "finish_reason": "length"}, "REASONING_OVER_BUDGET", f"{len(THOUGHT)} characters of reasoning"),
        ({"reasoning": THOUGHT, "finish_reason": "length", "unclosed": True}, "REASONING_OVER_BUDGET", "the emperor moved there."),
        ({"reasoning": THOUGHT, "finish_reason": "stop", "unclosed": True}, "ANSWER_TOKENS_LEAKED", "<think> is never closed"),
        ({"reasoning": THOUGHT, "finish_reason": "stop"}, "ANSWER_EMPTY", "it stops without an answer"),
        # What it thinks is no thought: then the budget is not what it lacks.
        ({"reasoning": "wait, no, " * 60, "finish_reason": "length"}, "ANSWER_LOOPS", "in its reasoning: it says 'wait, no,'"),
        ({"reasoning": BAD["tokens of all languages"][0], "finish_reason": "length"}, "ANSWER_INCOHERENT", "in its reasoning"),
        ({"tool_calls": True}, "ANSWER_EMPTY", "it calls a tool, although none was offered"),
        ({"output_tokens": 64, "finish_reason": "length"}, "ANSWER_EMPTY", "64 tokens were generated, and no text is in them"),
    ],
)  # fmt: skip
def test_no_answer(said: dict[str, t.Any], finding_id: str, detail: str) -> None:
    found = fault("", "Tokyo", said)
    assert found.id == finding_id
    assert detail in found.detail


def test_a_loop_is_named_and_cut_short() -> None:
    found = fault(BAD["one phrase"][0])
    assert "over and over" in found.detail
    assert "la femme au martyre" in found.detail
    assert len(found.detail) < 300


@pytest.mark.parametrize(
    ("first", "second", "share"),
    [
        ("It is Tokyo.", "it is TOKYO", 1.0),
        ("The capital of Japan is Tokyo.", "Tokyo is the capital city of Japan.", 12 / 13),
        ("It is Tokyo.", "I do not know.", 0.0),
        ("东京是首都", "首都是东京", 1.0),
        ("42", "42", 1.0),
        ("!", "?", 1.0),
    ],
)
def test_agreement(first: str, second: str, share: float) -> None:
    assert judge.agreement(first, second) == pytest.approx(share)
