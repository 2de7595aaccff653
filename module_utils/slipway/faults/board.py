# SPDX-License-Identifier: GPL-3.0-or-later
"""GPUs on their board."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
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
}
