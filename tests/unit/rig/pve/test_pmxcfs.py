# SPDX-License-Identifier: GPL-3.0-or-later
"""/etc/pve as a file system, mounted by this kernel in a mount namespace of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

RIG = Path(__file__).parents[4] / "molecule/rig"

SESSION = """
import errno, json, os, signal, subprocess, sys, time
from pathlib import Path

top = Path(sys.argv[1])
server = subprocess.Popen([sys.executable, "-m", "pve.pmxcfs", str(top / "behind"), str(top / "pve")])
for _ in range(500):
    if os.path.ismount(top / "pve"):
        break
    time.sleep(0.01)
pve, told = top / "pve", {}

def outcome(work):
    try:
        return work()
    except OSError as error:
        return errno.errorcode[error.errno]

try:
    exec(sys.argv[2])
finally:
    server.send_signal(signal.SIGTERM)
    status = server.wait(10)
print(json.dumps(told))
assert status == 0
assert not os.path.ismount(pve) and not os.path.ismount(top / "behind")
"""


def _possible() -> bool:
    if os.geteuid() != 0 or not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return False
    return subprocess.run(["unshare", "--mount", "true"], capture_output=True).returncode == 0


pytestmark = pytest.mark.skipif(not _possible(), reason="FUSE file systems can not be mounted here")


@pytest.fixture
def session(tmp_path: Path) -> t.Callable[[str], t.Any]:
    """Run statements with the file system mounted; what they put into ``told`` comes back."""
    folder = tmp_path / "pve/nodes/node1/lxc"
    folder.mkdir(parents=True)
    (tmp_path / "pve/priv").mkdir()
    (folder / "101.conf").write_text("memory: 512\n")
    (tmp_path / "pve/lxc").symlink_to("nodes/node1/lxc")

    def run(statements: str) -> t.Any:
        command = ["unshare", "--mount", sys.executable, "-c", SESSION, str(tmp_path), statements]
        environment = {**os.environ, "PYTHONPATH": f"{RIG}:{RIG.parents[1]}"}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def test_files_are_read_written_and_renamed(session: t.Callable[[str], t.Any], tmp_path: Path) -> None:
    told = session(
        """
conf = pve / "lxc/101.conf"
told["read"] = conf.read_text()
new = conf.with_name("101.conf.tmp.1")
with new.open("w") as file:
    file.write("memory: 1024\\n" * 5000)
    os.fsync(file.fileno())
held = conf.open()
new.replace(conf)
told["held"] = held.read()
told["size"] = conf.stat().st_size
told["again"] = conf.read_text() == "memory: 1024\\n" * 5000
conf.write_text("memory: 64\\n")
with conf.open("a") as file:
    file.write("cores: 2\\n")
told["appended"] = conf.read_text()
(pve / "nodes/node2/lxc").mkdir(parents=True)
(pve / "nodes/node1/lxc/101.conf").rename(pve / "nodes/node2/lxc/101.conf")
(pve / "nodes/node2").rename(pve / "nodes/node3")
told["names"] = sorted(str(path.relative_to(pve)) for path in pve.rglob("*"))
told["moved"] = (pve / "nodes/node3/lxc/101.conf").read_text()
(pve / "nodes/node3/lxc/101.conf").unlink()
(pve / "nodes/node3/lxc").rmdir()
told["gone"] = [outcome((pve / "nodes/node3/lxc/101.conf").read_text), outcome((pve / "nodes/node2").stat)]
told["many"] = [(pve / f"priv/file{n:04}").write_text("") for n in range(600)] and len(list((pve / "priv").iterdir()))
"""
    )
    assert told == {
        "read": "memory: 512\n",
        "held": "memory: 512\n",
        "size": 65000,
        "again": True,
        "appended": "memory: 64\ncores: 2\n",
        "names": ["lxc", "nodes", "nodes/node1", "nodes/node1/lxc", "nodes/node3", "nodes/node3/lxc", "nodes/node3/lxc/101.conf", "priv"],
        "moved": "memory: 64\ncores: 2\n",
        "gone": ["ENOENT", "ENOENT"],
        "many": 600,
    }  # fmt: skip
    assert sorted(path.name for path in (tmp_path / "pve/nodes").iterdir()) == ["node1", "node3"]


def test_what_pmxcfs_refuses(session: t.Callable[[str], t.Any]) -> None:
    told = session(
        """
conf = pve / "lxc/101.conf"
told["modes"] = [oct(path.lstat().st_mode & 0o7777) for path in (conf, pve / "priv", pve / "nodes")]
told["owner"] = [conf.stat().st_uid, conf.stat().st_gid]
told["chmod"] = [outcome(lambda: conf.chmod(0o600)), outcome(lambda: conf.chmod(0o640))]
told["chown"] = [outcome(lambda: os.chown(conf, 1, -1)), outcome(lambda: os.chown(conf, 0, 33))]
told["link"] = outcome(lambda: os.symlink("a", pve / "b"))
told["xattr"] = outcome(lambda: os.setxattr(conf, "user.a", b"b"))
told["largest"] = outcome(lambda: conf.write_bytes(b"x" * 1024 * 1024))
told["larger"] = outcome(lambda: conf.write_bytes(b"x" * (1024 * 1024 + 1)))
os.utime(conf)
"""
    )
    assert told == {
        "modes": ["0o640", "0o700", "0o755"],
        "owner": [0, 33],
        "chmod": ["EPERM", None],
        "chown": ["EPERM", None],
        "link": "ENOSYS",
        "xattr": "ENOTSUP",
        "largest": 1048576,
        "larger": "EFBIG",
    }


def test_a_writer_that_leaves_modes_alone_gets_through(session: t.Callable[[str], t.Any]) -> None:
    told = session(
        """
from module_utils.slipway import files

conf = pve / "lxc/101.conf"
told["chmod"] = outcome(lambda: files.replace(conf, "memory: 1024\\n"))
told["before"] = [path.name for path in conf.parent.iterdir()], conf.read_text()
told["left"] = outcome(lambda: files.replace(conf, "memory: 1024\\n", chmod=False))
told["after"] = [path.name for path in conf.parent.iterdir()], conf.read_text()
"""
    )
    assert told == {
        "chmod": "EPERM",
        "before": [["101.conf"], "memory: 512\n"],
        "left": None,
        "after": [["101.conf"], "memory: 1024\n"],
    }


def test_without_quorum_it_is_read_only(session: t.Callable[[str], t.Any]) -> None:
    told = session(
        """
from pve import cluster
from pve.node import Node

os.makedirs(top / "etc")
os.symlink(pve, top / "etc/pve")
node = Node("node1", top, None)
conf = pve / "lxc/101.conf"
def saved():
    try:
        node.save(101, {**node.load(101), "cores": 2})
    except Exception as error:
        return str(error).rpartition(" - ")[2]
    return conf.read_text()

cluster.set_quorum(node, False, top / "behind")
told["refused"] = [
    outcome(lambda: conf.write_text("memory: 1")),
    outcome(lambda: conf.with_name("102.conf").touch()),
    outcome(lambda: conf.rename(conf.with_name("103.conf"))),
    outcome(conf.unlink),
    outcome((pve / "new").mkdir),
    outcome((pve / "priv").rmdir),
    outcome(lambda: os.truncate(conf, 0)),
]
told["read"] = conf.read_text()
told["link"] = oct((pve / "lxc").lstat().st_mode & 0o777)
told["saved"] = [saved()]
cluster.set_quorum(node, True, top / "behind")
told["saved"].append(saved())
"""
    )
    assert told == {
        "refused": ["EACCES"] * 7,
        "read": "memory: 512\n",
        "link": "0o555",
        "saved": ["Permission denied", "cores: 2\nmemory: 512\n"],
    }
