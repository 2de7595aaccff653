#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether an engine in an environment will load a model on these GPUs."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: model_preflight
short_description: Whether an engine in an environment will load a model on these GPUs
version_added: "0.2.0"
description:
  - Answers in seconds what a start of minutes would, from the files of the model and of the environment, before anything is loaded.
  - Asks the environment's own Python what its transformers knows, in a process of its own with a time limit, without GPU and network. What the engine
    knows is read from its source, since importing it takes a driver. Code of the model's repository is never run; what it imports is asked.
  - Tells how much of each GPU's memory weights take and what is left for keys and values, as a table.
  - Changes nothing.
author: [Slipway contributors]
options:
  venv:
    description: Environment of the engine.
    type: path
    required: true
  model_path:
    description: Folder of the model as Hugging Face publishes it; for llama.cpp the GGUF file.
    type: path
    required: true
  engine:
    description: The inference engine.
    type: str
    required: true
    choices: [sglang, vllm, llamacpp]
  server:
    description: What the profile says about the server, as for M(server_plan). C(tensor_parallel), C(context_length), C(kv_cache_dtype), C(arguments)
      and C(environment) are looked at.
    type: dict
    default: {}
  gpus:
    description: GPUs that the server gets, each with C(memory_mib) and C(sm), as M(gpu_host_info) tells them with O(gpu_host_info#module:cuda=true).
      What is not told is not judged, and the memory is V(unknown) then.
    type: list
    elements: dict
    default: []
  memory_mib:
    description: Memory that an engine on the CPU may use. Not given, what the machine or its container has.
    type: int
  expected_type:
    description: The C(model_type) that the model must have. Not given, any.
    type: str
    default: ""
  expected_architecture:
    description: The architecture that it must have. Not given, any.
    type: str
    default: ""
  required:
    description: Whether all of it must be known. V(false) makes what could not be asked a warning, in the place of V(unknown).
    type: bool
    default: true
  timeout_seconds:
    description: How long the environment's Python may take to answer.
    type: int
    default: 300
attributes:
  check_mode:
    description: Runs as always, since it changes nothing.
    support: full
  diff_mode:
    description: There is nothing to differ.
    support: none
"""

EXAMPLES = r"""
- name: Will GLM-5 load with SGLang on eight GPUs
  model_preflight:
    venv: /opt/slipway/envs/current
    model_path: /srv/models/glm-5-nvfp4
    engine: sglang
    server:
      tensor_parallel: 8
      context_length: 65536
      kv_cache_dtype: bf16
      arguments: {quantization: modelopt_fp4, attention-backend: flashinfer, mem-fraction-static: 0.85}
    gpus: "{{ gpu_facts.gpus }}"
    expected_type: glm_moe_dsa
  register: preflight
"""

RETURN = r"""
model:
  description:
    - What the model is, C(type), C(architecture), C(dtype), C(attention), C(layers), C(heads), C(kv_heads), C(experts), C(context_length),
      C(quantisation), C(images), C(files), C(weights_bytes), C(tokenizer); the C(engine) with its version, and in C(asked) who was asked what.
    - Empty where its configuration cannot be read.
  returned: success
  type: dict
fit:
  description: The memory as a table. Empty where files of the weights are missing or torn.
  returned: success
  type: dict
  contains:
    device: {description: V(gpu) or V(cpu)., type: str}
    ranks: {description: How many GPUs it is spread over., type: int}
    memory_mib: {description: Memory of the smallest of these GPUs, or of the machine; none where it is not known., type: int}
    rows: {description: 'Lines of the table, each with C(name), C(what), C(mib) of one GPU and C(how). They add up to C(memory_mib).', type: list, elements: dict}
    weights_mib: {description: All weights on one GPU., type: int}
    kv: {description: 'Keys and values: C(form), C(dtype), C(bytes_per_token) on one GPU, and C(how).', type: dict}
    kv_tokens: {description: How many tokens fit into what is left; none where it is not known., type: int}
    context_length: {description: Tokens of one request as declared., type: int}
    model_context_length: {description: Tokens that the model was made for., type: int}
    requests_at_context: {description: How many requests of that length fit at once., type: float}
    verdict: {description: 'V(fits), V(tight), V(short) or V(unknown).', type: str}
    assumptions: {description: What the table takes for granted, type: list, elements: str}
findings:
  description: What would keep it from loading or answering, such as V(MODEL_TYPE_UNKNOWN), V(FP8_KV_UNSUPPORTED) and V(MEMORY_TOO_SMALL).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.model import preflight

ARGUMENT_SPEC: dict[str, t.Any] = {
    "venv": {"type": "path", "required": True},
    "model_path": {"type": "path", "required": True},
    "engine": {"type": "str", "required": True, "choices": ["sglang", "vllm", "llamacpp"]},
    "server": {"type": "dict", "default": {}},
    "gpus": {"type": "list", "elements": "dict", "default": []},
    "memory_mib": {"type": "int"},
    "expected_type": {"type": "str", "default": ""},
    "expected_architecture": {"type": "str", "default": ""},
    "required": {"type": "bool", "default": True},
    "timeout_seconds": {"type": "int", "default": 300},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Look, ask and judge. ``check_mode`` makes no difference: nothing is ever changed. Raises ``SlipwayError``."""
    return preflight.check(params)


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
