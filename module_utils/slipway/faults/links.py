# SPDX-License-Identifier: GPL-3.0-or-later
"""Links between GPUs."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
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
}
