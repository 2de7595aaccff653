# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel that runs and the one that boots next, each with the driver's module that is installed for it.

A kernel that was upgraded is met at the next boot, and a driver that was not built for it is missed only then
(NVIDIA/open-gpu-kernel-modules#1143). What boots next is a pin for one boot, a pin, or the newest kernel (proxmox-boot-tool's
``kernel pin``; GRUB's default entry is the newest too).
"""

from __future__ import annotations

import os
import re
import subprocess
import typing as t
from dataclasses import asdict, dataclass
from pathlib import Path

from ..findings import Finding, finding

_PINS = ("etc/kernel/next-boot-pin", "etc/kernel/proxmox-boot-pin")
_SECONDS = 60.0
# "nvidia/580.105.08, 6.14.11-4-pve, x86_64: installed"; what is only added has no kernel.
_DKMS = re.compile(r"^(nvidia[\w.-]*)[/,]\s*([^,:\s]+)(?:,\s*([^,\s]+),\s*[^:\s]+)?:\s*(.+?)\s*$")

Ask = t.Callable[[t.Sequence[str]], str]


@dataclass(frozen=True)
class Kernel:
    """``driver`` is the version of the module that this kernel would load, ``None`` without one; ``dkms`` what DKMS says of it there."""

    release: str
    running: bool
    next: bool
    driver: str | None
    dkms: str | None

    def as_dict(self) -> dict[str, t.Any]:
        """The kernel as the module returns it."""
        return asdict(self)


@dataclass(frozen=True)
class Build:
    """One line of ``dkms status`` about the driver. ``release`` is ``None`` for what is only known, and built for no kernel yet."""

    name: str
    version: str
    release: str | None
    state: str


def ask(command: t.Sequence[str]) -> str:
    """What a program prints; nothing where there is no such program or it fails."""
    try:
        environment = {**os.environ, "LC_ALL": "C", "PATH": f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin"}
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS, check=False, env=environment
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""


def look(root: Path, running: str, ask: Ask = ask) -> tuple[list[Kernel], list[Build]]:
    """The running kernel, then the next one if that is another; and what DKMS has of the driver."""
    following = next_release(root) or running
    builds = dkms_builds(ask(["dkms", "status"]))
    found = []
    for release in dict.fromkeys((running, following)):
        driver = ask(["modinfo", "-k", release, "-F", "version", "nvidia"]).strip() or None
        states = [f"{one.name}/{one.version}: {one.state}" for one in builds if one.release == release]
        found.append(Kernel(release, release == running, release == following, driver, "; ".join(states) or None))
    return found, builds


def next_release(root: Path) -> str | None:
    """The kernel that the boot loader starts by itself; ``None`` where ``/boot`` has none."""
    for pin in _PINS:
        path = root / pin
        pinned = path.read_text("utf-8", "replace").strip() if path.is_file() else ""
        if pinned and (root / f"boot/vmlinuz-{pinned}").exists():
            return pinned
    releases = [path.name.removeprefix("vmlinuz-") for path in (root / "boot").glob("vmlinuz-*")]
    return max(releases, key=_by_version, default=None)


def _by_version(release: str) -> list[tuple[int, str]]:
    """So that 6.14.11-10 comes after 6.14.11-9."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"[.\-+~_]", release)]


def dkms_builds(status: str) -> list[Build]:
    """Read ``dkms status`` (DKMS 2 and 3), the lines of NVIDIA's driver."""
    found = [_DKMS.match(line) for line in status.splitlines()]
    return [Build(one[1], one[2], one[3], one[4]) for one in found if one]


def faults(kernels: t.Sequence[Kernel], builds: t.Sequence[Build], version: str) -> list[Finding]:
    """What is said of the next kernel where the module of this version is not installed for it."""
    found = []
    for one in kernels:
        if not one.next or one.driver == version:
            continue
        has = f"it has {one.driver}" if one.driver else "it has no module of it"
        known = one.dkms or (
            f"DKMS has {', '.join(sorted({f'{b.name}/{b.version}' for b in builds}))}" if builds else ""
        )
        detail = f"{has}; {known or 'DKMS knows no driver'}"
        found.append(finding("DRIVER_KERNEL_MISSING", f"kernel {one.release}", detail))
    return found
