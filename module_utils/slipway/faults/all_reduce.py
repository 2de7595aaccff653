# SPDX-License-Identifier: GPL-3.0-or-later
"""All-reduce."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
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
