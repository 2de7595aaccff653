# SPDX-License-Identifier: GPL-3.0-or-later
"""The containers themselves: LXC, driven through its own commands and one systemd unit a container, as on Proxmox."""

from __future__ import annotations

import json
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
import time
import typing as t
from pathlib import Path

from . import links, lxclog
from .conf import Conf
from .errors import died
from .formats import parse_property_string
from .lxcconf import ID_COUNT, ID_OFFSET, PassedDevice, limits
from .schema import DEVICE
from .tasks import Say

START_TIMEOUT_SECONDS = 30
CAP_SYS_RESOURCE = 24
UNITS = {False: "pve-container@{}.service", True: "pve-container-debug@{}.service"}
UNPACK = {"gz": "gzip", "xz": "xz", "zst": "zstd", "bz2": "bzip2"}


class Runtime(t.Protocol):
    """What the API asks of the containers; the unit tests have one of their own."""

    def running(self, vmid: int) -> bool: ...
    def pid(self, vmid: int) -> int | None: ...
    def controllers(self) -> set[str]: ...
    def device(self, path: str) -> tuple[int, int]: ...
    def plug_device(self, vmid: int, key: str, value: str) -> bool: ...
    def plug_mount(self, vmid: int, source: str, target: str, read_only: bool) -> bool: ...
    def plug_network(self, vmid: int, key: str, old: str | None, new: str) -> bool: ...
    def unplug_network(self, vmid: int, key: str) -> bool: ...
    def limit(self, vmid: int, content: Conf) -> None: ...
    def unpack(self, archive: Path, rootfs: Path, say: Say) -> None: ...
    def pass_device(self, vmid: int, device: dict[str, t.Any], unprivileged: bool) -> PassedDevice: ...
    def start(self, vmid: int, config: str, say: Say, debug: bool = False) -> None: ...
    def stop(self, vmid: int, timeout_seconds: int | None) -> bool: ...
    def freeze(self, vmid: int, frozen: bool) -> bool: ...
    def forget(self, vmid: int) -> None: ...
    def attach(self, vmid: int, command: list[str], stdin: t.IO[bytes] | None = None) -> int: ...
    def interfaces(self, vmid: int) -> list[dict[str, t.Any]]: ...


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, stdin=subprocess.DEVNULL)


class Lxc:
    """LXC on this machine. What belongs to one guest lies below /var/lib/lxc/<vmid>."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def folder(self, vmid: int) -> Path:
        return self.root / f"var/lib/lxc/{vmid}"

    def stderr(self, vmid: int) -> Path:
        """Where the unit leaves what lxc-start had to say."""
        return self.root / f"run/pve/ct-{vmid}.stderr"

    def running(self, vmid: int) -> bool:
        """A container runs as long as its monitor's command socket is there: this costs no process."""
        return f"@/var/lib/lxc/{vmid}/command" in Path("/proc/net/unix").read_text().split()

    def pid(self, vmid: int) -> int | None:
        """The guest's init as the node sees it."""
        found = _run("lxc-info", "-n", str(vmid), "-p", "-H").stdout.strip()
        return int(found) if found.isdecimal() and int(found) > 0 else None

    def controllers(self) -> set[str]:
        """cgroup2 controllers of the node; a rig on a machine with cgroup v1 has none to hand on."""
        path = self.root / "sys/fs/cgroup/cgroup.controllers"
        return set(path.read_text().split()) if path.exists() else set()

    def device(self, path: str) -> tuple[int, int]:
        """Mode and number of a device node of the node. Raises ApiError with Proxmox's words."""
        try:
            found = os.stat(path)
        except FileNotFoundError:
            raise died(f"Device {path} does not exist") from None
        except OSError:
            raise died(f"Error accessing device {path}") from None
        if not (stat.S_ISCHR(found.st_mode) or stat.S_ISBLK(found.st_mode)):
            raise died(f"{path} is not a device")
        return found.st_mode, found.st_rdev

    def pass_device(self, vmid: int, device: dict[str, t.Any], unprivileged: bool) -> PassedDevice:
        """Make the node that a guest will see: same number, owned by the guest's IDs.

        It lies on the node's root file system: below /run it would be dead, because that is mounted nodev.
        """
        mode, number = self.device(device["path"])
        if "mode" in device:
            mode = stat.S_IFMT(mode) | int(device["mode"], 8)
        made = self.folder(vmid) / "passthrough" / device["path"].lstrip("/")
        made.parent.mkdir(parents=True, exist_ok=True)
        made.unlink(missing_ok=True)
        os.mknod(made, mode, number)
        offset = ID_OFFSET if unprivileged else 0
        os.chown(made, offset + int(device.get("uid", 0)), offset + int(device.get("gid", 0)))
        made.chmod(stat.S_IMODE(mode))
        return PassedDevice(str(made), device["path"], mode, number, not device.get("deny-write"))

    def plug_device(self, vmid: int, key: str, value: str) -> bool:
        """Bind one more device into a running guest and let it through the guest's gate."""
        pid = self.pid(vmid)
        if pid is None:
            return False
        owner = os.stat(f"/proc/{pid}").st_uid
        device = self.pass_device(vmid, parse_property_string(DEVICE, value), unprivileged=owner >= ID_OFFSET)
        allowed = _run("lxc-cgroup", "-n", str(vmid), "devices.allow", device.rule)
        if allowed.returncode:
            return False
        return _plug(pid, device.source, device.target)

    def plug_mount(self, vmid: int, source: str, target: str, read_only: bool) -> bool:
        """Bind one more folder into a running guest."""
        pid = self.pid(vmid)
        return pid is not None and _plug(pid, source, target, *(["ro"] if read_only else []))

    def plug_network(self, vmid: int, key: str, old: str | None, new: str) -> bool:
        """Give a running guest a network interface, or change one."""
        pid = self.pid(vmid)
        return pid is not None and links.plug(pid, f"veth{vmid}i{key[3:]}", old, new)

    def unplug_network(self, vmid: int, key: str) -> bool:
        """Take a network interface away from a running guest."""
        return links.unplug(f"veth{vmid}i{key[3:]}")

    def limit(self, vmid: int, content: Conf) -> None:
        """Bring memory and CPU limits of a running guest in line with its configuration."""
        for name, value in limits(content, self.controllers()).items():
            _run("lxc-cgroup", "-n", str(vmid), name, str(value))

    def unpack(self, archive: Path, rootfs: Path, say: Say) -> None:
        """Unpack a template as the guest's own root, so that owners, modes and setuid bits come out right."""
        say(f"extracting archive '{archive}'")
        maps = [part for kind in "ug" for part in ("-m", f"{kind}:0:{ID_OFFSET}:{ID_COUNT}")]
        tar = ["tar", "xpf", "-", "--numeric-owner", "--xattrs", "--xattrs-include=user.*", "-C", str(rootfs)]
        with subprocess.Popen([UNPACK[archive.suffix[1:]], "-dc", str(archive)], stdout=subprocess.PIPE) as reader:
            result = subprocess.run(
                ["lxc-usernsexec", *maps, "--", *tar, "--anchored", "--exclude=./dev/*"],
                stdin=reader.stdout,
                capture_output=True,
                text=True,
            )
        if result.returncode or reader.returncode:
            raise died(f"unable to restore CT: command 'tar' failed: {result.stderr.strip() or reader.returncode}")

    def start(self, vmid: int, config: str, say: Say, debug: bool = False) -> None:
        """Write LXC's configuration and start the guest's unit; returns when the guest runs.

        With ``debug`` LXC tells all that it does, and the log of the task has it.
        """
        folder = self.folder(vmid)
        folder.mkdir(parents=True, exist_ok=True)
        folder.parent.chmod(0o711)  # the shifted root must come through to the nodes made for it
        folder.chmod(0o755)
        (folder / "config").write_text(config)
        possible, dropped = without_forbidden_limits(config)
        for line in dropped:
            say(f"WARN: this machine does not let root raise limits, the guest starts without '{line}'")
        (folder / "rig.conf").write_text(possible)
        self.stderr(vmid).parent.mkdir(parents=True, exist_ok=True)
        self.stderr(vmid).unlink(missing_ok=True)
        unit = UNITS[debug].format(vmid)
        _run("systemctl", "reset-failed", unit)
        _run("systemctl", "start", unit)
        deadline = time.monotonic() + START_TIMEOUT_SECONDS
        while time.monotonic() < deadline:
            if _run("lxc-info", "-n", str(vmid), "-s", "-H").stdout.strip() == "RUNNING":
                if debug:
                    self._tell(vmid, say)
                return
            if _run("systemctl", "is-active", unit).stdout.strip() not in ("active", "activating"):
                break
            time.sleep(0.1)
        self._tell(vmid, say)
        raise died(f"startup for container '{vmid}' failed")

    def _tell(self, vmid: int, say: Say) -> None:
        if self.stderr(vmid).exists():
            for line in lxclog.shown(vmid, self.stderr(vmid).read_text(errors="replace")):
                say(line)

    def stop(self, vmid: int, timeout_seconds: int | None) -> bool:
        """Shut a guest down within a time, or kill it (None); says whether it is down."""
        how = ["--kill"] if timeout_seconds is None else ["--nokill", "--timeout", str(timeout_seconds)]
        _run("lxc-stop", "-n", str(vmid), *how)
        for _ in range(50):
            if not self.running(vmid):
                _run("systemctl", "stop", *(unit.format(vmid) for unit in UNITS.values()))
                return True
            if timeout_seconds is not None:
                break
            time.sleep(0.1)
        return False

    def freeze(self, vmid: int, frozen: bool) -> bool:
        """Hold a running guest still while its files are copied, or let it go on; says whether that worked."""
        done = _run("lxc-freeze" if frozen else "lxc-unfreeze", "-n", str(vmid)).returncode == 0
        if done and frozen:
            os.sync()
        return done

    def forget(self, vmid: int) -> None:
        """Remove what was made for a guest beside its volumes."""
        shutil.rmtree(self.folder(vmid), ignore_errors=True)
        self.stderr(vmid).unlink(missing_ok=True)

    def attach(self, vmid: int, command: list[str], stdin: t.IO[bytes] | None = None) -> int:
        """Run a command inside and pass its exit status on."""
        started_with = ["-f", str(self.folder(vmid) / "rig.conf")]
        return subprocess.run(["lxc-attach", "-n", str(vmid), *started_with, "--", *command], stdin=stdin).returncode

    def interfaces(self, vmid: int) -> list[dict[str, t.Any]]:
        """The guest's interfaces; the node's own ``ip`` looks into its network."""
        found = _run("lxc-attach", "-n", str(vmid), "-s", "NETWORK", "--", "ip", "-json", "address")
        return interfaces(json.loads(found.stdout or "[]"))


def _plug(pid: int, *words: str) -> bool:
    plug = [sys.executable, "-m", "pve.plug", str(pid), *words]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[1])}
    return subprocess.run(plug, env=environment, capture_output=True).returncode == 0


def may_raise_limits() -> bool:
    """Whether root has CAP_SYS_RESOURCE here; on some machines that run the rig (not on Proxmox) it has not."""
    found = re.search(r"(?m)^CapEff:\s*([0-9a-f]+)$", Path("/proc/self/status").read_text())
    return bool(found and int(found[1], 16) >> CAP_SYS_RESOURCE & 1)


def without_forbidden_limits(config: str, may_raise: t.Callable[[], bool] = may_raise_limits) -> tuple[str, list[str]]:
    """LXC's configuration without the ``lxc.prlimit`` lines that would fail here, and those lines.

    ``/var/lib/lxc/<vmid>/config`` keeps them: that file says what Proxmox asked for.
    """
    kept, dropped = [], []
    for line in config.splitlines():
        found = re.fullmatch(r"lxc\.prlimit\.(\w+) = (?:\w+:)?(\d+|unlimited)", line)
        kind = getattr(resource, f"RLIMIT_{found[1].upper()}", None) if found else None
        if found and kind is not None and not may_raise():
            hard = resource.getrlimit(kind)[1]
            if hard != resource.RLIM_INFINITY and (found[2] == "unlimited" or int(found[2]) > hard):
                dropped.append(line)
                continue
        kept.append(line)
    return "".join(line + "\n" for line in kept), dropped


def interfaces(links: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """Output of ``ip -json address`` in the API's form."""
    result = []
    for link in links:
        entry: dict[str, t.Any] = {"name": link["ifname"], "hwaddr": link.get("address", "")}
        entry["hardware-address"] = entry["hwaddr"]
        entry["ip-addresses"] = [
            {"ip-address": a["local"], "ip-address-type": a["family"], "prefix": a["prefixlen"]}
            for a in link.get("addr_info", [])
        ]
        for address in reversed(link.get("addr_info", [])):
            entry[address["family"]] = f"{address['local']}/{address['prefixlen']}"
        result.append(entry)
    return result
