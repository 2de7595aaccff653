# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat

from pve import lxcconf
from pve.runtime import without_forbidden_limits

DEVICE = lxcconf.PassedDevice("/made/dev/nvidia0", "/dev/nvidia0", stat.S_IFCHR, os.makedev(4, 10), True)
FACTS = lxcconf.Facts(
    "/rpool/data/x", {"mp0": "/srv/models"}, [DEVICE], ["/proc/driver proc/driver none bind,ro 0 0"], set()
)


def _lines(**content: object) -> list[str]:
    return lxcconf.render(101, content, FACTS).splitlines()


def test_gate_is_written_out_in_full_before_the_devices_of_the_guest() -> None:
    rules = [line.split(" = ")[1] for line in _lines(unprivileged=1) if "devices" in line]
    assert rules == [
        *("a", "c *:* m", "b *:* m", "c 1:3 rwm", "c 1:5 rwm", "c 1:7 rwm", "c 1:8 rwm", "c 1:9 rwm"),
        *("c 5:0 rwm", "c 5:1 rwm", "c 5:2 rwm", "c 136:* rwm", "c 4:10 rw"),
    ]


def test_mounts_and_raw_lines_come_in_order_and_as_lxc_writes_them() -> None:
    raw = [["lxc.mount.entry", "tmpfs dev/shm tmpfs size=1g"], ["lxc.prlimit.memlock", "unlimited"]]
    lines = _lines(features="nesting=1", mp0="/srv/models,mp=/srv/models,ro=1", lxc=raw)
    assert [line for line in lines if "mount.entry" in line] == [
        "lxc.mount.entry = proc dev/.lxc/proc proc create=dir,optional 0 0",
        "lxc.mount.entry = sys dev/.lxc/sys sysfs create=dir,optional 0 0",
        "lxc.mount.entry = /srv/models srv/models none bind,ro,create=dir 0 0",
        "lxc.mount.entry = /proc/driver proc/driver none bind,ro 0 0",
        "lxc.mount.entry = /made/dev/nvidia0 dev/nvidia0 none bind,create=file 0 0",
        "lxc.mount.entry = tmpfs dev/shm tmpfs size=1g",
    ]
    assert lines[-1] == "lxc.prlimit.memlock = unlimited"


def test_id_map_is_the_default_one_unless_raw_lines_bring_one() -> None:
    assert "lxc.idmap = u 0 100000 65536" in _lines(unprivileged=1)
    own = [line for line in _lines(unprivileged=1, lxc=[["lxc.idmap", "u 0 5 6"]]) if "idmap" in line]
    assert own == ["lxc.idmap = u 0 5 6"]
    assert not [line for line in _lines() if "idmap" in line]


def test_network_is_on_the_bridge_of_its_key() -> None:
    lines = _lines(net1="name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=dhcp,mtu=1400")
    assert [line for line in lines if line.startswith("lxc.net")] == [
        "lxc.net.1.type = veth",
        "lxc.net.1.link = vmbr0",
        "lxc.net.1.veth.pair = veth101i1",
        "lxc.net.1.hwaddr = BC:24:11:00:00:01",
        "lxc.net.1.name = eth0",
        "lxc.net.1.mtu = 1400",
        "lxc.net.1.flags = up",
    ]
    assert "lxc.net.0.type = empty" in _lines()


def test_limits_only_where_the_node_has_the_controller() -> None:
    content = {"memory": 1024, "swap": 0, "cores": 1, "cpulimit": "1.5", "cpuunits": 20000}
    assert lxcconf.limits(content, set()) == {}
    assert lxcconf.limits(content, {"memory", "cpu", "cpuset"}) == {
        "memory.max": 1073741824,
        "memory.high": 1065353216,
        "memory.swap.max": 0,
        "cpu.max": "150000 100000",
        "cpu.weight": 10000,
        "cpuset.cpus": "0-0",
    }
    assert lxcconf.limits({"memory": 16384}, {"memory"})["memory.high"] == 17045651456


def test_limits_that_root_may_not_raise_are_left_out_and_named() -> None:
    config = "lxc.prlimit.memlock = unlimited\nlxc.prlimit.core = 0\nlxc.arch = amd64\n"
    assert without_forbidden_limits(config, may_raise=lambda: True) == (config, [])
    kept, dropped = without_forbidden_limits(config.replace("unlimited", str(2**62)), may_raise=lambda: False)
    assert kept.endswith("lxc.prlimit.core = 0\nlxc.arch = amd64\n")
    assert dropped in ([], [f"lxc.prlimit.memlock = {2**62}"])  # the first where this machine has no limit
