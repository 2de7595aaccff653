# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for a task, on a clock that only sleeping moves."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.pve import tasks
from ansible.module_utils.slipway.pve.client import DONE, ApiError, Fate

UPID = "UPID:pve-2:0000ABCD:123456789:6731F2A0:vzcreate:101:root@pam!tok:"
RUNNING = {"status": "running"}
UNKNOWN = ApiError("no such task", "", 400)
DROPPED = ApiError("it was dropped", "", fate=Fate.OPEN)
LOCK = "can't lock file '/run/lock/lxc/pve-config-101.lock' - got timeout"


def stopped(exit_status: str) -> dict[str, str]:
    return {"status": "stopped", "exitstatus": exit_status}


class Node:
    """Answers task status with these replies, the last one for ever, and counts the seconds."""

    def __init__(self, replies: list[t.Any], log: list[str]) -> None:
        self.replies = replies
        self.log: t.Any = [{"n": number, "t": line} for number, line in enumerate(log, 1)]
        self.now = 0.0
        self.pauses: list[float] = []
        self.calls: list[tuple[str, str, dict[str, t.Any]]] = []

    def call(self, method: str, path: str, **arguments: t.Any) -> t.Any:
        self.calls.append((method, path, arguments))
        if path.endswith("/log"):
            if isinstance(self.log, Exception):
                raise self.log
            return self.log
        reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if isinstance(reply, Exception):
            raise reply
        return reply

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.now += seconds


def wait(replies: list[t.Any], log: list[str] | None = None, timeout: float = 60) -> tuple[Node, tasks.Task]:
    node = Node(replies, log or [])
    return node, tasks.wait(node, UPID, timeout, clock=lambda: node.now, sleep=node.sleep)


def test_the_node_of_the_task_is_asked_with_growing_pauses() -> None:
    node, task = wait([RUNNING] * 10 + [stopped("OK")])
    assert task == tasks.Task(UPID, "OK")
    assert {call[:2] for call in node.calls} == {("get", f"nodes/pve-2/tasks/{UPID}/status")}
    assert node.pauses[0] == 0.2 and node.pauses == sorted(node.pauses) and node.pauses[-1] == 2.0


def test_warnings_are_success() -> None:
    _, task = wait([stopped("WARNINGS: 2")], ["fine", "WARN: a", "WARN: b"])
    assert task.warnings == ("WARN: a", "WARN: b")


@pytest.mark.parametrize("early", [UNKNOWN, stopped("unexpected status"), {"status": "stopped"}])
def test_what_settles_is_asked_again(early: t.Any) -> None:
    node, task = wait([early, early, stopped("OK")])
    assert task.exit_status == "OK" and len(node.pauses) == 2


def test_what_does_not_settle_is_a_failure() -> None:
    with pytest.raises(ApiError, match="no such task"):
        wait([UNKNOWN])
    with pytest.raises(ApiError, match="failed: unexpected status"):
        wait([stopped("unexpected status")])


def test_another_error_is_not_asked_again_and_says_that_the_task_may_run() -> None:
    with pytest.raises(ApiError) as failed:
        wait([RUNNING, ApiError("denied", "Give it", 403), stopped("OK")])
    assert failed.value.cause == f"denied; the task {UPID} was started and may still run"
    assert failed.value.status == 403 and not isinstance(failed.value, tasks.TaskFailed)


def test_a_connection_that_drops_says_nothing_of_the_task() -> None:
    node, task = wait([RUNNING, *[DROPPED] * 20, ApiError("away", "", 595, Fate.UNDONE), stopped("OK")])
    assert task.exit_status == "OK" and node.now < 60


def test_a_node_that_stays_away_is_no_failed_task() -> None:
    with pytest.raises(ApiError) as late:
        wait([RUNNING, DROPPED], timeout=30)
    assert late.value.cause == (
        f"the task {UPID} has not ended within 30 seconds; whether it still runs cannot be told (it was dropped)"
    )
    assert not isinstance(late.value, tasks.TaskFailed)


def test_how_it_ended_is_told_also_without_its_log() -> None:
    node = Node([stopped("unable to create CT 101")], [])
    node.log = DROPPED
    with pytest.raises(tasks.TaskFailed, match="failed: unable to create CT 101"):
        tasks.wait(node, UPID, 60, clock=lambda: node.now, sleep=node.sleep)
    node.replies = [stopped("WARNINGS: 1")]
    assert tasks.wait(node, UPID, 60).exit_status == "WARNINGS: 1"


def test_work_that_was_found_done_has_no_task() -> None:
    assert tasks.wait(Node([], []), DONE, 60) == tasks.Task(None, "OK")


def running(replies: list[t.Any]) -> tuple[Node, list[str], tasks.Task]:
    """``tasks.run`` with a start that answers a new UPID each time."""
    node = Node(replies, [])
    sent: list[str] = []

    def send() -> str:
        sent.append(UPID.replace("ABCD", f"ABC{len(sent)}"))
        return sent[-1]

    return node, sent, tasks.run(node, send, 60, clock=lambda: node.now, sleep=node.sleep)


def test_a_task_that_came_before_the_lock_was_free_is_started_again() -> None:
    node, sent, task = running([stopped(LOCK), RUNNING, stopped(LOCK), stopped("OK")])
    assert len(sent) == 3 and task.upid == sent[-1]
    assert {method for method, _, _ in node.calls} == {"get"}


def test_another_failure_is_not_started_again() -> None:
    with pytest.raises(tasks.TaskFailed, match="startup for container '101' failed"):
        running([stopped("startup for container '101' failed"), stopped("OK")])
    with pytest.raises(ApiError, match="it still runs"):
        running([RUNNING])
    with pytest.raises(tasks.TaskFailed, match=r"tried \d+ times, the task .* failed: can't lock file"):
        running([stopped(LOCK)])


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([], None),
        ([{"upid": UPID}], UPID),
        ([{"upid": UPID, "status": "RUNNING"}], UPID),
        ([{"upid": "UPID:ended", "status": "OK", "endtime": 1}, {"upid": UPID, "status": ""}], UPID),
        ([{"upid": UPID, "status": "unable to create CT 101"}], None),
    ],
)
def test_the_task_at_work_on_a_guest(rows: list[dict[str, t.Any]], found: str | None) -> None:
    node = Node([rows], [])
    assert tasks.at_work(node, "pve-2", 101, "vzcreate") == found
    assert node.calls == [
        ("get", "nodes/pve-2/tasks", {"vmid": 101, "typefilter": "vzcreate", "source": "active"}),
    ]


def test_failure_brings_exit_status_and_the_end_of_the_whole_log() -> None:
    node = Node([stopped("unable to create CT 101")], [f"line {number}" for number in range(60)])
    with pytest.raises(ApiError) as failed:
        tasks.wait(node, UPID, 60, clock=lambda: node.now, sleep=node.sleep)
    assert "failed: unable to create CT 101" in failed.value.cause
    assert "line 59" in failed.value.cause and "line 45" in failed.value.cause and "line 44" not in failed.value.cause
    assert node.calls[-1] == ("get", f"nodes/pve-2/tasks/{UPID}/log", {"limit": 0})


def test_a_timeout_names_the_task_and_touches_nothing() -> None:
    node = Node([RUNNING], [])
    with pytest.raises(ApiError) as late:
        tasks.wait(node, UPID, 5, clock=lambda: node.now, sleep=node.sleep)
    assert late.value.cause == f"the task {UPID} has not ended within 5 seconds; it still runs"
    assert {method for method, _, _ in node.calls} == {"get"} and node.now < 8


def test_a_upid_is_found_in_raw_output() -> None:
    assert tasks.upid_of(UPID) == UPID
    assert tasks.upid_of({"errors": f'Logical volume created\n"{UPID}"\n'}) == UPID
    with pytest.raises(ApiError, match="it started no task"):
        tasks.upid_of(None)


@pytest.mark.parametrize(
    ("rows", "done", "answer"), [([{"upid": UPID}], True, UPID), ([], True, DONE), ([], False, None)]
)
def test_what_became_of_a_call_whose_answer_was_lost(rows: t.Any, done: bool, answer: t.Any) -> None:
    assert tasks.look_up(Node([rows], []), "pve-2", 101, "vzcreate", lambda: done)() == answer
