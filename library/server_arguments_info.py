#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What an engine's own parser says of a command line."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: server_arguments_info
short_description: What an engine's own parser says of a command line
version_added: "0.1.0"
description:
  - Has the parser of the engine that is installed parse the command line that M(server_plan) has made, in the engine's own Python.
  - No server is started, no model is read, and no GPU is opened. The parser is the engine's, so that what it takes is what the server will take; what the
    server finds out later, by the model and the GPUs, is not seen here.
author: [Slipway contributors]
options:
  engine:
    description: The inference engine. llama.cpp has no parser of its own.
    type: str
    required: true
    choices: [sglang, vllm]
  venv:
    description: Environment of the engine.
    type: path
    required: true
  argv:
    description: The whole command line, as C(argv) of M(server_plan).
    type: list
    elements: str
    required: true
  timeout_seconds:
    description: How long the parser may take. It imports the engine and torch, which takes minutes from a cold disk.
    type: int
    default: 600
attributes:
  check_mode:
    description: Runs as always, since it changes nothing.
    support: full
  diff_mode:
    description: There is nothing to differ.
    support: none
"""

EXAMPLES = r"""
- name: What the engine says of its command line
  server_arguments_info:
    engine: sglang
    venv: /opt/slipway/envs/current
    argv: "{{ inference_server_plan.argv }}"
"""

RETURN = r"""
available:
  description: Whether there is an environment to ask.
  returned: success
  type: bool
accepted:
  description: Whether the parser takes the command line; none where it could not be asked.
  returned: success
  type: bool
said:
  description: What it said, empty where it takes it.
  returned: success
  type: str
  sample: "argument --attention-backend: invalid choice: 'flash'"
findings:
  description: V(COMMAND_LINE_REFUSED), or V(COMMAND_LINE_UNCHECKED) where it could not be asked. None where there is no environment yet.
  returned: always
  type: list
  elements: dict
"""

import os
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.engines import own_parser
from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.findings import finding

ARGUMENT_SPEC: dict[str, t.Any] = {
    "engine": {"type": "str", "required": True, "choices": sorted(own_parser.MODULES)},
    "venv": {"type": "path", "required": True},
    "argv": {"type": "list", "elements": "str", "required": True},
    "timeout_seconds": {"type": "int", "default": 600},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Ask and judge. ``check_mode`` makes no difference: nothing is ever changed. Raises ``SlipwayError``."""
    engine, python = params["engine"], os.path.join(params["venv"], "bin", "python")
    try:
        if params["timeout_seconds"] < 1:
            raise SlipwayError(f"timeout_seconds {params['timeout_seconds']} is less than 1")
        arguments = own_parser.arguments(params["argv"], engine)
    except SlipwayError as error:
        remedy = "Give argv as server_plan returns it, and a time of at least a second"
        raise cannot("check", f"command line of '{engine}'", here(), str(error), remedy) from None
    told: dict[str, t.Any] = {"changed": False, "available": os.path.exists(python), "accepted": None, "said": ""}
    if not told["available"]:
        return {**told, "findings": []}
    try:
        answer = own_parser.ask(python, engine, arguments, params["timeout_seconds"])
    except SlipwayError as error:
        return {**told, "findings": [finding("COMMAND_LINE_UNCHECKED", engine, str(error)).as_dict()]}
    refused = [] if answer["accepted"] else [finding("COMMAND_LINE_REFUSED", engine, answer["said"]).as_dict()]
    return {**told, "accepted": answer["accepted"], "said": answer["said"], "findings": refused}


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
