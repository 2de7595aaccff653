#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The interpreter of a Python environment."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: python_interpreter
short_description: The interpreter of a Python environment
version_added: "0.2.0"
description:
  - Finds the first of some interpreters that runs, and where none does lets C(uv) install one in a folder of its own.
  - The machine's own Python is never touched. What C(uv) installed once stays, also where a newer release is out.
author: [Slipway contributors]
extends_documentation_fragment: [slipway_source, slipway_source.ca_bundle]
options:
  names:
    description: Names or paths, in order. The first with a version in its name (C(python3.12)) is the one that is installed.
    type: list
    elements: str
    required: true
  directory:
    description: Folder for interpreters that C(uv) installs. Those that are there already are found in it.
    type: path
    default: /opt/slipway/python
  install:
    description: Whether one may be installed.
    type: bool
    default: true
  mirror:
    description: Where C(uv) fetches interpreters from in the place of its own address, such as C(https://mirror.example/python) or C(file:///srv/python).
    type: str
    default: ""
  uv:
    description: Path or name of the C(uv) program on the target.
    type: str
    default: uv
  timeout_seconds:
    description: How long the installation may take.
    type: int
    default: 600
attributes:
  check_mode:
    description: Says whether one would be installed; that has no path yet.
    support: full
  diff_mode:
    description: There is nothing to differ.
    support: none
"""

EXAMPLES = r"""
- name: Python 3.12, from the distribution or from uv
  python_interpreter:
    names: [python3.12]
    uv: /opt/slipway/bin/uv
"""

RETURN = r"""
path:
  description: The interpreter. Empty in check mode, where it would be installed.
  returned: success
  type: str
  sample: /opt/slipway/python/cpython-3.12.16-linux-x86_64-gnu/bin/python3.12
version:
  description: Its version.
  returned: success
  type: str
  sample: "3.12"
findings:
  description: What was found, such as V(PYTHON_MISSING).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.python import interpreter, source

ARGUMENT_SPEC: dict[str, t.Any] = {
    "names": {"type": "list", "elements": "str", "required": True},
    "directory": {"type": "path", "default": "/opt/slipway/python"},
    "install": {"type": "bool", "default": True},
    "mirror": {"type": "str", "default": ""},
    "uv": {"type": "str", "default": "uv"},
    "timeout_seconds": {"type": "int", "default": 600},
    **source.SPEC,
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Find or install it. Raises ``SlipwayError``."""
    return interpreter.ensure(params, check_mode)


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
