# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.module_utils.slipway.cmdline import loader

BY_GRUB = "BOOT_IMAGE=/boot/vmlinuz-6.8.12-9-pve root=/dev/mapper/pve-root ro quiet"
BY_SYSTEMD = "initrd=\\EFI\\proxmox\\6.8.12-9-pve\\initrd.img-6.8.12-9-pve root=ZFS=rpool/ROOT/pve-1 boot=zfs"
NEITHER = "root=ZFS=rpool/ROOT/pve-1 boot=zfs"


@pytest.mark.parametrize(
    ("live", "info", "cmdline", "tool", "expected"),
    [
        (BY_GRUB, None, None, False, "grub"),
        (BY_GRUB, "GRUB 2.12-9+pmx2", None, False, "grub"),
        (BY_GRUB, None, None, True, "grub-proxmox-boot-tool"),
        # Files of systemd-boot that were left, or its word from before it started GRUB, do not count.
        (BY_GRUB, "systemd-boot 252.31-1~deb12u1", "root=ZFS=x", True, "grub-proxmox-boot-tool"),
        (BY_SYSTEMD, None, None, True, "systemd-boot"),
        (NEITHER, "systemd-boot 257.7-1", "root=ZFS=x", True, "systemd-boot"),
        # The mark of GRUB was copied into the file that systemd-boot reads.
        (BY_GRUB, "systemd-boot 257.7-1", BY_GRUB, True, "systemd-boot"),
        (BY_GRUB, None, BY_GRUB, True, "grub-proxmox-boot-tool"),
        (NEITHER, "GRUB 2.12", None, False, "grub"),
    ],
)
def test_the_loader_is_the_one_that_booted(
    live: str, info: str | None, cmdline: str | None, tool: bool, expected: str
) -> None:
    assert loader.find(loader.Evidence(live, info, cmdline, tool)).name == expected


@pytest.mark.parametrize(
    ("live", "info", "said"),
    [
        (
            NEITHER,
            None,
            "neither /proc/cmdline nor EFI shows by what it was booted, and only GRUB and systemd-boot are known",
        ),
        (NEITHER, "rEFInd 0.14", "EFI names its boot loader 'rEFInd 0.14', and only GRUB and systemd-boot are known"),
        (
            BY_SYSTEMD,
            None,
            "it boots by systemd-boot, and /etc/kernel/proxmox-boot-uuids names no partition to refresh",
        ),
    ],
)
def test_what_is_not_known_is_said(live: str, info: str | None, said: str) -> None:
    with pytest.raises(ValueError) as error:
        loader.find(loader.Evidence(live, info, None, False))
    assert str(error.value) == said


def test_what_efi_says() -> None:
    assert loader.loader_info(b"\6\0\0\0" + "systemd-boot 257\0".encode("utf-16-le")) == "systemd-boot 257"
    assert loader.loader_info(b"\6\0\0\0") is None
    assert loader.loader_info(None) is None
