# SPDX-License-Identifier: GPL-3.0-or-later
"""Models that talk nonsense, say nothing, loop, spend their budget on reasoning or fail at long prompts, and a healthy one."""

from __future__ import annotations

import typing as t

import pytest
from ansible.modules import inference_probe
from openai_server import OpenAIServer
from stand_in_models import CASES, SICK, Healthy

Probe = t.Callable[[], dict[str, t.Any]]


@pytest.fixture
def probe(server: OpenAIServer, run_module: t.Callable[..., dict[str, t.Any]]) -> Probe:
    def run() -> dict[str, t.Any]:
        given = {"endpoint": server.endpoint, "checks": ["coherence"], "cases": CASES}
        return run_module(inference_probe, given)

    return run


def test_a_healthy_one_passes_a_hundred_times_in_a_row(server: OpenAIServer, probe: Probe) -> None:
    server.mind = Healthy()
    for _time in range(100):
        result = probe()
        assert result["findings"] == []
        assert [one["case"] for one in result["answers"] if one["passed"]] == [case["id"] for case in CASES]


@pytest.mark.parametrize("name", SICK)
def test_one_that_is_not_is_told_apart(server: OpenAIServer, probe: Probe, name: str) -> None:
    make, ids = SICK[name]
    server.mind = make()
    found = [one for one in probe()["findings"] if one["id"] != "CHECK_NOT_MADE"]
    assert ids & {one["id"] for one in found}, found
    assert {one["severity"] for one in found} == {"fail"}


def test_each_case_says_what_was_wrong(server: OpenAIServer, probe: Probe) -> None:
    server.mind = SICK["fails at long prompts"][0]()
    result = probe()
    bad = {one["case"]: one["cause"] for one in result["answers"] if not one["passed"]}
    assert bad == {
        "long": "its sentence at the start of about 600 tokens: HTTP 500 out of resource: shared memory",
        "prefix": "about 600 tokens: HTTP 500 out of resource: shared memory",
    }
    assert {one["finding"] for one in result["answers"]} == {"", "LONG_PROMPT_FAILS"}


def test_what_an_answer_holds(server: OpenAIServer, probe: Probe) -> None:
    server.mind = Healthy()
    told = {one["case"]: one for one in probe()["answers"]}
    assert {key: value for key, value in told["conversation"].items() if key not in ("seconds", "turns")} == {
        "case": "conversation",
        "kind": "conversation",
        "question": "My name is Peter.",
        "answer": "Your name is Peter.",
        "passed": True,
        "finding": "",
        "cause": "",
        "prompt_tokens": 15,
        "output_tokens": 12,
    }
    assert [(turn["note"], turn["question"]) for turn in told["conversation"]["turns"]] == [
        ("turn 1", "My name is Peter."),
        ("turn 2", "What is my name?"),
    ]
    assert [turn["note"] for turn in told["long"]["turns"]] == [
        "its sentence at the start of about 600 tokens",
        "its sentence at the end of about 600 tokens",
    ]
    assert all(450 <= turn["prompt_tokens"] <= 750 for turn in told["long"]["turns"] + told["prefix"]["turns"])
    assert [turn["note"] for turn in told["stream"]["turns"]] == ["in one piece", "streamed"]
    assert told["stream"]["turns"][1]["output_tokens"] == 7


def test_other_words_for_the_same_are_told_and_let_pass(server: OpenAIServer, probe: Probe) -> None:
    from stand_in_models import Forgets

    server.mind = Forgets("Rome is the capital city of Italy.")
    result = probe()
    (found,) = result["findings"]
    assert (found["id"], found["severity"], found["subject"]) == ("ANSWER_UNSTABLE", "info", "twice")
    assert "100% of the words are the same" in found["detail"]
    assert all(one["passed"] for one in result["answers"])


def test_a_server_that_cuts_long_prompts_proves_nothing_about_them(server: OpenAIServer, probe: Probe) -> None:
    healthy = Healthy()
    server.mind = healthy
    server.cut_at_tokens = 300
    found = probe()["findings"]
    assert [(one["id"], one["subject"], one["severity"]) for one in found] == [
        ("CHECK_NOT_MADE", "long", "unknown"),
        ("CHECK_NOT_MADE", "long", "unknown"),
        ("CHECK_NOT_MADE", "prefix", "unknown"),
        ("CHECK_NOT_MADE", "prefix", "unknown"),
    ]
    assert found[0]["detail"] == "the prompt was to have 600 tokens, the server read 300"
