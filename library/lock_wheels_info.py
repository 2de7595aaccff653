#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The wheels that a lock comes to on this machine."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: lock_wheels_info
short_description: The wheels that a lock comes to on this machine
version_added: "0.1.0"
description:
  - Lets C(uv) choose, for an interpreter of this machine, which file of each package of a lock it would install, and says where the index has it.
  - Only the index's pages are fetched. What another machine then fetches (M(wheel_cache)) is the same files, by their hashes.
author: [Slipway contributors]
extends_documentation_fragment: [slipway_source, slipway_source.ca_bundle]
options:
  lock_content:
    description: The lock.
    type: str
    required: true
  python:
    description: Names or paths of interpreters; the first that runs is the one that the wheels are for.
    type: list
    elements: str
    default: [python3]
  uv:
    description: Path or name of the C(uv) program on the target.
    type: str
    default: uv
  timeout_seconds:
    description: How long C(uv) may take.
    type: int
    default: 300
attributes:
  check_mode:
    description: It reads only.
    support: full
"""

EXAMPLES = r"""
- name: See which wheels this guest needs
  lock_wheels_info:
    lock_content: "{{ lookup('ansible.builtin.file', 'requirements.lock') }}"
    python: [python3.12]
    uv: /opt/slipway/bin/uv
"""

RETURN = r"""
wheels:
  description: The wheels, each with its package, file name, address without a login, sha256, and size in bytes (0 where the index does not say).
  returned: success
  type: list
  elements: dict
  sample:
    - name: six
      file: six-1.17.0-py2.py3-none-any.whl
      url: https://mirror.example/six/six-1.17.0-py2.py3-none-any.whl
      sha256: 4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274
      size_bytes: 11050
findings:
  description: What was found, such as V(PYTHON_MISSING), V(INDEX_UNREACHABLE), V(PACKAGE_UNAVAILABLE), V(HASH_MISMATCH).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.python import chosen, source

ARGUMENT_SPEC: dict[str, t.Any] = {
    "lock_content": {"type": "str", "required": True},
    "python": {"type": "list", "elements": "str", "default": ["python3"]},
    "uv": {"type": "str", "default": "uv"},
    "timeout_seconds": {"type": "int", "default": 300},
    **source.SPEC,
}


def run(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Let uv choose. Raises ``SlipwayError``."""
    try:
        wheels = chosen.choose(params, source.from_params(params))
    except SlipwayError as error:
        remedy = error.findings[0].remedy if error.findings else "Run again with -vvv"
        raise cannot("choose", "the wheels of the lock", here(), str(error), remedy, error.findings) from None
    return {"changed": False, "wheels": [wheel.as_dict() for wheel in wheels], "findings": []}


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
