#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Misspelt variables and clashing guests of an inventory, as findings."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: inventory_check
short_description: Misspelt variables and clashing guests of an inventory
version_added: "0.2.0"
description:
  - Compares the names of a host's variables with those that roles read, by their C(meta/argument_specs.yml). Ansible says nothing of
    a variable that nobody reads.
  - Compares a guest with all others of the inventory, since two must not claim one GPU, one address or one vmid.
  - Looks at names only, never at the value of a variable. Changes nothing; runs on the controller, in an interpreter that has C(yaml).
author: [Slipway contributors]
requirements:
  - PyYAML
options:
  host:
    description: Inventory name of the host that is looked at.
    type: str
    required: true
  variables:
    description: Names of the variables that it has.
    type: list
    elements: str
    required: true
  roles_path:
    description: Folder of the roles.
    type: path
    required: true
  known:
    description: Names that are right besides those of the roles.
    type: list
    elements: str
    default: []
  guests:
    description: All guests of the inventory.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: Inventory name.
        type: str
        required: true
      node:
        description: Inventory name of its node.
        type: str
      vmid:
        description: Its vmid.
        type: str
      address:
        description: Its address.
        type: str
      gpus:
        description: PCI addresses of its GPUs, or V(all).
        type: raw
attributes:
  check_mode:
    description: Runs as always, since it changes nothing.
    support: full
  diff_mode:
    description: There is nothing to differ.
    support: none
"""

EXAMPLES = r"""
- name: Look for misspelt variables
  inventory_check:
    host: "{{ inventory_hostname }}"
    variables: "{{ hostvars[inventory_hostname].keys() | list }}"
    roles_path: roles
  register: inventory
  delegate_to: localhost
"""

RETURN = r"""
variables:
  description: Those of O(variables) that a role reads.
  returned: success
  type: list
  elements: str
  sample: [gpu_container_node, gpu_container_vmid]
findings:
  description: V(VARIABLE_UNKNOWN) with the nearest right name, V(GUEST_CLASH) with the other guest.
  returned: always
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway import inventory
from ..module_utils.slipway.errors import SlipwayError, cannot, here

ARGUMENT_SPEC: dict[str, t.Any] = {
    "host": {"type": "str", "required": True},
    "variables": {"type": "list", "elements": "str", "required": True},
    "roles_path": {"type": "path", "required": True},
    "known": {"type": "list", "elements": "str", "default": []},
    "guests": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "options": {
            "name": {"type": "str", "required": True},
            "node": {"type": "str"},
            "vmid": {"type": "str"},
            "address": {"type": "str"},
            "gpus": {"type": "raw"},
        },
    },
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Look and judge. ``check_mode`` makes no difference: nothing is ever changed. Raises ``SlipwayError``."""
    known = {**role_variables(Path(params["roles_path"])), "": set(params["known"])}
    found = inventory.misspelt(params["variables"], known) + inventory.clashes(params["host"], params["guests"])
    read = sorted(set(params["variables"]) & set().union(*known.values()))
    return {"changed": False, "variables": read, "findings": [told.as_dict() for told in found]}


def role_variables(folder: Path) -> dict[str, set[str]]:
    """The variables of each role below ``folder``, those of all its entry points. Raises ``SlipwayError`` where there is no role."""
    import yaml  # here, since only the controller has it

    found = {}
    for path in sorted(folder.glob("*/meta/argument_specs.yml")):
        entry_points = yaml.safe_load(path.read_text(encoding="utf-8"))["argument_specs"].values()
        found[path.parents[1].name] = {name for entry in entry_points for name in entry.get("options", {})}
    if not found:
        raise cannot(
            "read", f"roles '{folder}'", here(), "no role with argument specs is there", "Give the folder of the roles"
        )
    return found


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
