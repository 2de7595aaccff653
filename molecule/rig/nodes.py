# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes: LXC system containers on the rig's bridge, each with simulated GPUs and an emulated Proxmox VE on top."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import subprocess
import time
from pathlib import Path

import boot.install
import boot.loader
import gpu.hardware
import gpu.install
import images
import network
import pve.install

# Written in full, with no include: it must mean the same on every host. Why each line: without a cgroup2 view of its own
# the node cannot gate devices for its guests; without a fully visible proc and sysfs (dev/.lxc) the kernel refuses to
# mount proc in an unprivileged guest.
CONFIG = """\
lxc.uts.name = {name}
lxc.arch = amd64
lxc.rootfs.path = dir:{rootfs}
lxc.net.0.type = veth
lxc.net.0.link = {bridge}
lxc.net.0.name = eth0
lxc.net.0.mtu = {mtu}
lxc.net.0.flags = up
lxc.mount.auto = proc:rw sys:mixed
lxc.mount.entry = cgroup2 sys/fs/cgroup cgroup2 rw,nosuid,nodev,noexec,relatime,create=dir 0 0
lxc.mount.entry = proc dev/.lxc/proc proc create=dir,optional 0 0
lxc.mount.entry = sys dev/.lxc/sys sysfs create=dir,optional 0 0
{hardware}
lxc.apparmor.profile = unconfined
lxc.pty.max = 1024
lxc.tty.max = 0
lxc.hook.version = 1
lxc.hook.pre-start = {power_on}
"""

NETWORK = {
    "10-vmbr0.netdev": "[NetDev]\nName=vmbr0\nKind=bridge\n{mtu}",
    "10-vmbr0.network": "[Match]\nName=vmbr0\n\n[Network]\nAddress={address}/24\nGateway={gateway}\nLinkLocalAddressing=no\n",
    "20-eth0.network": "[Match]\nName=eth0\n\n[Network]\nBridge=vmbr0\nLinkLocalAddressing=no\n",
}


def _lxc(command: str, lxc_path: Path, name: str, *rest: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    line = [f"lxc-{command}", "-P", str(lxc_path), "-n", name, *rest]
    return subprocess.run(line, check=check, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def is_running(lxc_path: Path, name: str) -> bool:
    """Whether the node's container runs."""
    return "RUNNING" in _lxc("info", lxc_path, name, "-s", check=False).stdout


def create(folder: Path, node: dict, fleet: dict) -> None:
    """Make the node's root file system and configuration below ``folder/lxc/<name>``, complete or not at all."""
    home = folder / "lxc" / node["name"]
    if (home / "complete").exists():
        return
    if home.exists():
        remove(folder, node["name"])
    rootfs = home / "rootfs"
    rootfs.mkdir(parents=True)
    # Unpacked as root with numeric owners; device nodes of the image are not wanted, LXC makes its own /dev.
    subprocess.run(
        [
            "tar",
            "--extract",
            "--numeric-owner",
            "--exclude=./dev/*",
            "-C",
            str(rootfs),
            "-f",
            str(images.node()),
        ],
        check=True,
    )
    _identity(rootfs, node, folder, fleet)
    gpu.install.install(rootfs)
    boot.install.install(rootfs)
    boot.install.first_start(rootfs)
    pve.install.install(rootfs, node)
    hardware = folder / "hardware" / node["name"]
    power_on = home / "power-on"
    power_on.write_text(
        f"#!/bin/sh\n# The node's hardware as after a power cycle, and what its boot loader starts, each time it starts.\n"
        f"cd {Path(__file__).parent} && exec {os.environ.get('SLIPWAY_PYTHON', 'python3')} -m gpu.hardware power-on {hardware} {node['gpus']} {rootfs} 2>>{folder / node['name']}.log\n"
    )
    power_on.chmod(0o755)
    gpu.hardware.power_on(hardware, node["gpus"], boot.loader.boot(rootfs))
    mounts = "\n".join(f"lxc.mount.entry = {mount}" for mount in gpu.hardware.node_mounts(hardware))
    config = CONFIG.format(
        name=node["name"], rootfs=rootfs, bridge=fleet["bridge"], mtu=fleet["mtu"], hardware=mounts, power_on=power_on
    )
    (home / "config").write_text(config)
    (home / "complete").touch()


def give_template(folder: Path, node: dict, name: str) -> None:
    """Put a guest template where the node's storage ``local`` has its templates. Raises ``images.NotToBeHad``."""
    target = folder / "lxc" / node["name"] / "rootfs/var/lib/vz/template/cache" / images.TEMPLATES[name].file
    if not target.exists():
        target.parent.mkdir(parents=True, exist_ok=True)
        part = target.with_name(f".{target.name}")
        shutil.copy(images.guest(name), part)
        part.replace(target)


def _identity(rootfs: Path, node: dict, folder: Path, fleet: dict) -> None:
    """Host name, network, resolver, CA bundle, SSH host key and the controller's key: what an installer leaves behind."""
    (rootfs / "etc/hostname").write_text(node["name"] + "\n")
    (rootfs / "etc/hosts").write_text(
        f"127.0.0.1 localhost\n{node['address']} {node['name']}.rig.invalid {node['name']}\n"
    )
    (rootfs / "etc/resolv.conf").write_text(network.resolver())
    bundle = Path("/etc/ssl/certs/ca-certificates.crt")
    if bundle.exists():
        shutil.copy(bundle, rootfs / "etc/ssl/certs/ca-certificates.crt")
    units = rootfs / "etc/systemd/network"
    for name, text in NETWORK.items():
        mtu = f"MTUBytes={fleet['mtu']}\n"
        (units / name).write_text(text.format(address=node["address"], gateway=f"{fleet['prefix']}.1", mtu=mtu))
    wants = rootfs / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True, exist_ok=True)
    (wants / "systemd-networkd.service").symlink_to("/usr/lib/systemd/system/systemd-networkd.service")
    for unit in (
        "sys-kernel-debug.mount",
        "systemd-udevd.service",
        "systemd-networkd-wait-online.service",
    ):
        (rootfs / "etc/systemd/system" / unit).symlink_to("/dev/null")
    shutil.copy(folder / "ssh" / f"{node['name']}_host_key", rootfs / "etc/ssh/ssh_host_ed25519_key")
    shutil.copy(folder / "ssh" / f"{node['name']}_host_key.pub", rootfs / "etc/ssh/ssh_host_ed25519_key.pub")
    (rootfs / "etc/ssh/ssh_host_ed25519_key").chmod(0o600)
    keys = rootfs / "root/.ssh"
    keys.mkdir(mode=0o700, exist_ok=True)
    shutil.copy(folder / "ssh/id_ed25519.pub", keys / "authorized_keys")


def start(folder: Path, node: dict, key: Path, known_hosts: Path, timeout_seconds: int = 300) -> None:
    """Start the node and wait until it answers SSH and its API listens."""
    lxc_path = folder / "lxc"
    if not is_running(lxc_path, node["name"]):
        log = folder / f"{node['name']}.log"
        done = _lxc("start", lxc_path, node["name"], "-d", "-o", str(log), "-l", "INFO", check=False)
        if done.returncode:
            raise SystemExit(f"rig: Cannot start node {node['name']}: {done.stdout.strip()}. The log is {log}.")
    ssh = [
        "ssh",
        "-i",
        str(key),
        "-o",
        f"UserKnownHostsFile={known_hosts}",
        "-o",
        "BatchMode=yes",
        "-o",
        "ConnectTimeout=3",
    ]
    probe = "systemctl is-active --quiet pveproxy.service && timeout 1 bash -c '</dev/tcp/127.0.0.1/8006'"
    deadline = time.monotonic() + timeout_seconds
    while True:
        done = subprocess.run([*ssh, f"root@{node['address']}", probe], capture_output=True, text=True)
        if done.returncode == 0:
            return
        if time.monotonic() > deadline:
            raise SystemExit(
                f"rig: node {node['name']} does not answer after {timeout_seconds} s: {done.stderr.strip() or probe}"
            )
        time.sleep(0.5)


def alive(below: Path) -> list[Path]:
    """The homes of nodes that run below a folder, also of those whose files somebody deleted under them.

    LXC keeps an abstract socket for each container that runs: ``@<path>/<name>/command``.
    """
    sockets = re.findall(rf"@({re.escape(str(below))}/\S+)/command$", Path("/proc/net/unix").read_text(), re.MULTILINE)
    return sorted({Path(home) for home in sockets})


def remove(folder: Path, name: str) -> None:
    """Kill the node with all that runs in it and delete its files, whatever state it is in."""
    home = folder / "lxc" / name
    if home.exists() or home in alive(folder):
        _lxc("stop", folder / "lxc", name, "-k", check=False)
    # Leftovers of a killed controller can still be mounted below; deleting through a mount would hit somebody else's files.
    mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
    for mount in sorted((m for m in mounts if m.startswith(f"{home}/")), reverse=True):
        subprocess.run(["umount", "-l", mount], check=True)
    if home.exists():
        shutil.rmtree(home)
    _remove_traces(home)


def _remove_traces(home: Path) -> None:
    """Remove what LXC leaves behind: lock files in folders named after the container's path, and an empty control group."""
    locks = Path("/run/lxc/lock") / home.parent.relative_to("/")
    shutil.rmtree(locks, ignore_errors=True)
    with contextlib.suppress(OSError):
        os.removedirs(locks.parent)  # as far up as they are empty
    for group in Path("/sys/fs/cgroup").glob("*/lxc.pivot"):
        with contextlib.suppress(OSError):
            group.rmdir()  # another container's turn keeps it
