# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for a task, on a clock that only sleeping moves."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.pve import tasks
from ansible.module_utils.slipway.pve.client import ApiError

UPID = "UPID:pve-2:0000ABCD:123456789:6731F2A0:vzcreate:101:root@pam!tok:"
RUNNING = {"status": "running"}
UNKNOWN = ApiError("no such task", "", 400)


def stopped(exit_status: str) -> dict[str, str]:
    return {"status": "stopped", "exitstatus": exit_status}


class Node:
    """Answers task status with these replies, the last one for ever, and counts the seconds."""

    def __init__(self, replies: list[t.Any], log: list[str]) -> None:
        self.replies = replies
        self.log = [{"n": number, "t": line} for number, line in enumerate(log, 1)]
        self.now = 0.0
        self.pauses: list[float] = []
        self.calls: list[tuple[str, str, dict[str, t.Any]]] = []

    def call(self, method: str, path: str, **arguments: t.Any) -> t.Any:
        self.calls.append((method, path, arguments))
        if path.endswith("/log"):
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


@pytest.mark.parametrize("early", [UNKNOWN, stopped("unexpected status")])
def test_what_settles_is_asked_again(early: t.Any) -> None:
    node, task = wait([early, early, stopped("OK")])
    assert task.exit_status == "OK" and len(node.pauses) == 2


def test_what_does_not_settle_is_a_failure() -> None:
    with pytest.raises(ApiError, match="no such task"):
        wait([UNKNOWN])
    with pytest.raises(ApiError, match="failed: unexpected status"):
        wait([stopped("unexpected status")])


def test_another_error_is_not_asked_again() -> None:
    with pytest.raises(ApiError, match="denied"):
        wait([ApiError("denied", "", 403), stopped("OK")])


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
