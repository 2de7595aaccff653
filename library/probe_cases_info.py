#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Cases of a profile and of a user's own files, checked before any model is asked."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: probe_cases_info
short_description: Cases of a profile and of a user's own files, checked before any model is asked
version_added: "0.1.0"
description:
  - Reads the cases that M(inference_probe) puts to a model, and fails at the first that it could not put.
  - For the controller. A file is a list of cases in YAML, or has one under C(cases).
author: [Slipway contributors]
options:
  cases:
    description: Cases as O(inference_probe#module:cases) has them.
    type: list
    elements: dict
    default: []
  files:
    description:
      - Files with more of them, or folders of which every file C(*.yml) is read, in the order of their names.
      - A case there may name a C(file) beside it. That is the text of a long prompt, and the question of any other kind.
    type: list
    elements: path
    default: []
attributes:
  check_mode:
    description: It reads only.
    support: full
"""

EXAMPLES = r"""
- name: Read the cases
  probe_cases_info:
    cases:
      - {id: capital-of-japan, prompt: "What is the capital city of Japan?", expect: Tokyo}
    files: [/home/me/cases]
  register: asked
  delegate_to: localhost
"""

RETURN = r"""
cases:
  description: All cases, those of O(cases) first.
  returned: success
  type: list
  elements: dict
files:
  description: The files that were read.
  returned: success
  type: list
  elements: str
findings:
  description: None. A case that cannot be put fails the task, with one sentence.
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.probe import case_files

ARGUMENT_SPEC: dict[str, t.Any] = {
    "cases": {"type": "list", "elements": "dict", "default": []},
    "files": {"type": "list", "elements": "path", "default": []},
}


def run(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Read the cases. Raises ``SlipwayError``."""
    try:
        found, read = case_files.gather(params["cases"], params["files"])
    except ValueError as error:
        raise cannot("use", "the cases of the coherence check", here(), str(error), "Correct it") from None
    return {"changed": False, "cases": found, "files": read, "findings": []}


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = run(module.params)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
