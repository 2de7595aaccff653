# SPDX-License-Identifier: GPL-3.0-or-later
"""What usually is behind an error of NCCL, torch or the loader, by what it says: a cause and what to do, as one clause. Pure."""

from __future__ import annotations

import re
import signal
import typing as t

MISSING, FOLLOWS, FAILED = "missing", "follows", "failed"


class Cause(t.NamedTuple):
    """``kind`` is ``missing`` (there is nothing to run), ``follows`` (another rank failed first) or ``failed``; ``clause`` may be empty."""

    kind: str
    clause: str


_FOLLOWS = re.compile(r"ncclRemoteError|[Cc]onnection (closed|reset) by|Broken pipe")
# The first that fits counts.
_MISSING = {
    r"No module named 'torch": "this environment has no torch, and so no NCCL: an engine without it needs no all-reduce",
    r"not compiled with CUDA|built without NCCL": "this torch is for CPUs: build the environment from its lock again (python_stack)",
    r"cannot open shared object|undefined symbol|ImportError": "the environment's libraries do not fit each other: compare it with its lock (python_stack)",
}
_CAUSES = {
    r"driver on your system is too old|driver version is insufficient": "the driver is older than the CUDA that this torch was built for: "
    "install a newer one on the node, and its user part here",
    r"no kernel image is available|named symbol not found|invalid device function": "torch or NCCL was built without this GPU's architecture: "
    "sm_120 needs CUDA 12.8 or newer",
    r"Duplicate GPU detected": "two ranks were given one GPU: see what hides or repeats GPUs in the service's environment",
    r"No space left on device|posix_fallocate failed|Error while creating shared memory": "the guest's /dev/shm is too small or full: "
    "mount it larger (gpu_container_shm_mib), and remove what dead processes left there",
    r"attaching to shared memory segment \S+ \(size 0\)": "ranks disagree on how host memory is shared, as some NUMA node has none: set "
    "NCCL_CUMEM_HOST_ENABLE=0 (NVIDIA/nccl#2190)",
    r"shm\.cc\S* (NCCL WARN )?Cuda failure|HOST_NUMA": "host memory by cuMem does not work in this guest: set NCCL_CUMEM_HOST_ENABLE=0 (NVIDIA/nccl#1838)",
    r"peer access is not supported|Cuda failure 217": "the driver offers no peer access for a pair: prove the links (gpu_p2p), or set NCCL_P2P_DISABLE=1",
    r"illegal memory access|Cuda failure 700": "NCCL reached memory that is not mapped: its release (2.26.2 does this on SM120), or an IOMMU that "
    "translates; see Xid lines in the node's dmesg",
    r"out of memory|Failed to CUDA calloc": "a GPU's memory is held by other work: stop it, or give a smaller buffer_mib",
    r"no socket interface found": "NCCL finds no interface by the name in NCCL_SOCKET_IFNAME: correct it in the service's environment",
    r"initialization error|Cuda failure 3\b": "CUDA does not start: see gpu_host_info with cuda: true, and HMM (uvm_disable_hmm=1)",
}
# What only names a class of errors: NCCL's warnings may know more.
_CLASSES = {
    r"ncclUnhandledCudaError|CUDA error|Cuda failure": "a CUDA call failed inside NCCL: see Xid lines in the node's dmesg",
    r"ncclSystemError": "a system call failed inside NCCL: /dev/shm, limits (memlock, open files) or sockets of the guest",
    r"ncclInvalidUsage|ncclInvalidArgument": "NCCL is called as another release of it would be: see that only one libnccl is found",
    r"ncclInternalError": "NCCL contradicts itself, mostly about the topology: see NCCL_TOPO_FILE, NCCL_GRAPH_FILE, and that /sys is whole in the guest",
}
_BY_SIGNAL = {
    signal.SIGBUS: "the guest's /dev/shm ran full while it was written to: mount it larger (gpu_container_shm_mib)",
    signal.SIGKILL: "the kernel ran out of memory (see dmesg), or somebody ended it",
    signal.SIGSEGV: "a library crashed: NCCL does so where only some NUMA nodes have memory, and NCCL_CUMEM_HOST_ENABLE=0 helps (NVIDIA/nccl#2106)",
    signal.SIGABRT: "torch's watchdog or a library gave up",
    signal.SIGILL: "the processor lacks an instruction that a library was built for",
}
_LAST_ERROR = re.compile(r"Last error:\s*(.+)", re.DOTALL)
_KIND = re.compile(r"nccl\w+(?:Error|Usage|Argument)")


def find(error: str, tail: t.Sequence[str], warnings: t.Sequence[str], status: int | None) -> Cause:
    """The cause of a rank's end: by its own ``error`` and last lines, then by the signal, then by NCCL's ``warnings`` on any rank."""
    if _FOLLOWS.search(error):
        return Cause(FOLLOWS, "")
    own = "\n".join([error, *tail])
    if clause := _first(_MISSING, error):
        return Cause(MISSING, clause)
    if clause := _first(_CAUSES, own):
        return Cause(FAILED, clause)
    if not error and status is not None and status < 0:
        return Cause(FAILED, _BY_SIGNAL.get(signal.Signals(-status), ""))
    return Cause(FAILED, _first(_CAUSES, "\n".join(warnings)) or _first(_CLASSES, own))


def _first(table: t.Mapping[str, str], text: str) -> str:
    return next((clause for pattern, clause in table.items() if re.search(pattern, text)), "")


def short(error: str) -> str:
    """The part of an error that says most: NCCL's own last error behind the class of it, else how it begins."""
    last, kind = _LAST_ERROR.search(error), _KIND.search(error)
    if last and kind:
        return f"{kind[0]}: {' '.join(last[1].split())[:300]}"
    return " ".join(error.split())[:400]
