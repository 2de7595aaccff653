#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Who has the GPUs that a server is to get."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: gpu_holders_info
short_description: Who has the GPUs that a server is to get
version_added: "0.1.0"
description:
  - Looks which processes of this machine have device nodes of GPUs open, and names each by pid, command, unit and state.
  - A process that has a GPU open has memory of it. In a guest only the guest's own processes are seen, on a node those of its guests, too.
  - Of a service that was stopped, processes that are still in its control group are told, too.
  - NVIDIA's persistence daemon is left out. The task does not fail for what it finds. It needs root, to see the files of all processes.
author: [Slipway contributors]
options:
  devices:
    description: Device nodes that are meant. None means those of all GPUs.
    type: list
    elements: path
    default: []
  unit:
    description: The server's unit. While it runs, its own processes are left out; of a unit that was stopped they are left behind.
    type: str
    required: true
  running:
    description: Whether the unit runs.
    type: bool
    default: false
  user:
    description: The server's user. What runs as it outside of the unit was left behind by a server.
    type: str
    default: ""
  timeout_seconds:
    description: How long to wait for them to be given back. A process that is ending takes some seconds for it.
    type: int
    default: 0
attributes:
  check_mode:
    description: It reads only.
    support: full
  diff_mode:
    description: There is nothing to differ.
    support: none
"""

EXAMPLES = r"""
- name: The GPUs are free
  gpu_holders_info:
    unit: slipway-inference.service
    user: inference
    timeout_seconds: 20
"""

RETURN = r"""
holders:
  description: The processes, by pid; null where not all could be looked at.
  returned: success
  type: list
  elements: dict
  sample:
    - {pid: 4711, name: python3, command: python3 train.py, unit: session-3.scope, user: me, state: S, devices: [/dev/nvidia0], computes: true}
findings:
  description: What was found, such as V(GPU_IN_USE), V(GPU_LEFT_IN_USE), V(SERVER_LEFT_RUNNING). Who has a GPU open and does not compute is a warning.
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.gpu import holders
from ..module_utils.slipway.gpu.tree import Tree

ARGUMENT_SPEC: dict[str, t.Any] = {
    "devices": {"type": "list", "elements": "path", "default": []},
    "unit": {"type": "str", "required": True},
    "running": {"type": "bool", "default": False},
    "user": {"type": "str", "default": ""},
    "timeout_seconds": {"type": "int", "default": 0},
}


def run(params: dict[str, t.Any], check_mode: bool, root: str = "/") -> dict[str, t.Any]:
    """Look, and judge. ``check_mode`` makes no difference: nothing is ever changed."""
    asked = (params["devices"], params["unit"], params["running"], params["timeout_seconds"])
    found, remain = holders.wait(Tree(root), *asked)
    findings = holders.judge(found, remain, params["unit"], params["user"])
    return {"changed": False, "holders": found, "findings": [one.as_dict() for one in findings]}


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
