# SPDX-License-Identifier: GPL-3.0-or-later
"""A user's own cases: read on the controller, and refused with one sentence before anything is asked."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible.modules import probe_cases_info

Run = t.Callable[..., dict[str, t.Any]]
JAPAN = {"id": "japan", "prompt": "What is the capital city of Japan?", "expect": "Tokyo"}


def test_a_profile_s_cases_and_those_of_a_folder(run_module: Run, tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text("cases:\n- {id: two, prompt: Two}\n")
    (tmp_path / "a.yml").write_text("- {id: one, kind: long_prompt, tokens: 600, file: book.txt, prompt: Who}\n")
    (tmp_path / "book.txt").write_text("It was a dark night.")
    (tmp_path / "notes.md").write_text("not a case")
    result = run_module(probe_cases_info, {"cases": [JAPAN], "files": [str(tmp_path)]})
    assert (result["rc"], result["changed"], result["findings"]) == (0, False, [])
    assert result["cases"] == [
        JAPAN,
        {"id": "one", "kind": "long_prompt", "tokens": 600, "prompt": "Who", "text": "It was a dark night."},
        {"id": "two", "prompt": "Two"},
    ]
    assert result["files"] == [str(tmp_path / "a.yml"), str(tmp_path / "b.yml")]


def test_a_question_in_a_file(run_module: Run, tmp_path: Path) -> None:
    (tmp_path / "a.yml").write_text("- {id: one, file: question.txt}\n")
    (tmp_path / "question.txt").write_text("Why?")
    result = run_module(probe_cases_info, {"files": [str(tmp_path / "a.yml")]})
    assert result["cases"] == [{"id": "one", "prompt": "Why?"}]


@pytest.mark.parametrize(
    ("content", "part"),
    [
        ("[", "is no YAML"),
        ("just words", "holds no list of cases"),
        ("[]", "holds no list of cases"),
        ("- words", "a case is no dictionary: words"),
        ("- {prompt: Why}", "a case has no id"),
        ("- {id: one, promt: Why}", "case 'one' has 'promt', which is none of agreement, at, ends, expect"),
        ("- {id: one, kind: conversation, turns: [{prompt: a, exect: b}]}", "case 'one' has 'exect', which is none of"),
        ("- {id: one}", "case 'one': it has no prompt"),
        ("- {id: one, prompt: Why, file: book.txt}", "case 'one' has prompt and a file for it"),
        ("- {id: one, file: book.txt}", "case 'one': its file"),
        ("- {id: japan, prompt: Why}", "two cases have the id 'japan'"),
        ("- {id: one, prompt: a, expect: '('}", "case 'one': expect '(' is no regular expression"),
        ("- {id: one, prompt: a, kind: riddle}", "case 'one': kind 'riddle' is none of factual, reasoning"),
        ("- {id: one, prompt: a, script: klingon}", "case 'one': script 'klingon' is unknown"),
        ("- {id: one, prompt: a, max_tokens: 0}", "case 'one': max_tokens '0' is no whole number from 1 up"),
        (
            "- {id: one, prompt: a, tokens: 600}",
            "case 'one': tokens, text and needle are for long_prompt and cached_prefix",
        ),
        ("- {id: one, prompt: a, kind: long_prompt}", "case 'one': tokens '0' is no whole number from 1 up"),
        (
            "- {id: one, prompt: a, kind: long_prompt, tokens: 9, at: top}",
            "case 'one': at 'top' is none of start, middle",
        ),
        ("- {id: one, kind: conversation, prompt: a}", "case 'one': kind conversation has turns in place of a prompt"),
        ("- {id: one, kind: conversation, turns: [{prompt: a}]}", "case 'one': kind conversation needs at least two"),
        ("- {id: one, turns: [{prompt: a}], prompt: b}", "case 'one': kind factual has a prompt and no turns"),
        (
            "- {id: one, kind: cached_prefix, tokens: 9, turns: [{prompt: a, expect: b}, {prompt: c}]}",
            "case 'one': each of its turns needs expect",
        ),
        ("- {id: one, kind: same_twice, prompt: a, agreement: 2}", "case 'one': agreement '2' is no share from 0 to 1"),
    ],
)
def test_refused_with_one_sentence(run_module: Run, tmp_path: Path, content: str, part: str) -> None:
    path = tmp_path / "mine.yml"
    path.write_text(content)
    result = run_module(probe_cases_info, {"cases": [JAPAN], "files": [str(path)]})
    assert result["rc"] == 1
    assert result["msg"].startswith("Cannot use the cases of the coherence check on ")
    assert part in result["msg"]
    assert result["msg"].endswith(" Correct it.")


def test_a_file_that_is_not_there(run_module: Run, tmp_path: Path) -> None:
    result = run_module(probe_cases_info, {"files": [str(tmp_path / "none.yml")]})
    assert f"file '{tmp_path}/none.yml': No such file or directory" in result["msg"]
    empty = run_module(probe_cases_info, {"files": [str(tmp_path)]})
    assert f"folder '{tmp_path}' has no file *.yml" in empty["msg"]
