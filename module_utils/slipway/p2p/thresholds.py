# SPDX-License-Identifier: GPL-3.0-or-later
"""How fast links must be. Defaults are those of PCIe 5.0 x16 (reference figures of RTX PRO 6000 machines); all can be set."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field, fields

from .paths import CLASSES

# 32 GT/s x16 less its coding: no copy can be faster, whatever a clock says (NVIDIA/cuda-samples#390 shows 103.9).
LINE_RATE_GBPS = 63.0


def _reference() -> dict[str, float]:
    # Across sockets dual Turin gives about 51, Genoa 39.
    return {name: 50.0 if name == "SYS" else 53.0 for name in CLASSES}


@dataclass(frozen=True)
class Thresholds:
    """Speeds in GB/s (10^9 bytes), times in microseconds, ratios as fractions.

    ``reference_gbps`` by path class is what a healthy pair reaches one way; ``warn_ratio`` and ``fail_ratio`` are fractions of it,
    and of a baseline. ``implausible_gbps`` replaces the line rate that the PCI tree tells.
    """

    reference_gbps: dict[str, float] = field(default_factory=_reference)
    warn_ratio: float = 0.95
    fail_ratio: float = 0.85
    outlier_ratio: float = 0.9
    bidirectional_ratio: float = 1.7
    staged_ratio: float = 1.2
    latency_us: float = 5.0
    concurrent_warn_ratio: float = 0.4
    concurrent_fail_ratio: float = 0.2
    implausible_gbps: float | None = None

    def reference(self, path_class: str | None) -> float:
        """The reference of a class; of one that is not known the lowest of all."""
        return self.reference_gbps[path_class] if path_class else min(self.reference_gbps.values())


def read(options: t.Mapping[str, t.Any] | None) -> Thresholds:
    """Thresholds from a module's options, in which what is not given keeps its default.

    Raises ``ValueError`` for names that do not exist and for what is not a positive number.
    """
    given = {name: value for name, value in (options or {}).items() if value is not None}
    known = {one.name for one in fields(Thresholds)}
    unknown = sorted(set(given) - known)
    if unknown:
        raise ValueError(f"there is no {', '.join(unknown)}; there are {', '.join(sorted(known))}")
    reference = _reference()
    for name, value in dict(given.pop("reference_gbps", {})).items():
        if name not in CLASSES:
            raise ValueError(f"reference_gbps has {name!r}, which is none of {', '.join(CLASSES)}")
        reference[name] = _positive(f"reference_gbps.{name}", value)
    return Thresholds(reference, **{name: _positive(name, value) for name, value in given.items()})


def _positive(name: str, value: t.Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError(f"{name} is {value!r}, not a number above 0")
    return number
