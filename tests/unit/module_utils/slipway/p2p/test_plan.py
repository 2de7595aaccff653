# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import itertools
import typing as t

import pytest
from ansible.module_utils.slipway.p2p import plan, thresholds
from ansible.module_utils.slipway.p2p.paths import Place

MIB = 1024 * 1024


def places(count: int) -> dict[str, Place]:
    """Two GPUs a switch, two switches a socket, as on the reference machine."""
    found = {}
    for index in range(count):
        root, port = index // 2, index % 2
        address = f"0000:{root}{3 + port}:00.0"
        chain = (f"pci0000:{root}0", f"0000:{root}0:01.1", f"0000:{root}1:00.0", f"0000:{root}2:0{port}.0", address)
        found[address] = Place(chain, index // 4, 63.0)
    return found


def made(count: int, tests: t.Sequence[str] = plan.TESTS, buffer_mib: int = 256) -> plan.Plan:
    return plan.make(places(count), tests, buffer_mib, thresholds.Thresholds())


def test_the_default_plan_for_eight_gpus_takes_a_minute_at_most_and_says_where() -> None:
    summary = made(8).summary()
    assert summary["pairs"] == 56
    assert summary["seconds"] <= 60
    assert sum(part["seconds"] for part in summary["parts"]) == pytest.approx(summary["seconds"], abs=0.1)
    assert [(part["test"], part["kind"], part["steps"]) for part in summary["parts"]] == [
        ("start", "start", 1),
        ("integrity", "pair", 56),
        ("integrity", "together", 3),
        ("latency", "pair", 56),
        ("bandwidth", "pair", 56),
        ("bandwidth", "both_ways", 28),
        ("concurrent", "ring", 2),
        ("concurrent", "all_to_one", 8),
        ("concurrent", "disjoint", 7),
        ("concurrent", "all_pairs", 1),
    ]
    integrity = summary["parts"][1]
    assert integrity["copies"] == 56 * 5 * 2 * 2, "pairs, sizes, sides, rounds"
    assert integrity["bytes"] == 56 * 4 * (4 + 4096 + 65536 + 2 * MIB + 256 * MIB)
    assert summary["bytes"] == sum(part["bytes"] for part in summary["parts"])
    assert {part["took_seconds"] for part in summary["parts"]} == {summary["took_seconds"]} == {None}


def test_the_time_that_it_took_stands_beside_it() -> None:
    planned = made(2, ["latency"])
    summary = planned.summary({0: 2.5, 1: 0.25, 2: 0.5})
    assert summary["took_seconds"] == 3.2
    assert [part["took_seconds"] for part in summary["parts"]] == [2.5, 0.75]


def test_integrity_comes_first_whatever_the_order_asked_for() -> None:
    tests = [step.test for step in made(4, ["concurrent", "bandwidth", "integrity", "latency"]).steps]
    assert [key for key, _group in itertools.groupby(tests)] == [
        "start",
        "integrity",
        "latency",
        "bandwidth",
        "concurrent",
    ]


def test_only_what_is_asked_for_is_planned() -> None:
    assert {step.test for step in made(2, ["latency"]).steps} == {"start", "latency"}


@pytest.mark.parametrize("count", [0, 1])
def test_without_a_pair_there_is_nothing_to_do(count: int) -> None:
    assert made(count).steps == ()
    assert made(count).summary()["pairs"] == made(count).summary()["bytes"] == 0


def test_a_small_buffer_ends_the_ladder() -> None:
    assert plan.sizes_up_to(MIB) == [4, 4096, 65536, MIB]
    assert plan.sizes_up_to(2 * MIB) == [4, 4096, 65536, 2 * MIB]
    assert (made(2, buffer_mib=1).buffer_bytes, made(2, buffer_mib=1).slot_bytes) == (MIB, MIB // 4)


@pytest.mark.parametrize("count", [4, 5, 8])
def test_everyone_meets_everyone_in_the_disjoint_rounds_and_nobody_twice_at_once(count: int) -> None:
    rounds = [flows for kind, _name, flows in plan.sets(list(places(count))) if kind == "disjoint"]
    met = [flow for flows in rounds for flow in flows]
    assert sorted(met) == sorted(itertools.permutations(places(count), 2))
    for flows in rounds:
        assert len({source for source, _target in flows}) == len(flows)


def test_sets_of_three_and_of_two_gpus() -> None:
    kinds = [kind for kind, _name, _flows in plan.sets(["a", "b", "c"])]
    assert kinds == ["ring", "ring", *["all_to_one"] * 3, "all_pairs"]
    assert plan.sets(["a", "b"]) == [("ring", "forward", (("a", "b"), ("b", "a")))]


def test_flows_share_what_they_cross() -> None:
    where = places(4)
    a, b, c, d = where
    assert plan.shares([(a, b)], where) == {(a, b): 1}
    assert plan.shares([(a, b), (c, b)], where) == {(a, b): 2, (c, b): 2}
    # Two GPUs of one switch leave it by one link.
    assert plan.shares([(a, c), (b, d)], where) == {(a, c): 2, (b, d): 2}
    # The two directions of a link are two.
    assert plan.shares([(a, c), (c, a)], where) == {(a, c): 1, (c, a): 1}


def test_without_a_tree_a_gpu_still_has_one_link() -> None:
    assert plan.shares([("a", "b"), ("c", "b")], dict.fromkeys("abc", Place())) == {("a", "b"): 2, ("c", "b"): 2}


def test_slower_references_make_a_longer_plan() -> None:
    slow = thresholds.read({"reference_gbps": {"SYS": 5}})
    assert plan.make(places(8), plan.TESTS, 256, slow).summary()["seconds"] > made(8).summary()["seconds"] + 5
