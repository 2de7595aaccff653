# SPDX-License-Identifier: GPL-3.0-or-later
"""Speeds that this host once had, as a file on it: written when all was well, compared with ever after."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

from .. import files
from ..findings import Finding, finding
from . import judge
from .thresholds import Thresholds

FORMAT = 1
_PAIR_SPEEDS = ("write_gbps", "read_gbps", "bidirectional_gbps")
Row = t.Mapping[str, t.Any]


def make(gpus: t.Sequence[Row], rows: t.Sequence[Row], sets: t.Sequence[Row], buffer_bytes: int) -> dict[str, t.Any]:
    """The baseline of these rows: what it is of (GPUs and the size of copies), and speeds in GB/s by what was measured."""
    speeds = {f"{judge.pair(row)} {name}": row[name] for row in rows for name in _PAIR_SPEEDS if row[name]}
    speeds.update({f"{row['kind']} {row['name']}": row["gbps"] for row in sets if row["gbps"]})
    return {"format": FORMAT, "of": {**_of(gpus), "buffer_bytes": buffer_bytes}, "speeds": speeds}


def _of(gpus: t.Sequence[Row]) -> dict[str, t.Any]:
    return {"gpus": [[gpu["bus_id"], gpu["name"]] for gpu in gpus]}


def load(path: str) -> tuple[dict[str, t.Any] | None, str]:
    """The baseline in a file, or ``None``; and why it cannot be used, which is empty where there is no file yet."""
    try:
        found = json.loads(files.read(Path(path)))
        if found["format"] != FORMAT or not all(isinstance(value, (int, float)) for value in found["speeds"].values()):
            return None, f"{path} is of another form"
        return {"format": FORMAT, "of": dict(found["of"]), "speeds": dict(found["speeds"])}, ""
    except FileNotFoundError:
        return None, ""
    except OSError as error:
        return None, f"{path}: {error.strerror}"
    except (ValueError, TypeError, KeyError, AttributeError):
        return None, f"{path} holds no baseline"


def save(path: str, baseline: t.Mapping[str, t.Any]) -> None:
    """Write it, whole or not at all. Raises ``OSError``."""
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    files.replace(Path(path), text(baseline))


def text(baseline: t.Mapping[str, t.Any]) -> str:
    """The file's content."""
    return json.dumps(baseline, indent=2, sort_keys=True) + "\n"


def compare(before: Row, now: Row, path: str, thresholds: Thresholds) -> list[Finding]:
    """Findings about what became slower. What is not in the baseline has nothing to be compared with."""
    if before["of"] != now["of"]:
        return [finding("P2P_BASELINE_UNUSABLE", path, "it is of other GPUs, or of copies of another size")]
    found = []
    for name, speed in before["speeds"].items():
        measured = now["speeds"].get(name)
        if measured is not None and measured < speed * thresholds.warn_ratio:
            severity = "fail" if measured < speed * thresholds.fail_ratio else "warn"
            detail = f"{measured:.1f} GB/s, {speed:.1f} when it was recorded"
            found.append(finding("P2P_BELOW_BASELINE", name, detail, severity=severity))
    return found
