# SPDX-License-Identifier: GPL-3.0-or-later
"""When the speed is measured, and what is told of it otherwise."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
import yaml
from evaluate import evaluate

HOLDS = {"state": "holds", "findings": [{"id": "PROOF_HOLDS"}], "result": {"throughput": {"output_tokens": 9}}}
ABSENT = {"state": "absent", "findings": [{"id": "PROOF_ABSENT"}], "result": None}
SKIPPED = {"changed": False, "skipped": True}
IN_USE = {"throughput": None, "findings": [{"id": "SERVER_IN_USE"}]}


@pytest.fixture
def told(root: Path) -> t.Callable[..., t.Any]:
    return lambda name, **given: evaluate("{{ " + name + " }}", given, root / "roles/acceptance")


@pytest.mark.parametrize(
    ("given", "speed", "lacks"),
    [
        ({}, None, []),
        ({"__acceptance_speed_stood": HOLDS}, HOLDS, []),
        ({"__acceptance_speed_stood": ABSENT, "__acceptance_speed_kept": HOLDS}, HOLDS, []),
        # A task that is skipped leaves its mark in its variable.
        (
            {
                "__acceptance_speed_stood": ABSENT,
                "__acceptance_speed_kept": SKIPPED,
                "__acceptance_speed_measured": IN_USE,
            },
            ABSENT,
            [{"id": "SERVER_IN_USE"}],
        ),
        (
            {
                "__acceptance_speed_stood": ABSENT,
                "__acceptance_speed_kept": HOLDS,
                "__acceptance_speed_measured": HOLDS["result"],
            },
            HOLDS,
            [],
        ),
    ],
    ids=["cut short", "told", "measured", "in use", "measured and kept"],
)
def test_what_is_told(told: t.Any, given: dict[str, t.Any], speed: t.Any, lacks: list[t.Any]) -> None:
    assert told("__acceptance_speed", **given) == speed
    assert told("__acceptance_speed_lacks", **given) == lacks


@pytest.mark.parametrize(
    ("given", "fresh"),
    [
        ({}, False),
        ({"__inference_server_started": {"changed": True}}, True),
        ({"__inference_server_started": {"changed": False}}, False),
        ({"__inference_server_started": SKIPPED}, False),
    ],
)
def test_a_server_that_this_run_has_started_serves_nobody_yet(root: Path, given: dict[str, t.Any], fresh: bool) -> None:
    assert evaluate("{{ inference_server_was_started }}", given, root / "roles/inference_server") is fresh


@pytest.mark.parametrize(
    ("severities", "sensible"), [([], True), (["info", "warn"], True), (["unknown"], False), (["fail"], False)]
)
def test_only_a_model_that_talks_sense_is_timed(told: t.Any, severities: list[str], sensible: bool) -> None:
    findings = [{"severity": one} for one in severities]
    assert told("__acceptance_sensible", __acceptance_answers={"findings": findings}) is sensible


@pytest.mark.parametrize(
    ("record", "patches"),
    [('{"patches": []}', []), ('{"patches": [\n{"id": "one", "digest": "01ab"}\n]}', ["one 01ab"])],
)
def test_patches_are_named_with_their_digest(told: t.Any, record: str, patches: list[str]) -> None:
    assert told("__acceptance_patches", __acceptance_serving={"stdout_lines": ["d1", *record.splitlines()]}) == patches


def test_verify_only_looks(root: Path) -> None:
    tasks = root / "roles/acceptance/tasks"
    (rest,) = [one for one in yaml.safe_load((tasks / "verify.yml").read_text()) if one["name"] == "The rest"]
    assert rest["vars"] == {"__acceptance_verifies": True}
    (measure,) = [one for one in yaml.safe_load((tasks / "speed.yml").read_text()) if "include_tasks" in str(one)]
    (keep,) = [
        one for one in yaml.safe_load((tasks / "proof.yml").read_text()) if "result" in str(one.get("proof_record"))
    ]
    assert "not __acceptance_verifies" in measure["when"]
    assert "not __acceptance_verifies" in keep["when"]
