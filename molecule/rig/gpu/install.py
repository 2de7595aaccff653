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
# Most calls (an initramfs is hundreds of them) are none of ours: only what names one of the modules starts Python.
STAND_IN = """\
#!/bin/sh
# The rig's: loads and unloads the simulated modules; all else goes to the real program beside it.
case " $* " in
*nvidia* | *vfio*) PYTHONPATH=/usr/share/rig exec python3 -sS -m gpu.kmod {program} "$@" ;;
*) exec {real}/{program} "$@" ;;
esac
"""
# Modules that an administrator wants at boot. The kernel of this machine knows no others than the simulated ones.
LOAD_MODULES = """\
#!/bin/sh
# The rig's systemd-modules-load: modules of /etc/modules and modules-load.d, as far as the rig has them.
cat /etc/modules /etc/modules-load.d/*.conf /run/modules-load.d/*.conf /usr/lib/modules-load.d/*.conf 2>/dev/null |
	sed -n 's/^[[:space:]]*\\(\\(nvidia\\|vfio\\)[^[:space:]]*\\)[[:space:]]*$/\\1/p' | (
	status=0
	while read -r module; do modprobe -b "$module" || status=1; done
	exit $status
)
"""
UNITS = {
    "systemd-modules-load.service": """\
[Unit]
Description=Load Kernel Modules
DefaultDependencies=no
Conflicts=shutdown.target
After=pci-drivers.service
Before=sysinit.target shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/share/rig/bin/load-modules
""",
    "pci-drivers.service": """\
[Unit]
Description=Drivers of the PCI bus
DefaultDependencies=no
Conflicts=shutdown.target
After=local-fs.target
Before=sysinit.target shutdown.target

[Service]
Environment=PYTHONPATH=/usr/share/rig PYTHONDONTWRITEBYTECODE=1
ExecStart=/usr/bin/python3 -m gpu.busfs /run/rig/pci-drivers /sys/bus/pci/drivers
ExecStartPost=/bin/sh -c 'until mountpoint -q /sys/bus/pci/drivers; do sleep 0.05; done'
TimeoutStartSec=10
KillMode=mixed

[Install]
WantedBy=sysinit.target
""",
}
MOKUTIL = """\
#!/bin/sh
# The rig's: the keys that its firmware knows.
PYTHONPATH=/usr/share/rig exec python3 -sS -m gpu.mokutil "$@"
"""


def install(rootfs: Path) -> None:
    """Install into ``rootfs``, which holds Debian with kmod and initramfs-tools; again is harmless."""
    package = rootfs / PACKAGE
    package.mkdir(parents=True, exist_ok=True)
    for name in (
        "__init__.py",
        "busfs.py",
        "drivers.py",
        "firmware.py",
        "kernel.py",
        "kmod.py",
        "mokutil.py",
        "signature.py",
    ):
        shutil.copy(HERE / name, package / name)
    for program in ("modprobe", "rmmod"):
        _divert(rootfs, program)
    load = rootfs / "usr/share/rig/bin/load-modules"
    load.parent.mkdir(parents=True, exist_ok=True)
    load.write_text(LOAD_MODULES)
    load.chmod(0o755)
    units = rootfs / "etc/systemd/system"
    wanted = units / "sysinit.target.wants/pci-drivers.service"
    wanted.parent.mkdir(parents=True, exist_ok=True)
    for name, text in UNITS.items():
        (units / name).write_text(text)
    wanted.unlink(missing_ok=True)
    wanted.symlink_to("/etc/systemd/system/pci-drivers.service")
    mokutil = rootfs / "usr/bin/mokutil"
    mokutil.write_text(MOKUTIL)
    mokutil.chmod(0o755)
    rig = rootfs / "etc/rig"
    (rig / "hardware").mkdir(parents=True, exist_ok=True)
    (rig / "guest-mounts").write_text("\n".join(GUEST_MOUNTS) + "\n")


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
