#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Where a server is in its start, and why it does not get on."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: server_log_info
short_description: Where a server is in its start, and why it does not get on
version_added: "0.1.0"
description:
  - Reads the journal of a server's unit since its start and says which phase the engine is in, how far, and since when nothing moves.
  - A phase that is over its limit, a unit that died, and faults that are known by what the log says are findings. The task does not fail for them.
  - The module looks once; M(inference_probe), when it waits, asks it again and again. It needs root, for the whole journal.
author: [Slipway contributors]
options:
  unit:
    description: The systemd unit of the server.
    type: str
    required: true
  engine:
    description: Whose log it is. Without it no phase is read, and no limit is kept.
    type: str
    choices: [llamacpp, sglang, vllm]
  limits:
    description:
      - What a phase may take, by its name (V(starting), V(connecting), V(loading), V(allocating), V(compiling), V(capturing), V(warming), V(ready)).
      - Each has C(quiet_seconds), without a sign of progress, and C(total_seconds). What is not given is as the engine's file has it.
    type: dict
    default: {}
  run_id:
    description: Which run of the unit is meant, as an earlier look returned it. Another one that runs by now is a unit that died.
    type: str
  restarts:
    description: How often systemd had restarted the unit at an earlier look. More by now is a unit that died.
    type: int
  waited_seconds:
    description: How long the caller has waited by now. One that says it serves is given its time from then on, however long it has served.
    type: float
attributes:
  check_mode:
    description: It reads only.
    support: full
  diff_mode:
    description: There is nothing to differ.
    support: none
"""

EXAMPLES = r"""
- name: See how far the server is
  server_log_info:
    unit: slipway-inference.service
    engine: sglang
    limits:
      loading: {quiet_seconds: 1800} # the weights come over a network
"""

RETURN = r"""
phase:
  description: The phase that it is in, or null without O(engine).
  returned: success
  type: str
words:
  description: The phase in the field's words.
  returned: success
  type: str
  sample: loading shard 12 of 47
done:
  description: How much of the phase is done, or null where the log counts nothing.
  returned: success
  type: int
total:
  description: Of how much.
  returned: success
  type: int
seconds:
  description: Seconds since its start.
  returned: success
  type: float
phase_seconds:
  description: Seconds since the phase began.
  returned: success
  type: float
quiet_seconds:
  description: Seconds since the last sign of progress.
  returned: success
  type: float
died:
  description: How it died, in words, or empty.
  returned: success
  type: str
  sample: is not running, result exit-code, exit code 1
hung:
  description: Whether the phase is over its limit.
  returned: success
  type: bool
run_id:
  description: The run that this is about, for O(run_id).
  returned: success
  type: str
restarts:
  description: How often systemd has restarted it, for O(restarts).
  returned: success
  type: int
log:
  description: The last lines of its log, without what systemd says at each start and end.
  returned: success
  type: list
  elements: str
findings:
  description: What was found, such as V(SERVER_HUNG), V(SERVER_DIED), V(KERNEL_SHARED_MEMORY), V(GPU_MEMORY_KV); the most telling first.
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.engines import startup, watch
from ..module_utils.slipway.errors import SlipwayError

ARGUMENT_SPEC: dict[str, t.Any] = {
    "unit": {"type": "str", "required": True},
    "engine": {"type": "str", "choices": sorted(startup.ENGINES)},
    "limits": {"type": "dict", "default": {}},
    "run_id": {"type": "str"},
    "restarts": {"type": "int"},
    "waited_seconds": {"type": "float"},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Look once. ``check_mode`` makes no difference: nothing is ever changed. Raises ``SlipwayError``."""
    return watch.look(params)


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
