# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernels as files and as packages. That a node starts by them, and what DKMS makes of them, is shown on a node."""

from __future__ import annotations

import ctypes
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from boot import install, kernels, loader


def test_a_kernel_brings_what_others_look_at(tmp_path: Path) -> None:
    kernels.install(tmp_path, "6.17.4-1-pve")
    initrd = tmp_path / "boot/initrd.img-6.17.4-1-pve"
    initrd.write_bytes(b"made by update-initramfs")
    kernels.install(tmp_path, "6.17.4-1-pve")
    assert initrd.read_bytes() == b"made by update-initramfs", "kept when it is done again"
    assert (tmp_path / "boot/vmlinuz-6.17.4-1-pve").exists()
    assert (tmp_path / "usr/lib/modules/6.17.4-1-pve/build").is_dir()


def test_the_next_kernel_is_the_newer_one() -> None:
    assert sorted(kernels.RELEASES, key=loader.version_key) == list(kernels.RELEASES)


def test_packages_part_kernel_and_headers(tmp_path: Path) -> None:
    if not shutil.which("dpkg-deb"):
        pytest.skip("needs dpkg-deb")
    folder = kernels.build(tmp_path)
    index = (folder / "Packages").read_text()
    assert re.findall(r"^Package: (.+)\nVersion: (.+)$", index, re.MULTILINE) == [
        ("proxmox-default-headers", "2.0.1"),
        ("proxmox-default-kernel", "2.0.1"),
        ("proxmox-headers-6.17.4-1-pve", "6.17.4-1"),
        ("proxmox-headers-6.17.9-1-pve", "6.17.9-1"),
        ("proxmox-kernel-6.17.4-1-pve-signed", "6.17.4-1"),
        ("proxmox-kernel-6.17.9-1-pve-signed", "6.17.9-1"),
    ]
    assert "Depends: proxmox-headers-6.17.9-1-pve\n" in index
    listed = {
        kind: subprocess.run(
            ["dpkg-deb", "--contents", next(folder.glob(f"proxmox-{kind}-6.17.9*"))],
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for kind in ("kernel", "headers")
    }
    assert "./boot/vmlinuz-6.17.9-1-pve" in listed["kernel"]
    assert "/build" not in listed["kernel"]
    assert "6.17.9-1-pve/build -> /usr/src/linux-headers-6.17.9-1-pve" in listed["headers"]


def test_programs_see_the_release_that_proc_tells(tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("no C compiler")
    (tmp_path / "etc").mkdir()
    kernels.preload(tmp_path)
    assert (tmp_path / "etc/ld.so.preload").read_text() == "/usr/lib/rig/uname.so\n"
    library = ctypes.CDLL(str(tmp_path / kernels.PRELOADED))
    name = ctypes.create_string_buffer(6 * 65)
    assert library.uname(name) == 0
    # Six fields of 65 bytes: sysname, nodename, release, ...
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    assert [name.raw[at * 65 :].split(b"\0")[0].decode() for at in (0, 2)] == ["Linux", release]
    assert release == platform.release()


def test_install_keeps_what_somebody_set(tmp_path: Path) -> None:
    install.install(tmp_path)
    defaults = tmp_path / "etc/default/grub"
    assert 'GRUB_CMDLINE_LINUX_DEFAULT="quiet amd_iommu=off"' in defaults.read_text()
    defaults.write_text("GRUB_DEFAULT=0\n")
    install.install(tmp_path)
    assert defaults.read_text() == "GRUB_DEFAULT=0\n"
    assert (tmp_path / "usr/sbin/proxmox-boot-tool").stat().st_mode & 0o111
