# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.p2p import baseline
from ansible.module_utils.slipway.p2p.thresholds import Thresholds

GPUS = [{"bus_id": "a", "name": "Card"}, {"bus_id": "b", "name": "Card"}]


def made(write: float = 54.0, together: float | None = 100.0, gpus: t.Sequence[t.Any] = GPUS) -> dict[str, t.Any]:
    rows = [{"source": "a", "target": "b", "write_gbps": write, "read_gbps": None, "bidirectional_gbps": 103.0}]
    return baseline.make(gpus, rows, [{"kind": "ring", "name": "forward", "gbps": together}], 2**28)


def test_what_was_not_measured_is_no_baseline() -> None:
    assert made(together=None)["speeds"] == {"a -> b write_gbps": 54.0, "a -> b bidirectional_gbps": 103.0}


def test_it_is_the_same_after_it_was_written(tmp_path: Path) -> None:
    path = str(tmp_path / "new/baseline.json")
    baseline.save(path, made())
    assert baseline.load(path) == (made(), "")
    assert baseline.compare(made(), made(), path, Thresholds()) == []


@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (made(write=50.0), [("warn", "a -> b write_gbps", "50.0 GB/s, 54.0 when it was recorded")]),
        (made(write=40.0), [("fail", "a -> b write_gbps", "40.0 GB/s, 54.0 when it was recorded")]),
        (made(together=20.0), [("fail", "ring forward", "20.0 GB/s, 100.0 when it was recorded")]),
        (made(write=60.0), []),
        (made(together=None), []),
    ],
)
def test_what_became_slower_is_told(now: dict[str, t.Any], expected: list[tuple[str, str, str]]) -> None:
    found = baseline.compare(made(), now, "/f", Thresholds())
    assert [(one.severity, one.subject, one.detail) for one in found] == expected
    assert {one.id for one in found} <= {"P2P_BELOW_BASELINE"}


def test_one_of_other_gpus_is_not_compared() -> None:
    (found,) = baseline.compare(made(gpus=GPUS[:1]), made(), "/f", Thresholds())
    assert (found.id, found.severity, found.subject) == ("P2P_BASELINE_UNUSABLE", "unknown", "/f")


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"format": 2, "of": {}, "speeds": {}}', '{"format": 1, "of": {}, "speeds": {"a": "x"}}'])  # fmt: skip
def test_a_file_that_is_none_is_told(content: str, tmp_path: Path) -> None:
    (tmp_path / "b").write_text(content)
    found, said = baseline.load(str(tmp_path / "b"))
    assert found is None
    assert said.startswith(f"{tmp_path}/b ")


def test_no_file_is_no_fault_and_one_that_cannot_be_read_is(tmp_path: Path) -> None:
    assert baseline.load(str(tmp_path / "none")) == (None, "")
    assert baseline.load(str(tmp_path)) == (None, f"{tmp_path}: Is a directory")
