# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration that LXC gets, written anew from Proxmox's at each start. Pure."""

from __future__ import annotations

import dataclasses
import os
import re
import stat
import typing as t

from .conf import Conf
from .formats import parse_property_string
from .permissions import mount_type
from .schema import DEVICE, FEATURES, MOUNT, NETWORK

ID_OFFSET = 100000
ID_COUNT = 65536
# As soon as one rule is given LXC denies all that is not listed, /dev/null too: so the whole list is written out.
DEFAULT_DEVICES = ["c *:* m", "b *:* m"] + [
    f"c {number} rwm" for number in ("1:3", "1:5", "1:7", "1:8", "1:9", "5:0", "5:1", "5:2", "136:*")
]
# Without a proc and a sysfs that nothing covers the kernel lets nobody mount them in a nested container.
NESTING = ["proc dev/.lxc/proc proc create=dir,optional 0 0", "sys dev/.lxc/sys sysfs create=dir,optional 0 0"]


@dataclasses.dataclass(frozen=True)
class PassedDevice:
    """A device node that a guest gets: ``source`` is the node made for it, ``target`` its path inside."""

    source: str
    target: str
    mode: int  # with the file type
    number: int
    writable: bool

    @property
    def rule(self) -> str:
        """The device cgroup's rule. Proxmox gives rw, never m."""
        kind = "b" if stat.S_ISBLK(self.mode) else "c"
        return f"{kind} {os.major(self.number)}:{os.minor(self.number)} {'rw' if self.writable else 'r'}"


@dataclasses.dataclass(frozen=True)
class Facts:
    """What the node knows beyond the configuration."""

    rootfs: str
    mounts: dict[str, str]  # mpN -> folder on the node
    devices: list[PassedDevice]
    guest_mounts: list[str]  # lxc.mount.entry values that every guest of the rig gets
    controllers: set[str]  # cgroup2 controllers that the node may hand on


def device_numbers(content: Conf) -> list[tuple[str, dict[str, t.Any]]]:
    """The devN of a configuration in their order, parsed."""
    keys = sorted((key for key in content if re.fullmatch(r"dev\d+", key)), key=lambda key: int(key[3:]))
    return [(key, parse_property_string(DEVICE, content[key])) for key in keys]


def render(vmid: int, content: Conf, facts: Facts) -> str:
    """The text of /var/lib/lxc/<vmid>/config; the user's raw lines come last, as ``key = value``."""
    raw = [(key, value) for key, value in content.get("lxc", [])]
    features = parse_property_string(FEATURES, content.get("features", ""))
    lines: list[tuple[str, t.Any]] = [("lxc.include", "/usr/share/lxc/config/common.conf")]
    if content.get("unprivileged"):
        lines.append(("lxc.include", "/usr/share/lxc/config/userns.conf"))
        if not any(key == "lxc.idmap" for key, _ in raw):
            lines += [("lxc.idmap", f"{kind} 0 {ID_OFFSET} {ID_COUNT}") for kind in "ug"]
        if not features.get("force_rw_sys"):
            # systemd-networkd takes a writable /sys for a sign that udev is there, and waits for it for ever.
            lines.append(("lxc.mount.auto", "sys:mixed"))
    lines += [
        ("lxc.arch", content.get("arch", "amd64")),
        ("lxc.apparmor.profile", "unconfined"),
        ("lxc.tty.max", content.get("tty", 2)),
        ("lxc.environment", "TERM=linux"),
        ("lxc.uts.name", content.get("hostname", f"CT{vmid}")),
        ("lxc.rootfs.path", f"dir:{facts.rootfs}"),
    ]
    lines += _networks(vmid, content)
    lines += [("lxc.cgroup2.devices.deny", "a")]
    lines += [("lxc.cgroup2.devices.allow", rule) for rule in DEFAULT_DEVICES]
    lines += [("lxc.cgroup2.devices.allow", device.rule) for device in facts.devices]
    lines += [(f"lxc.cgroup2.{name}", value) for name, value in limits(content, facts.controllers).items()]
    entries = NESTING if features.get("nesting") else []
    entries = [*entries, *_mounts(content, facts), *facts.guest_mounts]
    entries += [f"{d.source} {d.target.lstrip('/')} none bind,create=file 0 0" for d in facts.devices]
    lines += [("lxc.mount.entry", entry) for entry in entries]
    return "".join(f"{key} = {value}\n" for key, value in [*lines, *raw])


def _networks(vmid: int, content: Conf) -> list[tuple[str, t.Any]]:
    lines: list[tuple[str, t.Any]] = []
    for key in sorted((key for key in content if re.fullmatch(r"net\d+", key)), key=lambda key: int(key[3:])):
        index, network = key[3:], parse_property_string(NETWORK, content[key])
        values = {
            "type": "veth",
            "link": network.get("bridge"),
            "veth.pair": f"veth{vmid}i{index}",
            "hwaddr": network.get("hwaddr"),
            "name": network["name"],
            "mtu": network.get("mtu"),
            "flags": None if network.get("link_down") else "up",
        }
        lines += [(f"lxc.net.{index}.{name}", value) for name, value in values.items() if value is not None]
    return lines or [("lxc.net.0.type", "empty")]


def _mounts(content: Conf, facts: Facts) -> list[str]:
    entries = []
    for key in sorted((key for key in content if re.fullmatch(r"mp\d+", key)), key=lambda key: int(key[2:])):
        mount = parse_property_string(MOUNT, content[key])
        options = ["bind"] + (["ro"] if mount.get("ro") else [])
        options.append("create=file" if mount_type(mount["volume"]) == "device" else "create=dir")
        entries.append(f"{facts.mounts[key]} {mount['mp'].lstrip('/')} none {','.join(options)} 0 0")
    return entries


def limits(content: Conf, controllers: set[str]) -> dict[str, t.Any]:
    """The cgroup2 files and values for memory, swap and CPUs, as far as the node has the controllers."""
    values: dict[str, t.Any] = {}
    if "memory" in controllers:
        memory = content.get("memory", 512)
        values["memory.max"] = memory * 1024 * 1024
        # Proxmox throttles a little below the hard limit: 128 MiB below it, or 1016/1024 of it for small guests.
        values["memory.high"] = (memory - 128) * 1024 * 1024 if memory >= 16 * 1024 else memory * 1024 * 1016
        values["memory.swap.max"] = content.get("swap", 512) * 1024 * 1024
    if "cpu" in controllers and float(content.get("cpulimit", 0)):
        values["cpu.max"] = f"{int(float(content['cpulimit']) * 100000)} 100000"
    if "cpu" in controllers and "cpuunits" in content:
        values["cpu.weight"] = min(max(content["cpuunits"], 1), 10000)
    if "cpuset" in controllers and "cores" in content:
        values["cpuset.cpus"] = f"0-{min(content['cores'], os.cpu_count() or 1) - 1}"
    return values
