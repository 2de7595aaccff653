# SPDX-License-Identifier: GPL-3.0-or-later
"""Ratios: what passes, and that each side is measured. No test here looks at how fast anything was."""

from __future__ import annotations

import runpy
import typing as t
from pathlib import Path

import pytest
from patched_environment import Environment


@pytest.fixture
def bench(root: Path) -> dict[str, t.Any]:
    return runpy.run_path(str(root / "tools/bench.py"))


@pytest.mark.parametrize(
    ("ratio", "good", "passed", "says"),
    [
        (0.8, True, True, "audit: 0.80 (at least 0.8): ok; told"),
        (0.79, True, False, "audit: 0.79 (at least 0.8): NOT ENOUGH; told"),
        (1.2, False, False, "audit: 1.20 (at least 0.8): NOT ENOUGH; told"),
    ],
)
def test_what_passes(bench: dict[str, t.Any], ratio: float, good: bool, passed: bool, says: str) -> None:
    measure = bench["Measure"]("audit", ratio, 0.8, "told", good)
    assert (measure.passed, str(measure)) == (passed, says)


def test_an_environment_is_measured(bench: dict[str, t.Any], tmp_path: Path) -> None:
    measure = bench["audit"](Environment(tmp_path / "venv").venv, turns=1)
    assert measure.ratio > 0
    assert measure.told.startswith("5 files, 0.0 GiB, 1 turns, at most ")
    assert 0 < int(measure.told.split("at most ")[1].split()[0]) < 300


def test_an_environment_without_files_is_refused(bench: dict[str, t.Any], tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="Cannot measure the audit"):
        bench["audit"](tmp_path, turns=1)
