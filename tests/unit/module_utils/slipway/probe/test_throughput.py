# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed, on a clock that only the server moves."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.probe import throughput


class Server:
    """Streams what it was told to: seconds until an event, and the event."""

    endpoint = "http://server/v1"

    def __init__(self, *events: tuple[float, dict[str, t.Any]]) -> None:
        self.events = events
        self.now = 0.0

    def stream(self, request: dict[str, t.Any], timeout_seconds: float) -> t.Iterator[dict[str, t.Any]]:
        for seconds, event in self.events:
            self.now += seconds
            yield event


def words(text: str, kind: str = "content") -> dict[str, t.Any]:
    return {"choices": [{"delta": {kind: text}}]}


def usage(tokens: int) -> dict[str, t.Any]:
    return {"choices": [], "usage": {"completion_tokens": tokens}}


def measure(*events: tuple[float, dict[str, t.Any]]) -> tuple[dict[str, t.Any] | None, list[t.Any]]:
    server = Server(*events)
    return throughput.measure(t.cast("t.Any", server), "m", 9, 60, clock=lambda: server.now)


def test_tokens_are_the_servers_and_the_time_is_that_after_the_first() -> None:
    events = [(0.5, words("")), (1.5, words("a", "reasoning_content")), (3.0, words("b c")), (9.0, usage(7))]
    speed = {"output_tokens": 7, "seconds": 5.0, "time_to_first_token_seconds": 2.0, "output_tokens_per_second": 2.0}
    assert measure(*events) == (speed, [])


@pytest.mark.parametrize(
    "events",
    [
        [(1, words("a")), (1, words("b"))],
        [(1, words("a")), (1, usage(1))],
        [(1, words("a b c")), (1, usage(3))],
        [(1, usage(3))],
    ],
    ids=["not counted", "one token", "all at once", "no text"],
)
def test_what_can_not_be_measured_is_unknown(events: list[tuple[float, dict[str, t.Any]]]) -> None:
    speed, (found,) = measure(*events)
    assert (speed, found.id, found.severity) == (None, "THROUGHPUT_UNKNOWN", "unknown")


@pytest.mark.parametrize(
    ("wanted", "findings"), [(None, []), (2.0, []), (2.1, ["2.0 output tokens a second, at least 2.1 are expected"])]
)
def test_the_threshold_is_the_least(wanted: float | None, findings: list[str]) -> None:
    found = throughput.compare({"output_tokens_per_second": 2.0}, {"output_tokens_per_second": wanted}, "server")
    assert [one.detail for one in found] == findings
