#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A Python package index, as this machine reaches it."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: package_index_info
short_description: A Python package index, as this machine reaches it
version_added: "0.1.0"
description:
  - Asks the index for each package of a lock, by the way that C(python_stack) would take, and says what stands in the way.
  - Nothing is downloaded but the index's pages, and nothing is changed.
author: [Slipway contributors]
extends_documentation_fragment: [slipway_source]
options:
  lock_content:
    description: The lock whose packages are looked up.
    type: str
    required: true
  index:
    description: Address of the package index, without a login. Needed.
    type: str
    default: ""
  ca_content:
    description: The CAs to trust in the place of the system's, as the text of a file, so that it need not be on the machine yet.
    type: str
    default: ""
  timeout_seconds:
    description: How long one answer may take.
    type: int
    default: 15
attributes:
  check_mode:
    description: It reads only.
    support: full
"""

EXAMPLES = r"""
- name: Look whether the mirror has what the lock names
  package_index_info:
    index: https://mirror.example/simple
    lock_content: "{{ lookup('ansible.builtin.file', 'requirements.lock') }}"
"""

RETURN = r"""
packages:
  description: How many packages were looked up.
  returned: success
  type: int
findings:
  description: >-
    What was found, such as V(NETWORK_UNREACHABLE), V(PROXY_REFUSED), V(CA_UNTRUSTED), V(INDEX_UNREACHABLE), V(PACKAGE_UNAVAILABLE).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.python import index, lock, source

ARGUMENT_SPEC: dict[str, t.Any] = {
    "lock_content": {"type": "str", "required": True},
    **{name: option for name, option in source.SPEC.items() if name != "ca_bundle"},
    "ca_content": {"type": "str", "default": ""},
    "timeout_seconds": {"type": "int", "default": 15},
}


def run(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Look the lock's packages up. Raises ``SlipwayError`` where the lock cannot be read."""
    requirements = list({one.name: one for one in lock.parse(params["lock_content"])}.values())
    findings = index.look(source.from_params(params), requirements, params["ca_content"], params["timeout_seconds"])
    return {"changed": False, "packages": len(requirements), "findings": [one.as_dict() for one in findings]}


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
