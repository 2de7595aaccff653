# SPDX-License-Identifier: GPL-3.0-or-later
"""What the scenarios run on: the user's node where tools/pve_contract.py started them, else the rig's Proxmox in this process."""

from __future__ import annotations

import os
import sys
import typing as t
import zlib
from functools import partial
from pathlib import Path

import pytest
from ansible.module_utils.slipway.pve import node
from ansible.modules import pve_container_raw
from contract.guard import Guard
from contract.settings import MARK, PLUGIN, Settings
from contract.stage import Raw, Stage, raw_by_ansible
from pve import cli

if t.TYPE_CHECKING:
    from collections.abc import Iterator

    from rig_node import Rig

PCT = """#!{python}
import sys
sys.path.insert(0, "{rig}")
from pathlib import Path
from pve import cli, node
cli.this_node = lambda synchronous: node.Node("node1", Path("{root}"), None, synchronous)
sys.exit(cli.main("pct", sys.argv[1:]))
"""
RIG_WAYS = ("token", "password", "ssh")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Each scenario over every way that there is; one that needs root's shell on the node only over SSH."""
    if "way" not in metafunc.fixturenames:
        return
    run = metafunc.config.pluginmanager.get_plugin(PLUGIN)
    ways: t.Sequence[str] = tuple(run.settings.ways) if run else RIG_WAYS
    if "root_stage" in metafunc.fixturenames:
        none = pytest.param("", id="none", marks=pytest.mark.skip("there is no way over SSH among 'ways'"))
        metafunc.parametrize("way", [way for way in ways if way == "ssh"] or [none])
    elif "stage" in metafunc.fixturenames and not run:
        # A password's way is the token's but for a login each time, which takes most of the time here.
        metafunc.parametrize("way", [way for way in ways if way != "password"])
    else:
        metafunc.parametrize("way", ways)


@pytest.fixture(scope="session")
def contract_node(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The root file system of the rig's node1 as installed, with what the contract asks for."""
    import rig_node

    root = rig_node.installed(tmp_path_factory.mktemp("contract"))
    (root / "sys/class/net/vmbr0/bridge").mkdir(parents=True)
    # The token of docs/operations.md may also see the node.
    with (root / "etc/pve/user.cfg").open("a") as users:
        users.write("acl:1:/nodes:slipway@pve:PVEAuditor:\n")
    return root


@pytest.fixture
def grounds(
    request: pytest.FixtureRequest, way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Settings, Raw | None]]:
    """The settings and the way to change raw lines."""
    run = request.config.pluginmanager.get_plugin(PLUGIN)
    if run:
        yield run.settings, raw_by_ansible(run.settings.ways["ssh"]) if "ssh" in run.settings.ways else None
        return
    import rig_node

    monkeypatch.setattr("os.chown", lambda *args, **kwargs: None)
    machine = rig_node.copied(request.getfixturevalue("contract_node"), tmp_path / "node1")
    rig = rig_node.connected(machine, monkeypatch)
    yield rig_settings(rig), rig_raw(rig, request.getfixturevalue("run_module"), tmp_path, monkeypatch)
    rig.clock.over = True


def rig_settings(rig: Rig) -> Settings:
    """What a user would say of the rig's node, on which there are two guests of somebody's."""
    import rig_node

    rig.containers.devices["/dev/fuse"] = 0x0AE5
    rig.guest(101, "features: nesting=1", "hostname: other", "net0: name=eth0,bridge=vmbr0,ip=dhcp", run=True)
    rig.guest(
        102, "dev0: /dev/nvidia0,gid=44", "hostname: another", "mp0: /srv,mp=/srv", "lxc.prlimit.memlock: unlimited"
    )
    ways = (rig_node.AS_TOKEN, rig_node.AS_ROOT, rig_node.OVER_SSH)
    return Settings(
        node="node1",
        ways={name: {"api_backend": "https", **options} for name, options in zip(RIG_WAYS, ways, strict=True)},
        ostemplate=rig_node.TEMPLATE,
        storage="local-zfs",
        bridge="vmbr0",
        ip="192.0.2.90/24",
        vmids=range(9000, 9010),
    )


def rig_raw(
    rig: Rig, run_module: t.Callable[..., dict[str, t.Any]], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> Raw:
    """pve_container_raw with the rig's folder where it means the root of the node's files, and the rig's own pct."""
    root = rig.node.root
    pct = folder / "bin/pct"
    pct.parent.mkdir()
    pct.write_text(PCT.format(python=sys.executable, rig=Path(cli.__file__).parents[1], root=root))
    pct.chmod(0o755)
    monkeypatch.setenv("PATH", f"{pct.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(pve_container_raw, "Place", partial(node.Place, root=root))
    for name, content in (("net/unix", ""), ("sys/kernel/random/boot_id", "boot-1\n")):
        (root / "proc" / name).parent.mkdir(parents=True)
        (root / "proc" / name).write_text(content)

    def run(vmid: int, arguments: dict[str, t.Any], check: bool) -> dict[str, t.Any]:
        # What LXC has of a guest that runs: the configuration that it was started with, and a socket of this start.
        sockets = ""
        for running in rig.containers.up & rig.containers.started.keys():
            begun_with = rig.containers.started[running]
            place = node.Place(running, root)
            place.started_with.parent.mkdir(parents=True, exist_ok=True)
            place.started_with.write_text(begun_with)
            inode = zlib.crc32(begun_with.encode())
            sockets += f"0: 00000002 00000000 00010000 0001 01 {inode} @/var/lib/lxc/{running}/command\n"
        (root / "proc/net/unix").write_text(sockets)
        result = run_module(pve_container_raw, {"vmid": vmid, **arguments}, check=check)
        assert result["rc"] == 0, result["msg"]
        return result

    return run


@pytest.fixture
def guard(grounds: tuple[Settings, Raw | None], monkeypatch: pytest.MonkeyPatch) -> Guard:
    """In front of the node, in the place of what was there before."""
    made = Guard()
    made.stand(monkeypatch)
    return made


@pytest.fixture
def reader(
    request: pytest.FixtureRequest,
    grounds: tuple[Settings, Raw | None],
    way: str,
    run_module: t.Callable[..., dict[str, t.Any]],
    guard: Guard,
) -> Iterator[Stage]:
    """A way to the node for who only reads: no vmid is claimed, so that no change passes the guard."""
    run = request.config.pluginmanager.get_plugin(PLUGIN)
    settings, raw = grounds
    yield Stage(settings, way, run.mark if run else f"{MARK}test", run_module, guard, raw)
    if run:
        run.note_requests(guard)


@pytest.fixture
def stage(request: pytest.FixtureRequest, reader: Stage) -> Iterator[Stage]:
    """A way to the node for who makes guests; those that are left at the end are taken away, however it ended."""
    run = request.config.pluginmanager.get_plugin(PLUGIN)
    yield reader
    left: list[str] = []
    try:
        reader.clean(left)
    finally:
        if run:
            run.left += left
    if left:
        pytest.fail("\n".join(left), pytrace=False)


@pytest.fixture
def root_stage(stage: Stage) -> Stage:
    """The same, only for a way over which there is root's shell on the node."""
    return stage
