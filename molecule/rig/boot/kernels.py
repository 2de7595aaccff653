# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels of a node: the files that one leaves behind, the one that a node comes with, and others as Debian packages.

    python3 -m boot.kernels FOLDER

makes FOLDER/kernels (and kernels.tar) with ``proxmox-kernel-RELEASE-signed`` and ``proxmox-headers-RELEASE`` of ``RELEASES`` in a flat apt
repository, and ``proxmox-default-kernel`` and ``-headers`` that need those of the newest, if they have not been made before.
"""

from __future__ import annotations

import gzip
import shutil
import subprocess
import sys
import tarfile
import tempfile
import typing as t
from pathlib import Path

from gpu import packages

HERE = Path(__file__).resolve().parent
# The first is what a node comes with; the next is there to be installed.
RELEASES = ("6.17.4-1-pve", "6.17.9-1-pve")
# The kernel's own modules that the simulated hardware knows: who uses whom is in package/module.c.
MODULES = ("vfio", "vfio_iommu_type1", "vfio-pci-core", "vfio-pci")
DEFAULT_VERSION = "2.0.1"
PRELOADED = "usr/lib/rig/uname.so"
_SCRIPTS = {
    "kernel": {
        "postinst": "depmod @R@\nexec run-parts --report --exit-on-error --arg=@R@ --arg=/boot/vmlinuz-@R@ /etc/kernel/postinst.d\n",
        "postrm": "rm -f /boot/initrd.img-@R@\nexec run-parts --report --arg=@R@ --arg=/boot/vmlinuz-@R@ /etc/kernel/postrm.d\n",
    },
    "headers": {"postinst": "exec run-parts --report --exit-on-error --arg=@R@ /etc/kernel/header_postinst.d\n"},
}


def install(rootfs: Path, release: str) -> None:
    """Put a kernel with its headers into ``rootfs``, as a node comes with it; again is harmless."""
    kernel(rootfs, release)
    (rootfs / "usr/lib/modules" / release / "build").mkdir(exist_ok=True)
    initrd = rootfs / f"boot/initrd.img-{release}"
    if not initrd.exists():
        # Only updated if it is there: an empty archive until the first update.
        initrd.write_bytes(gzip.compress(b"070701" + b"0" * 88 + b"0000000b00000000TRAILER!!!\0\0\0\0"))


def kernel(root: Path, release: str) -> None:
    """What the package of a kernel holds, as far as depmod, initramfs-tools and an installer look at it."""
    target = root / "usr/lib/modules" / release
    (target / "kernel/drivers/vfio").mkdir(parents=True, exist_ok=True)
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        (target / name).touch()
    if shutil.which("gcc"):
        for module in MODULES:
            names = [f"-DMODULE_{module.replace('-', '_')}", '-DVERSION="0.2"', '-DLICENSE="GPL v2"']
            out = target / f"kernel/drivers/vfio/{module}.ko"
            _run("gcc", "-O2", "-c", *names, "-o", out, HERE.parent / "gpu/package/module.c")
    boot = root / "boot"
    boot.mkdir(exist_ok=True)
    (boot / f"vmlinuz-{release}").write_bytes(b"the rig's node has no kernel of its own\n")
    # mkinitramfs asks it which compressors the kernel knows.
    (boot / f"config-{release}").write_text(
        "CONFIG_BLK_DEV_INITRD=y\nCONFIG_RD_GZIP=y\nCONFIG_RD_ZSTD=y\nCONFIG_MODULES=y\n"
    )


def preload(rootfs: Path) -> None:
    """Make all programs of ``rootfs`` see the release of the kernel that was started."""
    library = rootfs / PRELOADED
    library.parent.mkdir(parents=True, exist_ok=True)
    _run("gcc", "-O2", "-Wall", "-shared", "-fPIC", "-o", library, HERE / "uname.c")
    (rootfs / "etc/ld.so.preload").write_text(f"/{PRELOADED}\n")


def build(folder: Path) -> Path:
    """Make ``folder/kernels``; its path."""
    target, mark = folder / "kernels", folder / "kernels/.made"
    if mark.exists():
        return target
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for release in RELEASES:
        with tempfile.TemporaryDirectory() as name:
            kernel(Path(name) / "kernel", release)
            _deb(Path(name) / "kernel", f"proxmox-kernel-{release}-signed", "kernel", release, target)
            headers = Path(name) / "headers"
            (headers / "usr/src" / f"linux-headers-{release}").mkdir(parents=True)
            (headers / "usr/src" / f"linux-headers-{release}" / "Makefile").touch()
            (headers / "usr/lib/modules" / release).mkdir(parents=True)
            (headers / "usr/lib/modules" / release / "build").symlink_to(f"/usr/src/linux-headers-{release}")
            _deb(headers, f"proxmox-headers-{release}", "headers", release, target)
    for kind, needed in (("kernel", "proxmox-kernel-{}-signed"), ("headers", "proxmox-headers-{}")):
        with tempfile.TemporaryDirectory() as name:
            depends = needed.format(RELEASES[-1])
            _deb(Path(name), f"proxmox-default-{kind}", "", DEFAULT_VERSION, target, {"Depends": depends})
    packages.index(target)
    with tarfile.open(folder / "kernels.tar", "w") as tar:
        for path in sorted(target.iterdir()):
            tar.add(path, path.name)
    mark.touch()
    return target


def _deb(root: Path, name: str, kind: str, release: str, target: Path, more: t.Mapping[str, str] | None = None) -> None:
    version = release.removesuffix("-pve")
    fields = {"Package": name, "Version": version, "Architecture": "amd64", "Section": "kernel"}
    fields |= {"Maintainer": "The rig <rig@rig.invalid>", **(more or {})}
    fields["Description"] = "simulated Proxmox kernel"
    (root / "DEBIAN").mkdir()
    (root / "DEBIAN/control").write_text("".join(f"{key}: {text}\n" for key, text in fields.items()))
    for script, text in _SCRIPTS.get(kind, {}).items():
        path = root / "DEBIAN" / script
        guard = '[ "$1" = configure ] || exit 0\n' if script == "postinst" else '[ "$1" = remove ] || exit 0\n'
        path.write_text("#!/bin/sh\nset -e\n" + guard + text.replace("@R@", release))
        path.chmod(0o755)
    _run("dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", root, target / f"{name}_{version}_amd64.deb")


def _run(*line: str | Path) -> None:
    subprocess.run([str(word) for word in line], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: kernels FOLDER")
    print(build(Path(sys.argv[1])))
