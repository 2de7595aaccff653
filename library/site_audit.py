#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The files of a Python environment against RECORD, lock and patches."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: site_audit
short_description: The files of a Python environment against RECORD, lock and patches
version_added: "0.1.0"
description:
  - Tells of each installed file whether it is what its wheel brought, what a patch made of it, or something else.
  - Looks into changed and added Python files for what debugging leaves behind (tensor dumps, breakpoints, temporary files, forced
    synchronisation, early returns, sleeps, profilers), by their syntax tree, and tells file, line and what it does. Where the
    wheel's own file is at hand, only lines that it does not have are told.
  - Finds stale bytecode, code that runs at each start of Python, editable installs, packages that are there twice, leftovers of editors,
    and where modules come from past the environment.
  - Works on any environment, also one that Slipway did not make and one whose Python does not run. Changes nothing.
author: [Slipway contributors]
options:
  venv:
    description: Folder of the environment, a link to it, or a folder C(site-packages) itself.
    type: path
    required: true
  packages:
    description: Audit these alone. Not given, all are audited, and files that are nobody's as well.
    type: list
    elements: str
    default: []
  depth:
    description:
      - V(code) hashes what is read as code - Python, scripts, and sources that are compiled on this machine. Everything else is only looked
        for, and hashed where its size is wrong.
      - V(all) hashes every file, libraries of machine code and data too.
    type: str
    choices: [code, all]
    default: code
  patches:
    description:
      - The patches that should be there, each as for M(site_patch) (a dictionary with the keys of C(patch.yml) and C(diff), or the path of a folder
        with these two files), or its id alone. One that is there and not among them is a finding, as is one of them that the installed
        version needs and that is not there.
      - Not given, those of the environment's record are taken for right. Files that a known patch made what they are come as C(patched).
    type: list
    elements: raw
  record_directory:
    description: Where the records of applied patches are kept.
    type: path
    default: /var/lib/slipway/environments
  lock:
    description: Requirements file on the target. Neither this nor O(lock_content) given, it is the one that the environment was made from.
    type: path
  lock_content:
    description: The lock itself.
    type: str
  originals:
    description:
      - Where files as the wheels have them may lie, beside the usual places (the node's wheels, uv's cache, other environments here).
        Wheels, folders of wheels, or unpacked ones. What is found there is believed only if it has the digest of RECORD.
    type: list
    elements: path
    default: []
  environment:
    description: Variables that the process gets which uses the environment, such as C(PYTHONPATH).
    type: dict
    default: {}
  unit:
    description: The systemd unit of that process; its own variables are judged, as it runs or as it is declared.
    type: str
    default: ""
attributes:
  check_mode:
    description: Can run in check mode and tell what it would without it.
    support: full
  diff_mode:
    description: There is nothing to differ; the module never changes anything.
    support: none
"""

EXAMPLES = r"""
- name: Audit the environment that serves
  site_audit:
    venv: /opt/slipway/envs/current
    unit: slipway-inference.service
  register: audit
  failed_when: audit.findings | selectattr('severity', 'in', ['fail', 'unknown']) | list | length > 0

- name: Audit all of two packages in an environment made by hand
  site_audit:
    venv: /workspace/venv-sglang
    packages: [sglang, torch]
    depth: all
"""

RETURN = r"""
venv:
  description: The environment's folder, links followed.
  returned: success
  type: str
site_packages:
  description: Its folders of packages.
  returned: success
  type: list
  elements: str
packages:
  description:
    - Each package that was audited, with C(name), C(version) and how many of its files are C(pristine), C(patched), C(modified),
      C(missing), C(extra) and C(unhashed) (its metadata has no hash for them). C(unread) were not hashed at this depth.
    - Files that are nobody's come under an empty name.
  returned: success
  type: list
  elements: dict
totals:
  description: The same numbers over all packages.
  returned: success
  type: dict
files:
  description:
    - Files that are not as a wheel brought them, each with C(path) (below C(site-packages)), C(package), C(state), C(patches) (ids),
      C(sha256) and C(expected_sha256) (of RECORD).
  returned: success
  type: list
  elements: dict
debug_code:
  description:
    - Lines that debugging left in modified and extra files of Python, each with C(path), C(package), C(line), C(kind) (such as V(tensor_dump)), C(what)
      (the code and what it does) and C(compared), whether only lines that the wheel does not have were told.
  returned: success
  type: list
  elements: dict
bytecode:
  description: Bytecode that does not belong to its source, each with C(path) and C(fault).
  returned: success
  type: list
  elements: dict
startup:
  description: Files that Python reads when it starts, those of packages too, each with C(path), what it C(runs) and what it C(adds).
  returned: success
  type: list
  elements: dict
findings:
  description: What was found, each with C(id severity subject summary detail remedy reference).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.python import survey

ARGUMENT_SPEC: dict[str, t.Any] = {
    "venv": {"type": "path", "required": True},
    "packages": {"type": "list", "elements": "str", "default": []},
    "depth": {"type": "str", "choices": ["code", "all"], "default": "code"},
    "patches": {"type": "list", "elements": "raw"},
    "record_directory": {"type": "path", "default": "/var/lib/slipway/environments"},
    "lock": {"type": "path"},
    "lock_content": {"type": "str"},
    "originals": {"type": "list", "elements": "path", "default": []},
    "environment": {"type": "dict", "default": {}},
    "unit": {"type": "str", "default": ""},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Look and judge. ``check_mode`` makes no difference: nothing is ever changed. Raises ``SlipwayError``."""
    return survey.look(params)


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC, supports_check_mode=True, mutually_exclusive=[("lock", "lock_content")]
    )
    try:
        result = run(module.params, module.check_mode)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
