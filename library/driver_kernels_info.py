#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The kernel that runs and the one that boots next, and whether NVIDIA's driver is installed for them."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: driver_kernels_info
short_description: The kernel that runs, the one that boots next, and the NVIDIA driver that is installed for each
version_added: "0.2.0"
description:
  - Tells which kernel runs and which one boots next (a pin of C(proxmox-boot-tool), else the newest in C(/boot)), the version of
    NVIDIA's kernel module that is installed for each (C(modinfo)), and what DKMS says of it (C(dkms status)).
  - Changes nothing.
author:
  - Slipway contributors
options:
  version:
    description: The driver's version that the next kernel must have. Empty, nothing is judged.
    type: str
    default: ""
attributes:
  check_mode:
    description: Can run in check mode and tell what it would without it.
    support: full
  diff_mode:
    description: There is nothing to differ; the module never changes anything.
    support: none
"""

EXAMPLES = r"""
- name: See whether the next boot will have the driver
  driver_kernels_info:
    version: 580.105.08
  register: kernels
  failed_when: kernels.findings | length > 0
"""

RETURN = r"""
running:
  description: The kernel that runs.
  returned: success
  type: str
  sample: 6.14.11-4-pve
next:
  description: The kernel that boots next; the running one where C(/boot) has none.
  returned: success
  type: str
  sample: 6.14.11-5-pve
kernels:
  description: The running one, and the next one if that is another.
  returned: success
  type: list
  elements: dict
  contains:
    release: {description: Its name., type: str, sample: 6.14.11-5-pve}
    running: {description: Whether it runs., type: bool}
    next: {description: Whether it boots next., type: bool}
    driver: {description: The version of the module C(nvidia) that it would load, none without one., type: str, sample: 580.105.08}
    dkms: {description: What DKMS says of the driver for it, none if nothing., type: str, sample: "nvidia/580.105.08: installed"}
dkms_modules:
  description: Names under which DKMS knows the driver in O(version), or in any without it.
  returned: success
  type: list
  elements: str
  sample: [nvidia]
findings:
  description: V(DRIVER_KERNEL_MISSING) where the next kernel does not have the driver, each with its remedy.
  returned: always
  type: list
  elements: dict
"""

import platform
import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.gpu import kernels

ARGUMENT_SPEC: dict[str, t.Any] = {"version": {"type": "str", "default": ""}}


def run(
    params: dict[str, t.Any],
    check_mode: bool,
    root: Path = Path("/"),
    running: str = "",
    ask: kernels.Ask = kernels.ask,
) -> dict[str, t.Any]:
    """Look and judge. ``check_mode`` makes no difference: nothing is ever changed. Raises SlipwayError.

    ``root``, ``running`` and ``ask`` are where the files are, the running kernel and how programs are asked.
    """
    version = params["version"]
    try:
        found, builds = kernels.look(root, running or platform.release(), ask)
    except OSError as error:
        raise cannot("read", "the kernels", here(), f"{error.filename}: {error.strerror}", "Run as root") from error
    return {
        "changed": False,
        "running": next(one.release for one in found if one.running),
        "next": next(one.release for one in found if one.next),
        "kernels": [one.as_dict() for one in found],
        "dkms_modules": sorted({one.name for one in builds if not version or one.version == version}),
        "findings": [told.as_dict() for told in (kernels.faults(found, builds, version) if version else [])],
    }


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
