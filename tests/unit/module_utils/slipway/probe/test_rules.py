# SPDX-License-Identifier: GPL-3.0-or-later
"""Each rule by itself. What they come to together is in test_judge.py."""

from __future__ import annotations

import pytest
from ansible.module_utils.slipway.probe import characters, markup, prompts, repetition, reply, scripts, words
from answers import BAD, GOOD


def test_no_rule_sees_anything_in_a_good_answer() -> None:
    for name, text in GOOD.items():
        prose = markup.prose(text)
        assert characters.garbage_share(text) == 0, name
        assert characters.mojibake_share(text) <= 0.3, name
        assert repetition.looped_piece(text) == "", name
        assert repetition.distinct_share(text) >= 0.5, name
        assert scripts.mixed_share(prose) <= 0.1, name
        assert scripts.jumps_share(prose) <= 0.2, name
        assert words.odd_share(prose) <= 0.36, name  # a Czech tongue twister
        assert words.signs_share(prose) <= 0.55, name
        assert markup.leaked(text) == "", name


def test_an_empty_text_is_nothing_to_any_rule() -> None:
    assert (characters.garbage_share(""), characters.mojibake_share("")) == (0, 0)
    assert (repetition.looped_piece(""), repetition.distinct_share("")) == ("", 1)
    assert (scripts.share("", "latin"), scripts.mixed_share(""), scripts.jumps_share(""), scripts.most("")) == (
        1,
        0,
        0,
        "",
    )
    assert (words.odd_share(""), words.signs_share(""), markup.leaked("")) == (0, 0, "")


@pytest.mark.parametrize(
    ("text", "piece"),
    [
        ("ab " * 20, " ab"),
        ("x" * 40, "x"),
        ("x" * 39, ""),
        ("-" * 60, "-"),
        ("A long text about ships, harbours and sailors, with a rule below it.\n" + "-" * 60, ""),
        ("So it is. " * 7, None),
        ("So it is. " * 4, ""),
        ("That is a sentence of more than eighty characters, so that four times are enough for it. " * 4, None),
        ("That is a sentence of more than eighty characters, so that four times are enough for it. " * 3, ""),
        ("и так далее, " * 8, None),
        ("くりかえし、" * 10, None),
    ],
)
def test_looped_piece(text: str, piece: str | None) -> None:
    found = repetition.looped_piece(text)
    assert found == piece if piece is not None else found


@pytest.mark.parametrize(
    ("char", "script"),
    [
        *(("a", "latin"), ("é", "latin"), ("ж", "cyrillic"), ("ω", "greek"), ("ع", "arabic"), ("ש", "hebrew")),
        *(("東", "han"), ("か", "hiragana"), ("カ", "katakana"), ("ー", "katakana"), ("한", "hangul")),
        *(("ก", "thai"), ("न", "devanagari")),
        *(("5", ""), (" ", ""), ("🚀", ""), ("µ", ""), ("\U0001d465", ""), ("\uff21", "")),
    ],
)
def test_script_of_a_letter(char: str, script: str) -> None:
    assert scripts.of_letter(char) == script


@pytest.mark.parametrize(
    ("text", "script", "share"),
    [
        ("Tokyo", "latin", 1.0),
        ("42", "latin", 1.0),
        ("東京 abcd", "han", 2 / 3),
        ("東京タワー", "japanese", 1.0),
        ("서울 漢江", "korean", 1.0),
        ("Москва", "latin", 0.0),
    ],
)
def test_share_of_a_script(text: str, script: str, share: float) -> None:
    assert scripts.share(text, script) == pytest.approx(share)


@pytest.mark.parametrize(
    ("name", "known"), [("latin", True), ("japanese", True), ("georgian", True), ("klingon", False), ("", False)]
)
def test_scripts_that_a_case_may_name(name: str, known: bool) -> None:
    assert scripts.is_known(name) is known


@pytest.mark.parametrize(
    ("name", "measure", "limit"),
    [
        ("mojibake", characters.mojibake_share, 0.9),
        ("chinese mojibake", characters.mojibake_share, 0.9),
        ("replacement characters", characters.garbage_share, 0.3),
        ("mixed alphabets", lambda text: scripts.mixed_share(markup.prose(text)), 0.4),
        ("tokens of all languages", lambda text: scripts.jumps_share(markup.prose(text)), 0.8),
        ("pieces glued together", lambda text: words.odd_share(markup.prose(text)), 0.5),
        ("endless words", lambda text: words.odd_share(markup.prose(text)), 0.5),
        ("signs", lambda text: words.signs_share(markup.prose(text)), 0.9),
    ],
)
def test_a_bad_answer_is_far_beyond_the_limit(name: str, measure: object, limit: float) -> None:
    assert callable(measure)
    assert measure(BAD[name][0]) >= limit


@pytest.mark.parametrize(
    ("content", "answer", "reasoning", "unclosed"),
    [
        ("Tokyo.", "Tokyo.", "", False),
        ("<think>Hm.</think>\nTokyo.", "\nTokyo.", "Hm.", False),
        ("Hm.</think>Tokyo.", "Tokyo.", "Hm.", False),
        ("<think>Hm, and so", "", "Hm, and so", True),
        ("<think></think>Tokyo.", "Tokyo.", "", False),
        ("I think <think> is a tag.", "I think <think> is a tag.", "", False),
    ],
)
def test_reasoning_that_a_server_left_inside(content: str, answer: str, reasoning: str, unclosed: bool) -> None:
    assert reply.split_reasoning(content) == (answer, reasoning, unclosed)


def test_what_a_reply_holds() -> None:
    counted = {"prompt_tokens": 9, "completion_tokens": 4, "prompt_tokens_details": {"cached_tokens": 8}}
    message = {"content": " Tokyo. ", "reasoning_content": "Hm."}
    said = reply.whole({"choices": [{"message": message, "finish_reason": "stop"}], "usage": counted})
    assert said == reply.Said("Tokyo.", "Hm.", "stop", 9, 8, 4)
    assert (
        reply.whole({"choices": [{"message": {"content": None}, "finish_reason": None}], "usage": None}) == reply.Said()
    )
    for body in ({}, {"choices": []}, {"choices": [{}]}, {"choices": [{"message": None}]}):
        with pytest.raises(ValueError, match="the reply has no message"):
            reply.whole(body)


def test_what_a_stream_holds() -> None:
    events = [
        {"choices": [{"delta": {"role": "assistant", "content": ""}}]},
        {"choices": [{"delta": {"reasoning": "Hm."}}]},
        {"choices": [{"delta": {"content": "To"}}]},
        {"choices": [{"delta": {"content": "kyo."}, "finish_reason": "stop"}]},
        {"choices": [], "usage": {"completion_tokens": 4}},
    ]
    assert reply.streamed(events) == reply.Said("Tokyo.", "Hm.", "stop", None, None, 4)
    with pytest.raises(ValueError, match="the stream has no answer"):
        reply.streamed([{"choices": []}])


def test_filler_is_long_enough_and_says_nothing_twice() -> None:
    text = prompts.filler(20_000)
    sentences = text.split(". ")
    assert 20_000 <= len(text) < 20_100
    assert len(set(sentences)) == len(sentences)
    assert repetition.looped_piece(text) == ""
    assert prompts.filler(500) == prompts.filler(500) != prompts.filler(500, start=2001)


def test_what_is_hidden_stands_on_a_line_of_its_own_at_its_place() -> None:
    text = prompts.filler(10_000)
    for where in ("start", "middle", "end"):
        hidden = prompts.hidden(text, [("The code is 1.", prompts.place(where))])
        assert hidden.find("\nThe code is 1.\n") / len(hidden) == pytest.approx(prompts.place(where), abs=0.01)
        assert hidden.replace("\nThe code is 1.\n", " ") == text
    both = prompts.hidden(text, [("One.", 0.33), ("Two.", 0.66)])
    assert 0 < both.find("\nOne.\n") < both.find("\nTwo.\n")


def test_a_text_of_ones_own_is_cut_or_filled_up() -> None:
    assert prompts.grown("one two three", 9) == "one two"
    grown = prompts.grown("one two three", 500)
    assert grown.startswith("one two three\nCrate 1001 holds ")
    assert 500 <= len(grown) < 600
