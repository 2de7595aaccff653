#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether an engine can compile on this machine what it compiles at run time."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: build_tools_info
short_description: Whether an engine can compile what it compiles at run time
version_added: "0.2.0"
description:
  - Compiles a small Python extension with C(ninja) and C(cc) for the environment's interpreter and imports it, and compiles a small CUDA kernel with C(nvcc).
  - Nothing is run on a GPU, and nothing stays.
author: [Slipway contributors]
options:
  venv:
    description: Environment of the engine.
    type: path
    required: true
  libraries:
    description: Shared libraries of the system that must load, by their names, such as C(libnuma.so.1).
    type: list
    elements: str
    default: []
  cuda:
    description: Version of CUDA that the environment's torch was built with, as C(12.8). Empty, no kernel is compiled.
    type: str
    default: ""
  cuda_root:
    description: Folder that holds releases of CUDA, as in C(/usr/local/cuda-12.8).
    type: path
    default: /usr/local
  sm:
    description: Architecture of the GPU, as C(120).
    type: str
    default: "120"
  timeout_seconds:
    description: How long one compiler may take.
    type: int
    default: 120
attributes:
  check_mode:
    description: It changes nothing, in any mode.
    support: full
"""

EXAMPLES = r"""
- name: See whether kernels can be compiled here
  build_tools_info:
    venv: /opt/slipway/envs/current
    libraries: [libnuma.so.1]
    cuda: "12.8"
"""

RETURN = r"""
compiled:
  description: What could be compiled, of C(extension) and C(kernel).
  returned: success
  type: list
  elements: str
findings:
  description: What was found, such as V(BUILD_TOOL_MISSING), V(BUILD_TOOL_BROKEN).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.python import compilers

ARGUMENT_SPEC: dict[str, t.Any] = {
    "venv": {"type": "path", "required": True},
    "libraries": {"type": "list", "elements": "str", "default": []},
    "cuda": {"type": "str", "default": ""},
    "cuda_root": {"type": "path", "default": "/usr/local"},
    "sm": {"type": "str", "default": "120"},
    "timeout_seconds": {"type": "int", "default": 120},
}


def run(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Compile; what cannot be compiled is a finding."""
    compiled, findings = compilers.prove(params)
    return {"changed": False, "compiled": compiled, "findings": [one.as_dict() for one in findings]}


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    module.exit_json(**run(module.params))


if __name__ == "__main__":
    main()
