#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The environments of a folder: the one in use is proven, those before it go."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: python_environments
short_description: The environments of a folder, of which the one in use is proven
version_added: "0.2.0"
description:
  - Notes that the environment which C(current) leads to is proven, by a link C(proven), and takes away those that M(python_stack) made before it.
  - It is called when what runs in the environment was proven. Until then the one before is there, and going back is switching the link.
  - What somebody else made stays, and so does what another link of the folder leads to and what a process uses.
author: [Slipway contributors]
options:
  directory:
    description: Folder of the environments, with the link C(current).
    type: path
    required: true
attributes:
  check_mode:
    description: Says what would go.
    support: full
  diff_mode:
    description: Shows the environments before and after.
    support: full
"""

EXAMPLES = r"""
- name: What runs is proven
  python_environments:
    directory: /opt/slipway/envs
"""

RETURN = r"""
proven:
  description: The environment that is proven.
  returned: success
  type: str
removed:
  description: Environments that went.
  returned: success
  type: list
  elements: str
used:
  description: Environments from before that stay, since a process uses them.
  returned: success
  type: list
  elements: str
findings:
  description: None are made.
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.python import succession

ARGUMENT_SPEC: dict[str, t.Any] = {"directory": {"type": "path", "required": True}}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Note it, and take away what went before. Raises ``SlipwayError``."""
    return {**succession.settle(params, check_mode), "findings": []}


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
