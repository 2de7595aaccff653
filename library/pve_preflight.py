#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""What Proxmox VE would refuse, or what could not work, of one declared container."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pve_preflight
short_description: What Proxmox VE would refuse of a declared container
version_added: "0.2.0"
description:
  - Tells before anything is changed what would fail when M(pve_container) makes, changes and starts this container.
    All that is wrong comes back at once, each as a finding with cause and remedy.
  - Looks at the node, the vmid, the template and the storages of a container that does not exist yet, memory, CPUs and
    bridges of the node, addresses that do not fit each other, values out of range, a lock, and the privileges of the
    identity in Proxmox. What could not be looked at is V(unknown), never good.
  - Takes the options of M(pve_container) that describe the container. Of an existing one only what would change counts.
  - Reads only, with eight calls of the API or fewer. Where the API itself cannot be asked, the module fails.
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
    description: Number of the container, the same in the whole cluster.
    type: int
    required: true
  node:
    description: Name of the Proxmox node that the container is on.
    type: str
    required: true
  ostemplate:
    description: Template to make it from, such as V(local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst). Only for
      creation, and needed for it.
    type: str
  storage:
    description: Storage for disks that name none. Only for creation.
    type: str
  rootfs:
    description: Root disk, allocated at creation.
    type: dict
    suboptions:
      storage:
        description: Storage to allocate it on.
        type: str
        required: true
      size_gib:
        description: Size in GiB.
        type: int
        required: true
  unprivileged:
    description: Whether root of the container is nobody on the node. Fixed at creation, where Proxmox's default is
      V(true); a difference later is refused.
    type: bool
  ssh_public_keys:
    description: Keys that may log in as root, a line of C(authorized_keys) each. Only for creation.
    type: list
    elements: str
  hostname:
    description: Host name.
    type: str
  cores:
    description: Number of cores; V(0) for all of them.
    type: int
  memory_mib:
    description: Memory in MiB.
    type: int
  swap_mib:
    description: Swap in MiB.
    type: int
  net:
    description: Network interfaces. Options of one that are not declared are taken away, but for the MAC address.
    type: list
    elements: dict
    suboptions:
      id:
        description: Number of the interface in Proxmox, V(0) for C(net0).
        type: int
        required: true
      name:
        description: Name in the container.
        type: str
        required: true
      bridge:
        description: Bridge of the node.
        type: str
      ip:
        description: IPv4 address with prefix length, V(dhcp) or V(manual).
        type: str
      gw:
        description: IPv4 gateway.
        type: str
      ip6:
        description: IPv6 address with prefix length, V(dhcp), V(auto) or V(manual).
        type: str
      gw6:
        description: IPv6 gateway.
        type: str
      hwaddr:
        description: MAC address; chosen by Proxmox if not given.
        type: str
      firewall:
        description: Whether Proxmox's firewall rules apply.
        type: bool
      tag:
        description: VLAN tag.
        type: int
      mtu:
        description: MTU.
        type: int
      link_down:
        description: Whether the link is down.
        type: bool
  features:
    description: Feature flags, all of them. A token may set V(nesting) alone.
    type: dict
    suboptions:
      nesting:
        description: Let systemd in the container have namespaces of its own.
        type: bool
      keyctl:
        description: Allow the keyctl system call.
        type: bool
      fuse:
        description: Allow FUSE file systems.
        type: bool
      mknod:
        description: Allow making some device nodes.
        type: bool
      mount:
        description: File systems that may be mounted, separated by semicolons.
        type: str
      force_rw_sys:
        description: Mount C(/sys) writable.
        type: bool
  devices:
    description:
      - Devices of the node to pass in. Only C(root@pam) may change these, see O(root_over_ssh). Whether they are there, the
        API does not tell.
    type: list
    elements: dict
    suboptions:
      path:
        description: Path on the node and in the container.
        type: str
        required: true
      gid:
        description: Group of the node, as numbered in the container.
        type: int
      uid:
        description: Owner of the node, as numbered in the container.
        type: int
      mode:
        description: Mode of the node, four octal digits in quotes such as V("0660").
        type: str
      deny_write:
        description: Whether writing is denied.
        type: bool
  mounts:
    description: Disks besides the root disk. Allocated where there is none at the path yet, never touched again.
    type: list
    elements: dict
    suboptions:
      path:
        description: Where it is mounted in the container.
        type: str
        required: true
      storage:
        description: Storage to allocate it on.
        type: str
        required: true
      size_gib:
        description: Size in GiB.
        type: int
        required: true
  onboot:
    description: Whether it starts when the node boots.
    type: bool
  startup:
    description: Order and delays of starting and stopping, such as V(order=2,up=30).
    type: str
  tags:
    description: Tags that the guest must have. Others that it has are left alone; an empty list removes all.
    type: list
    elements: str
  description:
    description: Notes.
    type: str
  others:
    description: The other containers that the inventory declares. One with the same vmid in the same cluster is a fault; in
      another cluster it is none.
    type: list
    elements: dict
    default: []
    suboptions:
      name:
        description: What the inventory calls it.
        type: str
        required: true
      node:
        description: Name of its Proxmox node.
        type: str
        required: true
      vmid:
        description: Its vmid.
        type: int
        required: true
  root_over_ssh:
    description: Whether keys that only the literal C(root@pam) may set can be set in a second call, as root over SSH. V(false)
      makes such keys a finding where the identity is another one.
    type: bool
    default: false
attributes:
  check_mode:
    description: Can run in check mode and tell what it would without it.
    support: full
  diff_mode:
    description: Changes nothing, so there is no difference to show.
    support: none
"""

EXAMPLES = r"""
- name: Look ahead, with the identity that will make the container
  pve_preflight:
    api_host: pve1.example.com
    api_user: deploy@pve
    api_token_id: slipway
    api_token_secret: "{{ vault_token_secret }}"
    ca_path: files/pve-root-ca.pem
    node: pve1
    vmid: 101
    hostname: infer1
    ostemplate: local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst
    rootfs: {storage: local-zfs, size_gib: 64}
    cores: 16
    memory_mib: 65536
    net:
      - {id: 0, name: eth0, bridge: vmbr0, ip: 192.0.2.21/24, gw: 192.0.2.1}
    features: {nesting: true}
    devices:
      - {path: /dev/nvidia0, gid: 44, mode: "0660"}
    root_over_ssh: true
    others:
      - {name: infer2, node: pve2, vmid: 102}
  register: ahead
"""

RETURN = r"""
container:
  description: The container as it is now.
  returned: success
  type: dict
  contains:
    exists:
      description: Whether the node has it; null where that could not be seen.
      type: bool
      sample: true
    status:
      description: One of V(running), V(stopped), V(absent), null where it could not be seen.
      type: str
      sample: running
    node:
      description: The node that was declared.
      type: str
      sample: pve1
    hostname:
      description: Its host name, null if it does not exist.
      type: str
      sample: infer1
    lock:
      description: The lock that it has, null if it has none.
      type: str
      sample: backup
identity:
  description: Who Proxmox takes the caller for, user or token.
  returned: success
  type: str
  sample: deploy@pve!slipway
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
from ..module_utils.slipway.pve.options import GUEST_OPTIONS, list_of
from ..module_utils.slipway.pve.preflight import judge
from ..module_utils.slipway.pve.survey import survey

ARGUMENT_SPEC: dict[str, t.Any] = {
    **API_OPTIONS,
    **GUEST_OPTIONS,
    "others": {**list_of(name="str!", node="str!", vmid="int!"), "default": []},
    "root_over_ssh": {"type": "bool", "default": False},
}


def run(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Look ahead for one container. Raises SlipwayError where the API cannot be asked."""
    client = connect(params)
    facts = survey(client, params)
    found = judge(params, client.identity, facts)
    return {
        "changed": False,
        "container": facts.container(params["node"]),
        "identity": client.identity,
        "findings": [item.as_dict() for item in found],
    }


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        supports_check_mode=True,
        required_together=[("api_token_id", "api_token_secret")],
    )
    try:
        result = run(module.params)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
