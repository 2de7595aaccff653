# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that are switched on from outside, as code of the API, the server and the command line tools meet them."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from pve import api, cli, cluster, faults, pmxcfs, tasks
from pve.errors import ApiError
from pve.node import Node

TOKEN = "slipway@pve!deploy"
ONE = "/nodes/node1/lxc/101"
CONFIG = f"{ONE}/config"


def _switch_on(node: Node, *entries: dict[str, t.Any]) -> Path:
    path = node.root / faults.FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(entries))
    return path


def _call(node: Node, verb: str, path: str, user: str = TOKEN, **given: t.Any) -> t.Any:
    return api.call(node, user, verb, path, given)


def _refusal(node: Node, verb: str, path: str, user: str = TOKEN, **given: t.Any) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        _call(node, verb, path, user, **given)
    return caught.value.status, caught.value.message


def _start(node: Node) -> tasks.Task:
    return tasks.Task(node, _call(node, "POST", f"{ONE}/status/start"))


def test_what_fits_is_struck_and_counted(node: Node, guest: int) -> None:
    fault = {"request": "GET /nodes/*/config", "kind": "error", "status": 595, "skip": 1, "times": 2}
    path = _switch_on(node, fault)
    _call(node, "GET", f"{ONE}/pending")
    _call(node, "GET", CONFIG)
    assert _refusal(node, "GET", CONFIG) == (595, "No route to host")
    assert json.loads(path.read_text()) == [{**fault, "skip": 0, "times": 1}]
    # pct asks the same of the node that it is on.
    assert _refusal(node, "GET", "nodes/localhost/lxc/101/config/")[0] == 595
    _call(node, "GET", CONFIG)
    assert json.loads(path.read_text()) == [{**fault, "skip": 0, "times": 0}]


def test_without_a_count_it_strikes_until_it_is_taken_away(node: Node, guest: int) -> None:
    path = _switch_on(node, {"request": "* *", "kind": "error", "message": "broken"})
    assert {_refusal(node, verb, CONFIG) for verb in ("GET", "PUT", "GET")} == {(500, "broken")}
    path.unlink()
    _call(node, "GET", CONFIG)


def test_the_first_that_is_due_strikes(node: Node, guest: int) -> None:
    one = {"request": "GET *", "kind": "error", "message": "one", "times": 1}
    _switch_on(node, one, {**one, "message": "two"})
    assert [_refusal(node, "GET", CONFIG)[1] for _ in range(2)] == ["one", "two"]


def test_a_kind_that_is_none_is_told(node: Node, guest: int) -> None:
    _switch_on(node, {"request": "* *", "kind": "drop"})
    assert _refusal(node, "GET", CONFIG) == (500, "'drop' is no kind of fault")


@pytest.mark.parametrize(("kind", "cores"), [("drop_before", 4), ("drop_after", 9)])
def test_dropped(node: Node, guest: int, kind: str, cores: int) -> None:
    _switch_on(node, {"request": "PUT *", "kind": kind, "times": 1})
    with pytest.raises(faults.Dropped):
        _call(node, "PUT", CONFIG, cores=9)
    assert node.load(101)["cores"] == cores


def test_a_slow_answer_comes_after_the_work(node: Node, guest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[tuple[float, int]] = []
    monkeypatch.setattr("time.sleep", lambda seconds: seen.append((seconds, node.load(101)["cores"])))
    _switch_on(node, {"request": "PUT *", "kind": "slow", "seconds": 40})
    _call(node, "PUT", CONFIG, cores=9)
    assert seen == [(40, 9)]


def test_a_lock_that_somebody_holds(node: Node, guest: int) -> None:
    why = "can't lock file '/run/lock/lxc/pve-config-101.lock' - got timeout"
    _switch_on(node, {"request": "* *", "kind": "lock_timeout"})
    assert _refusal(node, "PUT", CONFIG, cores=9) == (500, why)
    assert _start(node).exit_status() == why
    assert _call(node, "GET", CONFIG)["cores"] == 4


def test_tasks(node: Node, guest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    _switch_on(
        node,
        {"request": "* */start", "kind": "task_fails", "message": "startup for container '101' failed", "times": 1},
        {"request": "* */start", "kind": "task_warns", "lines": ["old systemd", "no swap"], "times": 1},
        {"request": "* */stop", "kind": "task_hangs", "seconds": 900, "times": 1},
    )
    assert (_start(node).exit_status(), node.runtime.up) == ("startup for container '101' failed", set())
    task = _start(node)
    assert (task.exit_status(), node.runtime.up) == ("WARNINGS: 2", {101})
    assert [line["t"] for line in task.lines(0, 0)][:2] == ["WARN: old systemd", "WARN: no swap"]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(seconds)
        monkeypatch.setattr("pve.node.LOCK_TIMEOUT_SECONDS", -1)
        assert _refusal(node, "PUT", CONFIG, cores=9)[1].startswith("can't lock file")
        assert "running" in [task.status()["status"] for task in tasks.every(node)]

    monkeypatch.setattr("time.sleep", sleep)
    assert tasks.Task(node, _call(node, "POST", f"{ONE}/status/stop")).exit_status() == "OK"
    assert (slept, node.runtime.up) == ([900], set())


def test_frozen_resources(node: Node, guest: int) -> None:
    _switch_on(node, {"request": "GET /cluster/resources", "kind": "frozen"})
    before = _call(node, "GET", "/cluster/resources", type="vm")
    _start(node)
    assert _call(node, "GET", "/cluster/resources", type="vm") == before
    assert before[0]["status"] == "stopped"
    assert _call(node, "GET", f"{ONE}/status/current")["status"] == "running"


def test_a_token_that_is_revoked_in_between(node: Node, guest: int) -> None:
    _switch_on(node, {"request": "* *", "kind": "revoked", "skip": 1})
    _call(node, "GET", CONFIG)
    assert _refusal(node, "GET", CONFIG) == (401, "no such token 'deploy' for user 'slipway@pve'")
    assert _refusal(node, "GET", CONFIG, "slipway@pve") == (401, "permission denied - invalid PVE ticket")
    _call(node, "GET", CONFIG, "root@pam")


def test_every_kind_does_something(node: Node, guest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    for kind in faults.KINDS:
        _switch_on(node, {"request": "POST *", "kind": kind, "seconds": 1, "lines": ["x"], "times": 1})
        node.runtime.up.clear()
        try:
            seen = _start(node).exit_status()
        except (ApiError, faults.Dropped) as error:
            seen = type(error).__name__
        plain = kind in ("slow", "task_hangs", "frozen")
        assert (kind, seen == "OK") == (kind, plain)


def test_pvesh_has_its_connection_dropped(
    node: Node, guest: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    hung: list[bool] = []
    monkeypatch.setattr(cli, "this_node", lambda synchronous: node)
    monkeypatch.setattr(cli, "hang_up", lambda: hung.append(True))
    _switch_on(node, {"request": "PUT *", "kind": "drop_after"}, {"request": "GET *", "kind": "error", "status": 500})
    assert cli.main("pvesh", ["set", CONFIG, "-cores", "9"]) == 255
    assert (hung, node.load(101)["cores"]) == ([True], 9)
    assert cli.main("pct", ["config", "101"]) == 255
    assert capsys.readouterr() == ("", "got no worker upid - start worker failed\n")


def test_a_program_that_is_not_on_a_node_kills_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    from pve import local

    monkeypatch.setattr("os.kill", lambda *what: pytest.fail(f"killed {what}"))
    local.hang_up()


def test_without_quorum_nothing_is_written(node: Node, guest: int) -> None:
    before = node.conf_path(101).read_text()
    cluster.set_quorum(node, False)
    members = json.loads((node.etc_pve / ".members").read_text())
    assert members["cluster"] == {"name": "rig", "version": 1, "nodes": 1, "quorate": 0}
    assert _refusal(node, "POST", f"{ONE}/status/start") == (500, "cluster not ready - no quorum?")
    assert _refusal(node, "POST", f"{ONE}/clone", newid=102) == (500, "cluster not ready - no quorum?")
    status, why = _refusal(node, "PUT", CONFIG, cores=9)
    assert status == 500 and why.startswith("unable to open file '/etc/pve/nodes/node1/lxc/101.conf.tmp.")
    assert why.endswith(" - Permission denied")
    template = "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst"
    create = {"vmid": 102, "ostemplate": template, "storage": "local-zfs"}
    assert _refusal(node, "POST", "/nodes/node1/lxc", **create)[1].startswith(
        "unable to create CT 102 - unable to open"
    )
    for verb, path, given in (("DELETE", ONE, {}), ("POST", f"{ONE}/snapshot", {"snapname": "s1"})):
        ended = tasks.Task(node, _call(node, verb, path, **given)).exit_status()
        assert ended.startswith("unable to open file")
    assert node.conf_path(101).read_text() == before and node.vmids() == [101]
    assert [path.name for path in (node.root / "rpool/data").iterdir()] == ["subvol-101-disk-0"]
    assert _call(node, "GET", CONFIG)["cores"] == 4
    cluster.set_quorum(node, True)
    _call(node, "PUT", CONFIG, cores=9)


def test_quorum_is_switched_with_a_mount_that_is_read_only(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, ...]] = []
    monkeypatch.setattr(cli, "this_node", lambda synchronous: node)
    monkeypatch.setattr(cli, "_mount", lambda *command: ran.append(command))
    folder = str(node.etc_pve)
    for word in ("lost", "lost", "found", "found"):
        assert cli.main("pve-quorum", [word]) == 0
    assert ran == [("mount", "--bind", folder, folder), ("mount", "-o", "remount,bind,ro", folder), ("umount", folder)]
    assert node.quorate()
    # Where pmxcfs is mounted, it refuses by itself.
    (node.root / pmxcfs.BEHIND / "nodes").mkdir(parents=True)
    assert cli.main("pve-quorum", ["lost"]) == 0 and len(ran) == 3
    assert json.loads((node.root / pmxcfs.BEHIND / ".members").read_text())["cluster"]["quorate"] == 0
