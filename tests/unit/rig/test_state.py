# SPDX-License-Identifier: GPL-3.0-or-later
"""What a write would change, as `rig state` tells it: each kind of write shows, a look does not."""

from __future__ import annotations

import os
import signal
import subprocess
import time
import typing as t
from pathlib import Path

import pytest
import state
from state import Process


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    etc = tmp_path / "lxc/node1/rootfs/etc"
    etc.mkdir(parents=True)
    (etc / "hosts").write_text("127.0.0.1 localhost\n")
    (etc / "localtime").symlink_to("/usr/share/zoneinfo/UTC")
    (tmp_path / "fleet.json").write_text("{}")
    return tmp_path


def test_a_line(folder: Path) -> None:
    (folder / "fleet.json").chmod(0o600)
    owner = f"{os.getuid()}:{os.getgid()}"
    lines = {line.split()[0]: line.rpartition(" ")[0] for line in state.files(folder)}
    assert lines == {
        "fleet.json": f"fleet.json -rw------- {owner} 2 bytes 44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a",
        "lxc": f"lxc drwxr-xr-x {owner} folder",
        "lxc/node1": f"lxc/node1 drwxr-xr-x {owner} folder",
        "lxc/node1/rootfs": f"lxc/node1/rootfs drwxr-xr-x {owner} folder",
        "lxc/node1/rootfs/etc": f"lxc/node1/rootfs/etc drwxr-xr-x {owner} folder",
        "lxc/node1/rootfs/etc/hosts": f"lxc/node1/rootfs/etc/hosts -rw-r--r-- {owner} 20 bytes "
        "081ef9d5367595d16e30b4b4549d9f43537320508b4ce0788963e10e4f808857",
        "lxc/node1/rootfs/etc/localtime": f"lxc/node1/rootfs/etc/localtime lrwxrwxrwx {owner} -> /usr/share/zoneinfo/UTC",
    }


def rewrite(etc: Path) -> None:
    """The same content, and the old time put back: what rsync -t would do."""
    before = (etc / "hosts").stat()
    (etc / "hosts").write_text("127.0.0.1 localhost\n")
    os.utime(etc / "hosts", ns=(before.st_atime_ns, before.st_mtime_ns))


def come_and_go(etc: Path) -> None:
    (etc / "scratch").touch()
    (etc / "scratch").unlink()


def relink(etc: Path) -> None:
    (etc / "localtime").unlink()
    (etc / "localtime").symlink_to("/usr/share/zoneinfo/Europe/Rome")


@pytest.mark.parametrize(
    "write",
    [
        lambda etc: (etc / "hosts").write_text("127.0.0.1 localhorst\n"),
        rewrite,
        lambda etc: (etc / "hosts").chmod(0o600),
        lambda etc: (etc / "hosts").unlink(),
        lambda etc: (etc / "new").touch(),
        lambda etc: (etc / "new").mkdir(),
        relink,
        come_and_go,
    ],
    ids=["content", "the same content", "mode", "removed", "new file", "new folder", "link", "came and went"],
)
def test_a_write_shows(folder: Path, write: t.Callable[[Path], None]) -> None:
    before = sorted(state.files(folder))
    time.sleep(0.02)  # a kernel's file times advance by its tick
    write(folder / "lxc/node1/rootfs/etc")
    assert sorted(state.files(folder)) != before


def test_a_look_does_not_show(folder: Path) -> None:
    before = sorted(state.files(folder))
    (folder / "lxc/node1/rootfs/etc/hosts").read_text()
    list((folder / "lxc/node1/rootfs/etc").iterdir())
    assert sorted(state.files(folder)) == before


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("lxc/node1/rootfs/var/log/journal/0d13/system.journal", True),
        ("lxc/node1/rootfs/rpool/data/subvol-101-disk-0/var/log/journal", True),
        ("lxc/node1/rootfs/var/log/wtmp", True),
        ("lxc/node1/rootfs/root/.cache/slipway/ansible/tmp/ansible-tmp-1/x.py", True),
        ("lxc/node1/rootfs/root/.cache/slipway/ansible/cp", False),
        ("lxc/node1/rootfs/root/.cache/slipway/uv", False),
        ("lxc/node1/rootfs/root/.ssh", False),
        ("lxc/node1/rootfs/var/log/pve/tasks/1/UPID:node1", False),
        ("lxc/node1/rootfs/etc/pve/nodes/node1/lxc/101.conf", False),
        ("memory/node1/run/motd.dynamic", True),
        ("memory/node1/101/run/systemd/journal/seqnum", True),
        ("memory/node1/101/dev/nvidia0", False),
        ("var/log/journal/x", False),
        ("reports/infer1/latest", False),
    ],
)
def test_left_out(path: str, expected: bool) -> None:
    assert state.left_out(path) is expected


def test_requests(tmp_path: Path) -> None:
    log = tmp_path / "access.log"
    assert state.requests(log, "node1") == []
    log.write_text(
        '10.0.0.1 - slipway@pve!deploy [x] "GET /api2/json/nodes/node1/lxc/101/config HTTP/1.1" 200 9\n'
        '10.0.0.1 - - [x] "POST /api2/json/access/ticket HTTP/1.1" 200 9\n'
        '10.0.0.1 - slipway@pve!deploy [x] "PUT /api2/json/nodes/node1/lxc/101/config HTTP/1.1" 200 9\n'
        '10.0.0.1 - root@pam [x] "POST /api2/json/access/ticketless HTTP/1.1" 501 9\n'
    )
    assert state.requests(log, "node1") == [
        'request node1 00001 10.0.0.1 - slipway@pve!deploy [x] "PUT /api2/json/nodes/node1/lxc/101/config HTTP/1.1" 200 9',
        'request node1 00002 10.0.0.1 - root@pam [x] "POST /api2/json/access/ticketless HTTP/1.1" 501 9',
    ]


NODE = "/lxc.payload.node1-2"


def test_services_without_logins() -> None:
    inside = [
        Process(10, 1, "systemd", 1, f"{NODE}/init.scope", True),
        Process(11, 10, "sshd", 2, f"{NODE}/system.slice/ssh.service", False),
        Process(12, 11, "sshd-session", 3, f"{NODE}/system.slice/ssh.service", False),
        Process(13, 12, "python3", 4, f"{NODE}/system.slice/ssh.service", False),
        Process(14, 10, "left", 5, f"{NODE}/system.slice/ssh.service", False),  # its login has ended
        Process(15, 10, "bash", 6, f"{NODE}/user.slice/user-0.slice/session-3.scope", False),
        Process(20, 10, "systemd", 7, f"{NODE}/lxc.payload.101/init.scope", True),
    ]
    # sshd itself and a process that a login left behind have the same parent: both are told.
    assert state.services(inside, "node1") == [
        "process node1 /init.scope systemd 10 started 1",
        "process node1 /system.slice/ssh.service sshd 11 started 2",
        "process node1 /system.slice/ssh.service left 14 started 5",
        "process node1 /lxc.payload.101/init.scope systemd 20 started 7",
    ]
    assert list(state.containers(inside, "node1")) == [("node1", 10), ("node1/101", 20)]


def test_processes_of_this_machine() -> None:
    child = subprocess.Popen(["sleep", "60"])
    try:
        found = state.processes()[child.pid]
        assert (found.parent, found.name, found.first) == (os.getpid(), "sleep", False)
        assert found.started > 0
    finally:
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert child.pid not in state.processes()
