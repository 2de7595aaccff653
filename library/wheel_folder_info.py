#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The wheels of a lock, in a folder."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: wheel_folder_info
short_description: The wheels of a lock, in a folder
version_added: "0.1.0"
description:
  - Finds the wheels that a lock names in a folder, by name, version and sha256, and says which are missing or are not the ones that are meant.
author: [Slipway contributors]
options:
  path:
    description: The folder.
    type: path
    required: true
  lock_content:
    description: The lock.
    type: str
    required: true
attributes:
  check_mode:
    description: It reads only.
    support: full
"""

EXAMPLES = r"""
- name: Look whether the folder is complete
  wheel_folder_info:
    path: /srv/wheels
    lock_content: "{{ lookup('ansible.builtin.file', 'requirements.lock') }}"
  delegate_to: localhost
"""

RETURN = r"""
wheels:
  description: The wheels that the lock names, each with its package, its path and its sha256.
  returned: success
  type: list
  elements: dict
  sample: [{name: six, path: /srv/wheels/six-1.17.0-py2.py3-none-any.whl, sha256: 4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274}]
findings:
  description: What was found, such as V(PACKAGE_UNAVAILABLE) and V(HASH_MISMATCH).
  returned: always
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.python import lock, wheel

ARGUMENT_SPEC: dict[str, t.Any] = {
    "path": {"type": "path", "required": True},
    "lock_content": {"type": "str", "required": True},
}


def run(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Find the lock's wheels. Raises ``SlipwayError``."""
    folder = Path(params["path"])
    if not folder.is_dir():
        raise cannot(
            "read", f"wheels '{folder}'", here(), "it is no folder", "Give the path of a folder with the lock's wheels"
        )
    try:
        wheels, findings = wheel.choose(folder, lock.parse(params["lock_content"]))
    except OSError as error:
        raise cannot("read", f"wheels '{folder}'", here(), str(error), "Make it readable") from None
    return {"changed": False, "wheels": wheels, "findings": [one.as_dict() for one in findings]}


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
