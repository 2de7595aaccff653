#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Snapshots of a container of Proxmox VE."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pve_snapshot
short_description: Snapshots of a container of Proxmox VE
version_added: "0.1.0"
description:
  - Makes and removes snapshots of a container, and rolls the container back to one, through the API of Proxmox VE.
  - Asks Proxmox first whether every disk of the container can be part of a snapshot. Where one cannot, nothing is made, and
    the finding C(PVE_SNAPSHOT_UNSUPPORTED) names the disk and what to do instead. Bind mounts (C(mpN)) rule out snapshots; a
    raw line (M(pve_container_raw), C(lxc.mount.entry)) does not, and what is mounted by one is not part of them.
  - A snapshot holds the configuration too, devices and raw lines included, and a rollback brings it back. The node itself, its
    driver and its kernel are no part of it.
  - A state that is right already costs four API calls.
  - Runs on the controller, in an interpreter that has C(proxmoxer).
author:
  - Slipway contributors
requirements:
  - proxmoxer >= 2.3.0
  - requests for O(api_backend=https)
  - paramiko for O(api_backend=ssh_paramiko)
extends_documentation_fragment: [slipway_api]
options:
  vmid:
    description: Number of the container.
    type: int
    required: true
  node:
    description: Name of the Proxmox node that the container is on.
    type: str
    required: true
  name:
    description: Name of the snapshot. It begins with a letter, and has letters, digits, hyphens and underscores, 40 at most.
    type: str
    required: true
  state:
    description:
      - V(present) makes the snapshot if there is none of this name. One that is there is not made anew.
      - V(absent) removes it.
      - V(rolled_back) brings disks and configuration back to it, in every run; what was changed since is lost. The container is
        stopped for that. Notes of the container stay, and so do newer snapshots. On ZFS only the newest snapshot can be rolled
        back to; an older one is refused, and the newer ones are named.
    type: str
    choices: [present, absent, rolled_back]
    default: present
  description:
    description: What the snapshot is for. A line that says who made it is added to that of a snapshot that the module makes.
    type: str
  keep:
    description:
      - With O(state=present), how many of our own snapshots are left, this one among them if it is ours. Of those that are older
        than this one the oldest are removed when it is there; none that is newer.
      - Ours are those that this module made, known by the last line of their description. Those of others are never removed and
        do not count.
    type: int
  keep_prefix:
    description: Of our own snapshots, only those with names that begin like this count for O(keep).
    type: str
    default: ""
  start:
    description: With O(state=rolled_back), whether the container is started afterwards. If not given, it is when it was running.
    type: bool
  timeout_seconds:
    description: How long a task of Proxmox may take. A task that takes longer runs on.
    type: int
    default: 300
attributes:
  check_mode:
    description: Can run in check mode and tell what it would do, and what it would refuse.
    support: full
  diff_mode:
    description: Shows the snapshots with their descriptions; of a rollback the keys of the configuration that change, as they are
      and as they were in the snapshot.
    support: full
"""

EXAMPLES = r"""
- name: Keep the last three states before a change
  pve_snapshot:
    api_host: pve1.example.com
    api_user: deploy@pve
    api_token_id: slipway
    api_token_secret: "{{ vault_token_secret }}"
    node: pve1
    vmid: 101
    name: "reprovision-{{ now(utc=true, fmt='%Y%m%d-%H%M%S') }}"
    description: Before the driver was changed
    keep: 3
    keep_prefix: reprovision-

- name: Go back
  pve_snapshot:
    api_host: pve1.example.com
    node: pve1
    vmid: 101
    name: proven
    state: rolled_back
"""

RETURN = r"""
snapshots:
  description: The snapshots that there are after the module, oldest first; in check mode those that there are now.
  returned: success
  type: list
  elements: dict
  contains:
    name:
      description: Its name.
      type: str
      sample: proven
    description:
      description: Its description, without the line that says who made it.
      type: str
      sample: Before the driver was changed
    created:
      description: When it was made, in seconds since 1970.
      type: int
      sample: 1796083200
    parent:
      description: The snapshot that it descends from, null if from none.
      type: str
    ours:
      description: Whether this module made it.
      type: bool
      sample: true
    unfinished:
      description: What a task that was killed left it in, null if it is whole.
      type: str
status:
  description: The container's status after the module, one of V(running), V(stopped), V(absent).
  returned: success
  type: str
  sample: running
task:
  description: UPID of the last task, null if there was none.
  returned: success
  type: str
findings:
  description: What was found, each with C(id), C(severity), C(subject), C(summary), C(detail), C(remedy), C(reference).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.pve.connect import API_OPTIONS, connect
from ..module_utils.slipway.pve.snapshot_actions import Snapshots

ARGUMENT_SPEC: dict[str, t.Any] = {
    **API_OPTIONS,
    "vmid": {"type": "int", "required": True},
    "node": {"type": "str", "required": True},
    "name": {"type": "str", "required": True},
    "state": {"type": "str", "choices": ["present", "absent", "rolled_back"], "default": "present"},
    "description": {"type": "str"},
    "keep": {"type": "int"},
    "keep_prefix": {"type": "str", "default": ""},
    "start": {"type": "bool"},
    "timeout_seconds": {"type": "int", "default": 300},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Bring the snapshot, or the container, to the declared state. Raises SlipwayError."""
    return Snapshots(connect(params), params, check_mode).ensure()


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        supports_check_mode=True,
        required_together=[("api_token_id", "api_token_secret")],
    )
    try:
        result = run(module.params, module.check_mode)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
