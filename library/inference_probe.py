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
      - V(coherence) puts the O(cases) at temperature 0, V(throughput) times streams with prompts and answers of a fixed length.
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
        description: Name of the case, which no other has.
        type: str
        required: true
      kind:
        description:
          - V(factual), V(reasoning) and V(creative) are one question, and differ in name only. V(conversation) is several turns, each with what was
            said before.
          - V(long_prompt) is a text of O(cases[].tokens) tokens with a question at its end, once for each of O(cases[].at).
          - V(same_twice) asks twice, V(streaming) once in one piece and once streamed. The second answer must be as good, and share
            O(cases[].agreement) of its words.
          - V(cached_prefix) asks its turns about one long text, so that all but the first find its beginning in the server's cache.
        type: str
        choices: [factual, reasoning, creative, conversation, long_prompt, same_twice, cached_prefix, streaming]
        default: factual
      prompt:
        description: The question; for V(conversation) and V(cached_prefix) O(cases[].turns) takes its place.
        type: str
      turns:
        description: Questions in order, each with C(prompt), C(expect) and, for V(cached_prefix), C(needle).
        type: list
        elements: dict
        suboptions:
          prompt:
            description: The question.
            type: str
            required: true
          expect:
            description: As O(cases[].expect).
            type: str
          needle:
            description: As O(cases[].needle).
            type: str
      expect:
        description:
          - Regular expression that must be found in the answer, in upper or lower case.
          - Without one the answer must only make sense. It is not empty, it is text, and it does not say one thing over and over.
        type: str
      max_tokens:
        description: Length of the answer at most. A model that reasons spends it on that too.
        type: int
        default: 64
      script:
        description: Script of at least half of the answer, such as V(latin), V(cyrillic), V(han), V(japanese), V(korean), V(arabic).
        type: str
      least_characters:
        description: Length of the answer at least.
        type: int
        default: 0
      ends:
        description: Whether the answer must come to an end within O(cases[].max_tokens).
        type: bool
        default: false
      tokens:
        description: Length of a long prompt, about. One of which the server reads less than three quarters is a check that was not made.
        type: int
      text:
        description: The text of a long prompt, cut or filled up to its length; an inventory of a warehouse, if not given.
        type: str
      needle:
        description: A sentence that is hidden in a long prompt, on a line of its own.
        type: str
      at:
        description: Where it is hidden.
        type: list
        elements: str
        choices: [start, middle, end]
        default: [middle]
      agreement:
        description: Share of the words that two answers must have in common. Other words for the same are told, and let pass.
        type: float
        default: 0.4
  thresholds:
    description: What is fast enough. Those outside of O(thresholds.by_concurrency) are of one stream.
    type: dict
    suboptions:
      output_tokens_per_second:
        description: Tokens a second at least, after the first.
        type: float
      time_to_first_token_seconds:
        description: Seconds to the first token at most, of nine in ten requests.
        type: float
      time_per_output_token_seconds:
        description: Seconds between tokens at most, of nine in ten requests.
        type: float
      by_concurrency:
        description: The same for several streams at one time; tokens a second are those of all streams together.
        type: list
        elements: dict
        suboptions:
          concurrency:
            description: How many streams.
            type: int
            required: true
          output_tokens_per_second:
            description: As above.
            type: float
          time_to_first_token_seconds:
            description: As above.
            type: float
          time_per_output_token_seconds:
            description: As above.
            type: float
      baseline_warn_ratio:
        description: Below this fraction of O(baseline) it warns (0.9).
        type: float
      baseline_fail_ratio:
        description: Below this fraction of O(baseline) it fails (0.75).
        type: float
  throughput_concurrency:
    description: How many streams at one time V(throughput) measures, each number for itself.
    type: list
    elements: int
    default: [1]
  throughput_prompt_tokens:
    description: Length of the prompts that are timed, about. No two are alike, so that none is answered from the server's cache.
    type: int
    default: 128
  throughput_tokens:
    description: Length of the answers that are timed, exactly where the server knows C(ignore_eos).
    type: int
    default: 64
  throughput_rounds:
    description: Requests that each stream sends, one after the other.
    type: int
    default: 1
  require_idle:
    description:
      - Measure V(throughput) only where the server's own figures (C(/metrics)) say that it has no request at that moment. Else nothing is loaded, and
        V(SERVER_IN_USE) is found.
    type: bool
    default: false
  baseline:
    description: A file on the machine that the task runs on, with the rates of a former measurement to compare with; none if empty.
    type: str
    default: ""
  baseline_of:
    description: What else must be the same for a comparison, such as the GPUs; the model's name and the lengths are always compared.
    type: dict
    default: {}
  record_baseline:
    description: Write O(baseline) if there is none and the speed is good. One that is there stays; remove it to record a new one.
    type: bool
    default: false
  warm_up_timeout_seconds:
    description: How long the first generation before V(coherence) and V(throughput) may take, which no figure holds. Kernels are compiled in it.
    type: int
    default: 600
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
    description: Runs as always, since it only asks; O(wait) does not wait, and no baseline is written.
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
      - id: needle
        kind: long_prompt
        tokens: 4096
        needle: The door code of the warehouse is 7421.
        at: [start, middle, end]
        prompt: What is the door code of the warehouse? Answer with the number.
        expect: '\b7421\b'
  delegate_to: localhost

- name: It is as fast as it was
  inference_probe:
    endpoint: http://192.0.2.21:8000/v1
    checks: [throughput]
    throughput_concurrency: [1, 4, 16]
    thresholds:
      output_tokens_per_second: 30
      by_concurrency: [{concurrency: 16, output_tokens_per_second: 250, time_to_first_token_seconds: 5}]
    baseline: /var/lib/slipway/speed-baseline.json
    record_baseline: true
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
  description: One entry a case, in order. C(turns) has each answer of it; what is wrong is in C(finding) and C(cause).
  returned: success
  type: list
  elements: dict
  sample:
    - case: capital-of-japan
      kind: factual
      question: What is...
      answer: The capital city of Japan is Tokyo.
      passed: true
      seconds: 0.2
      finding: ""
      cause: ""
      prompt_tokens: 40
      output_tokens: 9
      turns: [{question: What is..., answer: The capital city..., passed: true, seconds: 0.2, finish_reason: stop, prompt_tokens: 40,
        cached_tokens: 0, output_tokens: 9, reasoning_characters: 0, note: "", finding: "", cause: ""}]
throughput:
  description:
    - Speed, or null. The first four figures are of the load with the fewest streams.
    - Rates of C(loads) are over the time in which at least one stream was past its first token (C(decode_seconds)), so that prefill is in none of them;
      C(prompt_tokens_per_second) is known of one stream only. C(p90) of a figure is what nine of ten requests have or better.
  returned: success
  type: dict
  sample:
    output_tokens: 64
    seconds: 0.9
    time_to_first_token_seconds: 0.1
    output_tokens_per_second: 80.1
    prompt_tokens_wanted: 128
    output_tokens_wanted: 64
    fixed_length: true
    loads:
      - {concurrency: 1, requests: 1, failed: 0, errors: [], prompt_tokens: 131, output_tokens: 64, seconds: 0.9, decode_seconds: 0.79,
         output_tokens_per_second: 80.1, prompt_tokens_per_second: 1190.0, stream_tokens_per_second: {p50: 80.1, p90: 80.1, p99: 80.1, worst: 80.1},
         time_to_first_token_seconds: {p50: 0.1, p90: 0.1, p99: 0.1, worst: 0.1},
         time_per_output_token_seconds: {p50: 0.012, p90: 0.012, p99: 0.012, worst: 0.012}, threshold: 30.0, baseline: 82.0}
    warm_up: {seconds: 1.2, prompt_tokens: 150, output_tokens: 8}
    baseline: {path: /var/lib/slipway/speed-baseline.json, recorded_at: "2026-12-01T16:00:00+00:00", used: true, recorded: false}
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
from ..module_utils.slipway.probe import cases, checks, throughput

CASE_SPEC: dict[str, t.Any] = {
    "id": {"type": "str", "required": True},
    "kind": {"type": "str", "choices": list(cases.KINDS), "default": "factual"},
    "prompt": {"type": "str"},
    "turns": {
        "type": "list",
        "elements": "dict",
        "options": {
            "prompt": {"type": "str", "required": True},
            "expect": {"type": "str"},
            "needle": {"type": "str"},
        },
    },
    "expect": {"type": "str"},
    "max_tokens": {"type": "int", "default": 64},
    "script": {"type": "str"},
    "least_characters": {"type": "int", "default": 0},
    "ends": {"type": "bool", "default": False},
    "tokens": {"type": "int", "no_log": False},
    "text": {"type": "str"},
    "needle": {"type": "str"},
    "at": {"type": "list", "elements": "str", "choices": list(cases.PLACES), "default": ["middle"]},
    "agreement": {"type": "float", "default": 0.4},
}
FIGURES: dict[str, t.Any] = {name: {"type": "float"} for name in throughput.JUDGED}
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
    "cases": {"type": "list", "elements": "dict", "default": [], "options": CASE_SPEC},
    "thresholds": {
        "type": "dict",
        "options": {
            **FIGURES,
            "by_concurrency": {
                "type": "list",
                "elements": "dict",
                "options": {"concurrency": {"type": "int", "required": True}, **FIGURES},
            },
            "baseline_warn_ratio": {"type": "float"},
            "baseline_fail_ratio": {"type": "float"},
        },
    },
    "throughput_concurrency": {"type": "list", "elements": "int", "default": [1]},
    # None is a secret, whatever the word token suggests to Ansible.
    "throughput_prompt_tokens": {"type": "int", "default": 128, "no_log": False},
    "throughput_tokens": {"type": "int", "default": 64, "no_log": False},
    "throughput_rounds": {"type": "int", "default": 1},
    "require_idle": {"type": "bool", "default": False},
    "baseline": {"type": "str", "default": ""},
    "baseline_of": {"type": "dict", "default": {}},
    "record_baseline": {"type": "bool", "default": False},
    "warm_up_timeout_seconds": {"type": "int", "default": 600},
    "answer_timeout_seconds": {"type": "int", "default": 120},
    # The action plugin's: it waits, and calls this module without them.
    "wait": {"type": "bool", "default": False},
    "timeout_seconds": {"type": "int", "default": 300},
    "unit": {"type": "str"},
    "engine": {"type": "str", "choices": ["llamacpp", "sglang", "vllm"]},
    "phase_limits": {"type": "dict", "default": {}},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Look at the server once; in check mode no baseline is written. Raises ``SlipwayError``."""
    return checks.look(params, check_mode)


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
