# SPDX-License-Identifier: GPL-3.0-or-later
"""Plugging into something that runs: namespaces of this kernel stand for the node and for a guest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

RIG = Path(__file__).parents[4] / "molecule/rig"


def _namespaced() -> bool:
    return (
        os.geteuid() == 0
        and subprocess.run(["unshare", "--net", "--mount", "true"], capture_output=True).returncode == 0
    )


pytestmark = pytest.mark.skipif(not _namespaced(), reason="namespaces can not be made here")

# Runs as the node, in a network namespace of its own; prints what is seen of the bridge and of the guest after each step.
NODE = """
import json, subprocess, sys
from pve import links

def ip(*words, inside=None):
    enter = ["nsenter", "--net", "--target", str(inside), "--"] if inside else []
    return subprocess.run([*enter, "ip", *words], check=True, capture_output=True, text=True).stdout

guest = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo up; exec sleep 60"], stdout=subprocess.PIPE)
guest.stdout.readline()
for bridge in ("vmbr0", "vmbr1"):
    ip("link", "add", bridge, "type", "bridge")
    ip("link", "set", bridge, "up")
seen = []
for old, new in json.loads(sys.argv[1]):
    done = links.plug(guest.pid, "veth101i0", old, new) if new else links.unplug("veth101i0")
    outside = {row["ifname"]: row for row in json.loads(ip("-json", "link"))}
    rows = [row for row in json.loads(ip("-json", "address", inside=guest.pid)) if row["ifname"] != "lo"]
    routes = [row["gateway"] for row in json.loads(ip("-json", "route", inside=guest.pid)) if row["dst"] == "default"]
    inside = [
        [row["ifname"], row["address"], row["mtu"], [a["local"] for a in row["addr_info"] if a["family"] == "inet"]]
        for row in rows
    ]
    seen.append([done, outside.get("veth101i0", {}).get("master"), inside, routes])
guest.kill()
guest.wait()
print(json.dumps(seen))
"""


def _run(steps: list[tuple[str | None, str | None]]) -> list[t.Any]:
    environment = {**os.environ, "PYTHONPATH": str(RIG)}
    command = ["unshare", "--net", sys.executable, "-c", NODE, json.dumps(steps)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return t.cast("list[t.Any]", json.loads(done.stdout))


def test_networks() -> None:
    first = "name=eth0,bridge=vmbr0,gw=192.0.2.1,hwaddr=02:00:00:00:00:01,ip=192.0.2.21/24,mtu=1400,type=veth"
    moved = first.replace("192.0.2.21", "192.0.2.22").replace("vmbr0", "vmbr1")
    renamed = moved.replace("eth0", "lan0").replace(":01", ":02")
    alone = renamed.replace("gw=192.0.2.1,", "").replace("ip=192.0.2.22/24", "ip=manual")
    from_server = renamed.replace("ip=192.0.2.22/24", "ip=dhcp")
    gone = alone.replace("vmbr1", "vmbr9").replace(":02", ":03")
    steps = [(None, first), (first, moved), (moved, renamed), (renamed, from_server), (renamed, alone), (alone, None)]
    mac = "02:00:00:00:00:0"
    assert _run([*steps, (None, gone)]) == [
        [True, "vmbr0", [["eth0", f"{mac}1", 1400, ["192.0.2.21"]]], ["192.0.2.1"]],
        [True, "vmbr1", [["eth0", f"{mac}1", 1400, ["192.0.2.22"]]], ["192.0.2.1"]],
        [True, "vmbr1", [["lan0", f"{mac}2", 1400, ["192.0.2.22"]]], ["192.0.2.1"]],
        # An address from a server waits, and nothing was touched.
        [False, "vmbr1", [["lan0", f"{mac}2", 1400, ["192.0.2.22"]]], ["192.0.2.1"]],
        [True, "vmbr1", [["lan0", f"{mac}2", 1400, []]], []],
        [True, None, [], []],
        # What fails half way leaves nothing.
        [False, None, [], []],
    ]


@pytest.mark.parametrize("read_only", [False, True])
def test_folders(tmp_path: Path, read_only: bool) -> None:
    source, target = tmp_path / "source", tmp_path / "guest/deep/target"
    source.mkdir()
    (source / "model").write_text("weights")
    command = ["unshare", "--mount", "sh", "-c", "echo up; exec sleep 60"]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as guest:
        t.cast("t.IO[bytes]", guest.stdout).readline()
        plug = [
            sys.executable,
            "-m",
            "pve.plug",
            str(guest.pid),
            str(source),
            str(target),
            *(["ro"] if read_only else []),
        ]
        subprocess.run(plug, env={**os.environ, "PYTHONPATH": str(RIG)}, check=True)
        enter = ["nsenter", "--mount", "--target", str(guest.pid), "--"]
        seen = subprocess.run([*enter, "cat", f"{target}/model"], capture_output=True, text=True).stdout
        written = subprocess.run([*enter, "touch", f"{target}/new"], capture_output=True).returncode == 0
        guest.kill()
    assert (seen, written) == ("weights", not read_only)
    assert list(target.iterdir()) == []  # only the guest sees it
