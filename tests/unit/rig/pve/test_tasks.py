# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import io
import json
import os
import typing as t

import pytest
from pve import snapshots, tasks, worker
from pve.errors import died
from pve.node import Node


def _start(node: Node, work: t.Callable[..., None]) -> tasks.Task:
    return tasks.Task(node, tasks.start(node, "vzstart", 101, "slipway@pve!deploy", work, {}))


def test_log_pages(node: Node) -> None:
    task = _start(node, lambda node, say, vmid: [say(f"line {n}") for n in range(1, 61)] and None)
    assert task.lines(0, 2) == [{"n": 1, "t": "line 1"}, {"n": 2, "t": "line 2"}]
    assert task.lines(60, 50) == [{"n": 61, "t": "TASK OK"}]
    assert len(task.lines(0, 0)) == 61
    assert task.lines(61, 50) == [{"n": 62, "t": "no content"}]


def test_failure_is_told_on_one_line_and_shown(node: Node, capsys: pytest.CaptureFixture[str]) -> None:
    def fails(node: Node, say: tasks.Say, vmid: int) -> None:
        say("before")
        raise died("broken\nin two lines\n")

    task = _start(node, fails)
    assert [line["t"] for line in task.lines(0, 50)] == ["before", "TASK ERROR: broken in two lines"]
    assert task.exit_status() == "broken in two lines"
    assert tuple(capsys.readouterr()) == ("before\n", "broken in two lines\n")


@pytest.mark.parametrize(
    ("log", "status"),
    [
        ("a\nTASK OK\n", "OK"),
        ("TASK WARNINGS: 2\n", "WARNINGS: 2"),
        ("TASK ERROR: \n", ""),
        ("killed here\n", "unexpected status"),
        ("", "unexpected status"),
    ],
)
def test_ends(node: Node, log: str, status: str) -> None:
    task = _start(node, lambda node, say, vmid: None)
    task.log_path.write_text(log)
    assert task.exit_status() == status


def test_a_upid_names_a_live_process_and_its_user(node: Node) -> None:
    seen: dict[str, t.Any] = {}
    task = _start(node, lambda node, say, vmid: seen.update(tasks.every(node)[0].status()))
    assert (seen["status"], seen["pid"], seen["type"], seen["id"]) == ("running", os.getpid(), "vzstart", "101")
    assert (seen["user"], seen["tokenid"]) == ("slipway@pve", "deploy")
    gone = tasks.Task(node, task.upid.replace(f"{os.getpid():08X}", "7FFFFFFF"))
    gone.log_path.write_text("TASK OK\n")
    assert gone.status()["exitstatus"] == "OK"


def test_the_worker_finds_its_work_in_any_module(node: Node, guest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[bytes] = []

    class Started:
        pid = os.getpid()

        def __init__(self, command: list[str], **options: t.Any) -> None:
            self.stdin = io.BytesIO()
            self.stdin.close = lambda: sent.append(self.stdin.getvalue())  # type: ignore[method-assign]

        def wait(self) -> None:
            pass

    monkeypatch.setattr("subprocess.Popen", Started)
    node.synchronous = False
    task = tasks.Task(node, tasks.start(node, "vzsnapshot", guest, "root@pam", snapshots.create, {"snapname": "s1"}))
    assert task.status()["status"] == "running"
    monkeypatch.undo()
    monkeypatch.setattr("sys.stdin", io.StringIO(sent[0].decode()))
    monkeypatch.setattr("os.setsid", lambda: None)
    monkeypatch.setattr("os.dup2", lambda *descriptors: None)
    monkeypatch.setattr(worker, "this_node", lambda: node)
    worker.main()
    assert (task.exit_status(), list(node.load(guest)["snapshots"])) == ("OK", ["s1"])
    assert json.loads(sent[0])["work"] == ["pve.snapshots", "create"]
