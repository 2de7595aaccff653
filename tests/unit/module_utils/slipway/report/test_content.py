# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
import report_facts as facts
from ansible.module_utils.slipway.report import content, sections

STOPPED = "Cannot serve on 'infer1': P2P_CORRUPT, 0000:83:00.0 -> 0000:03:00.0: Data does not arrive. Set iommu=pt."


def compose(gathered: dict[str, t.Any], **changed: t.Any) -> dict[str, t.Any]:
    return content.compose("infer1", gathered, facts.run(**changed), [])


def without(key: str, value: t.Any) -> dict[str, t.Any]:
    """A healthy host, but for one part of its proof."""
    gathered = facts.healthy()
    gathered["acceptance"][key] = value
    return gathered


def test_a_host_is_fit_that_answered_and_of_which_nothing_bad_was_found() -> None:
    report = compose(facts.healthy())
    assert (report["fit"], report["verdict"], report["outcome"]) == (True, "fit", "The run came to its end.")
    assert report["headline"] == "infer1 is fit and serves glm-5 at http://192.0.2.21:8000/v1"
    assert (report["next"], report["unproven"]) == ([], [])


@pytest.mark.parametrize(
    "gathered",
    [
        without("answers", []),
        without("answers", [facts.answer("a", "factual", "?", "no", "ANSWER_WRONG", "it is not Tokyo")]),
        without("gpus", []),
        {**facts.healthy(), "findings": [facts.finding("X", "unknown", "links", "Nobody knows.")]},
        {**facts.healthy(), "findings": [facts.finding("X", "fail", "links", "It is broken.")]},
        facts.asked(),
    ],
    ids=["no answers", "a wrong answer", "no GPU", "unknown", "failed", "nothing"],
)
def test_a_host_is_not_fit_where_something_is_missing_or_bad(gathered: dict[str, t.Any]) -> None:
    report = compose(gathered)
    assert (report["fit"], report["verdict"]) == (False, "not fit")
    assert report["headline"].startswith("infer1 is NOT fit to serve ")
    assert report["next"]


def test_a_warning_makes_nobody_unfit() -> None:
    gathered = {
        **facts.healthy(),
        "findings": [facts.finding("X", "warn", "0000:03:00.0", "Slow.", "2.5 GT/s", "Reseat it")],
    }
    report = compose(gathered)
    assert report["fit"] is True
    assert content.attention(report) == ["warn X, 0000:03:00.0: Slow. 2.5 GT/s. Reseat it."]
    assert report["next"] == ["0000:03:00.0: Reseat it"]


@pytest.mark.parametrize("host", ["infer1", "pve1"])
def test_what_ended_the_run_of_the_guest_or_of_its_node_comes_first(host: str) -> None:
    report = compose(facts.failed_links(), failures={host: [STOPPED]})
    assert report["failures"] == [{"host": host, "text": STOPPED}]
    assert report["outcome"] == f"The run ended early on {host}: what is not told below was not looked at."
    # What the sentence names is not told a second time.
    assert report["next"] == [STOPPED, "0000:84:00.0 -> 0000:03:00.0: Look for Xid in the node's kernel log."]


def test_answers_do_not_make_a_host_fit_whose_run_failed_afterwards() -> None:
    assert compose(facts.healthy(), failures={"infer1": ["Cannot do what comes last."]})["fit"] is False


def test_a_host_that_another_one_kept_from_being_looked_at_is_not_called_unfit() -> None:
    report = compose(facts.asked(), failures={"infer2": ["Cannot reach infer2: no answer."]})
    assert (report["verdict"], report["headline"], report["fit"]) == (
        "not looked at",
        "infer1 was not looked at",
        False,
    )
    assert report["outcome"] == "The run ended before it came to this host, because of infer2."
    assert report["next"] == ["Cannot reach infer2: no answer."]


def test_one_that_was_proven_before_another_failed_is_fit() -> None:
    report = compose(facts.healthy(), failures={"infer2": ["Cannot reach infer2: no answer."]})
    assert (report["fit"], report["elsewhere"]) == (True, [])


def test_what_was_changed_is_the_guests_and_its_nodes() -> None:
    run = facts.changed_run()
    run["changed"]["pve2"] = [{"role": "pve_host", "task": "Other", "on": "pve2", "count": 1}]
    report = content.compose("infer1", facts.healthy(), run, [])
    assert [(row["role"], row["on"]) for row in report["changed"]] == [
        ("pve_host", "pve1"), ("pve_host", "pve1"), ("gpu_container", "pve1"), ("inference_server", "infer1"),
    ]  # fmt: skip


def test_what_was_given_on_the_command_line_is_told_so() -> None:
    report = compose(facts.healthy(), extra_variables=["profile"])
    assert {row["what"]: row["by"] for row in report["asked"]}["Profile"] == "command line (-e)"
    assert {row["what"]: row["by"] for row in report["asked"]}["Model"] == "the profile"


def test_findings_come_by_severity_and_one_remedy_is_told_once() -> None:
    report = compose(facts.many_findings())
    severities = [one["severity"] for one in report["findings"]]
    assert severities == ["fail"] * 8 + ["unknown"] * 8 + ["warn"] * 8 + ["info"] * 8 + ["ok"] * 8
    assert len(report["next"]) == 1
    assert "package_2/module.py and 23 more: Bring the wheel's file back" in report["next"][0]


def test_the_terminal_gets_headline_links_and_what_is_wrong() -> None:
    gathered = {**facts.healthy(), "findings": [facts.finding("X", "fail", "a", "Broken.", "", "Mend it.")]}
    assert content.told(compose(gathered)) == [
        "infer1 is NOT fit to serve glm-5 at http://192.0.2.21:8000/v1",
        "Links between GPUs: proven 2026-12-01 13:00 UTC (3 hours ago). This rests on boot, kernel, command line, driver, GPUs, ACS redirect, device nodes.",
        "fail X, a: Broken. Mend it.",
    ]


def test_that_nothing_was_changed_is_no_praise_where_the_run_ended_early() -> None:
    for failures, said in (
        ({}, "Nothing: all that"),
        ({"infer1": ["Cannot."]}, "Nothing was changed until the run ended."),
    ):
        report = compose(facts.healthy(), failures=failures)
        changed = next(part for part in sections.page(report) if part["name"] == "changed")
        assert changed["blocks"][0]["text"].startswith(said)
