# SPDX-License-Identifier: GPL-3.0-or-later
"""The parent against children that are told what to say and how to end."""

from __future__ import annotations

import typing as t

from ansible.module_utils.slipway.gpu.child import Outcome
from ansible.module_utils.slipway.p2p import plan, supervise, thresholds
from ansible.module_utils.slipway.p2p.paths import Place

PLAN = plan.make(
    {name: Place() for name in "abc"}, ["integrity", "concurrent"], 1, thresholds.Thresholds()
)  # start, six pairs, three rounds of all, rings, all to one, all pairs


class Children:
    """Each child runs its steps until one of ``ends``, by its number, and ends as told there."""

    def __init__(self, **ends: t.Any) -> None:
        self.ends = {int(name[1:]): end for name, end in ends.items()}
        self.launched: list[dict[int, plan.Step]] = []

    def __call__(self, steps: t.Mapping[int, plan.Step], seconds: float) -> Outcome:
        self.launched.append(dict(steps))
        said: list[dict[str, t.Any]] = []
        for number in steps:
            said.append({"step": number})
            end = self.ends.get(number)
            if isinstance(end, Outcome):
                return Outcome(end.ended, [*said, {"at": "a place"}], end.cause, end.quiet_seconds)
            if end:
                said.append({"step": number, "error": end, "took": 0.1})
                if end["sticky"]:
                    return Outcome("done", said)
            else:
                said.append({"step": number, "result": {"flows": []}, "took": 0.1})
        return Outcome("done", said)


def run(children: Children) -> supervise.Record:
    return supervise.run(PLAN, children, 300, 10)


def error(code: int, sticky: bool) -> dict[str, t.Any]:
    return {"call": "cuMemcpyPeerAsync", "code": code, "name": "CUDA_ERROR_X", "sticky": sticky}


def number_of(source: str, target: str) -> int:
    return next(n for n, step in enumerate(PLAN.steps) if step.flows == ((source, target),))


def test_one_child_makes_all_where_nothing_happens() -> None:
    record = run(children := Children())
    assert (set(record.results), record.errors, record.children) == (set(range(len(PLAN.steps))), {}, 1)
    assert list(children.launched[0].values()) == list(PLAN.steps)


def test_after_a_hang_another_child_makes_the_rest_without_that_pair() -> None:
    number = number_of("a", "b")
    record = run(children := Children(**{f"s{number}": Outcome("hung", quiet_seconds=10.0)}))
    assert record.errors == {number: {"kind": "hung", "detail": "a place: nothing came back for 10 seconds"}}
    assert record.children == 2
    assert len(record.results) == len(PLAN.steps) - 1
    sets = [step for step in children.launched[1].values() if len(step.flows) > 1]
    assert sets
    assert all(("a", "b") not in step.flows and step.flows for step in sets)
    assert any(("b", "a") in step.flows for step in sets)


def test_a_death_is_told_with_its_cause() -> None:
    number = number_of("b", "c")
    record = run(Children(**{f"s{number}": Outcome("died", cause="SIGSEGV")}))
    assert record.errors[number] == {"kind": "died", "detail": "a place: the process died (SIGSEGV)"}


def test_a_sticky_error_costs_the_child_and_another_does_not() -> None:
    number = number_of("a", "c")
    sticky = run(Children(**{f"s{number}": error(700, sticky=True)}))
    assert (sticky.children, sticky.errors[number]["kind"]) == (2, "call")
    assert sticky.errors[number]["detail"] == (
        "cuMemcpyPeerAsync returned 700 (CUDA_ERROR_X), usually an error that stays with the process: it must end, and a new one begin"
    )
    assert run(Children(**{f"s{number}": error(217, sticky=False)})).children == 1


def test_a_set_that_hangs_costs_that_set() -> None:
    last = len(PLAN.steps) - 2
    record = run(Children(**{f"s{last}": Outcome("hung", quiet_seconds=10.0)}))
    assert list(record.errors) == [last]
    assert last + 1 in record.results


def test_what_time_does_not_suffice_for_is_not_made_and_not_called_hung() -> None:
    number = number_of("a", "b")

    def cut(steps: t.Mapping[int, plan.Step], seconds: float) -> Outcome:
        return Outcome("hung", [{"step": 0}, {"step": 0, "result": {}, "took": 1}, {"step": number}], quiet_seconds=0.5)

    record = supervise.run(PLAN, cut, 0.05, 10)
    assert record.errors[number]["kind"] == "not made"
    assert len(record.errors) == len(PLAN.steps) - 1
    assert {told["kind"] for told in record.errors.values()} == {"not made"}


def test_a_driver_that_does_not_start_ends_it() -> None:
    def fatal(steps: t.Mapping[int, plan.Step], seconds: float) -> Outcome:
        return Outcome("done", [{"fatal": "cuInit returned 999 (CUDA_ERROR_UNKNOWN)"}])

    record = supervise.run(PLAN, fatal, 300, 10)
    assert record.fatal == {"kind": "call", "detail": "cuInit returned 999 (CUDA_ERROR_UNKNOWN)"}
    assert (len(record.errors), record.children) == (len(PLAN.steps), 1)


def test_a_driver_that_hangs_at_its_start_ends_it() -> None:
    record = supervise.run(PLAN, lambda steps, seconds: Outcome("hung", quiet_seconds=10.0), 300, 10)
    assert record.fatal == {"kind": "hung", "detail": "the driver's start: nothing came back for 10 seconds"}


def test_a_child_that_says_nothing_does_not_go_on_for_ever() -> None:
    record = supervise.run(PLAN, lambda steps, seconds: Outcome("done"), 300, 10)
    assert record.fatal == {"kind": "died", "detail": "the child ended without a word"}
    assert record.children == 1


def test_a_gpu_that_does_not_start_is_left_out() -> None:
    def launch(steps: t.Mapping[int, plan.Step], seconds: float) -> Outcome:
        said: list[t.Any] = []
        for number in steps:
            result = {"gpus": {"a": {"error": "it is excluded"}}, "can_access": []} if number == 0 else {}
            said += [{"step": number}, {"step": number, "result": result, "took": 0.1}]
            if number == 0:
                return Outcome("done", said)
        return Outcome("done", said)

    record = supervise.run(PLAN, launch, 300, 10)
    assert record.errors[number_of("a", "b")] == {
        "kind": "not made",
        "detail": "not made after this: it is excluded",
        "follows": True,
    }
    assert number_of("b", "c") in record.results


def test_other_work_ends_it() -> None:
    busy = {"gpus": {}, "can_access": [], "busy": ["a"]}
    said = [{"step": 0}, {"step": 0, "result": busy, "took": 0.1}]
    record = supervise.run(PLAN, lambda steps, seconds: Outcome("done", said), 300, 10)
    assert (record.fatal or {})["kind"] == "busy"
    assert record.children == 1
