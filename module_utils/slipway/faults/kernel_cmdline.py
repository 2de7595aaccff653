# SPDX-License-Identifier: GPL-3.0-or-later
"""Kernel command line."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "KERNEL_CMDLINE_PENDING": Fault(
        "warn",
        "The running kernel was booted with other parameters than those that are declared.",
        "Reboot the host when that suits (pve_host_allow_reboot); the parameters are in force from then on.",
    ),
    "KERNEL_CMDLINE_NOT_TAKEN": Fault(
        "fail",
        "The host was rebooted since its kernel parameters were written, and its kernel still does not have them.",
        "See which disk and entry the firmware boots (efibootmgr -v, proxmox-boot-tool status): an EFI partition that is not "
        "among those that are refreshed, or an entry chosen by hand at the boot menu, brings the old parameters.",
        "lae/ansible-role-proxmox#292",
    ),
}
