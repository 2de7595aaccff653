# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json

import pytest
from proxmoxer.backends.command_base import CommandBaseSession, JsonSimpleSerializer
from pve import cli
from pve.node import Node

LXC = "/nodes/node1/lxc"


@pytest.fixture(autouse=True)
def here(node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cli, "this_node", lambda synchronous: node)


class Session(CommandBaseSession):
    """proxmoxer's way of reading what pvesh prints, with pvesh in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__()
        self.capsys = capsys

    def _exec(self, cmd: list[str]) -> tuple[str, str, int]:
        code = cli.main(cmd[0], cmd[1:])
        out, err = self.capsys.readouterr()
        return out, err, code


def test_proxmoxer_reads_pvesh(capsys: pytest.CaptureFixture[str], guest: int, node: Node) -> None:
    session = Session(capsys)
    answer = session.request("GET", f"{LXC}/101/config", params={"current": 1})
    assert (answer.status_code, json.loads(answer.content)["lxc"]) == (200, [["lxc.prlimit.memlock", "unlimited"]])
    answer = session.request("PUT", f"{LXC}/101/config", data={"description": "-two\nlines", "dev1": "/dev/nvidia1"})
    assert (answer.status_code, answer.content) == (200, "")
    assert node.load(101)["description"] == "-two\nlines\n"
    refused = session.request("PUT", f"{LXC}/101/config", data={"memory": "x"})
    assert (refused.status_code, refused.exit_code) == (400, 255)
    assert refused.content == "400 Parameter verification failed.\nmemory: type check ('integer') failed - got 'x'\n"
    assert session.request("PUT", f"{LXC}/101/config", data={"dev2": "/dev/absent"}).status_code == 500
    assert session.request("GET", f"{LXC}/101/nowhere").status_code == 500


def test_output_of_the_work_comes_before_its_upid(capsys: pytest.CaptureFixture[str], guest: int) -> None:
    answer = Session(capsys).request("DELETE", f"{LXC}/101")
    first, second = answer.content.splitlines()
    assert (answer.status_code, first) == (200, "destroying volume local-zfs:subvol-101-disk-0")
    assert JsonSimpleSerializer().loads(answer) == json.loads(second)


def test_pct_config_shows_raw_lines_last(capsys: pytest.CaptureFixture[str], guest: int) -> None:
    assert cli.main("pct", ["set", "101", "--description", "a: b", "-onboot", "--cores", "2"]) == 0
    assert cli.main("pct", ["config", "101", "--current"]) == 0
    assert capsys.readouterr().out == (
        "cores: 2\ndescription: a%3A b%0A\ndev0: /dev/nvidia0,gid=44\nmemory: 4096\nonboot: 1\n"
        "rootfs: local-zfs:subvol-101-disk-0,size=8G\nunprivileged: 1\nlxc.prlimit.memlock: unlimited\n"
    )


def test_pct_life(capsys: pytest.CaptureFixture[str], guest: int, node: Node) -> None:
    assert cli.main("pct", ["exec", "101", "--", "true"]) == 255
    assert cli.main("pct", ["start", "101"]) == 0
    assert cli.main("pct", ["start", "101"]) == 255
    assert cli.main("pct", ["exec", "101", "--", "anything"]) == 7
    assert cli.main("pct", ["set", "101", "--delete", "dev0"]) == 0
    assert cli.main("pct", ["pending", "101"]) == 0
    assert cli.main("pct", ["status", "101"]) == 0
    assert cli.main("pct", ["list"]) == 0
    out, err = capsys.readouterr()
    assert err == "container '101' not running!\nCT 101 already running\n"
    assert "del dev0: /dev/nvidia0,gid=44\n" in out
    assert "status: running\n" in out
    assert out.splitlines()[-1].split() == ["101", "running", "CT101"]


def test_pct_unlock_and_failed_task(capsys: pytest.CaptureFixture[str], guest: int, node: Node) -> None:
    node.conf_path(101).write_text(node.conf_path(101).read_text() + "lock: snapshot\n")
    assert cli.main("pct", ["start", "101"]) == 255
    assert capsys.readouterr().err == "CT is locked (snapshot)\n"
    assert cli.main("pct", ["unlock", "101"]) == 0
    assert cli.main("pct", ["start", "101"]) == 0


def test_pveversion(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main("pveversion", []) == 0
    assert capsys.readouterr().out.startswith("pve-manager/9.1.4/5ac30dfe265fb00e (running kernel: ")
