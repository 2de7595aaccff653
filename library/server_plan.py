#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Command line, environment and unit of an inference server."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: server_plan
short_description: Command line, environment and unit of an inference server
version_added: "0.1.0"
description:
  - Makes of a profile and of facts what a server is run with, and lints its arguments for the engine.
  - Looks at nothing and changes nothing; it runs on the controller.
  - An argument that the engine does not have is a finding. An invalid value is an error.
author: [Slipway contributors]
options:
  engine:
    description: The inference engine.
    type: str
    required: true
    choices: [llamacpp, sglang, vllm]
  engine_version:
    description: Its release, by which arguments are judged. Slipway has the options of those that its profiles lock.
    type: str
    default: ""
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
  model_type:
    description: What C(config.json) calls the kind of model. Some arguments are wrong for some of them.
    type: str
    default: ""
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
    description:
      - GPUs that the server gets, as M(gpu_host_info) returns them; read are their device node (C(device) or C(path)), C(bus_id), C(numa_node)
        and C(sm).
    type: list
    elements: dict
    default: []
  sm:
    description: Compute capability as one number that the profile is for, such as 120; what the GPUs say themselves goes before it.
    type: int
  links:
    description: What M(gpu_p2p) returned of these GPUs, its C(verdict) and C(pairs). NCCL's settings follow from it.
    type: dict
    default: {}
  api_key_file:
    description: File on the guest that holds the API's keys, one a line.
    type: str
  kernels:
    description: Tuned settings of the fused-MoE kernel, the text of each file by its name. They are judged, and the engine is told of their folder.
    type: dict
    default: {}
  kernels_directory:
    description: Folder on the guest for these files.
    type: str
  triton_version:
    description: Release of Triton in the environment, by which SGLang finds them.
    type: str
  launcher:
    description: Path on the guest of the launch script. llama.cpp needs one, the others for an API key.
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
  returned: success
  type: list
  elements: str
environment:
  description: Environment variables.
  returned: success
  type: dict
unit:
  description: The unit's C([Service]) section, without command line, environment, user and group. A value that is a list is a line each.
  returned: success
  type: dict
  sample: {Type: exec, Restart: on-failure, OpenFile: [/dev/nvidia0, /dev/nvidia1]}
exec_start:
  description: The command line as one line for C(ExecStart=), quoted as systemd reads it.
  returned: success
  type: str
environment_lines:
  description: The environment for C(Environment=), a line each, quoted as systemd reads it.
  returned: success
  type: list
  elements: str
unit_section:
  description: What the unit's C([Unit]) section needs.
  returned: success
  type: dict
  sample: {StartLimitBurst: "5"}
launcher:
  description: File name of the launch script that must be on the guest, or null.
  returned: success
  type: str
kernels:
  description: Files of tuned settings that must be on the guest, each with C(path) and C(content).
  returned: success
  type: list
  elements: dict
derived:
  description: Settings that follow from facts, where neither profile nor inventory has them, each with C(setting), C(value), C(why) and C(source).
  returned: success
  type: list
  elements: dict
findings:
  description:
    - What was found, such as V(FLAG_UNKNOWN), V(FLAG_RENAMED), V(FLAG_WITHOUT_EFFECT), V(FLAG_DANGEROUS), V(FLAGS_CONTRADICT), V(FP8_KV_UNSUPPORTED),
      V(SECRET_EXPOSED), V(API_OPEN).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.engines import plan
from ..module_utils.slipway.errors import SlipwayError

SERVER_SPEC: dict[str, t.Any] = {
    "tensor_parallel": {"type": "int", "default": 1},
    "context_length": {"type": "int"},
    "kv_cache_dtype": {"type": "str", "default": "auto"},
    "arguments": {"type": "dict", "default": {}},
    "environment": {"type": "dict", "default": {}},
    "open_devices": {"type": "bool", "default": False},
    "port": {"type": "int"},
}
ARGUMENT_SPEC: dict[str, t.Any] = {
    "engine": {"type": "str", "required": True, "choices": sorted(plan.ENGINES)},
    "engine_version": {"type": "str", "default": ""},
    "venv": {"type": "str", "required": True},
    "model_path": {"type": "str", "required": True},
    "model_name": {"type": "str", "required": True},
    "model_type": {"type": "str", "default": ""},
    "host": {"type": "str", "default": "127.0.0.1"},
    "port": {"type": "int"},
    "server": {"type": "dict", "default": {}, "apply_defaults": True, "options": SERVER_SPEC},
    "gpus": {"type": "list", "elements": "dict", "default": []},
    "sm": {"type": "int"},
    "links": {"type": "dict", "default": {}},
    # The path of a file, not the key.
    "api_key_file": {"type": "str", "no_log": False},
    "kernels": {"type": "dict", "default": {}},
    "kernels_directory": {"type": "str"},
    "triton_version": {"type": "str"},
    "launcher": {"type": "str"},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Plan the server. ``check_mode`` makes no difference: nothing is ever changed. Raises ``SlipwayError``."""
    return plan.plan(params)


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
