#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A folder of wheels that several machines install from."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: wheel_cache
short_description: A folder of wheels that several machines install from
version_added: "0.1.0"
description:
  - Sees to it that wheels lie in a folder, each the file that its sha256 says. Others in the folder are left alone.
  - A file is put there whole or not at all, so that readers find none that is half written. Several runs on one machine wait for each other.
author: [Slipway contributors]
extends_documentation_fragment: [slipway_source, slipway_source.ca_bundle]
options:
  path:
    description: The folder. It is made where it is not there; those who read it need not be able to write it.
    type: path
    required: true
  wheels:
    description: What is to be there, as M(lock_wheels_info) returns it.
    type: list
    elements: dict
    required: true
    suboptions:
      name:
        description: The package.
        type: str
        required: true
      file:
        description: The file's name.
        type: str
        required: true
      url:
        description: Where it is fetched from, over HTTP or HTTPS, without a login.
        type: str
        required: true
      sha256:
        description: Its sha256, in hex.
        type: str
        required: true
      size_bytes:
        description: Its size, for the room that is needed; V(0) where it is not known.
        type: int
        default: 0
  timeout_seconds:
    description: How long the server may be silent while a file is fetched.
    type: int
    default: 60
  index:
    description: Address of the package index, without a login. Its login goes to this server alone.
    type: str
    default: ""
attributes:
  check_mode:
    description: Says which files would be fetched, without the network.
    support: full
  diff_mode:
    description: Shows which of the files are there, before and after.
    support: full
"""

EXAMPLES = r"""
- name: Fetch what the guest needs, once for all guests of the node
  wheel_cache:
    path: /var/cache/slipway/wheels
    wheels: "{{ chosen.wheels }}"
  delegate_to: "{{ gpu_container_node }}"
"""

RETURN = r"""
fetched:
  description: The files that were fetched.
  returned: success
  type: list
  elements: str
  sample: [six-1.17.0-py2.py3-none-any.whl]
findings:
  description: What was found, such as V(NETWORK_UNREACHABLE), V(PROXY_REFUSED), V(CA_UNTRUSTED), V(INDEX_UNREACHABLE), V(HASH_MISMATCH).
  returned: always
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.python import cache, source
from ..module_utils.slipway.python.chosen import Wheel

ARGUMENT_SPEC: dict[str, t.Any] = {
    "path": {"type": "path", "required": True},
    "wheels": {
        "type": "list",
        "elements": "dict",
        "required": True,
        "options": {
            "name": {"type": "str", "required": True},
            "file": {"type": "str", "required": True},
            "url": {"type": "str", "required": True},
            "sha256": {"type": "str", "required": True},
            "size_bytes": {"type": "int", "default": 0},
        },
    },
    "timeout_seconds": {"type": "int", "default": 60},
    **source.SPEC,
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Fetch what is missing. Raises ``SlipwayError``."""
    folder, wheels = Path(params["path"]), [Wheel(**one) for one in params["wheels"]]
    missing = cache.missing(folder, wheels)
    if missing and not check_mode:
        missing = cache.fetch(folder, wheels, source.from_params(params), params["timeout_seconds"])
    there = sorted(one.file for one in wheels if one not in missing)
    after = sorted(one.file for one in wheels)
    diff = {"before": "".join(f"{name}\n" for name in there), "after": "".join(f"{name}\n" for name in after)}
    header = {"before_header": str(folder), "after_header": str(folder)}
    return {
        "changed": bool(missing),
        "fetched": [one.file for one in missing],
        "findings": [],
        "diff": [{**header, **diff}],
    }


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
