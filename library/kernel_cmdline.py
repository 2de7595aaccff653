#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Kernel parameters, in the file that this host's boot loader reads."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: kernel_cmdline
short_description: Kernel parameters, in the file that this host's boot loader reads
version_added: "0.2.0"
description:
  - Finds out which boot loader gave the running kernel its command line, and keeps parameters in the file that this loader
    reads. GRUB (C(/etc/default/grub), C(update-grub)), GRUB under C(proxmox-boot-tool) (the same file,
    C(proxmox-boot-tool refresh)) and systemd-boot (C(/etc/kernel/cmdline), C(proxmox-boot-tool refresh)) are known.
  - Of GRUB it also reads the drop-ins in C(/etc/default/grub.d), in which Proxmox's installer leaves parameters, and changes what
    is named where it stands. A line that only a shell could evaluate is refused.
  - Touches only parameters that are named. Everything else, comments and other lines of the files included, stays byte for byte.
  - The file is written whole or not at all. The loader's tool runs only if something changed, or if a run before was stopped
    between the two, or if what somebody wrote into the file has not reached the kernel.
  - Never reboots. Tells whether a reboot is needed, and whether one has been in vain.
  - Must run as root on a node; a container has its node's kernel.
author:
  - Slipway contributors
options:
  parameters:
    description:
      - Parameters as they stand on a command line, such as C(iommu=pt) or C(dyndbg="file pci.c +p").
      - A name is there as declared, with this value and no other. Where a name may come several times (C(console=)), declare
        all of them, in their order. C(-) and C(_) in a name are the same, as they are to the kernel.
    type: list
    elements: str
    default: []
  absent:
    description: Parameters that must not be there. A name alone stands for every value, C(name=value) for this value only.
    type: list
    elements: str
    default: []
  timeout_seconds:
    description: How long the boot loader's tool may take. It copies kernels to each EFI partition.
    type: int
    default: 300
attributes:
  check_mode:
    description: Can run in check mode and tell what it would change.
    support: full
  diff_mode:
    description: Shows the file as it is and as it will be.
    support: full
"""

EXAMPLES = r"""
- name: Have the IOMMU pass through, and power management of PCIe off
  kernel_cmdline:
    parameters: [iommu=pt, pcie_aspm=off]
    absent: [amd_iommu, intel_iommu=off]
  register: boot

- name: Look only
  kernel_cmdline:
  check_mode: true
  register: boot
"""

RETURN = r"""
loader:
  description: C(grub), C(grub-proxmox-boot-tool) or C(systemd-boot), by which the running kernel was booted.
  returned: success
  type: str
file:
  description: The file that its parameters come from.
  returned: success
  type: str
  sample: /etc/default/grub
configured:
  description: The parameters of the next boot, as that file has them now (in check mode, as it would have them).
  returned: success
  type: str
live:
  description: The command line of the running kernel, C(/proc/cmdline).
  returned: success
  type: str
restart_required:
  description: Whether the running kernel was booted otherwise than declared, so that a reboot is needed.
  returned: success
  type: bool
refreshed:
  description: Whether the boot loader's tool has run (in check mode, whether it would).
  returned: success
  type: bool
findings:
  description: What was found, each with C(id), C(severity), C(subject), C(summary), C(detail), C(remedy), C(reference).
  returned: always
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.cmdline import boot
from ..module_utils.slipway.errors import SlipwayError, cannot, here

ARGUMENT_SPEC: dict[str, t.Any] = {
    "parameters": {"type": "list", "elements": "str", "default": []},
    "absent": {"type": "list", "elements": "str", "default": []},
    "timeout_seconds": {"type": "int", "default": 300},
}


def run(params: dict[str, t.Any], check_mode: bool, root: Path = Path("/")) -> dict[str, t.Any]:
    """Keep the parameters as declared on the host below ``root``. Raises SlipwayError."""
    if params["timeout_seconds"] < 1:
        raise cannot("read", "option 'timeout_seconds'", here(), "it is below 1", "Give whole seconds from 1 up")
    return boot.ensure(
        boot.Host(root), params["parameters"], params["absent"], check_mode, float(params["timeout_seconds"])
    )


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = run(module.params, module.check_mode)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
