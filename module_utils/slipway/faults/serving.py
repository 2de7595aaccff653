# SPDX-License-Identifier: GPL-3.0-or-later
"""Start and stop of a server."""

from __future__ import annotations

from .fault import Fault

FAULTS = {
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
}
