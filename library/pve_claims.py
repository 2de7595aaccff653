#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What the guests of a Proxmox VE node claim of it, and where a declared guest collides with them."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pve_claims
short_description: What the guests of a Proxmox VE node claim, and where a declared guest collides with them
version_added: "0.2.0"
description:
  - Reads the configuration of every guest of this node, containers and virtual machines, and tells which GPUs, device
    nodes, addresses and memory each claims.
  - Compares with that a container that is declared, whether it exists yet or not. Claims of guests that do not run count
    too, since the second one to start breaks; those of templates do not.
  - Tells whether a guest that has the declared vmid is Slipway's, by the record under C(/var/lib/slipway/guests), which is
    bound to the guest's first MAC address and to when its mount point was made.
  - Asks the network of each declared IPv4 address by ARP who has it. Nothing is changed.
  - Must run as root on the node that the container is on. Works before the node has a driver.
author:
  - Slipway contributors
options:
  vmid:
    description: Number of the declared container.
    type: int
    required: true
  hostname:
    description: Its host name, for what is said about it.
    type: str
    required: true
  gpus:
    description: PCI addresses of the GPUs that it shall get, or V(all) alone for every GPU of the node.
    type: list
    elements: str
    default: []
  net:
    description: Its networks, in the form of M(pve_container). Of each C(bridge), C(tag), C(ip) and C(ip6) count here.
    type: list
    elements: dict
    default: []
  memory_mib:
    description: Its memory in MiB.
    type: int
    default: 0
  allow_adopt:
    description: Whether a guest that is not ours may be taken over. Then it is told as information.
    type: bool
    default: false
  timeout_seconds:
    description: How long to wait for a task of Proxmox that is making the container.
    type: int
    default: 300
attributes:
  check_mode:
    description: Can run in check mode and tell what it would without it.
    support: full
  diff_mode:
    description: There is nothing to differ; the module never changes anything.
    support: none
"""

EXAMPLES = r"""
- name: See whether the container would collide with what is there
  pve_claims:
    vmid: 101
    hostname: infer1
    gpus: ["0000:01:00.0", "0000:02:00.0"]
    net:
      - {id: 0, name: eth0, bridge: vmbr0, ip: 192.0.2.21/24, gw: 192.0.2.1}
    memory_mib: 65536
  register: claims
  failed_when: claims.findings | selectattr('severity', 'in', ['fail', 'unknown']) | list | length > 0
"""

RETURN = r"""
guests:
  description: The guests of the node.
  returned: success
  type: list
  elements: dict
  contains:
    vmid: {description: Its number., type: int, sample: 105}
    kind: {description: C(lxc) or C(qemu)., type: str, sample: qemu}
    name: {description: Its name., type: str, sample: workstation}
    running: {description: Whether it runs., type: bool}
    gpus: {description: PCI addresses of the GPUs that it claims., type: list, elements: str}
    devices: {description: Paths of the device nodes that a container claims., type: list, elements: str}
    addresses: {description: Its fixed addresses, without prefix., type: list, elements: str}
    memory_mib: {description: Its memory in MiB., type: int}
    onboot: {description: Whether it starts when the node boots., type: bool}
guest:
  description: The one among them that has the declared vmid, null if there is none.
  returned: success
  type: dict
ours:
  description: Whether the record says that this very guest is Slipway's.
  returned: success
  type: bool
gpus:
  description: The node's GPUs as M(gpu_host_info) tells them, of each C(bus_id), C(minor) and C(device).
  returned: success
  type: list
  elements: dict
memory_mib:
  description: The node's memory in MiB.
  returned: success
  type: int
findings:
  description: Where the declared container collides, each with C(id severity subject summary detail remedy reference).
  returned: always
  type: list
  elements: dict
"""

import typing as t
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot, here
from ..module_utils.slipway.gpu import host
from ..module_utils.slipway.pve import arp, claims, neighbours
from ..module_utils.slipway.pve.node import Place

ARGUMENT_SPEC: dict[str, t.Any] = {
    "vmid": {"type": "int", "required": True},
    "hostname": {"type": "str", "required": True},
    "gpus": {"type": "list", "elements": "str", "default": []},
    "net": {"type": "list", "elements": "dict", "default": []},
    "memory_mib": {"type": "int", "default": 0},
    "allow_adopt": {"type": "bool", "default": False},
    "timeout_seconds": {"type": "int", "default": 300},
}


def run(
    params: dict[str, t.Any],
    check_mode: bool,
    root: Path = Path("/"),
    ask: t.Callable[[str, t.Mapping[str, t.Any]], claims.Answer] = arp.ask,
) -> dict[str, t.Any]:
    """Look and judge. ``check_mode`` makes no difference: nothing is ever changed. Raises SlipwayError.

    ``root`` is where the node's files are, ``ask`` how its network is asked for an address.
    """
    place = Place(params["vmid"], root)
    try:
        neighbours.wait_for_creation(place, params["timeout_seconds"])
        node = neighbours.look(root)
    except PermissionError as error:
        remedy = "Set ansible_user to root, or ansible_become to true for a user who may use sudo"
        raise cannot("read", "the node's guests", here(), f"only root may read {error.filename}", remedy) from error
    known = [gpu["bus_id"] for gpu in node.gpus]
    wanted = claims.Wanted(
        vmid=params["vmid"],
        hostname=params["hostname"],
        gpus=known if params["gpus"] == ["all"] else [_bus_id(gpu) for gpu in params["gpus"]],
        networks=params["net"],
        memory_mib=params["memory_mib"],
    )
    answers = {address: ask(address, network) for address, network in claims.addresses(wanted.networks).items()}
    findings = claims.find(wanted, node.guests, node.hardware, node.memory_mib, answers)
    guest = next((guest for guest in node.guests if guest.vmid == wanted.vmid), None)
    ours = guest is not None and neighbours.is_ours(place)
    # That a virtual machine has the vmid, or a template, is for pve_preflight to tell.
    if guest and guest.kind == claims.CONTAINER and not guest.template and not ours:
        findings.append(claims.foreign(guest, params["allow_adopt"]))
    return {
        "changed": False,
        "guests": [one.as_dict() for one in node.guests],
        "guest": guest.as_dict() if guest else None,
        "ours": ours,
        "gpus": [{key: gpu[key] for key in ("bus_id", "minor", "device")} for gpu in node.gpus],
        "memory_mib": node.memory_mib,
        "findings": [found.as_dict() for found in findings],
    }


def _bus_id(text: str) -> str:
    try:
        return host.bus_id(text)
    except ValueError as error:
        raise cannot("read", "option 'gpus'", here(), str(error), "Give PCI addresses, or all alone") from error


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
