# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings: the one form in which everything that was checked is told.

A finding is made from an entry of the catalogue, so that a fault has one text wherever it is met. ``docs/findings.md`` is
generated from the catalogue. A check that could not be made is ``unknown``, never ``ok``.
"""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass, replace

SEVERITIES = ("ok", "info", "warn", "fail", "unknown")


@dataclass(frozen=True)
class Finding:
    """One result of one check, as modules return it and the report prints it."""

    id: str
    severity: str
    subject: str
    summary: str
    detail: str = ""
    remedy: str = ""
    reference: str = ""

    def as_dict(self) -> dict[str, str]:
        """The finding as a plain dictionary of strings, the form that modules return."""
        return asdict(self)


@dataclass(frozen=True)
class Fault:
    """A known fault: what every finding with this id says. ``reference`` is a report or manual that shows it."""

    severity: str
    summary: str
    remedy: str
    reference: str = ""


def finding(fault_id: str, subject: str, detail: str = "", severity: str | None = None) -> Finding:
    """Make a finding of a catalogued fault about ``subject`` (a GPU, a file, a unit, an endpoint).

    ``severity`` replaces the catalogue's where the caller knows better (``unknown`` when the check could not be made).
    Raises ``KeyError`` for an id that is not in the catalogue and ``ValueError`` for a severity that does not exist.
    """
    fault = CATALOGUE[fault_id]
    chosen = severity or fault.severity
    if chosen not in SEVERITIES:
        raise ValueError(f"severity {chosen!r} is none of {', '.join(SEVERITIES)}")
    return Finding(fault_id, chosen, subject, fault.summary, detail, fault.remedy, fault.reference)


def softened(findings: t.Sequence[Finding]) -> list[Finding]:
    """The same findings where what they are about is not required: what would fail only warns."""
    return [replace(found, severity="warn") if found.severity in ("fail", "unknown") else found for found in findings]


# Grouped by what they are about: inventory, Proxmox, GPU host, Python stack, server. One entry a fault, in the order of the journey.
CATALOGUE: dict[str, Fault] = {
    # --- Inventory ---
    "VARIABLE_UNKNOWN": Fault(
        "fail",
        "No role reads this variable, so it would have no effect.",
        "Correct its name, or take it out of the inventory and the command line.",
    ),
    "GUEST_CLASH": Fault(
        "fail",
        "Two guests of the inventory claim what only one can have.",
        "Give each guest its own address, vmid and GPUs (ansible_host, gpu_container_vmid, gpu_container_gpus).",
    ),
    # --- Proxmox guests ---
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
    # --- GPU host and driver ---
    "NO_GPU": Fault(
        "fail",
        "No NVIDIA GPU is here.",
        "On a node: check that the card is seated and not hidden by firmware (lspci -d 10de:). In a guest: pass the "
        "GPU's device nodes in (gpu_container_gpus).",
    ),
    "GPU_NODE_MISSING": Fault(
        "fail",
        "A GPU that should be usable here has no device node.",
        "On the node: nvidia-modprobe -c <minor>, and have it done at boot before guests start. In a guest: pass the "
        "node in as a device and restart the guest.",
        "community-scripts/ProxmoxVE#5740",
    ),
    "GPU_UNEXPECTED": Fault(
        "fail",
        "The guest has a GPU that it was not meant to get.",
        "Take the GPU's devN away from the guest ('pct set <vmid> --delete devN' on the node) and restart it, or declare "
        "the GPU for it (gpu_container_gpus).",
    ),
    "GPU_NOT_DRIVEN": Fault(
        "warn",
        "A GPU on the PCI bus is not in the hands of NVIDIA's driver.",
        "If it is meant for this host, take it back from the driver that has it (vfio-pci: remove it from the guests "
        "and from vfio-pci.ids, unbind, bind to nvidia); see dmesg if nothing has it.",
    ),
    "DRIVER_NOT_LOADED": Fault(
        "fail",
        "NVIDIA's kernel module is not loaded.",
        "On the node: modprobe nvidia; if there is no such module for this kernel, install the driver for it.",
    ),
    "SECURE_BOOT_UNSIGNED": Fault(
        "fail",
        "Secure Boot is on, and there is no key to sign the driver's modules with: the kernel would refuse them.",
        "On the node, make a pair (DKMS may have made this one already) with 'openssl req -new -x509 -nodes -newkey rsa:2048 "
        "-days 36500 -subj /CN=modules/ -keyout /var/lib/dkms/mok.key -outform DER -out /var/lib/dkms/mok.pub', have it enrolled "
        "with 'mokutil --import /var/lib/dkms/mok.pub', reboot and choose Enroll MOK at the console; then set "
        "pve_host_signing_key and pve_host_signing_certificate to the two files.",
        "https://wiki.debian.org/SecureBoot",
    ),
    "SECURE_BOOT_KEY_NOT_ENROLLED": Fault(
        "fail",
        "Secure Boot is on, and the certificate that is to sign the driver's modules is not among the keys that the kernel trusts.",
        "On the node: 'mokutil --import' with the file of pve_host_signing_certificate (DER) and a password of your choice, "
        "reboot, and within ten seconds choose Enroll MOK at the console (the BMC's, not SSH), with that password. Where mokutil "
        "is missing, install it first.",
        "https://wiki.debian.org/SecureBoot",
    ),
    "SECURE_BOOT_MODULE_REFUSED": Fault(
        "fail",
        "The kernel refuses the driver's modules: Secure Boot is on, and no key that it trusts has signed them.",
        "Compare 'modinfo -F signer nvidia' with 'mokutil --list-enrolled' on the node; set pve_host_signing_key and "
        "pve_host_signing_certificate to an enrolled pair and install the driver again, or enrol the one that signed it.",
        "https://wiki.debian.org/SecureBoot",
    ),
    "DRIVER_KERNEL_MISSING": Fault(
        "fail",
        "The kernel that boots next does not have the driver's module, so that no GPU would work after a reboot.",
        "Install that kernel's headers (proxmox-headers-<kernel>) and have DKMS build the module ('dkms install nvidia/<version> -k <kernel>'; "
        "its log is in /var/lib/dkms/nvidia; where DKMS knows no driver, uninstall it with nvidia-uninstall and deploy again), or keep the "
        "running kernel with 'proxmox-boot-tool kernel pin <kernel>'.",
        "NVIDIA/open-gpu-kernel-modules#1143",
    ),
    "DRIVER_NOT_OPEN": Fault(
        "fail",
        "The proprietary kernel module is loaded, and these GPUs need the open one.",
        "Install the driver with the open kernel module (--kernel-module-type=open), then reload the modules.",
        "community-scripts/ProxmoxVED#2125",
    ),
    "DRIVER_USERSPACE_MISSING": Fault(
        "fail",
        "There is no libcuda.so.1: the user part of the driver is not installed here.",
        "Install the user part of exactly the node's driver version, without a kernel module.",
    ),
    "DRIVER_MISMATCH": Fault(
        "fail",
        "The driver's user part and its kernel part are of different versions.",
        "Make both the same to the last digit: install the user part of the node's version here; on a node whose "
        "driver was just replaced, reload the modules or reboot.",
        "NVIDIA/nvidia-container-toolkit#1679",
    ),
    "UVM_NOT_LOADED": Fault(
        "fail",
        "The nvidia_uvm module is not loaded, and CUDA cannot start without it.",
        "On the node: nvidia-modprobe -u -c 0",
        "jammsen/proxmox-setup-scripts#7",
    ),
    "UVM_NODE_MISSING": Fault(
        "fail",
        "The device node /dev/nvidia-uvm does not exist; nvidia-smi works without it, CUDA does not.",
        "On the node: nvidia-modprobe -u -c 0, at boot before guests start. In a guest: pass it in as a device.",
        "community-scripts/ProxmoxVE#5740",
    ),
    "UVM_NODE_STALE": Fault(
        "fail",
        "The device node of nvidia-uvm has another major number than the loaded module.",
        "On the node: remove it, then nvidia-modprobe -u -c 0. In a guest: pass it in by path (devN), which takes the "
        "number at each start, and restart the guest.",
        "NVIDIA/nvidia-container-toolkit#1934",
    ),
    "HMM_CONFLICT": Fault(
        "fail",
        "HMM is on in nvidia_uvm, which makes cuInit fail with code 3 while nvidia-smi works.",
        "On the node: put 'options nvidia_uvm uvm_disable_hmm=1' into /etc/modprobe.d, rebuild the initramfs, and "
        "reload nvidia_uvm while nothing uses it, or reboot.",
        "NVIDIA/open-gpu-kernel-modules#947",
    ),
    "HMM_NOT_PERSISTENT": Fault(
        "warn",
        "HMM is off now, and nothing on disk keeps it off when nvidia_uvm is loaded again.",
        "Put 'options nvidia_uvm uvm_disable_hmm=1' into /etc/modprobe.d and rebuild the initramfs.",
        "NVIDIA/open-gpu-kernel-modules#901",
    ),
    "DEVICE_DENIED": Fault(
        "fail",
        "The container's device rules (cgroup) deny a device node that is there.",
        "Pass it in as a device of the guest (devN), or allow it, and restart the guest; a rule can be lost when "
        "systemd reloads.",
        "NVIDIA/nvidia-container-toolkit#48",
    ),
    "DEVICE_NOT_ACCESSIBLE": Fault(
        "fail",
        "The owner or mode of a device node keeps this user out, or its file system is mounted nodev.",
        "Give it a group and mode that this user has (devN: gid=44,mode=0660), and mind the guest's id map.",
    ),
    "DEVICE_NODE_DEAD": Fault(
        "fail",
        "A device node does not lead to the driver that is loaded.",
        "Remove it and make it anew (nvidia-modprobe); in a guest restart the guest after the node's is right.",
        "NVIDIA/nvidia-container-toolkit#1934",
    ),
    "DEVICE_OPEN_FAILED": Fault(
        "fail",
        "A device node cannot be opened, for a reason of the driver's own.",
        "See the kernel log on the node (dmesg, Xid lines); a GPU that fell off the bus needs a reboot.",
    ),
    "DEVICE_HUNG": Fault(
        "fail",
        "Opening a device node does not return: the driver or the GPU hangs.",
        "See the kernel log on the node for Xid lines, and reboot it; a process in this state cannot be killed.",
        "leptonai/gpud#117",
    ),
    "CUDA_INIT_FAILED": Fault(
        "fail",
        "CUDA does not initialise here.",
        "Mend the cause named in the detail and the findings beside it, then ask again; nvidia-smi proves nothing here.",
        "NVIDIA/nvidia-container-toolkit#1934",
    ),
    "CUDA_GPU_MISSING": Fault(
        "fail",
        "A GPU whose device node is here is not among CUDA's devices.",
        "See the kernel log on the node for that GPU (Xid), and whether CUDA_VISIBLE_DEVICES hides it.",
    ),
    "CUDA_HUNG": Fault(
        "fail",
        "A CUDA call does not return.",
        "See the kernel log on the node for Xid lines and what else holds the GPUs; reboot if the process cannot be killed.",
        "leptonai/gpud#117",
    ),
    "FACT_UNREADABLE": Fault(
        "unknown",
        "A file that a check rests on exists and cannot be read.",
        "Run as root (become: true), and see why it is refused.",
    ),
    # --- Debian packages ---
    "APT_VERSION_UNAVAILABLE": Fault(
        "fail",
        "No source of apt has a package in the version that is declared.",
        "Declare a version that there is, or give the machine the source that has it, and run 'apt-get update' there.",
    ),
    "APT_PACKAGE_HELD": Fault(
        "fail",
        "A package that must change is held by somebody.",
        "Ask why it is held, then 'apt-mark unhold' it, or declare the version that is installed.",
    ),
    "APT_CONFLICT": Fault(
        "fail",
        "Apt cannot install the declared packages together.",
        "See 'apt-get --simulate install' with the same packages and versions; name what they depend on in the same version.",
    ),
    "APT_WOULD_REMOVE": Fault(
        "fail",
        "Installing the declared packages would remove others that are no part of a driver.",
        "Remove them yourself if they may go, or declare packages that leave them.",
    ),
    "APT_UNWANTED_PACKAGE": Fault(
        "fail",
        "Installing the declared packages would bring one that must not be here.",
        "Declare the packages of the user part only (libcuda1, libnvidia-ml1, nvidia-driver-cuda): a guest uses its node's kernel.",
    ),
    # --- Python stack ---
    "LOCK_INVALID": Fault(
        "fail",
        "The lock cannot be read as a list of exact packages.",
        "Make it anew from its requirements.in with uv pip compile --generate-hashes; write nothing into it by hand",
        "https://pip.pypa.io/en/stable/topics/secure-installs/",
    ),
    "LOCK_UNHASHED": Fault(
        "fail",
        "Packages of the lock have no hash, so nothing says which file is meant.",
        "Make the lock anew with uv pip compile --generate-hashes",
        "https://pip.pypa.io/en/stable/topics/secure-installs/",
    ),
    "PYTHON_MISSING": Fault(
        "fail",
        "None of the interpreters that the stack is for runs on this machine.",
        "Install one of them there, or name one that is there in the profile's python",
    ),
    "UV_MISSING": Fault(
        "fail",
        "The program uv, which builds environments, does not run on this machine.",
        "Copy the controller's own uv there and give its path",
    ),
    "VENV_FOREIGN": Fault(
        "fail",
        "The environment's place is taken by something that Slipway did not make.",
        "Move it away, or give the environment another path; Slipway does not remove what it did not make",
    ),
    "NETWORK_UNREACHABLE": Fault(
        "fail",
        "This machine has no network: no route leads out of it, or no name server answers.",
        "Check its gateway and name server; where only a proxy leads out set slipway_proxy, and where nothing does give "
        "a folder of wheels in slipway_wheels",
    ),
    "PROXY_REFUSED": Fault(
        "fail",
        "The proxy does not answer, or does not let this machine through.",
        "Check slipway_proxy (http://user:password@host:port where it asks for a login) and, for what needs no proxy, "
        "slipway_no_proxy",
    ),
    "CA_UNTRUSTED": Fault(
        "fail",
        "The certificate of an address is signed by a CA that this machine does not trust.",
        "Put that CA beside the public ones into a file on the controller, and name the file in slipway_ca_bundle",
    ),
    "INDEX_UNREACHABLE": Fault(
        "fail",
        "The package index does not answer from this machine.",
        "Check the index's address, its login and the firewall between; slipway_python_index names another index, "
        "slipway_proxy the way to it, slipway_wheels a folder that needs none",
    ),
    "PACKAGE_UNAVAILABLE": Fault(
        "fail",
        "The index or folder of wheels does not have a wheel that the lock names, for this Python and platform.",
        "Check that the lock is for this Python and this platform, and that the mirror (slipway_python_index) or folder "
        "(slipway_wheels) is complete",
    ),
    "HASH_MISMATCH": Fault(
        "fail",
        "A file from the index or the folder of wheels is not the file that the lock means.",
        "Find out which of the two was changed before anything else; if the lock is wrong, make it anew and compare",
    ),
    "PACKAGE_EXTRA": Fault(
        "warn",
        "A package that is not in the lock was added to the environment.",
        "Add it to the profile's requirements.in and make the lock anew, or let it go with the next environment",
    ),
    "BUILD_TOOL_MISSING": Fault(
        "fail",
        "A program or library that the engine needs at run time to compile kernels is not on this machine.",
        "Name its package in the profile's build_tools.packages; CUDA's come from a source of NVIDIA's, which "
        "inference_stack_apt_source adds",
    ),
    "BUILD_TOOL_BROKEN": Fault(
        "fail",
        "A compiler that the engine needs at run time is there and cannot compile.",
        "Read the cause: a missing header comes with another package for build_tools.packages, a wrong version with the "
        "package of the right one",
    ),
    "STACK_DRIFT": Fault(
        "fail",
        "Packages of the environment are not those of the lock that it was made from.",
        "Run deploy.yml again, which puts the lock's versions back; to have another version, change the profile's "
        "requirements.in and make its lock anew",
        "https://pip.pypa.io/en/stable/user_guide/#constraints-files",
    ),
    "CONSTRAINTS_FOREIGN": Fault(
        "warn",
        "A file that would keep packages where they are is somebody else's, so it was left as it is.",
        "Add to it what constraints.txt in the environment's folder says, or take away what it says itself (pip.conf as a "
        "whole, constraint-dependencies in uv.toml), and Slipway writes its own",
    ),
    "DEPENDENCY_BROKEN": Fault(
        "fail",
        "A package of the environment requires another one than the lock has, and nobody expects it.",
        "Correct the profile's requirements.in and make its lock anew; where it is meant, name it in overrides.txt, and "
        "make lock records what a dependency check then says",
    ),
    "IMPORT_FAILED": Fault(
        "fail",
        "A module that matters does not import in the environment.",
        "Read the cause: a missing library of the system is installed there, a broken ABI needs the versions of the lock back",
    ),
    "ABI_MISMATCH": Fault(
        "fail",
        "An extension was built for another torch: it asks for functions that the installed one does not have, so that it cannot be imported.",
        "Bring torch or the extension back to the version of the lock (run the deploy again); versions that belong together are those that "
        "one resolution of the profile's requirements gives",
    ),
    "SM_NOT_COVERED": Fault(
        "fail",
        "A library has kernels, and none that this GPU can run.",
        "Choose another backend in the server's arguments (attention, MoE, quantisation), or a release of the package with kernels for this GPU",
    ),
    "CUDA_TOO_NEW": Fault(
        "fail",
        "torch was built with a newer CUDA than the driver knows.",
        "Install a newer driver (pve_host_driver_version), or a torch that was built with an older CUDA",
        "https://docs.nvidia.com/deploy/cuda-compatibility/",
    ),
    "CUDNN_TOO_OLD": Fault(
        "fail",
        "cuDNN is older than the engine needs.",
        "Pin a newer nvidia-cudnn-cu12 in the profile's overrides, and make the lock anew",
    ),
    # --- Patches ---
    "PATCH_INVALID": Fault(
        "fail",
        "A patch cannot be used as it is declared.",
        "Correct patch.yml or change.diff as the detail says; 'make patch-new' makes both from an edited file",
    ),
    "PATCH_VERSION_UNKNOWN": Fault(
        "fail",
        "A patch is not made for the version that is installed.",
        "Make the patch anew for this version ('make patch-new'), declare superseded_in where upstream has the change, or take the "
        "patch out of the profile",
    ),
    "PATCH_PACKAGE_MISSING": Fault(
        "fail",
        "The package that a patch is for is not installed, or is there twice.",
        "Correct package in the patch, or install it in one version",
    ),
    "PATCH_FOREIGN": Fault(
        "fail",
        "A file that a patch is about was changed by somebody else, so nothing was done to it.",
        "Read the difference. If nobody needs it, bring the wheel's files back (state: restored, or playbooks/patch.yml -e "
        "patch_state=restored) and apply again; if it is needed, make a patch of it ('make patch-new')",
    ),
    "PATCH_MIXED": Fault(
        "fail",
        "A patch is there in some of its files and not in others.",
        "Bring the wheel's files back (state: restored, or playbooks/patch.yml -e patch_state=restored), and apply again",
    ),
    "PATCH_COVERED": Fault(
        "fail",
        "A patch lies under another one in the same file.",
        "Revert both together, and apply the one that is to stay again",
    ),
    "PATCH_UPSTREAM": Fault(
        "info",
        "The installed version has the change of a patch by itself; nothing is applied, and reverting touches nothing.",
        "Take the patch out of the profile when no older version is used any more",
    ),
    "PATCH_EQUIVALENT": Fault(
        "info",
        "A file has the change of a patch in another form, which is left as it is.",
        "Nothing; to have this patch in its place, bring the wheel's files back (state: restored) and apply again",
    ),
    "PATCH_STALE": Fault(
        "info",
        "A patch was applied to a version of its package that is not installed any more; its record is dropped.",
        "Nothing; where the new version needs the patch too, it is applied again or refused by itself",
    ),
    "PATCH_INTERRUPTED": Fault(
        "info",
        "An earlier run was cut off while it changed files of the environment.",
        "Nothing is to be done",
    ),
    "PATCH_ORIGINAL_LOST": Fault(
        "fail",
        "A patch cannot be taken back, as what it replaced is kept nowhere.",
        "Bring the wheel's files back (state: restored, or playbooks/patch.yml -e patch_state=restored)",
    ),
    "PATCH_PATH_UNSAFE": Fault(
        "fail",
        "A path that a patch names is not a plain file below site-packages.",
        "Correct the path in the patch; where the file is a symbolic link, build the environment anew with copies (uv --link-mode copy)",
    ),
    # --- Files of an environment ---
    "LOCK_DRIFT": Fault(
        "fail",
        "A package of the environment is not the one that the lock means.",
        "Run the deploy again, which brings the environment back to its lock; if the new package is right, put it into the profile's "
        "requirements.in and make the lock anew",
    ),
    "SITE_STARTUP_CODE": Fault(
        "fail",
        "A file that no package brought runs, or adds modules, each time that Python starts.",
        "See what it does and whose it is; delete it, or put it into a package of the lock",
        "https://docs.python.org/3/library/site.html",
    ),
    "SITE_DEBUG_CODE": Fault(
        "fail",
        "A line that debugging left behind runs in the environment.",
        "Bring the wheel's files back with ansible-playbook playbooks/patch.yml -e patch_state=restored and restart the server; if the "
        "line is needed, make it a patch that is declared",
    ),
    "SITE_FILE_MODIFIED": Fault(
        "fail",
        "A file of a package was changed, and no patch that is known makes it what it is.",
        "Bring the wheel's file back with ansible-playbook playbooks/patch.yml -e patch_state=restored and restart the server; if the "
        "change is needed, make it a patch that is declared",
    ),
    "SITE_FILE_MISSING": Fault(
        "fail",
        "A file that a package brought is not there.",
        "Bring it back with ansible-playbook playbooks/patch.yml -e patch_state=restored and restart the server",
    ),
    "SITE_FILE_EXTRA": Fault(
        "fail",
        "A file that no package brought can be imported or compiled from site-packages.",
        "See whose it is and delete it; if it is needed, make it a patch that is declared",
    ),
    "SITE_LEFTOVER": Fault(
        "warn",
        "A file that an editor, patch or pip left lies in site-packages; somebody worked there.",
        "Compare it with the file that it belongs to, and delete it",
    ),
    "SITE_BYTECODE_STALE": Fault(
        "fail",
        "Bytecode does not belong to the source beside it: the source was changed under it, or put back.",
        "Delete the __pycache__ folder and restart the server, which may still run the old code",
        "python/cpython#121376",
    ),
    "SITE_EDITABLE": Fault(
        "fail",
        "Code of the environment lies elsewhere, where it changes without anybody installing anything.",
        "Install the package from its wheel: run the deploy again, which brings the environment back to its lock",
    ),
    "SITE_TWO_VERSIONS": Fault(
        "fail",
        "A package has the metadata of two versions, and files of both may be there.",
        "Build the environment anew: run the deploy again, or reinstall the package with uv pip install --reinstall",
    ),
    "SITE_UNRECORDED": Fault(
        "unknown",
        "A package does not say which files are its own, so that nothing can be said of them.",
        "Install it from a wheel; what setup.py or Debian's packages install has no hashes",
        "https://packaging.python.org/en/latest/specifications/recording-installed-packages/",
    ),
    "SITE_PYTHONPATH": Fault(
        "fail",
        "Modules come from outside of the environment, past its lock.",
        "Take PYTHONPATH out of what the server is started with (systemctl cat shows drop-ins), and install what is needed into the "
        "environment",
    ),
    "SITE_PATCH_UNDECLARED": Fault(
        "fail",
        "A patch is in the environment that nobody declares for it, such as one that was made for another model.",
        "Take it out with ansible-playbook playbooks/patch.yml -e patch_state=reverted, or declare it in the profile",
    ),
    "SITE_PATCH_ABSENT": Fault(
        "fail",
        "A patch that is declared for the installed version is not in the environment.",
        "Apply it with ansible-playbook playbooks/patch.yml -e patch_state=applied and restart the server",
    ),
    # --- Models and servers ---
    "MODEL_FILE_MISSING": Fault(
        "fail",
        "A file of the model is not there.",
        "Fetch it with ansible-playbook deploy.yml, which leaves the files that are whole as they are",
    ),
    "MODEL_FILE_DAMAGED": Fault(
        "fail",
        "A file of the model is not what its maker published, or is torn.",
        "Fetch it with ansible-playbook deploy.yml, which leaves the files that are whole as they are",
    ),
    "MODEL_INDEX_WRONG": Fault(
        "fail",
        "The index of the weights and the files beside it contradict each other.",
        "They are not of one revision, or were published so: name another revision in the profile (model.revision), and deploy again",
    ),
    "MODEL_INDEX_INEXACT": Fault(
        "warn",
        "The index of the weights does not tell all that lies beside it. Engines load what it names.",
        "See whether the repository has a revision in which they agree",
    ),
    "MODEL_FILE_UNKNOWN": Fault(
        "warn",
        "A file lies in the model's folder that its source does not have. Engines may read it.",
        "Take it away, or put it into a repository or folder of your own that the profile names",
    ),
    "MODEL_REVISION_OTHER": Fault(
        "fail",
        "The store has another revision of the model than the profile names.",
        "Fetch that with ansible-playbook deploy.yml; the one that is there stays until the new one is whole",
    ),
    "MODEL_REVISION_MOVES": Fault(
        "warn",
        "The profile names a branch or a tag, which can come to another commit on another day or node.",
        "Name the commit in the profile (model.revision) once it is proven; what is in the store stays as it is",
    ),
    "MODEL_REVISION_KEPT": Fault(
        "info",
        "An earlier revision, or one that was not fetched to its end, takes room in the store.",
        "Remove its folder when nobody goes back to it",
    ),
    "MODEL_REPOSITORY_UNKNOWN": Fault(
        "fail",
        "The hub has no such repository, or does not show it to this token.",
        "Correct model.repository in the profile, or give a token of an account that may see it (model_store_hub_token)",
    ),
    "MODEL_REVISION_UNKNOWN": Fault(
        "fail",
        "The repository has no such revision.",
        "Correct model.revision in the profile to a commit, a tag or a branch that its page on the hub shows",
    ),
    "MODEL_ACCESS_DENIED": Fault(
        "fail",
        "The hub does not give this repository to this token.",
        "Accept its terms on its page on the hub, and give a token of that account (model_store_hub_token)",
    ),
    "MODEL_MIRROR_INCOMPLETE": Fault(
        "fail",
        "The hub or mirror names a file and does not have it.",
        "Let the mirror fetch the whole revision, or name another one (model_store_hub_endpoint)",
    ),
    "MODEL_SOURCE_MISSING": Fault(
        "fail",
        "The folder that the weights are to come from is not there.",
        "Mount it or correct its path: model.source.folder in the profile, or model_store_source",
    ),
    "MODEL_STORE_FULL": Fault(
        "fail",
        "The file system of the model store has no room for the model.",
        "Make room there, or set model_store_directory to a folder on a larger file system; a file that is there whole takes no room again",
    ),
    "MODEL_STORE_FOREIGN": Fault(
        "fail",
        "The model's folder was not made by Slipway and has files that are not those of its source.",
        "Move the folder away, or only the files that are named; Slipway removes nothing that it did not make",
    ),
    "HUB_UNREACHABLE": Fault(
        "fail",
        "The hub that the weights come from does not answer this machine.",
        "Check its address (model_store_hub_endpoint), slipway_proxy and the firewall between, and run again: what has come is not "
        "fetched twice. Where there is no way, bring the files to a folder of the node (model_store_source)",
    ),
    # --- Will a model load ---
    "MODEL_UNEXPECTED": Fault(
        "fail",
        "The model in the folder is another one than the profile means.",
        "Correct model.path or model.revision in the profile, or its model.type and model.architecture",
    ),
    "MODEL_TYPE_UNKNOWN": Fault(
        "fail",
        "The engine, or its transformers, does not know the model's type.",
        "Take a stack whose transformers and engine know it (glm_moe_dsa: transformers 5.2.0 and newer), or, for a repository that brings its own "
        "code, allow it (trust-remote-code) after reading it",
        "zai-org/GLM-5#22",
    ),
    "MODEL_CONFIG_REFUSED": Fault(
        "fail",
        "transformers knows the model's type and cannot read its configuration.",
        "Fetch another revision of the model, or pin the transformers that its config.json names (transformers_version)",
    ),
    "MODEL_CODE_NOT_ALLOWED": Fault(
        "fail",
        "The model cannot be read without code of its own repository, and that may not run.",
        "Read that code, pin the revision, and set trust-remote-code in the profile's server.arguments; or pin versions that know the model",
    ),
    "MODEL_CODE_BROKEN": Fault(
        "fail",
        "The code that the model's repository brings for its configuration does not load in this environment.",
        "Pin the package or version that it imports in the profile's requirements.in, or take a revision of the model that is newer",
    ),
    "MODEL_ARCHITECTURE_UNKNOWN": Fault(
        "fail",
        "The engine has no model class for this architecture.",
        "Take a release of the engine that has it, or another engine",
    ),
    "TOKENIZER_MISSING": Fault(
        "fail",
        "The model's folder has no tokenizer.",
        "Fetch it with ansible-playbook deploy.yml; where the repository has none, name one in server.arguments (tokenizer, tokenizer-path)",
    ),
    "TOKENIZER_BROKEN": Fault(
        "fail",
        "The model's tokenizer does not load in this environment.",
        "Take a newer revision of the model, or pin the transformers that its tokenizer was made with in the profile's requirements.in",
    ),
    "TOKENIZER_IMPORT": Fault(
        "fail",
        "The model's own tokenizer code imports what this transformers does not have.",
        "Take a newer revision of the model's repository, whose code does not import it, or a stack with transformers 4.57",
        "huggingface/transformers#43726",
    ),
    "CHAT_TEMPLATE_MISSING": Fault(
        "warn",
        "The model brings no template for conversations, so chat requests fail.",
        "Name one in the profile's server.arguments (chat-template), or fetch the file of the repository that holds it",
    ),
    "QUANTISATION_UNSUPPORTED": Fault(
        "fail",
        "The engine or the GPU cannot load weights that are quantised like these.",
        "Correct quantization in the profile's server.arguments, or take other weights of the model",
    ),
    "FP8_KV_UNSUPPORTED": Fault(
        "fail",
        "The attention backend cannot keep keys and values as FP8 here.",
        "Take a release that can (TRITON_MLA: vLLM 0.18.1 and newer), or keep them in 16 bits: SGLang with kv_cache_dtype bf16, vLLM with auto and weights "
        "that bring no scales for them",
        "vllm-project/vllm#35577",
    ),
    "KV_DTYPE_REFUSED": Fault(
        "fail",
        "The engine takes this kv_cache_dtype and fails on it when it writes the first keys and values.",
        "Set it to auto, or take a release in which it works",
        "vllm-project/vllm#42587",
    ),
    "ATTENTION_BACKEND_NONE": Fault(
        "fail",
        "The engine has no attention backend for this model on this GPU.",
        "Take a release that has one: on SM120 dense MLA of vLLM is TRITON_MLA alone, and sparse MLA (GLM-5, DeepSeek 3.2) needs a release after 0.22",
        "vllm-project/vllm#45317",
    ),
    "ATTENTION_UNSUPPORTED": Fault(
        "fail",
        "The attention that the model would run with has no code for this GPU.",
        "Set attention-backend in the profile's server.arguments to one that has, or take a release that brings it",
        "sgl-project/sglang#26087",
    ),
    "PARALLEL_SIZE_MISFIT": Fault(
        "fail",
        "The model cannot be divided over the GPUs as the server's parallel sizes want it.",
        "Choose a tensor_parallel (and expert or pipeline size) that divides what the detail names",
        "vllm-project/vllm#48898",
    ),
    "CONTEXT_TOO_LONG": Fault(
        "fail",
        "The declared context is longer than what the model was made for.",
        "Lower context_length in the profile's server",
    ),
    "MEMORY_TOO_SMALL": Fault(
        "fail",
        "The memory does not hold the weights and one request of the declared length.",
        "Lower context_length, spread the model over more GPUs (tensor_parallel), raise the part of the memory that the engine may use, "
        "or take smaller weights; the report has the table",
    ),
    # --- Models and servers ---
    "FLAG_UNKNOWN": Fault(
        "fail",
        "The engine has no such argument.",
        "Correct the name in the profile's server.arguments, or remove it",
    ),
    "FLAG_RENAMED": Fault(
        "fail",
        "The engine has this argument under another name in this release.",
        "Give it under the name that the detail has, in the profile's server.arguments",
    ),
    "FLAG_WITHOUT_EFFECT": Fault(
        "warn",
        "The setting has no effect in this release, or on this GPU.",
        "Take it out, so that nobody relies on it",
    ),
    "FLAG_DANGEROUS": Fault(
        "fail",
        "With this setting, or without it, the server is known to fail or to answer nonsense on this GPU.",
        "Change it as the detail says, in the profile's server section",
    ),
    "FLAGS_CONTRADICT": Fault(
        "fail",
        "Settings do not go together.",
        "Take one of them out, or add what the detail names",
    ),
    "FLAGS_UNCHECKED": Fault(
        "warn",
        "Slipway has no list of the options of this release, so that wrong names and choices are found by the engine alone.",
        "Give engine_version as it is locked; the engine's own parser is asked once its environment is there",
    ),
    "COMMAND_LINE_REFUSED": Fault(
        "fail",
        "The engine's own parser refuses the command line.",
        "Correct what it names in the profile's server.arguments",
    ),
    "COMMAND_LINE_UNCHECKED": Fault(
        "unknown",
        "The engine's own parser could not be asked about the command line.",
        "Mend what the detail names; where the environment is broken, deploy again, which brings it back to its lock",
    ),
    "MOE_CONFIG_INVALID": Fault(
        "fail",
        "A file of tuned kernel settings is not one that the engine can use.",
        "Correct it as the detail says, or take it out of the profile's kernels folder",
    ),
    "MOE_CONFIG_TOO_LARGE": Fault(
        "fail",
        "Tuned kernel settings ask for more shared memory than a block of this GPU has, so that requests of such sizes would end the server.",
        "Tune on this GPU (playbooks/tune.yml), or lower num_stages or the block sizes for these batch sizes",
        "sgl-project/sglang#28019",
    ),
    "MOE_CONFIG_OTHER_GPU": Fault(
        "warn",
        "Tuned kernel settings are for another GPU, and are never looked for on this one.",
        "Tune on this GPU (playbooks/tune.yml); files are named for the GPU as torch names it",
    ),
    "SECRET_EXPOSED": Fault(
        "fail",
        "A secret would be readable by everyone on the machine.",
        "Put it into a file that only the server's user may read: api_key_file for the API's keys",
    ),
    "API_OPEN": Fault(
        "warn",
        "The API listens to a network and asks for no key.",
        "Give api_key_file, or let the server listen on 127.0.0.1 behind something that asks",
    ),
    "SERVER_UNREACHABLE": Fault(
        "fail",
        "Nothing answers at the server's address.",
        "See whether the unit runs (systemctl status, journalctl -u), listens on that address, and no firewall is between",
    ),
    "SERVER_NOT_READY": Fault(
        "fail",
        "The server answers but does not generate.",
        "Read its log (journalctl -u) for the step that it is at; give it more time if it is still loading",
    ),
    "SERVER_UNAUTHORIZED": Fault(
        "fail",
        "The server does not accept the API key.",
        "Give the key of the server's api_key_file, and restart the server if the file is newer than its process",
    ),
    "SERVER_HUNG": Fault(
        "fail",
        "The server stopped making progress while it started.",
        "See what its processes wait for (the detail names their states; 'py-spy dump --pid' as root shows the call): a disk that does not "
        "answer, a collective that does not end, a compiler. A phase that is only slow here gets more time by inference_server_phase_limits.",
        "sgl-project/sglang#29580",
    ),
    "SERVER_DIED": Fault(
        "fail",
        "The server ended while it started, and its last words are none that are known here.",
        "Read the whole of its log (journalctl -u) from the first error on, mend the cause and run this again",
    ),
    "SERVER_OOM_KILLED": Fault(
        "fail",
        "The kernel killed a process of the server: the machine's or the guest's memory was exhausted.",
        "Give the guest more memory (gpu_container_memory_mib), and count /dev/shm, which is part of it; load with fewer threads; see what else "
        "uses the node's memory (ZFS keeps a cache, zfs_arc_max)",
    ),
    "WORKER_DIED": Fault(
        "fail",
        "A worker of the server died without saying why.",
        "See the kernel's log for a kill; try 'numactl --membind=0 true' in the guest: where it fails, workers that bind their memory die before "
        "Python starts (switch the binding off in the server's arguments, SGLANG_NUMA_BIND_V2=0)",
        "sgl-project/sglang#27368",
    ),
    "NUMA_BIND_REFUSED": Fault(
        "fail",
        "A worker could not bind its memory to a NUMA node, and died before its Python started.",
        "Switch the binding off (SGLANG_NUMA_BIND_V2=0; no --numa-bind for vLLM), or give the guest all NUMA nodes (cpuset.mems)",
        "sgl-project/sglang#28401",
    ),
    "KERNEL_SHARED_MEMORY": Fault(
        "fail",
        "A Triton kernel asks for more shared memory than a multiprocessor of this GPU has.",
        "Use the release or the patch that knows this GPU (sglang 0.5.9 and newer, or patch sglang-14311); for fused MoE, configuration files that "
        "are tuned for it (SGLANG_MOE_CONFIG_DIR). Prove it with a prompt of 512 tokens or more: short ones pass",
        "sgl-project/sglang#14322",
    ),
    "KERNEL_GPU_UNSUPPORTED": Fault(
        "fail",
        "The chosen kernels do not know this GPU.",
        "Name a backend that runs on it in the server's arguments: for GLM-5 on SM120, attention-backend flashinfer before SGLang 0.5.17",
        "sgl-project/sglang#26087",
    ),
    "KERNEL_FAULT": Fault(
        "fail",
        "A kernel did on the GPU what it may not.",
        "Take another backend for what ran (attention, MoE, FP4 GEMM), or another release of the library; a fault that stays with one GPU, or with "
        "an Xid in the node's dmesg, is of the hardware or of the links (gpu_p2p)",
    ),
    "SAMPLING_NAN": Fault(
        "fail",
        "The model computed numbers that are none (NaN, infinity), so that no token could be chosen.",
        "On SM120 take flashinfer_cudnn for FP4 GEMM (fp4-gemm-backend) and remove FlashInfer's cache after a change of its version; then suspect "
        "weights (hash) and links between GPUs (gpu_p2p)",
        "sgl-project/sglang#20043",
    ),
    "GPU_MEMORY_WEIGHTS": Fault(
        "fail",
        "The GPU's memory is too small for the weights.",
        "Spread the model over more GPUs (tensor_parallel), take a smaller quantisation, and see that nothing else is on the GPUs; with NEXTN on SGLang "
        "set SGLANG_ENABLE_SPEC_V2=True, without which the model is loaded twice",
    ),
    "GPU_MEMORY_KV": Fault(
        "fail",
        "After the weights, the GPU's memory is too small for the KV cache.",
        "Raise the share that the engine may use (mem-fraction-static, gpu-memory-utilization), or lower context_length or the requests at a time",
    ),
    "GPU_MEMORY_GRAPHS": Fault(
        "fail",
        "The GPU's memory ran out after the KV cache was allocated: in CUDA graphs, compiled kernels, or a request.",
        "Lower the share that the engine takes beforehand (mem-fraction-static, gpu-memory-utilization), the largest batch of graphs "
        "(cuda-graph-max-bs) or chunked-prefill-size",
    ),
    "GPU_IN_USE": Fault(
        "fail",
        "Somebody else has the GPU that the server is to get.",
        "End what the detail names (a unit with systemctl stop, a process with kill), or give the server other GPUs; one that cannot be ended "
        "(state D) takes a reboot of the node",
    ),
    "GPU_LEFT_IN_USE": Fault(
        "fail",
        "The server was stopped, and a process that it left behind still has a GPU.",
        "End it (the detail names it), and see how it left the unit's control group: what starts helpers through cron, at, systemd-run or another "
        "service takes them out of it",
    ),
    "SERVER_LEFT_RUNNING": Fault(
        "fail",
        "A process of the server is still there after it was stopped.",
        "One in state D waits for a device and cannot be killed: see the node's dmesg, and reboot the node where it stays; end any other with kill -9",
    ),
    "GPU_LOST": Fault(
        "fail",
        "A GPU stopped working.",
        "See the node's dmesg for its Xid (docs.nvidia.com/deploy/xid-errors); reset the GPU or reboot the node, and for a link that goes down, add "
        "pcie_aspm=off and pcie_port_pm=off to the kernel command line",
        "NVIDIA/open-gpu-kernel-modules#1159",
    ),
    "NCCL_HUNG": Fault(
        "fail",
        "The ranks of the server wait for each other and do not get on.",
        "Prove the links (playbooks/verify.yml, acceptance_links_renew): an IOMMU that translates or ACS redirect makes the first all-reduce hang. Until "
        "then NCCL_P2P_DISABLE=1 serves",
        "vllm-project/vllm#33041",
    ),
    "NCCL_FAILED": Fault(
        "fail",
        "NCCL failed in the server.",
        "Run the all-reduce by itself (nccl_all_reduce), which names the cause; in containers NCCL_CUMEM_HOST_ENABLE=0 helps where host memory by "
        "cuMem does not work",
        "NVIDIA/nccl#1838",
    ),
    "SHM_SHORT": Fault(
        "fail",
        "The guest's /dev/shm is too small for what the server's processes share, or full.",
        "Mount it larger (gpu_container_shm_mib), and remove what dead processes left in it",
        "NVIDIA/nccl#342",
    ),
    "DISK_FULL": Fault(
        "fail",
        "A disk that the server writes to is full.",
        "Make room: compiled kernels lie below /var/lib of the server's user, and can be removed while it is stopped",
    ),
    "FLASHINFER_MISMATCH": Fault(
        "fail",
        "FlashInfer and its ready-made kernels are of different versions.",
        "Bring both back to the lock's version (deploy again); do not switch the check off",
        "vllm-project/vllm#49804",
    ),
    "KERNEL_PACKAGE_OLD": Fault(
        "fail",
        "A package of kernels is older than this engine wants.",
        "Bring it back to the lock's version (deploy again, or audit.yml to see who changed it)",
    ),
    "OPERATOR_MISSING": Fault(
        "fail",
        "A package was built for another torch, so that its operators are missing.",
        "Bring torch and the package back to versions that belong together (torchvision 0.24.1 to torch 2.9.1): deploy again",
    ),
    "PORT_IN_USE": Fault(
        "fail",
        "Another process listens at the server's port.",
        "See who it is ('ss -ltnp' in the guest), end it, or give the server another port (inference_server_port)",
    ),
    "FLAG_REFUSED": Fault(
        "fail",
        "The engine refuses the value of an argument.",
        "Correct it in the profile's server.arguments to one that the detail lists",
    ),
    "SERVER_PATH_DENIED": Fault(
        "fail",
        "The server may not write where it wants to.",
        "It writes below /var/lib of its user, /tmp and /dev/shm; send what writes elsewhere there by the profile's server.environment "
        "(HF_HOME, TRITON_CACHE_DIR, FLASHINFER_WORKSPACE_BASE, VLLM_CACHE_ROOT)",
    ),
    "MODEL_NAME_MISMATCH": Fault(
        "fail",
        "The server serves another model than was asked for.",
        "Use the served name in model, or correct the profile's model.name and deploy again",
    ),
    "CHECK_NOT_MADE": Fault(
        "unknown",
        "A check could not be made, so nothing is known about it.",
        "Put right what kept it from being made, and run it again",
    ),
    "ANSWER_MISSING": Fault(
        "fail",
        "The server gave no answer to a question.",
        "Read its log (journalctl -u) at the time of the question",
    ),
    "ANSWER_EMPTY": Fault(
        "fail",
        "The model answers nothing.",
        "Check the chat template and the stop tokens of the model, then its weights",
    ),
    "ANSWER_INCOHERENT": Fault(
        "fail",
        "The model talks nonsense.",
        "Suspect the numbers before the prompt: weights (hash), links between GPUs, kernels and number formats, patches",
    ),
    "ANSWER_WRONG": Fault(
        "fail",
        "The model's answer is not the expected one.",
        "Read the answer: if it is good, correct the case; else check weights, chat template and number formats",
    ),
    "ANSWER_LOOPS": Fault(
        "fail",
        "The model says one thing over and over.",
        "Compare weights (hash) and number formats with the profile's; a quantised model that loops at temperature 0 has lost precision",
    ),
    "ANSWER_LANGUAGE": Fault(
        "fail",
        "The model answers in another script than it must.",
        "Check the chat template and the tokenizer of the model, then as for an incoherent answer",
    ),
    "ANSWER_CUT_SHORT": Fault(
        "fail",
        "The model's answer is not whole: it is too short, cut off, or comes to no end.",
        "Raise the case's max_tokens where the answer is good; else check stop tokens (generation_config.json) and chat template",
        "sgl-project/sglang#18904",
    ),
    "ANSWER_TOKENS_LEAKED": Fault(
        "fail",
        "Tokens that steer the model stand in its answer.",
        "Check the chat template and the tokenizer, and that the server has the parsers of the model (reasoning-parser, tool-call-parser)",
    ),
    "ANSWER_UNSTABLE": Fault(
        "fail",
        "The same question at temperature 0 gets another answer.",
        "Other words for the same are let pass; for another content suspect a race in a kernel, or a cache of prefixes that returns wrong values",
        "sgl-project/sglang#20043",
    ),
    "STREAM_WRONG": Fault(
        "fail",
        "A streamed answer is not the one that comes in one piece.",
        "Check the parsers of the server (reasoning-parser, tool-call-parser) and what stands between it and its clients",
    ),
    "LONG_PROMPT_FAILS": Fault(
        "fail",
        "The server answers short prompts and fails at a long one.",
        "Read its log for 'out of resource: shared memory': then the attention kernels ask for more than the GPU has, and the profile's patches are "
        "missing; else compare its context length with the prompt's",
        "sgl-project/sglang#14311",
    ),
    "PREFIX_CACHE_WRONG": Fault(
        "fail",
        "The answer to a second question about the same text is wrong, while the first was right.",
        "Keys and values come out of the cache wrong: check the KV dtype (FP8 without the model's scales) and the attention backend, or serve without "
        "the cache of prefixes (SGLang: disable-radix-cache, vLLM: no-enable-prefix-caching)",
        "sgl-project/sglang#18904",
    ),
    "REASONING_OVER_BUDGET": Fault(
        "fail",
        "The model spent all its tokens on reasoning and came to no answer.",
        "Raise the case's max_tokens",
    ),
    "THROUGHPUT_LOW": Fault(
        "fail",
        "The server is slower than it must be.",
        "See what else uses the machine; compare clocks, links and server arguments with the last proof",
    ),
    "SERVER_IN_USE": Fault(
        "unknown",
        "The speed was not measured, since the server has others to serve.",
        "Deploy again when it has nobody to serve; acceptance_allow_load: true measures beside them, which slows them down and the figures too",
    ),
    "THROUGHPUT_BELOW_BASELINE": Fault(
        "fail",
        "The server is slower than it was on this host when the baseline was recorded.",
        "See what changed since: stack, server arguments, driver, clocks, links. If the new figure is right, remove the baseline file; the next good "
        "proof records it again",
    ),
    "THROUGHPUT_BASELINE_UNUSABLE": Fault(
        "unknown",
        "The baseline of the speed cannot be compared with.",
        "Remove the file, and the next good proof records it anew; or name the one that belongs to this model and these GPUs",
    ),
    "LOAD_ERRORS": Fault(
        "fail",
        "Requests fail when several are served at one time.",
        "Read the server's log (journalctl -u) at that time: memory for keys and values, limits of running requests, timeouts",
    ),
    "THROUGHPUT_UNKNOWN": Fault(
        "unknown",
        "The speed could not be measured.",
        "The server must stream and count its tokens (stream_options.include_usage); read its log",
    ),
    # --- Kernel command line ---
    "KERNEL_CMDLINE_PENDING": Fault(
        "warn",
        "The running kernel was booted with other parameters than those that are declared.",
        "Reboot the host when that suits (pve_host_allow_reboot); the parameters are in force from then on.",
    ),
    "KERNEL_CMDLINE_NOT_TAKEN": Fault(
        "fail",
        "The host was rebooted since its kernel parameters were written, and its kernel still does not have them.",
        "See which disk and entry the firmware boots (efibootmgr -v, proxmox-boot-tool status): an EFI partition that is not "
        "among those that are refreshed, or an entry chosen by hand at the boot menu, brings the old parameters.",
        "lae/ansible-role-proxmox#292",
    ),
    # --- GPUs on their board ---
    "LINK_NARROW": Fault(
        "warn",
        "A PCIe link on the way to a GPU has fewer lanes than both its ends could have.",
        "Power the host off, seat the card, riser and cables of that link anew, and clean the contacts; if it stays, try the "
        "card in another slot, and see the firmware's settings of that slot (bifurcation).",
        "NVIDIA/nccl#1614",
    ),
    "LINK_SLOW": Fault(
        "warn",
        "A PCIe link on the way to a GPU is slower than both its ends could be.",
        "See the firmware for a speed limit of that slot and set it to the generation of the card; add pcie_aspm=off and "
        "pcie_port_pm=off to the kernel command line (kernel_cmdline); then look at riser and cables. An idle GPU lowers the speed "
        "of its own link: only what is read under load counts there.",
        "NVIDIA/NVSentinel#890",
    ),
    "BAR1_SMALL": Fault(
        "warn",
        "The window through which others reach a GPU's memory (BAR1) is smaller than that memory, so peers cannot map all of it.",
        "In the firmware, switch on Above 4G Decoding and Resizable BAR (Re-Size BAR) and boot by UEFI without CSM; on the kernel "
        "command line, pci=realloc where the firmware gives too little room.",
        "tinygrad/open-gpu-kernel-modules#44",
    ),
    "IOMMU_TRANSLATED": Fault(
        "warn",
        "The IOMMU translates what the GPUs send: copies from GPU to GPU can be lost without an error, or hang.",
        "Set iommu=pt on the kernel command line (pve_host_kernel_parameters: [iommu=pt]) and reboot, or switch the IOMMU off in "
        "the firmware where no virtual machine needs it; then prove the links (gpu_p2p).",
        "NVIDIA/cuda-samples#48",
    ),
    "ACS_REDIRECT": Fault(
        "warn",
        "Ports on the way to the GPUs send what one GPU writes to another up to the root complex (ACS redirect): half the speed, or a hang.",
        "Clear the bits ReqRedir and CmpltRedir of those ports at each boot (pve_host_allow_acs_change), or switch ACS off in the "
        "firmware; virtual machines with GPUs of the same switches need it on.",
        "NVIDIA/nccl#2079",
    ),
    "GPU_BOUND_TO_VFIO": Fault(
        "warn",
        "A GPU is in the hands of vfio-pci, which keeps it for virtual machines.",
        "To give it back to the host: stop the virtual machine and take the card away from it (qm set <vmid> --delete hostpciN); take "
        "it out of 'options vfio-pci ids=' in /etc/modprobe.d (then update-initramfs -u) and of vfio-pci.ids= on the kernel command "
        "line; then, as root, with its address: echo <address> > /sys/bus/pci/drivers/vfio-pci/unbind; echo > "
        "/sys/bus/pci/devices/<address>/driver_override; echo <address> > /sys/bus/pci/drivers_probe. The last three are what deploy.yml "
        "does with pve_host_allow_gpu_release.",
    ),
    "GPU_PASSED_THROUGH": Fault(
        "warn",
        "A virtual machine is set up to get a GPU that the host's driver has, and would take it away when it starts.",
        "Take it away from the virtual machine (qm set <vmid> --delete hostpciN), or leave it out of the guests' gpu_container_gpus.",
    ),
    "MODULE_PARAMETER_PENDING": Fault(
        "warn",
        "A kernel module of the driver runs with another value of a parameter than the one that is on disk.",
        "Load the module again while nothing uses it, or reboot; run update-initramfs -u first, if the module is in the initramfs.",
    ),
    "XID_RECENT": Fault(
        "warn",
        "The driver has reported an error of a GPU (Xid) within the last day.",
        "Look the number up (docs.nvidia.com/deploy/xid-errors). Those of a program (13, 31, 43, 45) pass with it; those of the GPU, its "
        "memory, link or firmware (48, 62, 64, 74, 79, 94, 95, 119, 120, 140, 154) need a reset of the GPU or a reboot, and a card "
        "that brings them again needs replacing.",
        "https://docs.nvidia.com/deploy/xid-errors/",
    ),
    # --- Links between GPUs ---
    "P2P_NO_PAIRS": Fault(
        "info",
        "There is one GPU here, so there are no links between GPUs to prove.",
        "Nothing; if there should be more GPUs, see which of them were passed in.",
    ),
    "P2P_CORRUPT": Fault(
        "fail",
        "Data that one GPU copies to another does not arrive as it was sent, while the copy succeeds.",
        "On the node: zeros or dropped data are an IOMMU that translates (iommu=pt, or amd_iommu=off / intel_iommu=off, then reboot); "
        "see dmesg for DMAR or IO_PAGE_FAULT, and ACS redirect at each bridge above the two. Until it is mended serve with "
        "NCCL_P2P_DISABLE=1.",
        "unslothai/unsloth#10613",
    ),
    "P2P_IMPLAUSIBLE": Fault(
        "fail",
        "A copy between two GPUs is faster than the link between them can be, so it did not take place.",
        "Treat it as lost data: see the IOMMU (iommu=pt) and ACS on the node, and the integrity of this pair.",
        "NVIDIA/cuda-samples#390",
    ),
    "GPU_MEMORY_WRONG": Fault(
        "fail",
        "A GPU's own memory does not hold what was written to it from the host.",
        "It is not the link between GPUs: see Xid lines in the node's dmesg, ECC counts and the GPU's own link; reset or replace it.",
    ),
    "P2P_HUNG": Fault(
        "fail",
        "A copy between two GPUs does not come back.",
        "See dmesg on the node for Xid, DMAR or AER lines; try iommu=pt, and ACS redirect off on the path. A process that cannot be "
        "killed needs a reboot. NCCL hangs the same way: NCCL_P2P_DISABLE=1 goes round it.",
        "NVIDIA/nccl#257",
    ),
    "P2P_ERROR": Fault(
        "fail",
        "The driver fails on a copy between two GPUs.",
        "Mend the cause that the detail names; for an error that ends the process see Xid lines in the node's dmesg.",
        "NVIDIA/cuda-samples#48",
    ),
    "P2P_UNSUPPORTED": Fault(
        "fail",
        "The driver offers no peer access between two GPUs: all copies between them go through the host.",
        "See 'nvidia-smi topo -p2p r' for its reason (CNS: the CPU is not on the driver's list, GNS: the GPU may not, DR: switched off "
        "by RegistryDwords). If the host is to do without, set required: false.",
        "NVIDIA/nvbandwidth#13",
    ),
    "P2P_MAP_FAILED": Fault(
        "fail",
        "The memory of one GPU cannot be mapped for another.",
        "Turn Resizable BAR and Above 4G Decoding on in the firmware, so that BAR1 is at least as large as the GPU's memory; take "
        "modified kernel modules out.",
        "tinygrad/open-gpu-kernel-modules#44",
    ),
    "P2P_TOO_MANY_PEERS": Fault(
        "fail",
        "The hardware's resources for peer access are used up.",
        "Stop what else has peer access on these GPUs; pass at most eight GPUs into one guest.",
    ),
    "P2P_SLOW": Fault(
        "fail",
        "A link between two GPUs is slower than its kind is.",
        "Look at each bridge above the two: ACS redirect (half the speed), link width, MaxPayload, and the uplink of their switch; "
        "gpu_host_info shows them. If this is what this board can do, set thresholds.reference_gbps.",
        "NVIDIA/nccl#199",
    ),
    "P2P_LINK_SLOW": Fault(
        "fail",
        "A PCIe link of a GPU stays below its speed or width with data on it.",
        "Reseat the card or cable, set the slot's generation in the firmware, and try pcie_aspm=off; a link can stay down until a reboot.",
        "NVIDIA/NVSentinel#890",
    ),
    "P2P_STAGED": Fault(
        "fail",
        "Copies between two GPUs go through the host although peer access is on.",
        "Set the driver's RegistryDwords for PCIe P2P (ForceP2P=0x11;RMForceP2PType=1;RMPcieP2PType=2) as the profile does, reload "
        "the driver, and see whether something of the environment turns P2P off.",
        "NVIDIA/nccl#814",
    ),
    "P2P_BIDIRECTIONAL_LOW": Fault(
        "warn",
        "Two GPUs that send to each other are not much faster together than one of them alone.",
        "See ACS redirect and MaxPayload at each bridge between them; on some boards the path between sockets is the limit.",
    ),
    "P2P_OUTLIER": Fault(
        "warn",
        "A pair of GPUs is slower than the others of its kind.",
        "Compare the links of these two GPUs and of the bridges above them with those of a good pair (gpu_host_info).",
    ),
    "P2P_COLLAPSE": Fault(
        "fail",
        "Links that are fast one by one break down when they work together.",
        "Two GPUs of one switch that write to two root ports do this on some Broadcom switches: update the switch's and the board's "
        "firmware, turn ACS redirect off, or put the GPUs of a group behind one switch. Record a baseline where a lower figure is right.",
    ),
    "P2P_BELOW_BASELINE": Fault(
        "fail",
        "A link, or a set of them, is slower than it was when the baseline was recorded.",
        "See what changed since: firmware, driver, kernel parameters, links of the GPUs. If the new figure is right, remove the "
        "baseline file and record it again.",
    ),
    "P2P_BASELINE_UNUSABLE": Fault(
        "unknown",
        "The baseline cannot be compared with.",
        "Remove the file and record it anew (record_baseline: true), or name the one that belongs to these GPUs.",
    ),
    "P2P_PATH_UNKNOWN": Fault(
        "warn",
        "Where GPUs are in the PCI tree cannot be seen, so the lowest of the references is used for their links.",
        "Make /sys visible in the guest, or run it on the node.",
    ),
    "P2P_NOT_MEASURED": Fault(
        "unknown",
        "A measurement of the links was not made, so nothing is known about it.",
        "Mend what the detail names and measure again; give more timeout_seconds if time ran out.",
    ),
    "GPU_BUSY": Fault(
        "fail",
        "Other work is on the GPUs, beside which links cannot be proven.",
        "Stop it (drain the host, stop its server), or measure beside it with allow_busy: true, which makes speeds worthless.",
    ),
    "CUDA_CONTEXT_FAILED": Fault(
        "fail",
        "A GPU cannot be used although CUDA lists it.",
        "Mend the cause that the detail names: compute mode (nvidia-smi -c 0), memory held by others, or the GPU itself (dmesg, Xid).",
    ),
    # --- Proofs ---
    "PROOF_HOLDS": Fault(
        "info",
        "It was proven, and what that rests on is as it was.",
        "Nothing is to be done.",
    ),
    "PROOF_FAILED": Fault(
        "fail",
        "It was measured and found bad, and what that rests on is as it was.",
        "Mend what was found then, and deploy again: a host whose proof failed is measured anew at each deploy.",
    ),
    "PROOF_STALE": Fault(
        "unknown",
        "It was proven, but something that the proof rests on is no longer as it was, so nothing is known.",
        "Deploy again, which measures it anew: links before the server starts (where one runs, that takes acceptance_allow_server_stop), "
        "speed while it serves nobody.",
    ),
    "PROOF_ABSENT": Fault(
        "unknown",
        "It has not been proven.",
        "Deploy, which measures it: links before the server starts (where one runs, that takes acceptance_allow_server_stop), speed while it "
        "serves nobody.",
    ),
    # --- All-reduce ---
    "ALL_REDUCE_HUNG": Fault(
        "fail",
        "An all-reduce over the GPUs does not come back: a server would hang in its start.",
        "Prove the links (gpu_p2p). On the node: iommu=pt, and ACS redirect off on the path of the GPUs; uvm_disable_hmm=1. If it goes with "
        "NCCL_P2P_DISABLE=1 in the profile's server.environment, the links are the cause; a process that cannot be killed needs a reboot.",
        "NVIDIA/nccl#1999",
    ),
    "ALL_REDUCE_CORRUPT": Fault(
        "fail",
        "Sums that NCCL makes over the GPUs are wrong: a model would talk nonsense.",
        "Prove the links (gpu_p2p): where it finds lost data, mend that (iommu=pt, ACS); where all links are good, use another NCCL, and see "
        "whether NCCL_P2P_DISABLE=1 or another NCCL_PROTO changes it.",
        "NVIDIA/nccl#2001",
    ),
    "ALL_REDUCE_FAILED": Fault(
        "fail",
        "An all-reduce over the GPUs ends with an error.",
        "Mend the cause that the detail names, and run it again; what NCCL said is in the result (nccl_warnings, and each rank's tail).",
        "NVIDIA/nccl#290",
    ),
    "ALL_REDUCE_NOT_RUN": Fault(
        "unknown",
        "The all-reduce could not be run, or not to its end, so nothing is known about it.",
        "Mend what the detail names and run it again; an engine that has no NCCL (llama.cpp) needs none.",
    ),
    "ALL_REDUCE_VIA_SHM": Fault(
        "warn",
        "NCCL goes through the host's memory between GPUs that could reach each other directly.",
        "Set NCCL_P2P_LEVEL=SYS in the profile's server.environment: by itself NCCL uses peer access only below a common PCIe switch. The ranks "
        "must be in one guest. Where serving is faster without it, NCCL_P2P_DISABLE=1 says that it is meant.",
        "NVIDIA/nccl#1817",
    ),
    "ALL_REDUCE_SLOW": Fault(
        "fail",
        "The all-reduce over the GPUs is slower than such a machine can be.",
        "See the transports in the result (P2P, not SHM), then NCCL_MIN_NCHANNELS=8 in the profile's server.environment (AMD boards get two channels "
        "by themselves), then the links (gpu_p2p, sets at one time). If this is what the machine can do, set thresholds.bus_gbps.",
        "NVIDIA/nccl#2127",
    ),
    "ALL_REDUCE_LATENCY_HIGH": Fault(
        "warn",
        "A small all-reduce takes so long that what GPUs write to each other seems to go through the host.",
        "Where the transports in the result are P2P, set the driver's RegistryDwords for it (ForceP2P=0x11;RMForceP2PType=1;RMPcieP2PType=2;"
        "GrdmaPciTopoCheckOverride=1;EnableResizableBar=1) and reload the driver: copies go directly without it, kernels do not. If this is "
        "what the machine can do, set thresholds.latency_us.",
    ),
    "NCCL_VERSION_BROKEN": Fault(
        "fail",
        "This release of NCCL is known to fail on such GPUs.",
        "Take another one into the profile's lock: nvidia-nccl-cu12 or -cu13 by an override, or a torch that brings it.",
        "NVIDIA/nccl#2418",
    ),
}
