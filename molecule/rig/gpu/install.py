# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts into a node's root file system what its simulated GPUs need there: stand-ins for kmod and mokutil."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from gpu.hardware import GUEST_MOUNTS
from gpu.kmod import REAL

HERE = Path(__file__).resolve().parent
PACKAGE = "usr/share/rig/gpu"
ON_NODES = ("__init__", "busfs", "drivers", "firmware", "kernel", "kmod", "mokutil", "signature")
# Most calls (an initramfs is hundreds of them) are none of ours: only what names one of the modules starts Python.
STAND_IN = """\
#!/bin/sh
# The rig's: loads and unloads the simulated modules; all else goes to the real program beside it.
case " $* " in
*nvidia* | *vfio*) PYTHONPATH=/usr/share/rig exec python3 -sS -m gpu.kmod {program} "$@" ;;
*) exec {real}/{program} "$@" ;;
esac
"""
MOKUTIL = """\
#!/bin/sh
# The rig's: the keys that its firmware knows.
PYTHONPATH=/usr/share/rig exec python3 -sS -m gpu.mokutil "$@"
"""


def install(rootfs: Path) -> None:
    """Install into ``rootfs``, which holds Debian with kmod and initramfs-tools; again is harmless."""
    package = rootfs / PACKAGE
    package.mkdir(parents=True, exist_ok=True)
    for name in ON_NODES:
        shutil.copy(HERE / f"{name}.py", package)
    for program in ("modprobe", "rmmod"):
        _divert(rootfs, program)
    _units(rootfs)
    mokutil = rootfs / "usr/bin/mokutil"
    mokutil.write_text(MOKUTIL)
    mokutil.chmod(0o755)
    rig = rootfs / "etc/rig"
    (rig / "hardware").mkdir(parents=True, exist_ok=True)
    (rig / "guest-mounts").write_text("\n".join(GUEST_MOUNTS) + "\n")


def _units(rootfs: Path) -> None:
    """What acts on writes into the bus's files, and what loads modules at boot."""
    load = rootfs / "usr/share/rig/bin/load-modules"
    load.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(HERE / "load-modules", load)
    load.chmod(0o755)
    units = rootfs / "etc/systemd/system"
    wanted = units / "sysinit.target.wants/pci-drivers.service"
    wanted.parent.mkdir(parents=True, exist_ok=True)
    for unit in (HERE / "units").iterdir():
        shutil.copy(unit, units)
    wanted.unlink(missing_ok=True)
    wanted.symlink_to("/etc/systemd/system/pci-drivers.service")


def _divert(rootfs: Path, program: str) -> None:
    """Move the real program aside, known to dpkg so that an upgrade of kmod goes there too, and stand in for it."""
    ours, real = rootfs / "usr/sbin" / program, rootfs / REAL.lstrip("/") / program
    if not real.is_symlink() and not real.exists():
        real.parent.mkdir(parents=True, exist_ok=True)
        # A link to kmod, which finds out by the link's name what it is to be: hence a folder of its own, not another name.
        if ours.is_symlink():
            real.symlink_to("/usr/bin/kmod")
        else:
            shutil.copy2(ours, real)
        with (rootfs / "var/lib/dpkg/diversions").open("a") as file:
            file.write(f"/usr/sbin/{program}\n{REAL}/{program}\n:\n")
    stand_in = ours.with_name(program + ".new")
    stand_in.write_text(STAND_IN.format(program=program, real=REAL))
    stand_in.chmod(0o755)
    os.replace(stand_in, ours)
