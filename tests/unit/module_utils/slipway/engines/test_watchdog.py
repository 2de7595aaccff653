# SPDX-License-Identifier: GPL-3.0-or-later
"""How long a phase may take, and what is said when it takes longer."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.engines import startup, watchdog
from ansible.module_utils.slipway.errors import SlipwayError

LIMIT = watchdog.Limit(60, 600, "a test's")


def progress(phase: str, quiet: float, took: float, done: int | None = None) -> startup.Progress:
    return startup.Progress(phase, done, 47 if done is not None else None, took, quiet, "a last line")


def test_every_engine_has_a_limit_for_every_phase() -> None:
    assert set(watchdog.LIMITS) == set(startup.ENGINES)
    for table in watchdog.LIMITS.values():
        assert set(table) == set(startup.WORDS)
        assert all(limit.quiet_seconds <= limit.total_seconds and limit.why for limit in table.values())


@pytest.mark.parametrize(
    ("engine", "seen", "fault_id", "detail"),
    [
        ("sglang", progress("loading", 61, 90, 11), "SERVER_HUNG",
         "loading shard 12 of 47: no sign of progress for 61 s (limit 60 s); its last word: a last line; one of 3 waits"),
        ("vllm", progress("capturing", 5, 601, 7), "SERVER_HUNG",
         "capturing CUDA graphs 8 of 47: it takes 601 s by now (limit 600 s); its last word: a last line; one of 3 waits"),
        ("vllm", progress("connecting", 61, 61), "NCCL_HUNG",
         "connecting the GPUs: no sign of progress for 61 s (limit 60 s); its last word: a last line; one of 3 waits"),
        ("sglang", progress("loading", 60, 600), None, ""),
    ],
)  # fmt: skip
def test_a_phase_over_its_limit(engine: str, seen: startup.Progress, fault_id: str | None, detail: str) -> None:
    found = watchdog.judge("serve.service", engine, seen, LIMIT, "one of 3 waits")
    assert (found.id if found else None, found.detail if found else "") == (fault_id, detail)


def test_ranks_that_are_behind_are_named() -> None:
    seen = startup.Progress("allocating", None, None, 90, 90, "a last line", ("TP2", "TP5"))
    found = watchdog.judge("serve.service", "sglang", seen, LIMIT, "")
    assert found
    assert found.detail == (
        "allocating KV cache: no sign of progress for 90 s (limit 60 s); not come so far: TP2, TP5; its last word: a last line"
    )


def test_declared_limits_replace_the_engines() -> None:
    made = watchdog.limits("vllm", {"loading": {"quiet_seconds": "30"}, "ready": {"total_seconds": 9}})
    assert made["loading"][:2] == (30, 7200)
    assert made["ready"][:2] == (300, 9)
    assert made["starting"] == watchdog.LIMITS["vllm"]["starting"]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"reading": {}}, "there is no phase 'reading', only starting, connecting"),
        ({"loading": {"seconds": 3}}, "a phase has quiet_seconds and total_seconds, and no seconds"),
        ({"loading": {"quiet_seconds": 0}}, "quiet_seconds of phase loading is '0', and no whole number of at least 1"),
        ({"loading": {"quiet_seconds": True}}, "quiet_seconds of phase loading is 'True'"),
    ],
)
def test_limits_that_are_none(changes: dict[str, t.Any], cause: str) -> None:
    with pytest.raises(SlipwayError) as refused:
        watchdog.limits("sglang", changes)
    assert cause in str(refused.value)
