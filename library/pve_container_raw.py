#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The raw lxc.* lines of a container of Proxmox VE."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pve_container_raw
short_description: The raw C(lxc.*) lines of a container of Proxmox VE
version_added: "0.1.0"
description:
  - Keeps raw lines such as C(lxc.mount.entry) in the configuration of a container. The API of Proxmox has no way to set
    these, so the module edits the file on the node.
  - Takes the lock that Proxmox takes, refuses a container that a task has locked, touches only raw lines of the main part,
    and leaves everything else, the sections of snapshots above all, byte for byte as it is.
  - Afterwards reads the lines back through Proxmox's own code, and puts the file back if it does not know one of them.
  - A line is ours if the record under C(/var/lib/slipway/guests) says so or if it is declared. A line of ours that is no
    longer declared is removed. Lines of others stay, unless O(exclusive_keys) names their key.
  - Must run as root on the node that the container is on.
author:
  - Slipway contributors
options:
  vmid:
    description: Number of the container.
    type: int
    required: true
  lines:
    description:
      - The lines, each a key that begins with C(lxc.), a colon and a value.
      - The same key may come several times; the order within a key is kept.
    type: list
    elements: str
    required: true
  exclusive_keys:
    description: Keys of which only the declared lines may be there.
    type: list
    elements: str
    default: []
attributes:
  check_mode:
    description: Can run in check mode and tell what it would change, also for a container that is yet to be made.
    support: full
  diff_mode:
    description: Shows the raw lines as they are and as they will be.
    support: full
"""

EXAMPLES = r"""
- name: Give the container the model store and locked memory
  pve_container_raw:
    vmid: 101
    lines:
      - "lxc.mount.entry: /srv/models srv/models none bind,ro,create=dir"
      - "lxc.prlimit.memlock: unlimited"
    exclusive_keys: [lxc.prlimit.memlock]
"""

RETURN = r"""
lines:
  description: All raw lines of the container, in their order.
  returned: success
  type: list
  elements: str
  sample: ["lxc.prlimit.memlock: unlimited"]
unmanaged:
  description: Those of them that are not declared and were left, because somebody else put them there.
  returned: success
  type: list
  elements: str
digest:
  description: SHA-1 of the file as Proxmox takes it, null where there is no file yet.
  returned: success
  type: str
restart_required:
  description: Whether the container runs with other raw lines than these; they come into force at its next start.
  returned: success
  type: bool
findings:
  description: What was found, each with C(id), C(severity), C(subject), C(summary), C(detail), C(remedy), C(reference).
  returned: always
  type: list
  elements: dict
"""

import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError
from ..module_utils.slipway.pve import rawlines
from ..module_utils.slipway.pve.node import Place

ARGUMENT_SPEC: dict[str, t.Any] = {
    "vmid": {"type": "int", "required": True},
    "lines": {"type": "list", "elements": "str", "required": True},
    "exclusive_keys": {"type": "list", "elements": "str", "default": [], "no_log": False},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Keep the raw lines as declared. Raises SlipwayError."""
    return rawlines.ensure(Place(params["vmid"]), params["lines"], params["exclusive_keys"], check_mode)


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
