# SPDX-License-Identifier: GPL-3.0-or-later
"""Rows that say one thing each, and the finding that names it."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.findings import softened
from ansible.module_utils.slipway.p2p import judge
from ansible.module_utils.slipway.p2p.paths import Place
from ansible.module_utils.slipway.p2p.plan import TESTS
from ansible.module_utils.slipway.p2p.thresholds import Thresholds, read

PLACES = {
    "a": Place(("pci0000:00", "0000:00:01.1", "a"), 0, 63.0),
    "b": Place(("pci0000:00", "0000:00:01.2", "b"), 0, 63.0),
    "c": Place(("pci0000:00", "0000:00:01.3", "c"), 0, 63.0),
}
FAULT = {
    "kind": "zeros",
    "offset": 0,
    "count": 4096,
    "size": 4096,
    "exact": True,
    "issued_by": "source",
    "round": 1,
    "together": False,
    "late": False,
    "source_wrong": False,
}


def row(source: str = "a", target: str = "b", **changes: t.Any) -> dict[str, t.Any]:
    return {
        "source": source,
        "target": target,
        "path_class": "PHB",
        "can_access": True,
        "integrity": "intact",
        "copies": 20,
        "faulty_copies": 0,
        "faults": [],
        "write_gbps": 54.0,
        "read_gbps": 54.0,
        "staged_gbps": 20.0,
        "bidirectional_gbps": 103.0,
        "latency_us": 0.4,
        "staged_latency_us": 14.0,
        "links": {},
        "errors": [],
        **changes,
    }


def one_set(**changes: t.Any) -> dict[str, t.Any]:
    flows = [
        {"source": "a", "target": "b", "gbps": 50.0, "ideal_gbps": 54.0},
        {"source": "b", "target": "a", "gbps": 50.0, "ideal_gbps": 54.0},
    ]
    return {
        "kind": "ring",
        "name": "forward",
        "flows": flows,
        "gbps": 100.0,
        "ideal_gbps": 108.0,
        "ratio": 0.926,
        "error": None,
        **changes,
    }


def judged(
    *changed: dict[str, t.Any], tests: t.Sequence[str] = TESTS, thresholds: Thresholds | None = None
) -> list[t.Any]:
    """Findings about a pair and its way back, of which those given take the place."""
    rows = {(one["source"], one["target"]): one for one in (row(), row("b", "a"), *changed)}
    return judge.judge(list(rows.values()), [one_set()], tests, thresholds or Thresholds(), PLACES)


def test_good_links_say_nothing_and_are_ok() -> None:
    assert judged() == []
    assert judge.verdict([]) == "ok"


@pytest.mark.parametrize(
    ("changes", "fault", "severity", "detail", "verdict"),
    [
        (
            {"integrity": "faulty", "faulty_copies": 10, "faults": [FAULT, {**FAULT, "kind": "partial", "count": 9, "offset": 4087}]},
            "P2P_CORRUPT",
            "fail",
            "partial, zeros: 10 of 20 copies are wrong; zeros, 4096 of 4096 bytes from offset 0 on, issued by the source; the driver says that it has peer access",
            "corrupt",
        ),
        (
            {"integrity": "faulty", "faulty_copies": 1, "can_access": False, "faults": [{**FAULT, "together": True, "late": True}]},
            "P2P_CORRUPT",
            "fail",
            "zeros: 1 of 20 copies are wrong; only with all pairs at once; the data was there a moment later; zeros, 4096 of 4096 bytes from offset 0 on, issued by the source",
            "corrupt",
        ),
        ({"write_gbps": 103.9}, "P2P_IMPLAUSIBLE", "fail", "103.9 GB/s pushed by the source; a way holds 63.0", "corrupt"),
        ({"bidirectional_gbps": 130.0}, "P2P_IMPLAUSIBLE", "fail", "130.0 GB/s both ways; a way holds 63.0", "corrupt"),
        ({"write_gbps": 27.0}, "P2P_SLOW", "fail", "27.0 GB/s pushed by the source; PHB pairs reach 53", "degraded"),
        ({"read_gbps": 49.0}, "P2P_SLOW", "warn", "49.0 GB/s pulled by the target; PHB pairs reach 53", "ok"),
        ({"latency_us": 14.2}, "P2P_STAGED", "fail", "a small copy takes 14.2 us, more than 5", "degraded"),
        ({"staged_gbps": 53.0}, "P2P_STAGED", "fail", "54.0 GB/s with peer access, 53.0 without", "degraded"),
        ({"bidirectional_gbps": 60.0}, "P2P_BIDIRECTIONAL_LOW", "warn", "60.0 GB/s both ways, 54.0 one way", "ok"),
        ({"latency_us": None}, "P2P_NOT_MEASURED", "info", "latency", "ok"),
        ({"latency_us": None, "staged_gbps": None}, "P2P_NOT_MEASURED", "unknown", "latency", "could_not_run"),
        ({"write_gbps": None}, "P2P_NOT_MEASURED", "unknown", "write_gbps", "could_not_run"),
        ({"integrity": "unknown"}, "P2P_NOT_MEASURED", "unknown", "integrity", "could_not_run"),
    ],
)  # fmt: skip
def test_what_a_pair_shows(changes: dict[str, t.Any], fault: str, severity: str, detail: str, verdict: str) -> None:
    found = judged(row(**changes))
    assert [(one.id, one.severity, one.subject, one.detail) for one in found] == [(fault, severity, "a -> b", detail)]
    assert judge.verdict(found) == verdict


@pytest.mark.parametrize(
    ("code", "fault"),
    [(217, "P2P_UNSUPPORTED"), (205, "P2P_MAP_FAILED"), (711, "P2P_TOO_MANY_PEERS"), (2, "GPU_BUSY"), (719, "P2P_ERROR")],
)  # fmt: skip
def test_what_the_driver_refuses(code: int, fault: str) -> None:
    error = {"kind": "call", "code": code, "detail": "cuX returned", "call": "cuX", "name": "CUDA_X"}
    errors = [{"test": "integrity", **error}, {"test": "bandwidth", **error}]
    nothing = dict.fromkeys(("write_gbps", "read_gbps", "staged_gbps", "bidirectional_gbps", "latency_us"))
    found = judged(row(errors=errors, integrity="unknown", can_access=False, **nothing))
    assert [(one.id, one.subject, one.detail) for one in found] == [(fault, "a -> b", "integrity: cuX returned")]
    assert judge.verdict(found) == "could_not_run"


def test_a_pair_that_hangs_explains_what_was_not_made_of_it() -> None:
    errors = [
        {"test": "integrity", "kind": "hung", "detail": "nothing came back"},
        {"test": "bandwidth", "kind": "not made", "detail": "after this"},
    ]
    nothing = dict.fromkeys(("write_gbps", "read_gbps", "staged_gbps", "bidirectional_gbps", "latency_us"))
    found = judged(row(errors=errors, integrity="unknown", **nothing))
    assert [(one.id, one.subject) for one in found] == [("P2P_HUNG", "a -> b")]
    assert judge.verdict(found) == "hung"


def test_what_was_not_made_is_told_once_a_reason() -> None:
    errors = [{"test": "latency", "kind": "not made", "detail": "the time was over"}]
    nothing = dict.fromkeys(("write_gbps", "read_gbps", "staged_gbps", "bidirectional_gbps", "latency_us"))
    found = judged(row(errors=errors, **nothing), row("b", "a", errors=errors, **nothing))
    assert [(one.id, one.severity, one.subject, one.detail) for one in found] == [
        ("P2P_NOT_MEASURED", "unknown", "2 measurements", "the time was over: a -> b, b -> a")
    ]


def test_memory_that_does_not_hold_what_was_written_is_no_fault_of_the_link() -> None:
    found = judged(row(integrity="faulty", faulty_copies=1, faults=[{**FAULT, "source_wrong": True}]))
    assert [(one.id, one.subject) for one in found] == [("GPU_MEMORY_WRONG", "a")]
    assert judge.verdict(found) == "corrupt"


def test_a_link_that_stays_slow_under_load_explains_its_pairs() -> None:
    slow = {
        "write_gbps": 3.4,
        "read_gbps": 3.4,
        "staged_gbps": 2.0,
        "bidirectional_gbps": 6.8,
        "links": {"a": [2.5, 16]},
    }
    found = judged(row(**slow), row("b", "a", **slow))
    assert [(one.id, one.subject) for one in found] == [("P2P_LINK_SLOW", "a")]
    assert found[0].detail == "2.5 GT/s x16 with data on the way, 4.0 of 63.0 GB/s; measured between a -> b"
    assert judge.verdict(found) == "degraded"


def test_a_pair_that_is_fast_clears_a_link_that_was_read_at_rest_beside_a_slow_one() -> None:
    # A guest may see all links at rest. What is slow between a and b is a's: b is fast with c.
    at_rest: dict[str, t.Any] = {"write_gbps": 3.4, "read_gbps": 3.4, "staged_gbps": 2.0, "bidirectional_gbps": 6.8}
    at_rest |= {"links": {"a": [2.5, 16], "b": [2.5, 16]}}
    rows = [row("a", "b", **at_rest), row("b", "a", **at_rest)]
    rows += [row("b", "c", links={"b": [2.5, 16]}), row("c", "b", links={"b": [2.5, 16]})]
    assert [(one.id, one.subject) for one in judged(*rows)] == [("P2P_LINK_SLOW", "a")]


def test_a_figure_of_a_link_that_the_speed_disproves_is_not_believed() -> None:
    assert judged(row(links={"a": [2.5, 16]})) == []


def test_a_line_rate_that_is_set_replaces_that_of_the_links() -> None:
    assert judged(row(write_gbps=70.0, read_gbps=70.0), thresholds=read({"implausible_gbps": 80})) == []


def test_gpus_without_a_place_are_judged_by_the_lowest_reference_and_told() -> None:
    found = judged(row(path_class=None, write_gbps=49.0, read_gbps=49.0), row("b", "a", path_class=None))
    assert [(one.id, one.severity, one.subject) for one in found] == [("P2P_PATH_UNKNOWN", "warn", "PCI tree")]


def test_an_outlier_of_its_class_is_told() -> None:
    places = dict.fromkeys("abcd", PLACES["a"])
    rows = [row(one, other, write_gbps=60.0) for one in "abcd" for other in "abcd" if one != other]
    rows[0]["write_gbps"] = 51.0
    found = judge.judge(rows, [], TESTS, Thresholds(), places)
    assert [(one.id, one.subject, one.detail) for one in found] == [
        ("P2P_OUTLIER", "a -> b", "51.0 GB/s, the median of PHB is 60.0")
    ]


@pytest.mark.parametrize(
    ("changes", "fault", "severity", "detail"),
    [
        ({"ratio": 0.1, "gbps": 10.8}, "P2P_COLLAPSE", "fail", "10.8 of 108.0 GB/s together"),
        ({"ratio": 0.3, "gbps": 32.4}, "P2P_COLLAPSE", "warn", "32.4 of 108.0 GB/s together"),
        ({"error": {"kind": "hung", "detail": "nothing came back"}}, "P2P_HUNG", "fail", "nothing came back"),
        ({"error": {"kind": "call", "detail": "cuX returned 719"}}, "P2P_ERROR", "fail", "cuX returned 719"),
        ({"error": {"kind": "not made", "detail": "the time was over"}}, "P2P_NOT_MEASURED", "unknown", "the time was over"),
        ({"ratio": None}, "P2P_NOT_MEASURED", "unknown", "the clock gave no time for a copy"),
    ],
)  # fmt: skip
def test_what_a_set_shows(changes: dict[str, t.Any], fault: str, severity: str, detail: str) -> None:
    found = judge.judge([row(), row("b", "a")], [one_set(**changes)], TESTS, Thresholds(), PLACES)
    assert [(one.id, one.severity, one.subject, one.detail) for one in found] == [
        (fault, severity, "ring (forward)", detail)
    ]


def test_one_flow_that_breaks_down_in_a_set_is_named() -> None:
    flows = [{"source": "a", "target": "b", "gbps": 2.7, "ideal_gbps": 54.0}, one_set()["flows"][1]]
    broken = one_set(flows=flows, gbps=52.7, ratio=0.488)
    found = judge.judge([row(), row("b", "a")], [broken], TESTS, Thresholds(), PLACES)
    assert [(one.id, one.severity, one.detail) for one in found] == [
        ("P2P_COLLAPSE", "fail", "52.7 of 108.0 GB/s together; a -> b 2.7 of 54.0")
    ]


def test_what_is_not_asked_for_is_not_missed() -> None:
    nothing = dict.fromkeys(("write_gbps", "read_gbps", "staged_gbps", "bidirectional_gbps", "latency_us"))
    assert judged(row(**nothing), row("b", "a", **nothing), tests=["integrity"]) == []


def test_the_worst_word_is_the_verdict() -> None:
    worse = [row(write_gbps=20.0), row(latency_us=None, staged_gbps=None), row(write_gbps=100.0)]
    found = [one for changed in worse for one in judged(changed)]
    assert judge.verdict(found) == "corrupt"
    assert judge.verdict([one for one in found if one.id != "P2P_IMPLAUSIBLE"]) == "could_not_run"


def test_where_links_are_not_required_what_would_fail_warns() -> None:
    told = softened(judged(row(write_gbps=20.0, latency_us=None, staged_gbps=None)))
    assert [(one.id, one.severity) for one in told] == [("P2P_SLOW", "warn"), ("P2P_NOT_MEASURED", "warn")]
