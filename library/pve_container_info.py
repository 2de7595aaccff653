#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The containers of Proxmox VE as they are."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pve_container_info
short_description: The containers of Proxmox VE as they are
version_added: "0.1.0"
description:
  - Reads containers through the API of Proxmox VE, one, those of a node, or those of a cluster. Changes nothing.
  - Configuration is told as it is in force; what waits for a restart is told beside it. The nodes themselves are asked, not
    the cluster's broadcast, which is seconds old.
  - Costs one call a node and three for each container, four for one that runs.
  - A container that is gone meanwhile or may not be read is left out, with the finding C(CHECK_NOT_MADE); one of a node that is
    not online too, with C(PVE_NODE_OFFLINE). What the identity has no privilege to see (VM.Audit) Proxmox does not list at all.
  - Runs on the controller, in an interpreter that has C(proxmoxer).
author:
  - Slipway contributors
requirements:
  - proxmoxer >= 2.3.0
  - requests for O(api_backend=https)
  - paramiko for O(api_backend=ssh_paramiko)
extends_documentation_fragment: [slipway_api]
options:
  node:
    description: Name of the Proxmox node of which the containers are read. If not given, all that are online.
    type: str
  vmid:
    description: Number of the one container to read. If there is none, RV(containers) is empty.
    type: int
attributes:
  check_mode:
    description: Reads what it would without it.
    support: full
  diff_mode:
    description: Changes nothing, so there is no difference to show.
    support: none
"""

EXAMPLES = r"""
- name: Read one
  pve_container_info:
    api_host: pve1.example.com
    api_user: deploy@pve
    api_token_id: slipway
    api_token_secret: "{{ vault_token_secret }}"
    node: pve1
    vmid: 101
  register: guest

- name: Read all of the cluster, as root over SSH
  pve_container_info:
    api_backend: ssh_paramiko
    api_host: pve1.example.com
"""

RETURN = r"""
containers:
  description: The containers, in order of their numbers.
  returned: success
  type: list
  elements: dict
  contains:
    vmid:
      description: Its number.
      type: int
      sample: 101
    node:
      description: The node that it is on.
      type: str
      sample: pve1
    status:
      description: V(running) or V(stopped).
      type: str
      sample: running
    hostname:
      description: Its host name, null if none is set.
      type: str
      sample: infer1
    template:
      description: Whether it is a template.
      type: bool
    unprivileged:
      description: Whether root of the container is nobody on the node.
      type: bool
    lock:
      description: The lock of a task that is at work on it, null if there is none.
      type: str
      sample: backup
    digest:
      description: SHA-1 of its configuration file, as Proxmox tells it.
      type: str
    config:
      description: Its configuration in force, keys and values as in the API, without raw lines.
      type: dict
      sample: {"cores": 16, "memory": 65536}
    raw_lines:
      description: The raw lines of its configuration, which the API shows and cannot change. Whether it runs with them it does
        not tell, M(pve_container_raw) does.
      type: list
      elements: str
      sample: ["lxc.prlimit.memlock: unlimited"]
    pending:
      description: Keys that wait for a restart with the value that they will have, null for one that will be unset.
      type: dict
      sample: {"features": "nesting=1"}
    restart_required:
      description: Whether it runs and something waits for a restart.
      type: bool
    devices:
      description: The devices passed in, each with C(key), C(path), C(gid), C(uid), C(mode), C(deny_write).
      type: list
      elements: dict
    addresses:
      description: The interfaces that it has now, each with C(name), C(hwaddr) and its C(addresses) with prefix length; empty if
        it does not run.
      type: list
      elements: dict
      sample: [{"name": "eth0", "hwaddr": "BC:24:11:00:00:01", "addresses": ["192.0.2.21/24"]}]
    snapshots:
      description: Its snapshots, oldest first, as M(pve_snapshot) tells them.
      type: list
      elements: dict
    record:
      description: What Slipway did to it, as recorded on its node; C(lines) are its raw lines and C(devices) its device paths. Empty
        if Slipway did nothing, or to another guest of this number. Null where it cannot be seen, which is everywhere but over
        O(api_backend=ssh_paramiko) on the node that is the API host.
      type: dict
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
from ..module_utils.slipway.pve.facts import Reader

ARGUMENT_SPEC: dict[str, t.Any] = {**API_OPTIONS, "node": {"type": "str"}, "vmid": {"type": "int"}}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Read the containers. ``check_mode`` makes no difference. Raises SlipwayError."""
    return Reader(connect(params), params["node"], params["vmid"]).read()


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
