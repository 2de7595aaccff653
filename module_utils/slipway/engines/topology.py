# SPDX-License-Identifier: GPL-3.0-or-later
"""NCCL and NUMA settings that follow from what was measured. Only what neither profile nor inventory says is derived. Pure."""

from __future__ import annotations

import typing as t

from .server import Derived, Request

# NCCL's levels by nvidia-smi's path classes. To NCCL a NUMA node is one CPU, so that NODE is "through the CPU" (user guide, NCCL_P2P_LEVEL).
_LEVELS = {"PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "NODE": "PHB", "SYS": "SYS"}
_ORDER = ("PIX", "PXB", "PHB", "SYS")


def nccl(request: Request) -> list[Derived]:
    """NCCL's variables for a server over several GPUs; nothing for one GPU, and nothing of links that were not measured."""
    if request.tensor_parallel < 2:
        return []
    why = "containers may not allocate host memory of this kind, and NCCL fails or falls back with a warning"
    found = [Derived("NCCL_CUMEM_HOST_ENABLE", "0", why, "NVIDIA/nccl#1838")]
    if request.environment.keys() & {"NCCL_P2P_LEVEL", "NCCL_P2P_DISABLE"}:
        return _missing(request, found + _channels(request))
    pairs = request.links.get("pairs") or []
    bad = [pair for pair in pairs if pair.get("integrity") == "faulty"]
    if request.links.get("verdict") in ("corrupt", "hung") or bad:
        why = f"links between GPUs were measured and found {request.links.get('verdict') or 'corrupt'}"
        return _missing(request, [*found, Derived("NCCL_P2P_DISABLE", "1", why, "NVIDIA/nccl#2079")])
    classes = _proven(request)
    if classes:
        level = max((_LEVELS[one] for one in classes), key=_ORDER.index)
        why = f"peer access was proven for all {len(pairs)} ordered pairs; the farthest are {level} apart, where NCCL by itself takes the host's memory"
        found.append(Derived("NCCL_P2P_LEVEL", level, why, "NVIDIA/nccl#1817"))
    return _missing(request, found + _channels(request))


def _proven(request: Request) -> set[str]:
    """Path classes of the pairs, where each of them was proven; empty otherwise."""
    pairs = request.links.get("pairs") or []
    proven = all(pair.get("can_access") and pair.get("integrity") == "intact" for pair in pairs)
    classes = {pair.get("path_class") for pair in pairs}
    return t.cast("set[str]", classes) if proven and classes <= _LEVELS.keys() else set()


def _channels(request: Request) -> list[Derived]:
    if not _proven(request) - {"PIX", "PXB"}:
        return []
    why = "proven links lead through the CPU, for which NCCL takes two channels on AMD boards: half of the bandwidth"
    return [Derived("NCCL_MIN_NCHANNELS", "8", why, "NVIDIA/nccl#2127")]


def numa_nodes(request: Request) -> list[int]:
    """The NUMA node of each GPU in the order of their PCI addresses; empty where one is not known or all are on one."""
    nodes = [gpu.get("numa_node") for gpu in sorted(request.gpus, key=lambda gpu: str(gpu.get("bus_id")))]
    known = [node for node in nodes if isinstance(node, int) and node >= 0]
    return known if len(known) == len(nodes) == request.tensor_parallel and len(set(known)) > 1 else []


def _missing(request: Request, derived: list[Derived]) -> list[Derived]:
    return [one for one in derived if one.setting not in request.environment]
