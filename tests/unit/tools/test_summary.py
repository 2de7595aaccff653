# SPDX-License-Identifier: GPL-3.0-or-later
"""What the demo ends with."""

from __future__ import annotations

import runpy
import typing as t
from pathlib import Path

import pytest
import report_facts as facts
from ansible.module_utils.slipway.report import content

FLEET = {"name": "demo", "api_key": "the-secret", "nodes": [{"address": "192.0.2.10"}]}


@pytest.fixture
def summary(root: Path) -> t.Callable[[dict[str, t.Any]], str]:
    tool = runpy.run_path(str(root / "tools/summary.py"))

    def of(gathered: dict[str, t.Any]) -> str:
        report = content.compose("infer1", gathered, facts.run(), [])
        return tool["summary"](report, FLEET, Path("/reports/infer1/x/report.html"), 125)

    return of


def test_each_case_has_question_answer_and_verdict(summary: t.Callable[..., str]) -> None:
    shown = summary(facts.many_findings())
    assert "answers:  3 of 4 as expected\n" in shown
    assert (
        "  ok  capital-of-japan\n      What is the capital city of Japan? Answer in one sentence.\n      > The capital city of Japan is Tokyo.\n"
    ) in shown
    assert "  NOT loops (ANSWER_LOOPS: the last 8 words are one word)\n" in shown


def test_speed_is_a_line_a_load(summary: t.Callable[..., str]) -> None:
    shown = summary(facts.healthy())
    assert (
        "speed:    at once  tokens/s  of each  first token  worst\n"
        "                1      44.8     44.8       0.21 s  0.52 s\n"
        "                4     161.2     40.3       0.21 s  0.52 s\n"
    ) in shown
    assert "report:   /reports/infer1/x/report.html   # open it in a browser\ntime:     2 min 5 s\n" in shown


def test_what_was_not_measured_is_told_so(summary: t.Callable[..., str]) -> None:
    gathered = facts.healthy()
    gathered["acceptance"]["throughput"] = None
    assert "speed:    not measured\n" in summary(gathered)
    gathered["acceptance"]["throughput"] = {"output_tokens_per_second": 80.12, "time_to_first_token_seconds": 0.1}
    assert "speed:    80.1 tokens/s for one request, the first after 0.10 s\n" in summary(gathered)


def test_no_answer_moves_the_cursor_and_no_secret_is_shown(summary: t.Callable[..., str]) -> None:
    shown = summary(facts.hostile())
    assert all(letter.isprintable() or letter == "\n" for letter in shown)
    assert FLEET["api_key"] not in shown
    assert max(len(line) for line in shown.split("Try next:")[0].splitlines() if not line.startswith("endpoint")) < 240
