#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
---
module: inference_probe
short_description: Is an inference server up, does it make sense, how fast is it
version_added: "0.1.0"
description:
  - Asks an OpenAI-compatible endpoint, from the controller or from the guest, directly and not through a proxy.
  - A server is ready when its health page is well, it serves the model and it has generated a token.
  - What is wrong with a server is a finding. The module itself fails only when it was to wait for a server that did not become ready.
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
    description: Questions for V(coherence).
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
        description: Regular expression that must be found in the answer, in upper or lower case. Without one the answer must only make sense.
        type: str
      max_tokens:
        description: Length of the answer at most.
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
    description: Wait until the server is ready. While it waits, the action plugin of the same name shows what the server says.
    type: bool
    default: false
  timeout_seconds:
    description: How long O(wait) waits.
    type: int
    default: 300
  unit:
    description:
      - Systemd unit of the server on the machine that the task runs on. When it dies, waiting ends at once and the last lines of its log are shown.
      - Handled by the action plugin.
    type: str
attributes:
  check_mode:
    description: Runs as always, since it only asks; it does not wait.
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
      - {id: capital-of-japan, prompt: What is the capital city of Japan?, expect: '\bTokyo\b'}
  delegate_to: localhost
"""

RETURN = r"""
ready:
  description: Whether it is ready.
  returned: always
  type: bool
model:
  description: Served name that was asked, or null.
  returned: always
  type: str
answers:
  description: One entry a case, in order.
  returned: always
  type: list
  elements: dict
  sample: [{case: capital-of-japan, question: What is..., answer: The capital city of Japan is Tokyo., passed: true, seconds: 0.2}]
throughput:
  description: Speed of one stream, or null.
  returned: always
  type: dict
  sample: {output_tokens: 64, seconds: 0.9, time_to_first_token_seconds: 0.1, output_tokens_per_second: 80.1}
final:
  description: Whether it is of no use to wait for a server that is not ready.
  returned: always
  type: bool
findings:
  description: What was found, such as V(SERVER_UNREACHABLE), V(SERVER_NOT_READY), V(SERVER_UNAUTHORIZED), V(MODEL_NAME_MISMATCH), V(ANSWER_WRONG).
  returned: always
  type: list
  elements: dict
"""

import platform
import re
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot
from ..module_utils.slipway.findings import Finding, finding
from ..module_utils.slipway.probe import coherence, ready, throughput
from ..module_utils.slipway.probe.client import Client

ARGUMENTS = {
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
    "wait": {"type": "bool", "default": False},
    "timeout_seconds": {"type": "int", "default": 300},
    "unit": {"type": "str"},
}
PAUSE_SECONDS = 2.0


def refuse(params: dict[str, t.Any], cause: str, remedy: str, findings: t.Sequence[Finding] = ()) -> SlipwayError:
    """The house's sentence about this endpoint."""
    return cannot("probe", f"server '{params['endpoint']}'", platform.node(), cause, remedy, findings)


def read_cases(params: dict[str, t.Any]) -> list[coherence.Case]:
    """The cases, with their expressions compiled: a mistake in the last one is told before the first is asked."""
    cases = []
    for case in params["cases"]:
        try:
            expect = re.compile(case["expect"], re.IGNORECASE) if case["expect"] else None
        except re.error as error:
            cause = f"expect of case '{case['id']}' is no regular expression: {error}"
            raise refuse(params, cause, "Correct it in the profile") from None
        cases.append(coherence.Case(case["id"], case["prompt"], expect, case["max_tokens"]))
    return cases


def wait_until_ready(client: Client, params: dict[str, t.Any], check_mode: bool) -> ready.Readiness:
    """Probe once, or again and again. Raises ``SlipwayError`` where waiting was asked for and did not help."""
    deadline = time.monotonic() + params["timeout_seconds"]
    while True:
        state = ready.probe(client, params["model"], params["answer_timeout_seconds"])
        if state.ready or not params["wait"] or check_mode:
            return state
        left = deadline - time.monotonic()
        if state.final or left <= 0:
            fault = state.findings[0]
            waited = "" if state.final else f" after {params['timeout_seconds']} s"
            raise refuse(params, f"it is not ready{waited}: {fault.detail}", fault.remedy, state.findings)
        time.sleep(min(PAUSE_SECONDS, left))


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Look at the server. Raises ``SlipwayError`` for parameters that can not be and for waiting in vain."""
    if not re.match(r"https?://[^/]+", params["endpoint"]):
        raise refuse(params, "it is no address of the form http://ADDRESS:PORT/v1", "Correct the endpoint")
    if params["answer_timeout_seconds"] < 5:
        raise refuse(params, "answer_timeout_seconds is less than 5", "Give at least 5 seconds")
    cases = read_cases(params)
    client = Client(params["endpoint"], params["api_key"], params["ca_path"])
    state = wait_until_ready(client, params, check_mode)
    findings = list(state.findings)
    answers: list[dict[str, t.Any]] = []
    speed = None
    if state.model is None:
        asked = [check for check in params["checks"] if check != "ready"]
        findings += [finding("CHECK_NOT_MADE", check, "the server is not ready") for check in asked]
    else:
        if "coherence" in params["checks"]:
            for case in cases:
                answer, faults = coherence.ask(client, state.model, case, params["answer_timeout_seconds"])
                answers.append(answer)
                findings += faults
        if "throughput" in params["checks"]:
            speed, faults = throughput.measure(
                client, state.model, params["throughput_tokens"], params["answer_timeout_seconds"]
            )
            findings += faults
            if speed:
                findings += throughput.compare(speed, params["thresholds"], params["endpoint"])
    return {
        "changed": False,
        "ready": state.ready,
        "model": state.model,
        "answers": answers,
        "throughput": speed,
        "final": state.final,
        "findings": [one.as_dict() for one in findings],
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
