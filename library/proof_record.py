#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What was proven of a machine, and whether it still holds."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: proof_record
short_description: What was proven of a machine, and whether it still holds
version_added: "0.1.0"
description:
  - Keeps the result of a measurement on the machine that it was made of, with the time and with what it rests on, such as driver, boot
    and kernel command line. As long as these are the same it holds; when one differs it is stale, and nothing is known any more.
  - Without O(result) it only looks.
author:
  - Slipway contributors
options:
  name:
    description: What was proven, such as V(links). A file has one proof of each name.
    type: str
    required: true
  path:
    description: The file on the target.
    type: path
    default: /var/lib/slipway/proofs.json
  required:
    description: Whether it must hold. If not, what would fail is a warning.
    type: bool
    default: true
  rests_on:
    description: What it rests on, as names with values of any form. They are compared for being equal.
    type: dict
    required: true
  result:
    description: A result to keep in place of the one that is there, with its C(findings). It is kept whether it is good or bad.
    type: dict
attributes:
  check_mode:
    description: Keeps nothing, and tells what stands.
    support: full
  diff_mode:
    description: Shows what it rested on and what it rests on.
    support: full
"""

EXAMPLES = r"""
- name: Do the links still stand proven
  proof_record:
    name: links
    rests_on: {boot: "{{ host.boot_id }}", driver: "{{ host.driver.kernel_version }}"}
  register: links

- name: Keep what gpu_p2p found, where that was called because they do not
  proof_record:
    name: links
    rests_on: {boot: "{{ host.boot_id }}", driver: "{{ host.driver.kernel_version }}"}
    result: "{{ measured }}"
  when: measured is not skipped
"""

RETURN = r"""
state:
  description:
    - C(holds), also for a bad result that need not be good; C(failed), what was measured was no good; C(stale), something that it rests on differs; C(absent).
  returned: success
  type: str
proven_at:
  description: When it was measured, in UTC as in ISO 8601, none if it is absent.
  returned: success
  type: str
age:
  description: How long ago that is in words, none if it is absent.
  returned: success
  type: str
  sample: 3 hours
age_seconds:
  description: How long ago that is, none if it is absent.
  returned: success
  type: int
differences:
  description: What it rests on that is not as it was, in words.
  returned: success
  type: list
  elements: str
rests_on:
  description: What it rested on, none if it is absent.
  returned: success
  type: dict
result:
  description: The result as it was kept, none if it is absent.
  returned: success
  type: dict
findings:
  description:
    - C(PROOF_HOLDS), C(PROOF_FAILED), C(PROOF_STALE) or C(PROOF_ABSENT), and what was found as it was measured if that still applies.
  returned: always
  type: list
  elements: dict
"""

import time
import typing as t
from datetime import datetime, timezone
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway import proof
from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.findings import Finding, softened

ARGUMENT_SPEC: dict[str, t.Any] = {
    "name": {"type": "str", "required": True},
    "path": {"type": "path", "default": "/var/lib/slipway/proofs.json"},
    "required": {"type": "bool", "default": True},
    "rests_on": {"type": "dict", "required": True},
    "result": {"type": "dict"},
}


def run(params: dict[str, t.Any], check_mode: bool, now: float) -> dict[str, t.Any]:
    """Keep a result or look at the one that is there. ``now`` is in seconds since 1970. Raises ``SlipwayError``."""
    path, name, rests_on = Path(params["path"]), params["name"], params["rests_on"]
    if not rests_on:
        raise cannot("judge", f"proof '{name}'", here(), "rests_on is empty", "Name what it rests on")
    proofs, unusable = proof.load(path)
    before = proofs.get(name)
    told: dict[str, t.Any] = {"changed": False}
    if params["result"] is not None:
        if not isinstance(params["result"].get("findings"), list):
            raise cannot("keep", f"proof '{name}'", here(), "its result has no findings", "Give what a module returned")
        made = proof.make(params["result"], rests_on, now)
        told = {"changed": True, "diff": _diff(before, made, str(path))}
        proofs[name] = made
        if not check_mode:
            try:
                proof.save(path, proofs)
            except OSError as error:
                raise cannot(
                    "keep", f"proof '{name}'", here(), f"{path}: {error.strerror}", "Name a path that can be written"
                ) from error
            before, unusable = made, ""
    stands = proof.state(before, rests_on)
    findings = proof.judge(name, before, rests_on, now, unusable)
    if before and stands in (proof.HOLDS, proof.FAILED):
        findings += [Finding(**one) for one in before["findings"]]
    return {
        **told,
        "state": stands,
        "proven_at": before and datetime.fromtimestamp(before["proven_at"], timezone.utc).isoformat(timespec="seconds"),
        "age": before and proof.age(now - before["proven_at"]),
        "age_seconds": before and max(0, int(now - before["proven_at"])),
        "differences": proof.differences(before, rests_on) if before else [],
        "rests_on": before and before["rests_on"],
        "result": before and before["result"],
        "findings": [one.as_dict() for one in (findings if params["required"] else softened(findings))],
    }


def _diff(before: t.Mapping[str, t.Any] | None, after: t.Mapping[str, t.Any], path: str) -> dict[str, str]:
    shown = [_lines(one["rests_on"]) if one else "" for one in (before, after)]
    return {"before": shown[0], "after": shown[1], "before_header": path, "after_header": path}


def _lines(rests_on: t.Mapping[str, t.Any]) -> str:
    return "".join(f"{key}: {value}\n" for key, value in sorted(rests_on.items()))


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = run(module.params, module.check_mode, time.time())
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
