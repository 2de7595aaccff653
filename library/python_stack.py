#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A Python environment that equals a lock."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: python_stack
short_description: A Python environment that equals a lock
version_added: "0.1.0"
description:
  - Keeps a virtual environment equal to a lock in which every package has one version and its hashes.
  - Owns which packages and versions are there, not what their files say.
  - An environment is made by C(uv), from wheels only, with copies of its own and no hard links into a cache.
  - A run that was killed is completed by the next one.
  - Packages that a person added are reported, and go when the environment is built the next time, for another lock or as a repair.
author: [Slipway contributors]
extends_documentation_fragment: [slipway_source, slipway_source.ca_bundle]
options:
  venv:
    description: Folder of the environment. It is made where it will stay.
    type: path
    required: true
  lock:
    description:
      - Requirements file on the target, with hashes and without options or addresses.
      - Exactly one of O(lock) and O(lock_content) is needed.
    type: path
  lock_content:
    description: The lock itself, for a check mode that comes before the file is on the target.
    type: str
  python:
    description:
      - Names or paths of interpreters; the first that runs is used for a new environment.
      - An environment for a Python version that is none of these is made anew. Not given, it is left as it is, and C(python3) makes a new one.
    type: list
    elements: str
  uv:
    description: Path or name of the C(uv) program on the target. It is needed only where something is to be done.
    type: str
    default: uv
  imports:
    description: Modules that must import in the environment, each tried in a process of its own at every run.
    type: list
    elements: str
    default: []
  import_timeout_seconds:
    description: How long one import may take.
    type: int
    default: 120
  complaints:
    description:
      - What a dependency check of the environment may say, a sentence each, as C(make lock) records it. Anything else fails the build.
      - Not given, nothing is checked.
    type: list
    elements: str
  uv_config:
    description:
      - C(uv)'s configuration file of this machine (C(/etc/uv/uv.toml)), in which a part says that packages stay as the lock has them.
      - The environment's own C(pip.conf) says so in any case. Files of somebody else stay as they are.
    type: path
  link:
    description: Symbolic link that is switched to the environment, in one step, when all imports work.
    type: path
  timeout_seconds:
    description: How long one call of C(uv) may take.
    type: int
    default: 1800
  wheels:
    description: Folder on the target with the wheels of the lock. Given, no network is used.
    type: str
    default: ""
notes:
  - Logins are options, since a task's C(environment) stands on a command line. What no option says is C(uv)'s own default, or what its
    variables in the task's C(environment) say.
  - The environment keeps its lock as C(slipway.lock) in its folder.
attributes:
  check_mode:
    description: Says the plan without C(uv) and without the network, tries the imports if nothing is to be done, writes nothing.
    support: full
  diff_mode:
    description: Shows the packages, and where the link points.
    support: full
"""

EXAMPLES = r"""
- name: Environment of the inference engine
  python_stack:
    venv: /opt/slipway/envs/kimi-k2.5-nvfp4-vllm-3f0c9a
    lock: /opt/slipway/locks/kimi-k2.5-nvfp4-vllm.lock
    python: [python3.12]
    uv: /opt/slipway/bin/uv
    imports: [torch, vllm]
    complaints: []
    uv_config: /etc/uv/uv.toml
    link: /opt/slipway/envs/current
    index: https://mirror.example/simple
"""

RETURN = r"""
actions:
  description: >-
    What was done, or in check mode would be: V(build) the environment, V(mend) it since something did not import, V(switch) the link, V(constrain) what uv and
    pip do. The first two fetch.
  returned: success
  type: list
  elements: str
  sample: [build, switch]
added:
  description: Packages that were missing.
  returned: success
  type: list
  elements: dict
  sample: [{name: torch, version: 2.9.1}]
removed:
  description: Packages that are not in the lock and went.
  returned: success
  type: list
  elements: dict
  sample: [{name: torchaudio, version: 2.9.1}]
changed_packages:
  description: Packages that had another version.
  returned: success
  type: list
  elements: dict
  sample: [{name: torch, before: 2.10.0, after: 2.9.1}]
packages:
  description: Every package of the environment as it is, or in check mode as it would be, version by name.
  returned: success
  type: dict
  sample: {torch: 2.9.1}
venv:
  description: The environment's folder.
  returned: success
  type: str
python:
  description: The environment's Python version.
  returned: success
  type: str
  sample: "3.12"
lock_digest:
  description: SHA-256 of the lock.
  returned: success
  type: str
findings:
  description: What was found, such as V(STACK_DRIFT), V(IMPORT_FAILED), V(PACKAGE_EXTRA), V(DEPENDENCY_BROKEN), V(CONSTRAINTS_FOREIGN), V(PYTHON_MISSING), V(LOCK_UNHASHED), V(HASH_MISMATCH), V(INDEX_UNREACHABLE).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.python import source, stack

ARGUMENT_SPEC: dict[str, t.Any] = {
    "venv": {"type": "path", "required": True},
    "lock": {"type": "path"},
    "lock_content": {"type": "str"},
    "python": {"type": "list", "elements": "str"},
    "uv": {"type": "str", "default": "uv"},
    "imports": {"type": "list", "elements": "str", "default": []},
    "import_timeout_seconds": {"type": "int", "default": 120},
    "complaints": {"type": "list", "elements": "str"},
    "uv_config": {"type": "path"},
    "link": {"type": "path"},
    "timeout_seconds": {"type": "int", "default": 1800},
    **source.SPEC,
    **source.WHEELS_SPEC,
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Bring the environment to the lock, try the imports, switch the link. Raises ``SlipwayError``."""
    return stack.ensure(params, check_mode)


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        supports_check_mode=True,
        required_one_of=[("lock", "lock_content")],
        mutually_exclusive=[("lock", "lock_content")],
    )
    try:
        result = run(module.params, module.check_mode)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
