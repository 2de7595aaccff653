#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""A container of Proxmox VE and its state."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: pve_container
short_description: A container of Proxmox VE
version_added: "0.1.0"
description:
  - Makes a container as declared, keeps it so, starts, stops, restarts and destroys it, through the API of Proxmox VE.
  - Compares values as Proxmox does. The order of options in a property string says nothing, what the server chose (a
    MAC address, the size of a disk) is no difference unless it is declared, and taking an option away is one.
  - Sends only what differs, with the digest of what it has read. An option that is not given is not touched. One that is
    given empty (V(""), V([]), V({}), and V(0) for O(cores)) is unset. Of O(net), O(devices) and O(mounts) entries that
    are not declared are somebody else's, and not changed, renumbered or removed; but see O(devices) for those of ours.
  - A declaration that is right already costs three API calls; making and starting a guest costs 12 or fewer, besides those
    that ask a task whether it has ended.
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
    description: Number of the container, the same in the whole cluster. There is no choosing of a free one, since that
      would make another container in every run.
    type: int
    required: true
  node:
    description: Name of the Proxmox node that the container is on.
    type: str
    required: true
  state:
    description:
      - V(present) makes or changes it and leaves it stopped or running as it is. V(started) and V(stopped) also see to
        that; a container that does not stop in a minute is stopped hard.
      - V(restarted) restarts it in every run, or starts it if it does not run.
      - V(template) makes it or changes it, and turns it into a template, for ever. Refused while it runs or has snapshots.
      - V(absent) stops and destroys it with its disks. Refused while it is protected.
    type: str
    choices: [present, started, stopped, restarted, template, absent]
    default: present
  ostemplate:
    description: Template to make it from, such as V(local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst). Only for
      creation, and needed for it unless O(clone) is given.
    type: str
  clone:
    description:
      - Another container to make it from. Only for creation; afterwards the guest is kept as declared like any other.
      - The clone has what its source has, but for what is declared. It gets a host name of its own (O(hostname), or C(CT) and
        its number) and MAC addresses that Proxmox chooses. A source with a fixed address is refused unless O(net) declares
        another one for that interface.
      - Bind and device mounts (C(mpN)) rule out a clone. Devices, raw lines and all other settings are copied.
    type: dict
    suboptions:
      vmid:
        description: Number of the source, on the same node.
        type: int
        required: true
      full:
        description: Whether disks are copied, to O(storage) or the storage of O(rootfs) where one is given. V(false) links them
          to those of the source, which must be a template. If not given, those of a template are linked, others copied.
        type: bool
      snapname:
        description: Snapshot of the source to clone, needed while the source runs.
        type: str
  storage:
    description: Storage for disks that name none. Only for creation.
    type: str
  rootfs:
    description: Root disk. Allocated at creation. A difference later is told as a warning, but see O(grow_disks).
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
      - Devices of the node to pass in. The number of C(devN) is the module's affair; a path keeps the one that it has.
      - Which devices are ours is kept in a record on the node, which O(api_backend=ssh_paramiko) alone can see, in a connection
        to the guest's own node. There, a device of ours that is no longer declared is taken away (V([]) for all of them).
        Others stay, and RV(unmanaged) names them.
      - Only C(root@pam) may change these, see O(defer_root_only).
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
    description: Disks besides the root disk. Allocated where there is none at the path yet, and never removed. A difference
      later is told as a warning, but see O(grow_disks).
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
  purge:
    description: With O(state=absent), also remove it from backup and replication jobs and high availability.
    type: bool
    default: false
  grow_disks:
    description: Whether disks of O(rootfs) and O(mounts) that are smaller than declared grow, which no one can take back. Disks
      are never shrunk, moved or removed.
    type: bool
    default: false
  defer_root_only:
    description:
      - What to do with keys that only the literal C(root@pam) may set when the identity is another one.
      - V(false) fails before the first write and names them. V(true) leaves them out and returns them in RV(deferred),
        for a second call with O(api_backend=ssh_paramiko).
    type: bool
    default: false
  timeout_seconds:
    description: How long a task of Proxmox, such as creation, may take. A task that takes longer runs on.
    type: int
    default: 300
attributes:
  check_mode:
    description: Can run in check mode and tell what it would do. What a running container would wait for with a restart
      is foretold from what Proxmox can hot-plug.
    support: full
  diff_mode:
    description: Shows the keys that change, as they are and as they will be.
    support: full
"""

EXAMPLES = r"""
- name: Keep a container for inference, with a token of few rights
  pve_container:
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
    tags: [gpu, inference]
    devices:
      - {path: /dev/nvidia0, gid: 44, mode: "0660"}
    defer_root_only: true
  register: guest

- name: Set what only root may set
  pve_container:
    api_backend: ssh_paramiko
    api_host: pve1.example.com
    node: pve1
    vmid: 101
    devices:
      - {path: /dev/nvidia0, gid: 44, mode: "0660"}
  when: guest.deferred | length > 0

- name: Make a template
  pve_container:
    api_host: pve1.example.com
    node: pve1
    vmid: 900
    ostemplate: local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst
    rootfs: {storage: local-zfs, size_gib: 16}
    state: template

- name: Make a guest of it, as a linked clone
  pve_container:
    api_host: pve1.example.com
    node: pve1
    vmid: 102
    clone: {vmid: 900, full: false}
    hostname: infer2
    net:
      - {id: 0, name: eth0, bridge: vmbr0, ip: 192.0.2.22/24, gw: 192.0.2.1}
    state: started

- name: Start it
  pve_container:
    api_host: pve1.example.com
    node: pve1
    vmid: 101
    state: started
"""

RETURN = r"""
container:
  description: The container as it is after the module; in check mode one that does not exist has what was declared.
  returned: success
  type: dict
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
      description: One of V(running), V(stopped), V(absent).
      type: str
      sample: running
    template:
      description: Whether it is a template.
      type: bool
      sample: false
    hostname:
      description: Its host name, null if none is set.
      type: str
      sample: infer1
    config:
      description: Its configuration in force, keys and values as in the API.
      type: dict
      sample: {"cores": 16, "memory": 65536}
    devices:
      description: The devices passed in, each with C(key), C(path), C(gid), C(uid), C(mode), C(deny_write).
      type: list
      elements: dict
pending:
  description: Keys whose new value is in force only after a restart.
  returned: success
  type: list
  elements: str
  sample: ["features"]
restart_required:
  description: Whether it runs and something waits for a restart.
  returned: success
  type: bool
deferred:
  description: Keys that were left out, because only C(root@pam) may set them (O(defer_root_only)).
  returned: success
  type: list
  elements: str
  sample: ["dev0"]
unmanaged:
  description: Keys of devices that the guest has and O(devices) does not declare; empty if that is not given.
  returned: success
  type: list
  elements: str
  sample: ["dev3"]
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
from ..module_utils.slipway.pve.actions import Container
from ..module_utils.slipway.pve.connect import API_OPTIONS, connect
from ..module_utils.slipway.pve.options import GUEST_OPTIONS

ARGUMENT_SPEC: dict[str, t.Any] = {
    **API_OPTIONS,
    **GUEST_OPTIONS,
    "state": {
        "type": "str",
        "choices": ["present", "started", "stopped", "restarted", "template", "absent"],
        "default": "present",
    },
    "clone": {
        "type": "dict",
        "options": {"vmid": {"type": "int", "required": True}, "full": {"type": "bool"}, "snapname": {"type": "str"}},
    },
    "grow_disks": {"type": "bool", "default": False},
    "purge": {"type": "bool", "default": False},
    "defer_root_only": {"type": "bool", "default": False},
    "timeout_seconds": {"type": "int", "default": 300},
}


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Bring the container to the declared state. Raises SlipwayError."""
    return Container(connect(params), params, check_mode).ensure()


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(
        argument_spec=ARGUMENT_SPEC,
        supports_check_mode=True,
        required_together=[("api_token_id", "api_token_secret")],
        mutually_exclusive=[("ostemplate", "clone")],
    )
    try:
        result = run(module.params, module.check_mode)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    for sentence in result.pop("warnings"):
        module.warn(sentence)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
