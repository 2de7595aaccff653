# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed: what is computed from the times of streams, and what is held against thresholds and a baseline."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.probe import baseline, load, throughput
from ansible.module_utils.slipway.probe.load import Shape, Stream


class Server:
    """Streams what it was told to, on a clock that only it moves: seconds until an event, and the event."""

    endpoint = "http://server/v1"

    def __init__(self, *events: tuple[float, dict[str, t.Any]]) -> None:
        self.events = events
        self.now = 100.0

    def stream(self, request: dict[str, t.Any], timeout_seconds: float) -> t.Iterator[dict[str, t.Any]]:
        for seconds, event in self.events:
            self.now += seconds
            yield event


def words(text: str, kind: str = "content") -> dict[str, t.Any]:
    return {"choices": [{"delta": {kind: text}}]}


def usage(tokens: int) -> dict[str, t.Any]:
    return {"choices": [], "usage": {"completion_tokens": tokens, "prompt_tokens": 30}}


def run(*events: tuple[float, dict[str, t.Any]]) -> Stream:
    server = Server(*events)
    (stream,) = load.run(t.cast("t.Any", server), Shape("m", 30, 9), 1, 60, clock=lambda: server.now)
    return stream


def test_tokens_are_the_servers_and_the_first_text_starts_the_time() -> None:
    events = [(0.5, words("")), (1.5, words("a", "reasoning_content")), (3.0, words("b c")), (9.0, usage(7))]
    assert run(*events) == Stream(100.0, first=102.0, last=105.0, output_tokens=7, prompt_tokens=30)


def test_tokens_without_a_text_take_their_time_too() -> None:
    # After its end the model is made to go on, and what it says then is no text.
    stream = run((1, words("a")), (2, words("b")), (3, words("")), (0, usage(9)))
    assert (stream.first, stream.last) == (101.0, 106.0)


@pytest.mark.parametrize(
    ("events", "error"),
    [
        ([(1, words("a")), (1, words("b"))], "the server counted None tokens"),
        ([(1, words("a")), (1, usage(1))], "the server counted 1 tokens"),
        ([(1, words("a b c")), (1, usage(3))], "the server counted 3 tokens"),
        ([(1, usage(3))], "the server counted 3 tokens"),
    ],
    ids=["not counted", "one token", "all at once", "no text"],
)
def test_what_can_not_be_measured(events: list[tuple[float, dict[str, t.Any]]], error: str) -> None:
    assert run(*events).error == error


def test_figures_of_one_stream() -> None:
    row = throughput.figures([Stream(10.0, 12.0, 15.0, 7, 30)], 1)
    assert row == {
        "concurrency": 1,
        "requests": 1,
        "failed": 0,
        "errors": [],
        "prompt_tokens": 30,
        "output_tokens": 7,
        "seconds": 5.0,
        "one_seconds": 5.0,
        "decode_seconds": 3.0,
        "output_tokens_per_second": 2.0,
        "prompt_tokens_per_second": 15.0,
        "stream_tokens_per_second": {"p50": 2.0, "p90": 2.0, "p99": 2.0, "worst": 2.0},
        "time_to_first_token_seconds": {"p50": 2.0, "p90": 2.0, "p99": 2.0, "worst": 2.0},
        "time_per_output_token_seconds": {"p50": 0.5, "p90": 0.5, "p99": 0.5, "worst": 0.5},
        "threshold": None,
        "baseline": None,
    }


def test_prefill_is_in_no_rate_of_several_streams() -> None:
    # All start at 0, the prompts take until 100; then both write 11 tokens, one in 10 s and one in 5 s.
    row = throughput.figures([Stream(0, 100, 110, 11, 30), Stream(0, 100, 105, 11, 30)], 2)
    assert (row["seconds"], row["decode_seconds"], row["output_tokens_per_second"]) == (110, 10, 2.0)
    assert row["stream_tokens_per_second"]["worst"] == 1.0
    assert row["prompt_tokens_per_second"] is None


def test_streams_that_wait_for_each_other_do_not_add_up() -> None:
    # A server with one slot: the second stream begins when the first has ended.
    row = throughput.figures([Stream(0, 1, 6, 11, 30), Stream(0, 7, 12, 11, 30)], 2)
    assert (row["decode_seconds"], row["output_tokens_per_second"]) == (10, 2.0)


def test_errors_are_counted_and_named() -> None:
    row = throughput.figures([Stream(0, error="HTTP 500 x"), Stream(0, 1, 2, 5, 9), Stream(0, error="HTTP 500 x")], 3)
    assert (row["requests"], row["failed"], row["errors"]) == (3, 2, [{"error": "HTTP 500 x", "count": 2}])
    assert row["output_tokens"] == 5
    none = throughput.figures([Stream(0, error="gone")], 1)
    assert (none["output_tokens_per_second"], none["time_to_first_token_seconds"]["p50"]) == (None, None)


@pytest.mark.parametrize(
    ("spans", "seconds"),
    [
        ([], 0),
        ([(1, 3)], 2),
        ([(1, 3), (2, 5)], 4),
        ([(1, 3), (4, 5)], 3),
        ([(1, 9), (2, 3)], 8),
        ([(4, 5), (1, 2)], 2),
    ],
)
def test_covered(spans: list[tuple[float, float]], seconds: float) -> None:
    assert throughput.covered(spans) == seconds


def test_percentiles_say_what_so_many_reach() -> None:
    times = [float(number) for number in range(1, 101)]
    assert throughput.percentiles(times) == {"p50": 50.0, "p90": 90.0, "p99": 99.0, "worst": 100.0}
    rates = {"p50": 51.0, "p90": 11.0, "p99": 2.0, "worst": 1.0}
    assert throughput.percentiles(times, more_is_better=True) == rates


def speed(*rows: tuple[int, float, float], prefill: float | None = None) -> dict[str, t.Any]:
    """A measurement: streams, tokens a second, seconds to the first token."""
    loads = [
        {
            "concurrency": streams,
            "output_tokens_per_second": rate,
            "prompt_tokens_per_second": prefill,
            "time_to_first_token_seconds": {"p90": first},
            "time_per_output_token_seconds": {"p90": 0.05},
            "baseline": None,
        }
        for streams, rate, first in rows
    ]
    return {"prompt_tokens_wanted": 512, "output_tokens_wanted": 64, "loads": loads}


@pytest.mark.parametrize(
    ("thresholds", "details"),
    [
        ({}, []),
        ({"output_tokens_per_second": 2.0}, []),
        ({"output_tokens_per_second": 2.1}, ["1 at a time: output tokens per second 2.0, at least 2.1 is expected"]),
        ({"time_to_first_token_seconds": 0.4}, ["1 at a time: time to first token seconds (p90) 0.5, at most 0.4 is expected"]),
        ({"time_per_output_token_seconds": 0.05}, []),
        ({"by_concurrency": [{"concurrency": 4, "output_tokens_per_second": 6.0}]}, []),
        (
            {"output_tokens_per_second": 1, "by_concurrency": [{"concurrency": 4, "output_tokens_per_second": 8, "time_to_first_token_seconds": 1}]},
            [
                "4 at a time: output tokens per second 6.0, at least 8 is expected",
                "4 at a time: time to first token seconds (p90) 1.5, at most 1 is expected",
            ],
        ),
    ],
)  # fmt: skip
def test_thresholds(thresholds: dict[str, t.Any], details: list[str]) -> None:
    found = throughput.compare(speed((1, 2.0, 0.5), (4, 6.0, 1.5)), thresholds, "server")
    assert [one.detail for one in found] == details
    assert {one.id for one in found} <= {"THROUGHPUT_LOW"}


def test_a_threshold_without_a_measurement() -> None:
    wanted = {"output_tokens_per_second": 1.0, "by_concurrency": [{"concurrency": 16}, {"concurrency": 4}]}
    assert throughput.not_measured(wanted, [4]) == [1, 16]
    assert throughput.not_measured({"output_tokens_per_second": None}, [4]) == []


OF = {"model": "m", "gpus": ["A", "A"]}


def hold(path: Path, measured: dict[str, t.Any], record: bool = True, **thresholds: t.Any) -> tuple[t.Any, list[t.Any]]:
    told, found = baseline.hold_against(measured, str(path), OF, thresholds, record)
    return told, [(one.id, one.subject, one.severity) for one in found]


def test_the_first_good_measurement_is_kept_and_later_ones_are_compared(tmp_path: Path) -> None:
    path = tmp_path / "state/speed.json"
    first = speed((1, 50.0, 0.5), (4, 150.0, 1.0), prefill=4000.0)
    told, found = hold(path, first, record=False)
    assert (told["used"], told["recorded"], found, path.exists()) == (False, False, [], False)
    told, found = hold(path, first)
    assert (told["used"], told["recorded"], found) == (False, True, [])
    before = path.read_text()
    same = speed((1, 46.0, 9.0), (4, 150.0, 1.0), prefill=3700.0)
    told, found = hold(path, same)
    assert (told["used"], told["recorded"], found) == (True, False, [])
    assert [row["baseline"] for row in same["loads"]] == [50.0, 150.0]
    _told, found = hold(path, speed((1, 44.0, 0.5), (4, 100.0, 1.0), (8, 1.0, 1.0)))
    below = "THROUGHPUT_BELOW_BASELINE"
    assert found == [(below, "output, 1 at a time", "warn"), (below, "output, 4 at a time", "fail")]
    assert path.read_text() == before
    assert hold(path, speed((1, 44.0, 0.5)), baseline_warn_ratio=0.5)[1] == []
    assert hold(path, speed((1, 44.0, 0.5)), baseline_fail_ratio=0.89)[1] == [(below, "output, 1 at a time", "fail")]


def test_a_baseline_of_something_else_is_not_compared_with(tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    hold(path, speed((1, 50.0, 0.5)))
    other = speed((1, 5.0, 0.5)) | {"prompt_tokens_wanted": 1024}
    assert hold(path, other)[1] == [("THROUGHPUT_BASELINE_UNUSABLE", str(path), "unknown")]
    path.write_text("nonsense")
    assert hold(path, speed((1, 50.0, 0.5)))[1] == [("THROUGHPUT_BASELINE_UNUSABLE", str(path), "unknown")]
