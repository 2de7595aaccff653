#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
---
module: server_plan
short_description: Command line, environment and unit of an inference server
version_added: "0.1.0"
description:
  - Makes of a profile and of facts what a server is run with, and lints its arguments for the engine.
  - Looks at nothing and changes nothing; it runs on the controller.
  - An argument that the engine does not have is a finding. A value that can not be is an error.
author: [Slipway contributors]
options:
  engine:
    description: The inference engine.
    type: str
    required: true
    choices: [llamacpp]
  venv:
    description: Environment of the engine, on the guest.
    type: str
    required: true
  model_path:
    description: Model file or folder, on the guest.
    type: str
    required: true
  model_name:
    description: Name under which the API serves the model.
    type: str
    required: true
  host:
    description: Address to listen on.
    type: str
    default: 127.0.0.1
  port:
    description: Port to listen on; O(server.port) or 8000, if not given.
    type: int
  server:
    description: What the profile says about the server.
    type: dict
    default: {}
    suboptions:
      tensor_parallel:
        description: GPUs that one copy of the model is spread over.
        type: int
        default: 1
      context_length:
        description: Tokens of one request, question and answer together.
        type: int
      kv_cache_dtype:
        description: Number format of the key-value cache.
        type: str
        default: auto
      arguments:
        description: Arguments of the engine, by name, without dashes in front. V(true) is a flag that is given, V(false) one that is not.
        type: dict
        default: {}
      environment:
        description: Environment variables of the server. Secrets do not belong here.
        type: dict
        default: {}
      open_devices:
        description: Let systemd open the GPUs' device nodes for the server (253 or later), for engines that do not open them.
        type: bool
        default: false
      port:
        description: Profile's port, which O(port) replaces.
        type: int
  gpus:
    description: GPUs that the server gets, each with its device node as C(device) or C(path).
    type: list
    elements: dict
    default: []
  api_key_file:
    description: File on the guest that holds the API's keys, one a line.
    type: str
  launcher:
    description: Path on the guest of the launch script, for engines that need one.
    type: str
attributes:
  check_mode:
    description: Runs as always, since it changes nothing.
    support: full
  diff_mode:
    description: There is nothing to differ.
    support: none
"""

EXAMPLES = r"""
- name: How the server is run
  server_plan:
    engine: llamacpp
    venv: /opt/slipway/envs/current
    model_path: /srv/models/SmolLM2-135M-Instruct.Q4_1.gguf
    model_name: smollm2-135m-instruct
    host: 0.0.0.0
    port: 8000
    server:
      context_length: 2048
      arguments: {parallel: 2}
      open_devices: true
    gpus: "{{ gpu_facts.gpus }}"
    api_key_file: /etc/slipway/api-key
    launcher: /opt/slipway/bin/llamacpp_server.py
  delegate_to: localhost
"""

RETURN = r"""
argv:
  description: Command line, a word each.
  returned: always
  type: list
  elements: str
environment:
  description: Environment variables.
  returned: always
  type: dict
unit:
  description: The unit's C([Service]) section, without command line, environment, user and group. A value that is a list is a line each.
  returned: always
  type: dict
  sample: {Type: exec, Restart: on-failure, OpenFile: [/dev/nvidia0, /dev/nvidia1]}
exec_start:
  description: The command line as one line for C(ExecStart=), quoted as systemd reads it.
  returned: always
  type: str
environment_lines:
  description: The environment for C(Environment=), a line each, quoted as systemd reads it.
  returned: always
  type: list
  elements: str
unit_section:
  description: What the unit's C([Unit]) section needs.
  returned: always
  type: dict
  sample: {StartLimitBurst: "5"}
launcher:
  description: File name of the launch script that must be on the guest, or null.
  returned: always
  type: str
findings:
  description: What was found, such as V(FLAG_UNKNOWN), V(SECRET_EXPOSED), V(API_OPEN).
  returned: always
  type: list
  elements: dict
"""

import platform
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.engines import ENGINES
from ..module_utils.slipway.engines.server import (
    Request,
    check_request,
    command_line,
    environment_lines,
    service_settings,
    unit_settings,
)
from ..module_utils.slipway.errors import SlipwayError, cannot

SERVER_ARGUMENTS = {
    "tensor_parallel": {"type": "int", "default": 1},
    "context_length": {"type": "int"},
    "kv_cache_dtype": {"type": "str", "default": "auto"},
    "arguments": {"type": "dict", "default": {}},
    "environment": {"type": "dict", "default": {}},
    "open_devices": {"type": "bool", "default": False},
    "port": {"type": "int"},
}
ARGUMENTS = {
    "engine": {"type": "str", "required": True, "choices": ["llamacpp"]},
    "venv": {"type": "str", "required": True},
    "model_path": {"type": "str", "required": True},
    "model_name": {"type": "str", "required": True},
    "host": {"type": "str", "default": "127.0.0.1"},
    "port": {"type": "int"},
    "server": {"type": "dict", "default": {}, "apply_defaults": True, "options": SERVER_ARGUMENTS},
    "gpus": {"type": "list", "elements": "dict", "default": []},
    # The path of a file, not the key.
    "api_key_file": {"type": "str", "no_log": False},
    "launcher": {"type": "str"},
}


def device_nodes(gpus: list[dict[str, t.Any]]) -> tuple[str, ...]:
    """The device node of each GPU, in order. Raises ``SlipwayError`` for one that has none."""
    nodes = []
    for gpu in gpus:
        node = gpu.get("device") or gpu.get("path")
        if not isinstance(node, str) or not node.startswith("/dev/"):
            raise SlipwayError(f"GPU '{gpu.get('bus_id', gpu)}' has no device node; is its driver loaded?")
        nodes.append(node)
    return tuple(nodes)


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """The plan as the module returns it. Raises ``SlipwayError`` for a request that can not be served."""
    server = params["server"]
    names = ("tensor_parallel", "context_length", "kv_cache_dtype", "arguments", "environment", "open_devices")
    try:
        request = Request(
            **{name: params[name] for name in ("engine", "venv", "model_path", "model_name", "host")},
            port=next((port for port in (params["port"], server["port"]) if port is not None), 8000),
            **{name: server[name] for name in names},
            devices=device_nodes(params["gpus"]) if server["open_devices"] else (),
            api_key_file=params["api_key_file"],
            launcher=params["launcher"],
        )
        check_request(request)
        plan = ENGINES[request.engine](request)
    except SlipwayError as error:
        remedy = "Correct it in the profile or the inventory"
        raise cannot("plan", f"server '{params['model_name']}'", platform.node(), str(error), remedy) from None
    return {
        "changed": False,
        "argv": plan.argv,
        "environment": plan.environment,
        "unit": service_settings(request),
        "exec_start": command_line(plan.argv),
        "environment_lines": environment_lines(plan.environment),
        "unit_section": unit_settings(),
        "launcher": plan.launcher,
        "findings": [one.as_dict() for one in plan.findings],
    }


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(argument_spec=ARGUMENTS, supports_check_mode=True)
    try:
        module.exit_json(**run(module.params, module.check_mode))
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[one.as_dict() for one in error.findings])


if __name__ == "__main__":
    main()
