#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The guests of a Proxmox VE node, in the order in which it starts them."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pve_guests_info
short_description: The guests of a Proxmox VE node, in the order in which it starts them
version_added: "0.2.0"
description:
  - Reads the configuration of every guest of this node, containers and virtual machines, and tells which run, which start at boot,
    and in which order Proxmox starts them. It shuts them down in the reverse one. Templates are left out.
  - Must run as root on the node. Reads files only, so that it needs no API, and changes nothing.
author:
  - Slipway contributors
options: {}
attributes:
  check_mode:
    description: Can run in check mode and tell what it would without it.
    support: full
  diff_mode:
    description: There is nothing to differ; the module never changes anything.
    support: none
"""

EXAMPLES = r"""
- name: See which guests run
  pve_guests_info:
  register: node
"""

RETURN = r"""
guests:
  description: The guests, the one that is started first at the first place.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: Its number., type: int, sample: 105}
    kind: {description: C(lxc) or C(qemu)., type: str, sample: qemu}
    name: {description: Its name., type: str, sample: workstation}
    running: {description: Whether it runs., type: bool}
    onboot: {description: Whether it starts when the node boots., type: bool}
    order: {description: The order of its C(startup), none if it has none., type: int}
    passes_through: {description: "Whether it is set up to get a PCI device of the node (C(hostpciN))", type: bool}
findings:
  description: Always empty; what is wrong with a guest others tell.
  returned: always
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.pve import boot_order

ARGUMENT_SPEC: dict[str, t.Any] = {}


def run(params: dict[str, t.Any], check_mode: bool, root: Path = Path("/")) -> dict[str, t.Any]:
    """Look. ``check_mode`` makes no difference: nothing is ever changed. ``root`` is where the node's files are. Raises SlipwayError."""
    try:
        guests = boot_order.look(root)
    except OSError as error:
        remedy = "Run this as root on a Proxmox VE node"
        raise cannot("read", "the guests", here(), f"{error.filename}: {error.strerror}", remedy) from error
    return {"changed": False, "guests": [guest.as_dict() for guest in guests], "findings": []}


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
