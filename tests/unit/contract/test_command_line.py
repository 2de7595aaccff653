# SPDX-License-Identifier: GPL-3.0-or-later
"""tools/pve_contract.py as a user runs it, over a real connection to the rig's Proxmox on the loopback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import typing as t
from pathlib import Path

import pytest
import rig_node
import yaml
from pve import faults
from pve.node import Node
from pve.server import Server, context

Settings = dict[str, t.Any]


@pytest.fixture
def node(scratch_node: Node) -> Node:
    """node1 with a bridge and a guest of somebody's, and a token that may see the node."""
    (scratch_node.root / "sys/class/net/vmbr0/bridge").mkdir(parents=True)
    with (scratch_node.etc_pve / "user.cfg").open("a") as users:
        users.write("acl:1:/nodes:slipway@pve:PVEAuditor:\n")
    rig_node.Rig(scratch_node, rig_node.Clock()).guest(101, "hostname: somebodys")
    return scratch_node


@pytest.fixture
def settings(node: Node) -> t.Iterator[Settings]:
    """What a user would say of it, while it answers."""
    server = Server(("127.0.0.1", 0), node, context(node))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield {
        "api_host": "127.0.0.1",
        "api_port": server.server_address[1],
        "api_user": "slipway@pve",
        "api_token_id": "deploy",
        "ca_path": str(node.etc_pve / "pve-root-ca.pem"),
        "node": "node1",
        "ostemplate": rig_node.TEMPLATE,
        "storage": "local-zfs",
        "bridge": "vmbr0",
    }
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def start(root: Path, tmp_path: Path) -> t.Callable[[Settings], subprocess.Popen[str]]:
    """Start a run with these settings."""

    def run(settings: Settings) -> subprocess.Popen[str]:
        file = tmp_path / "my-node.yml"
        file.write_text(yaml.safe_dump(settings))
        return subprocess.Popen(
            [sys.executable, str(root / "tools/pve_contract.py"), str(file)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            cwd=tmp_path,
            env={**os.environ, "PROXMOX_TOKEN_SECRET": "token-secret"},
        )

    return run


Start = t.Callable[[Settings], "subprocess.Popen[str]"]


def ended(run: subprocess.Popen[str]) -> tuple[str, int]:
    output, _ = run.communicate(timeout=120)
    return output, run.returncode


def report(folder: Path) -> str:
    (path,) = folder.glob("pve-contract-*.md")
    return path.read_text()


def test_the_whole_of_it(settings: Settings, node: Node, start: Start, tmp_path: Path) -> None:
    before = node.conf_path(101).read_text()
    output, status = ended(start({**settings, "vmids": "9000-9003"}))
    assert status == 0, output
    first, *_, last = output.strip().splitlines()
    assert first.startswith("node node1: way https a token or a user, Proxmox VE 9.1.4, manager pve-manager/9.1.4/")
    assert first.endswith("storage local-zfs (zfspool)")
    assert last.endswith(" passed, 0 failed, 1 skipped") and "GETs and 0 other requests\n" in output
    # Nothing of it is left, and what was somebody's is as it was.
    assert node.vmids() == [101] and node.conf_path(101).read_text() == before
    assert sorted(path.name for path in (node.root / "rpool/data").iterdir()) == ["subvol-101-disk-0"]
    written = report(tmp_path)
    assert "| Proxmox VE | 9.1.4 |" in written and "| storage | local-zfs (zfspool) |" in written and last in written
    assert "there is no way over SSH among 'ways'" in written
    assert not [word for word in ("token-secret", "127.0.0.1", "slipway@pve", "node1") if word in written]


def test_it_only_reads_where_no_vmids_are_named(settings: Settings, node: Node, start: Start, tmp_path: Path) -> None:
    output, status = ended(start(settings))
    assert status == 0, output
    assert "only reads: guests are made where 'vmids' names numbers for them" in output
    log = (node.root / "var/log/pveproxy/access.log").read_text().splitlines()
    assert log and all('"GET /api2/json/' in line for line in log)
    assert "| requests while writing | 0 GET, 0 other |" in report(tmp_path)


def test_a_vmid_that_is_taken_is_refused(settings: Settings, node: Node, start: Start) -> None:
    output, status = ended(start({**settings, "vmids": "100-104"}))
    assert status != 0
    assert "Cannot use the vmids 100-104: 101 is taken by the container 'somebodys' on node 'node1'." in output
    assert node.vmids() == [101]


def test_an_end_by_ctrl_c_leaves_nothing(settings: Settings, node: Node, start: Start, tmp_path: Path) -> None:
    (node.root / faults.FILE).parent.mkdir(parents=True, exist_ok=True)
    (node.root / faults.FILE).write_text('[{"request": "PUT */9000/config", "kind": "slow", "seconds": 1}]')
    run = start({**settings, "vmids": "9000-9003"})
    deadline = time.monotonic() + 60
    while 9000 not in node.vmids() and time.monotonic() < deadline:
        time.sleep(0.02)
    run.send_signal(signal.SIGINT)
    output, status = ended(run)
    assert status == 1 and "it was broken off" in output, output
    assert node.vmids() == [101]
    assert "broken off" in report(tmp_path)


def test_it_says_what_is_left_and_what_a_storage_cannot(
    settings: Settings, node: Node, start: Start, tmp_path: Path
) -> None:
    storages = node.etc_pve / "storage.cfg"
    storages.write_text(storages.read_text().replace("iso,vztmpl", "rootdir,iso,vztmpl"))
    (node.root / faults.FILE).parent.mkdir(parents=True, exist_ok=True)
    (node.root / faults.FILE).write_text(
        '[{"request": "DELETE */9000", "kind": "task_fails", "message": "it is busy"}]'
    )
    output, status = ended(start({**settings, "vmids": "9000-9003", "storage": "local"}))
    assert status == 1 and node.vmids() == [101, 9000]
    left = "Guest 9000 of node 'node1' may be left: the task UPID"
    assert left in output and "it is busy" in output and "run 'pct destroy 9000 --force --purge' there" in output
    written = report(tmp_path)
    assert "Guest 9000 of node '<node>' may be left" in written
    for cannot in ("take snapshots", "link the disks of clones"):
        assert f"| storage 'local' of type dir cannot {cannot}" in written.replace("skipped | 0.", "").replace(
            "  ", " "
        )
