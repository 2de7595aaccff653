# SPDX-License-Identifier: GPL-3.0-or-later
"""Proxmox guests."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
    "PVE_ROOT_ONLY_KEYS": Fault(
        "fail",
        "Configuration keys that only the literal root@pam may set were asked for with another identity.",
        "Set them as root on the node (api_backend: ssh_paramiko) or with the password of root@pam; a token never may.",
        "Telmate/terraform-provider-proxmox#764",
    ),
    "PVE_GUEST_LOCKED": Fault(
        "fail",
        "The guest's configuration is locked by a task of Proxmox.",
        "Wait for the task; where none runs any more, 'pct unlock <vmid>' on the node takes a stale lock away.",
    ),
    "PVE_TASK_WARNINGS": Fault(
        "warn",
        "A task of Proxmox ended well, with warnings.",
        "Read the lines in the detail; the whole log is in the node's task list.",
        "ansible-collections/community.proxmox#96",
    ),
    "PVE_START_REPEATED": Fault(
        "warn",
        "A guest did not start at the first attempt, and did at the second.",
        "Read why the first one failed; it starts without LXC's debug log again at its next start.",
    ),
    "PVE_CLONE_UNSUPPORTED": Fault(
        "fail",
        "The guest has a disk or a mount of which Proxmox makes no such clone.",
        "A linked clone needs a template; bind and device mounts (mpN) rule out any clone: mount these by a raw line "
        "(pve_container_raw, lxc.mount.entry), which is copied with the configuration.",
    ),
    "PVE_SNAPSHOT_UNSUPPORTED": Fault(
        "fail",
        "A disk or a mount of the guest cannot be part of a snapshot, so there is none of the guest.",
        "Move the disk to a storage that can (ZFS, LVM-thin, Btrfs, Ceph RBD: pct move-volume), mount folders of the node by a "
        "raw line (pve_container_raw, lxc.mount.entry) in place of mpN, or make a backup (vzdump) where it stays as it is.",
        "BassT23/Proxmox#334",
    ),
    "PVE_SNAPSHOT_NOT_NEWEST": Fault(
        "fail",
        "There are newer snapshots, and ZFS rolls back to the newest one only.",
        "Roll back to the newest one, or remove the newer ones first (pve_snapshot, state: absent), which loses them.",
    ),
    "PVE_RAW_LINE_UNKNOWN": Fault(
        "fail",
        "Proxmox does not know a raw configuration line and would drop it at its next write.",
        "Correct the key; lxc.container.conf(5) has the names.",
    ),
    "PVE_NODE_UNKNOWN": Fault(
        "fail",
        "The cluster has no node of this name.",
        "Declare the node's name in Proxmox, as 'pvecm nodes' or the web interface shows it, or another API host.",
    ),
    "PVE_NODE_OFFLINE": Fault(
        "fail",
        "The node is not online in its cluster.",
        "Start it, and see pvecm status on it and on another node; a guest can only be made and changed where its node runs.",
    ),
    "PVE_VMID_TAKEN": Fault(
        "fail",
        "The vmid belongs to another guest of the cluster.",
        "Declare a vmid that is free ('pvesh get /cluster/nextid' names one), or the node on which the container is.",
    ),
    "PVE_VMID_TWICE": Fault(
        "fail",
        "Two declared guests of one cluster have the same vmid.",
        "Give one of them another vmid; it must be the only one in the whole cluster, not only on its node.",
    ),
    "PVE_GUEST_IS_TEMPLATE": Fault(
        "fail",
        "The guest is a template of Proxmox, which never runs.",
        "Declare another vmid; a template does not become a guest again.",
    ),
    "PVE_GUEST_OTHER_PRIVILEGES": Fault(
        "fail",
        "The guest is privileged where an unprivileged one is declared, or the other way round; Proxmox fixes this at creation.",
        "Declare another vmid, or destroy the guest so that it is made anew, or convert it by backup and restore.",
    ),
    "PVE_TEMPLATE_MISSING": Fault(
        "fail",
        "The template that the guest is to be made from is not on its storage.",
        "Declare one that is there, or download it on the node; 'pveam available --section system' lists what there is.",
    ),
    "PVE_STORAGE_UNKNOWN": Fault(
        "fail",
        "The node has no storage of this name.",
        "Declare one that it has, or add it (Datacenter, Storage) and see that it is not restricted to other nodes.",
    ),
    "PVE_STORAGE_INACTIVE": Fault(
        "fail",
        "The storage is disabled for this node, or cannot be reached from it.",
        "See 'pvesm status' on the node: enable it ('pvesm set <storage> --disable 0'), or bring its disk or server back.",
    ),
    "PVE_STORAGE_CONTENT": Fault(
        "fail",
        "The storage is not set up for what is to lie on it.",
        "Declare another one, or allow the content type ('pvesm set <storage> --content', with all that it is to have).",
    ),
    "PVE_STORAGE_FULL": Fault(
        "fail",
        "The storage has less free space than the guest's disks are declared with.",
        "Make space, declare a smaller disk, or declare another storage.",
    ),
    "PVE_MEMORY_EXCEEDED": Fault(
        "fail",
        "The guest is declared with more memory than its node has.",
        "Declare less, and leave some to the node and its other guests; Proxmox would start it and the node would run out.",
    ),
    "PVE_SWAP_EXCEEDED": Fault(
        "warn",
        "The guest is declared with more swap than its node has.",
        "Declare less; the guest can never use what the node does not have.",
    ),
    "PVE_CPUS_EXCEEDED": Fault(
        "warn",
        "The guest is declared with more cores than its node has.",
        "Declare as many as the node has, or 0 for all of them; Proxmox gives a container no more than there are.",
    ),
    "PVE_BRIDGE_UNKNOWN": Fault(
        "fail",
        "The node has no bridge of this name, and the guest would not start.",
        "Declare one that it has, or make it on the node (System, Network).",
    ),
    "PVE_GATEWAY_UNREACHABLE": Fault(
        "fail",
        "The guest's gateway cannot be reached from its address.",
        "Correct the gateway, the address or the length of the prefix.",
    ),
    "PVE_ADDRESS_UNUSABLE": Fault(
        "fail",
        "The guest's address is one that no machine of its subnet can have.",
        "Declare another address, or correct the length of the prefix.",
    ),
    "PVE_VALUE_REFUSED": Fault(
        "fail",
        "An option has a value that Proxmox would refuse.",
        "Correct the option that the detail names.",
    ),
    "PVE_PRIVILEGE_MISSING": Fault(
        "fail",
        "The identity lacks privileges in Proxmox that the work needs.",
        "Give them as the detail says, or work as root over SSH (api_backend: ssh_paramiko), which needs none.",
        "Telmate/terraform-provider-proxmox#1423",
    ),
    "GUEST_FOREIGN": Fault(
        "fail",
        "A guest with the declared vmid exists, and Slipway did not make it.",
        "Declare another gpu_container_vmid, or set gpu_container_allow_adopt to true to take it over: then it is changed "
        "where it differs, and what it has beside that stays.",
    ),
    "GPU_CLAIMED": Fault(
        "fail",
        "Another guest of the node has a GPU that is declared for this one, and a GPU serves one guest.",
        "Leave it out of this guest's gpu_container_gpus, or take it away from the other: pct set <vmid> --delete devN "
        "(a raw line: out of /etc/pve/lxc/<vmid>.conf), qm set <vmid> --delete hostpciN.",
    ),
    "ADDRESS_IN_USE": Fault(
        "fail",
        "The address that is declared for the guest is somebody else's.",
        "Declare a free one (ansible_host, gpu_container_net), or give the other another one.",
    ),
    "MEMORY_SHORT": Fault(
        "warn",
        "The guests that run or start at boot may use more memory together than the node has.",
        "Lower gpu_container_memory_mib, or the memory of another guest; the kernel kills a process when it runs out.",
    ),
}
