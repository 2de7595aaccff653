# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts into a node's root file system what its simulated GPUs need there: stand-ins for kmod, and a kernel's files."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

from gpu.hardware import GUEST_MOUNTS
from gpu.kmod import REAL

HERE = Path(__file__).resolve().parent
PACKAGE = "usr/share/rig/gpu"
# Most calls (an initramfs is hundreds of them) are none of ours: only what names an nvidia module starts Python.
STAND_IN = """\
#!/bin/sh
# The rig's: loads and unloads the simulated NVIDIA modules; all else goes to the real program beside it.
case " $* " in
*nvidia*) PYTHONPATH=/usr/share/rig exec python3 -sS -m gpu.kmod {program} "$@" ;;
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
    for name in ("__init__.py", "firmware.py", "kernel.py", "kmod.py", "mokutil.py", "signature.py"):
        shutil.copy(HERE / name, package / name)
    for program in ("modprobe", "rmmod"):
        _divert(rootfs, program)
    mokutil = rootfs / "usr/bin/mokutil"
    mokutil.write_text(MOKUTIL)
    mokutil.chmod(0o755)
    _kernel(rootfs, os.uname().release)
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


def _kernel(rootfs: Path, release: str) -> None:
    """What an installed kernel and its headers leave behind, as far as depmod, initramfs-tools and an installer look at it."""
    modules = rootfs / "usr/lib/modules" / release
    (modules / "kernel").mkdir(parents=True, exist_ok=True)
    (modules / "build").mkdir(exist_ok=True)
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        (modules / name).touch()
    boot = rootfs / "boot"
    boot.mkdir(exist_ok=True)
    (boot / f"vmlinuz-{release}").write_bytes(b"the rig's node has no kernel of its own\n")
    # mkinitramfs asks it which compressors the kernel knows.
    (boot / f"config-{release}").write_text(
        "CONFIG_BLK_DEV_INITRD=y\nCONFIG_RD_GZIP=y\nCONFIG_RD_ZSTD=y\nCONFIG_MODULES=y\n"
    )
    initrd = boot / f"initrd.img-{release}"
    if not initrd.exists():
        # Only updated if it is there: an empty archive until the first update.
        initrd.write_bytes(gzip.compress(b"070701" + b"0" * 88 + b"0000000b00000000TRAILER!!!\0\0\0\0"))
