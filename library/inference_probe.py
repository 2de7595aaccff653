#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Is an inference server up, does it make sense, how fast is it."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: inference_probe
short_description: Is an inference server up, does it make sense, how fast is it
version_added: "0.1.0"
description:
  - Asks an OpenAI-compatible endpoint, from the controller or from the guest, directly and not through a proxy.
  - A server is ready when its health page is well, it serves the model and it has generated a token.
  - What is wrong with a server is a finding. The task fails only where O(wait) found that it will not be ready, or timed out, or an option is invalid.
  - The module looks once. The action plugin of the same name, which runs on the controller, does the waiting.
author: [Slipway contributors]
options:
  endpoint:
    description: Address of the API, such as V(http://192.0.2.21:8000/v1).
    type: str
    required: true
  api_key:
    description: Key of the API.
    type: str
  ca_path:
    description: File of the certificate authorities for an C(https) endpoint; else those of the system.
    type: path
  model:
    description: Served name of the model; the first that is served, if not given.
    type: str
  checks:
    description:
      - What to look at. V(ready) is always looked at, since nothing else can be asked before.
      - V(coherence) puts the O(cases) at temperature 0, V(throughput) times one answer.
    type: list
    elements: str
    choices: [ready, coherence, throughput]
    default: [ready]
  cases:
    description: Questions for V(coherence). Asked for without any, it is a check that was not made, which is a finding.
    type: list
    elements: dict
    default: []
    suboptions:
      id:
        description: Name of the case.
        type: str
        required: true
      prompt:
        description: The question.
        type: str
        required: true
      expect:
        description:
          - Regular expression that must be found in the answer, in upper or lower case.
          - Without one the answer must only make sense. It is not empty, it is text, and it does not say one thing over and over.
        type: str
      max_tokens:
        description: Length of the answer at most. A model that reasons spends it on that too.
        type: int
        default: 64
  thresholds:
    description: What is fast enough.
    type: dict
    default: {}
    suboptions:
      output_tokens_per_second:
        description: Tokens a second of one stream, after the first.
        type: float
  throughput_tokens:
    description: Length of the answer that is timed.
    type: int
    default: 64
  answer_timeout_seconds:
    description: How long one generation may take; at least 5, since a busy server is not a dead one.
    type: int
    default: 120
  wait:
    description:
      - Wait until the server is ready, and show meanwhile what it says. Ends early where waiting is of no use, and not at all in check mode.
      - Handled by the action plugin.
    type: bool
    default: false
  timeout_seconds:
    description: How long O(wait) waits. Handled by the action plugin.
    type: int
    default: 300
  unit:
    description:
      - Systemd unit of the server on the machine that the task runs on. When it dies, O(wait) ends at once and says why.
      - Handled by the action plugin.
    type: str
  engine:
    description:
      - Engine of the server, for O(wait) with O(unit) to say how far its start is and to end when a phase of it hangs (M(server_log_info)).
      - Handled by the action plugin.
    type: str
    choices: [llamacpp, sglang, vllm]
  phase_limits:
    description: How long each phase may take, as O(server_log_info#module:limits). Handled by the action plugin.
    type: dict
    default: {}
attributes:
  check_mode:
    description: Runs as always, since it only asks; O(wait) does not wait.
    support: full
  diff_mode:
    description: There is nothing to differ.
    support: none
"""

EXAMPLES = r"""
- name: The server answers
  inference_probe:
    endpoint: http://192.0.2.21:8000/v1
    api_key: "{{ vault_api_key }}"
    model: smollm2-135m-instruct
    wait: true
    unit: slipway-inference.service

- name: Its answers make sense
  inference_probe:
    endpoint: http://192.0.2.21:8000/v1
    checks: [ready, coherence, throughput]
    cases:
      - id: capital-of-japan
        prompt: What is the capital city of Japan? Answer in one sentence.
        expect: '\bTokyo\b'
        max_tokens: 32
      - id: any-sense # nothing is expected of it but that it makes sense
        prompt: What is a computer?
  delegate_to: localhost
"""

RETURN = r"""
ready:
  description: Whether it is ready.
  returned: success
  type: bool
model:
  description: Served name that was asked, or null.
  returned: success
  type: str
answers:
  description: One entry a case, in order.
  returned: success
  type: list
  elements: dict
  sample: [{case: capital-of-japan, question: What is..., answer: The capital city of Japan is Tokyo., passed: true, seconds: 0.2}]
throughput:
  description: Speed of one stream, or null.
  returned: success
  type: dict
  sample: {output_tokens: 64, seconds: 0.9, time_to_first_token_seconds: 0.1, output_tokens_per_second: 80.1}
final:
  description: Whether it is of no use to wait for a server that is not ready.
  returned: success
  type: bool
log:
  description: The last lines of the log of O(unit).
  returned: when O(wait) failed
  type: list
  elements: str
findings:
  description: What was found, such as V(SERVER_UNREACHABLE), V(SERVER_NOT_READY), V(SERVER_UNAUTHORIZED), V(MODEL_NAME_MISMATCH), V(ANSWER_WRONG).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.probe import checks

ARGUMENT_SPEC: dict[str, t.Any] = {
    "endpoint": {"type": "str", "required": True},
    "api_key": {"type": "str", "no_log": True},
    "ca_path": {"type": "path"},
    "model": {"type": "str"},
    "checks": {
        "type": "list",
        "elements": "str",
        "choices": ["ready", "coherence", "throughput"],
        "default": ["ready"],
    },
    "cases": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "id": {"type": "str", "required": True},
            "prompt": {"type": "str", "required": True},
            "expect": {"type": "str"},
            "max_tokens": {"type": "int", "default": 64},
        },
    },
    "thresholds": {"type": "dict", "default": {}, "options": {"output_tokens_per_second": {"type": "float"}}},
    # Neither is a secret, whatever the word token suggests to Ansible.
    "throughput_tokens": {"type": "int", "default": 64, "no_log": False},
    "answer_timeout_seconds": {"type": "int", "default": 120},
    # The action plugin's: it waits, and calls this module without them.
    "wait": {"type": "bool", "default": False},
    "timeout_seconds": {"type": "int", "default": 300},
    "unit": {"type": "str"},
    "engine": {"type": "str", "choices": ["llamacpp", "sglang", "vllm"]},
    "phase_limits": {"type": "dict", "default": {}},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Look at the server once. ``check_mode`` makes no difference: nothing is ever changed. Raises ``SlipwayError``."""
    return checks.look(params)


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
