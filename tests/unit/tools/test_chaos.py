# SPDX-License-Identifier: GPL-3.0-or-later
"""tools/chaos.py: where it kills, what dies, and what it calls good. ansible-playbook is a shell script here."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
import typing as t
from pathlib import Path

import pytest

PATH = Path(__file__).parents[3] / "tools/chaos.py"
spec = importlib.util.spec_from_file_location("chaos", PATH)
assert spec
assert spec.loader
chaos = importlib.util.module_from_spec(spec)
sys.modules["chaos"] = chaos
spec.loader.exec_module(chaos)


def test_moments_are_repeatable_and_in_order() -> None:
    chosen = chaos.moments([1.0] * 100, 20, 7)
    assert chosen == chaos.moments([1.0] * 100, 20, 7)
    assert chosen != chaos.moments([1.0] * 100, 20, 8)
    # One in each twentieth of a journey of equal tasks.
    assert [(moment.title - 1) // 5 for moment in chosen] == list(range(20))
    assert {moment.whole for moment in chosen} == {True, False}


def test_moments_lie_within_their_task() -> None:
    durations = [0.5, 60.0, 0.5, 0.5, 3.0]
    for seed in range(50):
        for moment in chaos.moments(durations, 8, seed):
            assert 1 <= moment.title <= 5
            assert 0 <= moment.delay_seconds <= durations[moment.title - 1]


def test_long_tasks_are_hit_more_often_and_short_ones_too() -> None:
    durations = [1.0] * 49 + [51.0]
    titles = [moment.title for moment in chaos.moments(durations, 20, 1)]
    assert titles.count(50) == 5  # half of the weight by time, of which it has half
    assert len(set(titles)) >= 14


@pytest.fixture
def playbook(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> t.Callable[[str], Path]:
    """Put a shell script in the place of ansible-playbook; returns the file for a run's output."""

    def write(script: str) -> Path:
        program = tmp_path / "bin/ansible-playbook"
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        return tmp_path / "log"

    return write


# The second title appears when a helper with a session of its own is at work, as Ansible's workers are.
JOURNEY = """
echo 'TASK [one] ****'
setsid sh -c 'sleep 60 & echo "TASK [role : two] ****"; wait' &
sleep 60
echo 'TASK [three] ****'
"""


@pytest.mark.parametrize("whole", [False, True])
def test_kill(playbook: t.Callable[[str], Path], whole: bool) -> None:
    log = playbook(JOURNEY)
    with chaos.Run("none", log) as run:
        assert run.kill_at(chaos.Moment(2, 0.0, whole)) == "role : two"
        started = len(run.left)
        assert started >= 2  # the helper and its sleep; the main process may not have begun its own yet
        assert len(alive(run, at_most=0 if whole else started)) == (0 if whole else started)
    assert alive(run, at_most=0) == []
    assert "TASK [role : two]" in log.read_text()
    assert "three" not in log.read_text()


def alive(run: t.Any, at_most: int) -> list[int]:
    """What is left of a run, once it is no more than this: a killed process needs a moment to go."""
    deadline = time.monotonic() + 30
    while True:
        found = [pid for pid, started in run.left if (chaos.identity(pid) or (0, ""))[1] == started]
        if len(found) <= at_most or time.monotonic() > deadline:
            return found
        time.sleep(0.02)


def test_the_next_title_ends_the_wait(playbook: t.Callable[[str], Path]) -> None:
    log = playbook("echo 'TASK [one] ***'; sleep 0.2; echo 'TASK [two] ***'; sleep 60")
    began = time.monotonic()
    with chaos.Run("none", log) as run:
        assert run.kill_at(chaos.Moment(1, 50.0, True)) == "two"
    assert time.monotonic() - began < 40


def test_a_run_that_ends_before_its_moment_was_not_killed(playbook: t.Callable[[str], Path]) -> None:
    log = playbook("echo 'TASK [one] ***'; exit 0")
    with chaos.Run("none", log) as run:
        assert run.kill_at(chaos.Moment(2, 0.0, True)) is None


def test_recap_and_durations(playbook: t.Callable[[str], Path]) -> None:
    log = playbook(
        "echo 'TASK [one] ***'\n"
        "sleep 0.3\n"
        "echo 'RUNNING HANDLER [two] ***'\n"
        "echo 'PLAY RECAP ***'\n"
        "echo 'infer1                     : ok=82   changed=26   unreachable=0    failed=0    skipped=5'\n"
        "echo 'node1                      : ok=31   changed=8    unreachable=0    failed=1    skipped=7'\n"
        "exit 2"
    )
    with chaos.Run("none", log) as run:
        assert run.finish() == 2
    assert [title for title, _ in run.titles] == ["one", "two"]
    assert len(run.durations()) == 2
    assert run.durations()[0] >= 0.2
    assert run.changed() == {"infer1": 26, "node1": -1}


MOMENT = chaos.Moment(3, 0.5, True)


@pytest.mark.parametrize(
    ("outcome", "good"),
    [
        (chaos.Outcome(MOMENT, "t", 0, True, 0, {"a": 0, "b": 0}), True),
        (chaos.Outcome(MOMENT, None, 0, True, 0, {"a": 0}), False),
        (chaos.Outcome(MOMENT, "t", 2, True, 0, {"a": 0}), False),
        (chaos.Outcome(MOMENT, "t", 0, False, 0, {"a": 0}), False),
        (chaos.Outcome(MOMENT, "t", 0, True, 2, {"a": 0}), False),
        (chaos.Outcome(MOMENT, "t", 0, True, 0, {"a": 0, "b": 1}), False),
        (chaos.Outcome(MOMENT, "t", 0, True, 0, {"a": -1}), False),
        (chaos.Outcome(MOMENT, "t", 0, True, 0, {}), False),
    ],
)
def test_what_is_good(outcome: t.Any, good: bool) -> None:
    assert outcome.good is good
    assert outcome.row()[-1] == ("good" if good else "FAILED")


@pytest.mark.parametrize(("verdict", "status"), [(True, 0), (False, 1)])
def test_kill_says_when_it_missed(
    playbook: t.Callable[[str], Path], capsys: pytest.CaptureFixture[str], verdict: bool, status: int
) -> None:
    log = playbook('for i in 1 2 3 4 5 6; do echo "TASK [t$i] ***"; done' + ("; sleep 60" if verdict else ""))
    assert chaos.chaos_kill("none", 2, 1, 6, log, []) == status
    assert ("the run ended before" in capsys.readouterr().out) is not verdict
