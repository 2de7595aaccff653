# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest
from ansible.module_utils.slipway.gpu import child


def test_messages_come_back_in_order() -> None:
    assert child.run(lambda emit: [emit(n) for n in ([1], {"a": None}, "x" * 100000)], 10) == child.Outcome(
        "done", [[1], {"a": None}, "x" * 100000]
    )


def test_a_hang_ends_at_the_limit_keeps_what_was_said_and_leaves_no_process(hanging: Path) -> None:
    def work(emit: child.Emit) -> None:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        emit(os.getpid())
        hanging.touch()
        time.sleep(600)

    outcome = child.run(work, 60)
    assert outcome.ended == "hung"
    with pytest.raises(ProcessLookupError):
        os.kill(outcome.messages[0], 0)


def test_the_limit_is_one_of_time() -> None:
    assert child.run(lambda emit: time.sleep(600), 0.2).ended == "hung"


def test_a_child_that_says_nothing_has_hung_before_its_time_is_over() -> None:
    def work(emit: child.Emit) -> None:
        for number in range(3):
            time.sleep(0.2)
            emit(number)
        time.sleep(600)

    began = time.monotonic()
    outcome = child.run(work, 300, silence_seconds=1.0)
    assert (outcome.ended, outcome.messages) == ("hung", [0, 1, 2]), "each word starts the time anew"
    assert 1.0 <= outcome.quiet_seconds <= time.monotonic() - began < 300


def test_a_child_that_closes_its_end_and_stays_is_hung_too() -> None:
    def work(emit: child.Emit) -> None:
        os.closerange(3, 256)
        time.sleep(600)

    assert child.run(work, 0.3).ended == "hung"


def test_a_crash_is_named() -> None:
    outcome = child.run(lambda emit: os.kill(os.getpid(), signal.SIGSEGV), 10)
    assert (outcome.ended, outcome.cause) == ("died", "SIGSEGV")


def test_an_exception_is_told_and_nothing_of_the_parent_runs_on() -> None:
    def work(emit: child.Emit) -> None:
        emit("before")
        raise OSError("no such thing")

    assert child.run(work, 10) == child.Outcome("died", ["before"], "OSError: no such thing")


def test_the_child_prints_nothing_and_holds_no_file_of_the_parent(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    def work(emit: child.Emit) -> None:
        os.write(1, b"noise")
        os.write(2, b"noise")
        emit(sorted({os.readlink(f"/proc/self/fd/{n}") for n in range(3)}))
        emit([os.path.exists(f"/proc/self/fd/{held.fileno()}"), os.getsid(0) == os.getpid()])

    with (tmp_path / "held").open("w") as held:
        assert child.run(work, 10).messages == [["/dev/null"], [False, True]]
    assert capfd.readouterr() == ("", "")


@pytest.mark.skipif(os.getuid() != 0, reason="only root can become another user")
def test_the_child_becomes_the_user_that_is_named() -> None:
    outcome = child.run(lambda emit: emit([os.getuid(), os.getgid()]), 10, "nobody")
    assert outcome.messages == [[65534, 65534]]


def test_a_user_that_does_not_exist_is_no_child() -> None:
    with pytest.raises(KeyError):
        child.run(lambda emit: emit(1), 10, "no-such-user")
