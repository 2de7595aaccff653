# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts a boot loader, its tools and a kernel into a node's root file system, as Proxmox's installer leaves them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from . import kernels

HERE = Path(__file__).resolve().parent
TOOLS = {
    "grub-mkconfig": "usr/sbin/grub-mkconfig",
    "update-grub": "usr/sbin/update-grub",
    "proxmox-boot-tool": "usr/sbin/proxmox-boot-tool",
    "dkms": "usr/sbin/dkms",
    "boot-loader": "usr/share/rig/bin/boot-loader",
}
DEFAULT_GRUB = """\
# If you change this file, run 'update-grub' afterwards to update
# /boot/grub/grub.cfg.
# For full documentation of the options in this file, see:
#   info -f grub -n 'Simple configuration'

GRUB_DEFAULT=0
GRUB_TIMEOUT=5
GRUB_DISTRIBUTOR="Proxmox VE"
GRUB_CMDLINE_LINUX_DEFAULT="{line}"
GRUB_CMDLINE_LINUX=""
"""
# The IOMMU of this board is on unless the kernel is told otherwise.
LINE = "quiet amd_iommu=off"
# What a kernel and an initramfs that are new make others do: packages bring these hooks.
# DKMS builds for a kernel as soon as that and its headers are there; without headers it says so and lets the kernel in.
_DKMS_HOOK = """\
#!/bin/sh
[ -e "/lib/modules/$1/build" ] || { echo "dkms: WARNING: Linux headers are missing, which may explain the above failures." >&2; exit 0; }
dkms autoinstall -k "$1"
"""
HOOKS = {
    "etc/kernel/postinst.d/dkms": _DKMS_HOOK,
    "etc/kernel/header_postinst.d/dkms": _DKMS_HOOK,
    "etc/kernel/postinst.d/zz-update-grub": "#!/bin/sh\nexec update-grub\n",
    "etc/kernel/postrm.d/zz-update-grub": "#!/bin/sh\nexec update-grub\n",
    "etc/kernel/postinst.d/zz-proxmox-boot": "#!/bin/sh\nexec proxmox-boot-tool refresh\n",
    "etc/initramfs/post-update.d/proxmox-boot-sync": "#!/bin/sh\nexec proxmox-boot-tool refresh\n",
}
ROOT_UUID = "c2d1e1c0-6c1f-4c3f-9a55-0d5ad8a7b6c1"


def install(rootfs: Path) -> None:
    """Install into ``rootfs``; again it renews the tools and keeps what was set."""
    kernels.install(rootfs, kernels.RELEASES[0])
    for name, target in TOOLS.items():
        _write(rootfs / target, (HERE / "tools" / name).read_text(), 0o755)
    for name, text in HOOKS.items():
        _write(rootfs / name, text, 0o755)
    # A kernel that was pinned for one boot is let go of when that boot is there.
    unit = "proxmox-boot-cleanup.service"
    _write(rootfs / "etc/systemd/system" / unit, (HERE / "units" / unit).read_text())
    wanted = rootfs / "etc/systemd/system/multi-user.target.wants" / unit
    wanted.parent.mkdir(parents=True, exist_ok=True)
    if not wanted.is_symlink():
        wanted.symlink_to(f"/etc/systemd/system/{unit}")
    for name, text in (("root", "/dev/mapper/pve-root\n"), ("root-uuid", f"{ROOT_UUID}\n")):
        if not (rootfs / "etc/rig" / name).exists():
            _write(rootfs / "etc/rig" / name, text)
    if not (rootfs / "etc/default/grub").exists():
        _write(rootfs / "etc/default/grub", DEFAULT_GRUB.format(line=LINE))
    (rootfs / "boot/grub").mkdir(parents=True, exist_ok=True)


def first_start(rootfs: Path) -> None:
    """Make what the first start needs with the tools in ``rootfs``: a menu, the list of the kernel's modules."""
    chroot = shutil.which("chroot", path="/usr/sbin:/sbin:/usr/bin") or "chroot"
    for line in (["/usr/sbin/update-grub"], ["/usr/sbin/depmod", kernels.RELEASES[0]]):
        subprocess.run([chroot, str(rootfs), *line], check=True, capture_output=True)
    kernels.preload(rootfs)


def _write(path: Path, text: str, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
