# SPDX-License-Identifier: GPL-3.0-or-later
"""What is planned, and what it is said to cost."""

from __future__ import annotations

import pytest
from ansible.module_utils.slipway.all_reduce import plan, thresholds

MIB = 1024 * 1024
EIGHT = [f"0000:{n:02x}:00.0" for n in (0xC3, 0x03, 0x04, 0x43, 0x44, 0x83, 0x84, 0xC4)]


def test_sizes_go_past_where_nccl_is_known_to_fail() -> None:
    made = plan.make(EIGHT, 256, 20)
    assert [size.bytes for size in made.sizes] == [4096, 65536, 524288, MIB, 16 * MIB, 256 * MIB]
    assert [size.bytes for size in plan.make(EIGHT, 1, 5).sizes] == [4096, 65536, 524288, MIB]
    assert {size.iterations for size in made.sizes} == {20}
    assert made.sizes[0].made == 26, "timed, three that warm up, and three whose data is checked"


def test_ranks_are_in_the_order_of_the_bus() -> None:
    assert plan.make(EIGHT, 1, 1).gpus == tuple(sorted(EIGHT))


@pytest.mark.parametrize("gpus", [[], EIGHT[:1]])
def test_fewer_than_two_gpus_have_nothing_to_do(gpus: list[str]) -> None:
    summary = plan.make(gpus, 256, 20).summary(thresholds.Thresholds())
    assert (summary["ranks"], summary["sizes"], summary["bytes"], summary["seconds"]) == (len(gpus), [], 0, 0)


def test_what_crosses_the_links() -> None:
    summary = plan.make(EIGHT, 256, 20).summary(thresholds.Thresholds())
    largest = summary["sizes"][-1]
    # 2 * 7 / 8 of the buffer crosses each link, 26 times.
    assert (largest["all_reduces"], largest["link_bytes"]) == (26, round(256 * MIB * 1.75 * 26))
    assert summary["bytes"] == 8 * sum(size["link_bytes"] for size in summary["sizes"])
    assert 0.3 < largest["seconds"] < 0.4, "12 GB at 37.6 GB/s, and the checks"
    assert 20 < summary["seconds"] < 30, "mostly the start of torch"
    assert summary["took_seconds"] is None
    assert plan.make(EIGHT, 256, 20).summary(thresholds.Thresholds(), 31.26)["took_seconds"] == 31.3


@pytest.mark.parametrize(("ranks", "expected"), [(0, 0.0), (2, 1.0), (4, 1.5), (8, 1.75)])
def test_the_factor_of_bus_bandwidth(ranks: int, expected: float) -> None:
    assert plan.factor(ranks) == expected


def test_thresholds_keep_what_is_not_given() -> None:
    assert thresholds.read(None) == thresholds.Thresholds(37.6, 0.95, 0.85, 100.0)
    assert thresholds.read({"bus_gbps": "41", "warn_ratio": None}) == thresholds.Thresholds(41.0, 0.95, 0.85, 100.0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"busbw": 1}, "there is no busbw; there are bus_gbps, warn_ratio, fail_ratio, latency_us"),
        ({"bus_gbps": 0}, "bus_gbps is 0, not a number above 0"),
        ({"bus_gbps": float("nan")}, "not a number above 0"),
        ({"fail_ratio": "fast"}, "fail_ratio is 'fast', not a number above 0"),
    ],
)
def test_thresholds_that_make_no_sense(given: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        thresholds.read(given)
