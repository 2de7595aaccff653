#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Patches of the packages in a Python environment."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: site_patch
short_description: Patches of the packages in a Python environment
version_added: "0.1.0"
description:
  - Applies patches to installed packages, takes them back, or brings the files of the wheels back.
  - A patch is a strict unified diff that is pinned to versions of its package and to the sha256 of each file before and after. What state it is in is
    decided by these alone; there is no fuzz and no offset. A file that is neither is somebody else's, and nothing is done.
  - All new contents are worked out first and written beside their places, then renamed. A hard link into a cache is broken by that, so that no other
    environment changes. A run that was cut off is completed or undone by the next one.
  - What was applied, and the contents that it replaced, are kept outside of the environment.
  - Works on any virtual environment, whoever made it.
author: [Slipway contributors]
options:
  venv:
    description: Folder of the environment. Links are followed.
    type: path
    required: true
  patches:
    description:
      - The patches, in the order in which they are applied; they are taken back from the last to the first.
      - "Each is a dictionary with the keys of C(patch.yml) (C(id), C(summary), C(package), C(versions), C(files), and C(superseded_in) and others where
        there is something to say) and C(diff), the text of C(change.diff); or the path of a folder on the target with these two files, which needs
        PyYAML there."
    type: list
    elements: raw
    default: []
  state:
    description:
      - V(applied) has them applied. One that the installed version has by itself (by hash, or from C(superseded_in) on) is left out, and told.
        One that was applied in an older form is replaced.
      - V(reverted) brings back what they replaced. What upstream has by itself is not touched.
      - V(restored) brings all files of the patches' packages and of O(packages) back as their wheels have them, also where no record exists, and forgets
        their patches.
    type: str
    choices: [applied, reverted, restored]
    default: applied
  exclusive:
    description: Take recorded patches that are not among O(patches) as meant too; V(applied) takes them back, V(reverted) and V(restored) cover them.
    type: bool
    default: false
  packages:
    description: Further packages whose files are restored.
    type: list
    elements: str
    default: []
  wheels:
    description: Folder on the target with the wheels that files are restored from. Each is compared with the lock.
    type: path
  lock_content:
    description:
      - The lock with the hashes of the wheels. Not given, it is the one that the environment keeps as C(slipway.lock).
      - Where there is none, each restored file must have the sha256 that the environment's RECORD has for it.
    type: str
    default: ""
  unit:
    description: The service that runs from the environment, to be named where it must restart. Not given, it is looked for among the processes.
    type: str
    default: ""
  record_directory:
    description: Where the records of environments are kept.
    type: path
    default: /var/lib/slipway/environments
attributes:
  check_mode:
    description: Says what would change, and refuses what would be refused; writes nothing.
    support: full
  diff_mode:
    description: Shows each file before and after.
    support: full
"""

EXAMPLES = r"""
- name: Exactly these patches
  site_patch:
    venv: /opt/slipway/envs/current
    patches:
      - /srv/patches/sglang-sm120-extend-attention
      - /srv/patches/sglang-sm120-prefill-attention
    exclusive: true
    unit: slipway-inference.service

- name: All patches off
  site_patch:
    venv: /opt/slipway/envs/current
    state: reverted
    exclusive: true

- name: The wheel's files back, whatever was done to them
  site_patch:
    venv: /home/me/venv
    state: restored
    packages: [sglang]
    wheels: /srv/wheels
"""

RETURN = r"""
patches:
  description: >-
    Each patch that was given or is in the record, with its state now and the one that it was found in (C(before)). V(pristine), V(applied), V(upstream)
    (the version has it by itself), V(equivalent) (the file has it in another form), V(other_version) (it is not made for this version); as C(before) also
    V(outdated) (applied in an older form), V(foreign) and V(mixed), which only V(restored) goes on from.
  returned: success
  type: list
  elements: dict
  sample:
    - id: sglang-sm120-extend-attention
      state: applied
      before: pristine
      package: sglang
      version: 0.5.8.post1
      files: [sglang/srt/layers/attention/triton_ops/extend_attention.py]
files:
  description: The files that changed, or in check mode would, with their sha256 before and after (V(absent) where there is none) and the patches in question.
  returned: success
  type: list
  elements: dict
restart_required:
  description: Whether files changed, so that what runs from the environment goes on with others.
  returned: success
  type: bool
units:
  description: What has to be started again, where files changed.
  returned: success
  type: list
  elements: str
  sample: [slipway-inference.service]
findings:
  description: What was found, such as V(PATCH_UPSTREAM), V(PATCH_EQUIVALENT), V(PATCH_FOREIGN), V(PATCH_MIXED), V(PATCH_VERSION_UNKNOWN), V(PATCH_STALE).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.patching import actions

ARGUMENT_SPEC: dict[str, t.Any] = {
    "venv": {"type": "path", "required": True},
    "patches": {"type": "list", "elements": "raw", "default": []},
    "state": {"type": "str", "choices": ["applied", "reverted", "restored"], "default": "applied"},
    "exclusive": {"type": "bool", "default": False},
    "packages": {"type": "list", "elements": "str", "default": []},
    "wheels": {"type": "path"},
    "lock_content": {"type": "str", "default": ""},
    "unit": {"type": "str", "default": ""},
    "record_directory": {"type": "path", "default": "/var/lib/slipway/environments"},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Bring the files to the state that is asked for. Raises ``SlipwayError``."""
    return actions.ensure(params, check_mode)


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
