# SPDX-License-Identifier: GPL-3.0-or-later
"""GPU host and driver."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
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
}
