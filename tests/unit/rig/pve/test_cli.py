# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from proxmoxer.backends.command_base import CommandBaseSession, JsonSimpleSerializer
from pve import cli, lxclog
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


def test_pct_snapshots(capsys: pytest.CaptureFixture[str], guest: int, node: Node) -> None:
    assert cli.main("pct", ["snapshot", "101", "first", "--description", "as made\nby a test"]) == 0
    assert cli.main("pct", ["snapshot", "101", "second"]) == 0
    capsys.readouterr()
    assert cli.main("pct", ["listsnapshot", "101"]) == 0
    out = re.sub(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", "9999-99-99 99:99:99", capsys.readouterr().out)
    assert out == (
        "`-> first                       9999-99-99 99:99:99     as made\n"
        "    `-> second                  9999-99-99 99:99:99     no-description\n"
        "        `-> current                                     You are here!\n"
    )
    assert cli.main("pct", ["rollback", "101", "first"]) == 255
    assert cli.main("pct", ["delsnapshot", "101", "second", "--force"]) == 0
    assert cli.main("pct", ["rollback", "101", "first", "--start"]) == 0
    assert cli.main("pct", ["snapshot", "101"]) == 255
    assert node.runtime.up == {101}
    assert capsys.readouterr().err == (
        "can't rollback, 'first' is not most recent snapshot on 'local-zfs:subvol-101-disk-0'\n"
        "400 not enough arguments\n"
    )


def test_pct_clone_template_resize(guest: int, node: Node) -> None:
    assert cli.main("pct", ["resize", "101", "rootfs", "+1G"]) == 0
    assert cli.main("pct", ["clone", "101", "102", "--hostname", "other"]) == 0
    assert cli.main("pct", ["template", "102"]) == 0
    assert cli.main("pct", ["clone", "102", "103"]) == 0
    assert "rootfs: local-zfs:basevol-102-disk-0/subvol-103-disk-0,size=9G\n" in node.conf_path(103).read_text()
    assert "hostname: other\n" in node.conf_path(103).read_text()


def test_only_debugging_tells_why_a_start_failed(
    capsys: pytest.CaptureFixture[str], guest: int, node: Node, tmp_path: Path
) -> None:
    node.save(101, {**node.load(101), "mp0": f"{tmp_path}/models,mp=/models"})
    assert cli.main("pct", ["start", "101"]) == 255
    out, err = capsys.readouterr()
    assert out == (
        "run_buffer: 571 Script exited with status 2\n"
        'lxc_init: 845 Failed to run lxc.hook.pre-start for container "101"\n'
        '__lxc_start: 2034 Failed to initialize container "101"\n'
    )
    assert err == "startup for container '101' failed\n"
    assert cli.main("pct", ["start", "101", "--debug"]) == 255
    why = f"lxc-pve-prestart-hook 101 lxc pre-start produced output: directory '{tmp_path}/models' does not exist\n"
    assert why in capsys.readouterr().out
    (tmp_path / "models").mkdir()
    assert cli.main("pct", ["start", "101"]) == 0
    assert f"lxc.mount.entry = {tmp_path}/models models none bind,create=dir 0 0\n" in node.runtime.started[101]


def test_a_lost_disk_keeps_the_guest_down(capsys: pytest.CaptureFixture[str], guest: int, node: Node) -> None:
    (node.root / "rpool/data/subvol-101-disk-0").rmdir()
    assert cli.main("pct", ["start", "101", "--debug"]) == 255
    assert "zfs error: cannot open 'rpool/data/subvol-101-disk-0': dataset does not exist" in capsys.readouterr().out


def test_names_and_times_are_taken_off_what_lxc_says() -> None:
    text = (
        "lxc-start: 101: ../src/lxc/start.c: lxc_init: 845 Failed to run\n"
        "lxc-start 101 20260102030405.678 ERROR    start - ../src/lxc/start.c:lxc_init:845 - Failed to run\n\nplain \n"
    )
    assert lxclog.shown(101, text) == [
        "lxc_init: 845 Failed to run",
        "ERROR    start - ../src/lxc/start.c:lxc_init:845 - Failed to run",
        "",
        "plain",
    ]
