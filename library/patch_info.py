#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Patches before there is an environment to apply them to."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: patch_info
short_description: Patches before there is an environment to apply them to
version_added: "0.1.0"
description:
  - Says of patches whether they are sound, and made for the versions that a lock has, so that a deploy that would end at one of them is not begun.
author: [Slipway contributors]
options:
  patches:
    description: The patches, as M(site_patch) takes them.
    type: list
    elements: raw
    required: true
  lock_content:
    description: The lock of the environment. Empty where it is not known; then only the patches themselves are looked at.
    type: str
    default: ""
attributes:
  check_mode:
    description: It reads only.
    support: full
"""

EXAMPLES = r"""
- name: See whether the profile's patches fit its lock
  patch_info:
    patches: [/srv/patches/sglang-sm120-extend-attention]
    lock_content: "{{ lookup('ansible.builtin.file', 'requirements.lock') }}"
  delegate_to: localhost
"""

RETURN = r"""
patches:
  description: The ids of the patches, in their order.
  returned: success
  type: list
  elements: str
  sample: [sglang-sm120-extend-attention]
findings:
  description: What stands in the way, such as V(PATCH_INVALID), V(PATCH_VERSION_UNKNOWN), V(PATCH_PACKAGE_MISSING).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.patching import folders, foresee

ARGUMENT_SPEC: dict[str, t.Any] = {
    "patches": {"type": "list", "elements": "raw", "required": True},
    "lock_content": {"type": "str", "default": ""},
}


def run(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Look at the patches. Raises ``SlipwayError``."""
    try:
        declared = folders.declared(params["patches"])
        findings = foresee.findings(declared, params["lock_content"])
    except SlipwayError as error:
        remedy = error.findings[0].remedy if error.findings else "Correct them"
        raise cannot("read", "patches and lock", here(), str(error), remedy, error.findings) from None
    names = [str(one.get("id", "")) for one in declared]
    return {"changed": False, "patches": names, "findings": [one.as_dict() for one in findings]}


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = run(module.params)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
