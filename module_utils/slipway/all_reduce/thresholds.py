# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast an all-reduce must be. The default is that of eight RTX PRO 6000 on PCIe 5.0 with tuned settings; all can be set."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, fields


@dataclass(frozen=True)
class Thresholds:
    """``bus_gbps`` is the bus bandwidth that a healthy machine reaches with the largest buffer, in GB/s (10^9 bytes).

    37.6 with eight RTX PRO 6000, 22.2 with NCCL's own choice of channels on AMD (local-inference-lab/rtx6kpro, NVIDIA/nccl#2127). Below ``warn_ratio``
    of it the all-reduce warns, below ``fail_ratio`` it fails. ``latency_us`` is what the smallest all-reduce may take: 17 to 50 us where kernels reach the
    other GPUs, 242 where the driver stages them through the host (rtx6kpro, optimization/pcie-oneshot-allreduce.md).
    """

    bus_gbps: float = 37.6
    warn_ratio: float = 0.95
    fail_ratio: float = 0.85
    latency_us: float = 100.0


NAMES = tuple(one.name for one in fields(Thresholds))


def read(options: t.Mapping[str, t.Any] | None) -> Thresholds:
    """Thresholds from a module's options, in which what is not given keeps its default.

    Raises ``ValueError`` for names that do not exist and for what is not a positive number.
    """
    given = {name: value for name, value in (options or {}).items() if value is not None}
    unknown = sorted(set(given) - {*NAMES})
    if unknown:
        raise ValueError(f"there is no {', '.join(unknown)}; there are {', '.join(NAMES)}")
    return Thresholds(**{name: _positive(name, value) for name, value in given.items()})


def _positive(name: str, value: t.Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError(f"{name} is {value!r}, not a number above 0")
    return number
