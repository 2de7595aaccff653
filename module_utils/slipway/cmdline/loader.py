# SPDX-License-Identifier: GPL-3.0-or-later
"""Which boot loader has given the running kernel its command line, and so which file and tool the next one comes from. Pure.

What is installed says little: a host has GRUB's files and boots by systemd-boot, or has left systemd-boot behind
(lae/ansible-role-proxmox#292). The running kernel itself tells, and EFI's ``LoaderInfo``
(https://systemd.io/BOOT_LOADER_INTERFACE), which systemd-boot and newer GRUBs set.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from . import parameters

GRUB, SYSTEMD_BOOT, GRUB_PROXMOX = "grub", "systemd-boot", "grub-proxmox-boot-tool"
DEFAULT_GRUB, KERNEL_CMDLINE = "/etc/default/grub", "/etc/kernel/cmdline"


@dataclass(frozen=True)
class Evidence:
    """``live`` is /proc/cmdline, ``loader_info`` EFI's word or None, ``cmdline`` the text of /etc/kernel/cmdline or None.

    ``proxmox_boot_tool`` is whether that tool keeps EFI partitions (``/etc/kernel/proxmox-boot-uuids`` names some).
    """

    live: str
    loader_info: str | None
    cmdline: str | None
    proxmox_boot_tool: bool


@dataclass(frozen=True)
class Loader:
    """A boot loader as it is set up here: the file with the parameters, and the command that makes them its own.

    Under proxmox-boot-tool ``update-grub`` alone would write a configuration that nothing boots from; ``refresh`` runs it for
    each EFI partition (pve-docs, Host Bootloader).
    """

    name: str
    file: str
    refresh: tuple[str, ...]


LOADERS = {
    GRUB: Loader(GRUB, DEFAULT_GRUB, ("update-grub",)),
    GRUB_PROXMOX: Loader(GRUB_PROXMOX, DEFAULT_GRUB, ("proxmox-boot-tool", "refresh")),
    SYSTEMD_BOOT: Loader(SYSTEMD_BOOT, KERNEL_CMDLINE, ("proxmox-boot-tool", "refresh")),
}


def find(evidence: Evidence) -> Loader:
    """The loader that this host boots by. Raises ValueError, saying what was seen, where it is none of ``LOADERS``."""
    booted = _booted_by(evidence)
    if booted == GRUB:
        return LOADERS[GRUB_PROXMOX if evidence.proxmox_boot_tool else GRUB]
    if not evidence.proxmox_boot_tool:
        raise ValueError("it boots by systemd-boot, and /etc/kernel/proxmox-boot-uuids names no partition to refresh")
    return LOADERS[SYSTEMD_BOOT]


def _booted_by(evidence: Evidence) -> str:
    live = parameters.parse(evidence.live)
    # systemd-boot, up to some version, puts the initrd behind the line, as a path of EFI; GRUB passes it otherwise.
    if any(one.name == "initrd" and (one.value or "").startswith("\\") for one in live):
        return SYSTEMD_BOOT
    info = (evidence.loader_info or "").lower()
    # Where /etc/kernel/cmdline was once copied from a line that GRUB gave, its mark has come along.
    copied = _has_boot_image(parameters.parse(evidence.cmdline or ""))
    if _has_boot_image(live) and not (copied and info.startswith(SYSTEMD_BOOT)):
        return GRUB
    for name in (SYSTEMD_BOOT, GRUB):
        if info.startswith(name):
            return name
    seen = (
        f"EFI names its boot loader {evidence.loader_info!r}"
        if info
        else "neither /proc/cmdline nor EFI shows by what it was booted"
    )
    raise ValueError(f"{seen}, and only GRUB and systemd-boot are known")


def _has_boot_image(line: t.Iterable[parameters.Parameter]) -> bool:
    return any(one.name == "BOOT_IMAGE" for one in line)


def loader_info(data: bytes | None) -> str | None:
    """The value of EFI's variable LoaderInfo: four bytes of attributes, then UTF-16 up to a zero."""
    if not data or len(data) < 6:
        return None
    return data[4:].decode("utf-16-le", errors="replace").split("\0")[0].strip() or None
