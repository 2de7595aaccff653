# SPDX-License-Identifier: GPL-3.0-or-later
"""Earlier runs of a host, read from the reports that the controller keeps. One that cannot be read is left out, never a failure."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

SHOWN = 20


def read(folder: Path, before: str) -> list[dict[str, t.Any]]:
    """The runs in a host's folder that began before ``before``, the newest first, as ``host time playbook verdict speed changed model endpoint``."""
    try:
        names = sorted(
            (one.name for one in folder.iterdir() if one.name < before and not one.is_symlink()), reverse=True
        )
    except OSError:  # the first run of this host
        return []
    found = (line(folder / name / "report.json") for name in names[:SHOWN])
    return [one for one in found if one]


def line(path: Path) -> dict[str, t.Any] | None:
    """What a history shows of one report; those of earlier versions have less."""
    try:
        report = json.loads(path.read_text("utf-8"))
        proof = report.get("acceptance") or {}
        speed = (proof.get("throughput") or {}).get("output_tokens_per_second")
        changed = report.get("changed")
        return {
            "host": str(report["host"]),
            "time": str(report["time"]),
            "playbook": str((report.get("run") or {}).get("playbook") or ""),
            "verdict": str(report.get("verdict") or ("fit" if report["fit"] is True else "not fit")),
            "speed": float(speed) if speed is not None else None,
            "changed": None if changed is None else summary(changed),
            "model": str(proof.get("model") or ""),
            "endpoint": str(proof.get("endpoint") or ""),
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def summary(changed: t.Sequence[t.Mapping[str, t.Any]]) -> str:
    """What a run changed, by role: ``3: pve_host 2, inference_server``."""
    counts: dict[str, int] = {}
    for row in changed:
        counts[str(row["role"])] = counts.get(str(row["role"]), 0) + 1
    parts = [name if count == 1 else f"{name} {count}" for name, count in counts.items()]
    return f"{len(changed)}: {', '.join(parts)}" if parts else "nothing"
