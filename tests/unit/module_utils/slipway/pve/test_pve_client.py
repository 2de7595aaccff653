# SPDX-License-Identifier: GPL-3.0-or-later
"""What is tried again, how often, and what is never sent twice without a look."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.pve.client import (
    DONE,
    RETRY_SECONDS,
    ApiError,
    Client,
    Fate,
    Patience,
    fate_of,
)
from proxmoxer.core import ResourceException

LOCK = "can't lock file '/run/lock/lxc/pve-config-101.lock' - got timeout"
UPID = "UPID:node1:0000ABCD:123456789:6731F2A0:vzcreate:101:deploy@pve!t:"


class Dropped(Exception):
    """The connection broke while an answer was awaited."""


class Refused(Exception):
    """No connection came about."""


def answered(status: int, words: str = "no words") -> ResourceException:
    return ResourceException(status, "Status", words)


class Wire:
    """Brings these replies, the last one for ever, and counts the seconds on a clock that only sleeping moves."""

    def __init__(self, *replies: t.Any) -> None:
        self.replies = list(replies)
        self.sent: list[tuple[str, dict[str, t.Any]]] = []
        self.pauses: list[float] = []
        explain = {
            Dropped: ApiError("it was dropped", "Look", fate=Fate.OPEN),
            Refused: ApiError("it was refused", "Check the address", fate=Fate.UNREACHED),
        }
        patience = Patience(clock=lambda: sum(self.pauses), sleep=self.pauses.append)
        self.client = Client(self, "deploy@pve!t", "pve1", lambda e: explain[type(e)], (Dropped, Refused), patience)

    def __call__(self, path: str) -> t.Any:
        self.path = path
        return self

    def __getattr__(self, method: str) -> t.Callable[..., t.Any]:
        def call(**arguments: t.Any) -> t.Any:
            self.sent.append((method, arguments))
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
            if isinstance(reply, Exception):
                raise reply
            return reply

        return call


@pytest.mark.parametrize(
    ("status", "words", "fate"),
    [
        (400, "Parameter verification failed", Fate.FINAL),
        (401, "invalid token", Fate.FINAL),
        (403, "Permission check failed", Fate.FINAL),
        (501, "Method not implemented", Fate.FINAL),
        (500, "unable to create CT 101", Fate.OPEN),
        (500, LOCK, Fate.UNDONE),
        (500, "can't aquire lock '/var/lock/x' - got timeout", Fate.UNDONE),
        (500, "error during cfs-locked 'file-user_cfg' operation: got lock request timeout", Fate.UNDONE),
        (500, "can't lock file '/run/lock/x' - Permission denied", Fate.OPEN),
        (503, "Service Unavailable", Fate.UNDONE),
        (595, "No route to host", Fate.UNDONE),
        (596, "Connection timed out", Fate.OPEN),
        (502, "Bad Gateway", Fate.OPEN),
        (504, "Gateway Timeout", Fate.OPEN),
    ],
)
def test_what_a_status_leaves_to_hope_for(status: int, words: str, fate: Fate) -> None:
    assert fate_of(status, words) is fate


@pytest.mark.parametrize("fault", [Dropped(), answered(500), answered(500, LOCK), answered(503), answered(596)])
def test_reading_is_tried_again(fault: Exception) -> None:
    wire = Wire(fault, fault, "data")
    assert wire.client.call("get", "nodes", type="vm") == "data"
    assert wire.sent == [("get", {"type": "vm"})] * 3
    assert wire.pauses == pytest.approx([0.2, 0.3])


@pytest.mark.parametrize("fault", [answered(400), answered(403), answered(501)])
def test_what_would_bring_the_same_again_is_not(fault: Exception) -> None:
    wire = Wire(fault, "data")
    with pytest.raises(ApiError):
        wire.client.call("get", "nodes")
    assert len(wire.sent) == 1


def test_it_ends_when_the_time_is_up_and_says_how_often_it_was_tried() -> None:
    wire = Wire(answered(595, "No route to host"))
    with pytest.raises(ApiError) as failed:
        wire.client.call("get", "nodes")
    assert RETRY_SECONDS <= sum(wire.pauses) < RETRY_SECONDS + 5
    assert wire.pauses == sorted(wire.pauses) and wire.pauses[-1] == 5.0
    assert failed.value.cause == f"tried {len(wire.sent)} times, Proxmox answered 595 No route to host"
    assert failed.value.status == 595 and failed.value.remedy.startswith("Check that the node is up")


def test_it_ends_also_on_a_clock_that_stands_still() -> None:
    wire = Wire(Dropped())
    wire.client.patience.clock = lambda: 0.0
    wire.client.answered = True
    with pytest.raises(ApiError):
        wire.client.call("get", "nodes")
    assert sum(wire.pauses) < RETRY_SECONDS + 5


def test_the_time_that_an_answer_took_counts() -> None:
    now = [0.0]
    wire = Wire(Dropped())
    wire.client.patience.clock = lambda: now[0]
    really = wire.client._once

    def once(*arguments: t.Any) -> t.Any:
        now[0] += RETRY_SECONDS / 2
        return really(*arguments)

    wire.client._once = once  # type: ignore[method-assign]
    with pytest.raises(ApiError, match="tried 2 times"):
        wire.client.call("get", "nodes")


def test_a_plain_500_is_tried_three_times() -> None:
    wire = Wire(answered(500, "volume 'x' does not exist"))
    with pytest.raises(ApiError, match=r"tried 3 times, .* does not exist"):
        wire.client.call("get", "nodes")
    assert len(wire.sent) == 3


def test_an_address_that_never_answered_is_not_waited_for() -> None:
    wire = Wire(Refused())
    with pytest.raises(ApiError, match="it was refused"):
        wire.client.call("get", "nodes")
    assert len(wire.sent) == 1
    # The same of a node that is known to be there: its service is being restarted.
    wire = Wire("data", Refused(), Refused(), "more")
    assert [wire.client.call("get", "nodes"), wire.client.call("get", "nodes")] == ["data", "more"]


@pytest.mark.parametrize("method", ["post", "put", "delete"])
@pytest.mark.parametrize("fault", [answered(500, LOCK), answered(503), answered(595)])
def test_what_was_not_done_is_sent_again(method: str, fault: Exception) -> None:
    wire = Wire(fault, UPID)
    assert wire.client.call(method, "nodes/a/lxc", pytest.fail, vmid=101) == UPID
    assert wire.sent == [(method, {"vmid": 101})] * 2
    assert Wire(fault, UPID).client.call(method, "nodes/a/lxc", vmid=101) == UPID


@pytest.mark.parametrize("method", ["post", "put", "delete"])
@pytest.mark.parametrize("fault", [Dropped(), answered(596), answered(500, "oops")])
@pytest.mark.parametrize("found", [DONE, UPID])
def test_what_may_have_been_done_is_looked_up_first(method: str, fault: Exception, found: t.Any) -> None:
    wire = Wire(fault, "a second answer")
    assert wire.client.call(method, "nodes/a/lxc", lambda: found, vmid=101) == found
    assert len(wire.sent) == 1


def test_what_was_looked_up_and_not_done_is_sent_again() -> None:
    wire = Wire(Dropped(), Dropped(), UPID)
    looks: list[int] = []
    assert wire.client.call("post", "nodes/a/lxc", lambda: looks.append(len(wire.sent)), vmid=101) == UPID
    assert looks == [1, 2] and len(wire.sent) == 3


def test_a_refusal_after_an_answer_that_was_lost_is_looked_up_too() -> None:
    # The first one was still at work when it was looked up; the second is refused because the first was not.
    wire = Wire(Dropped(), answered(400, "CT 101 already exists"))
    found: list[t.Any] = [None, UPID]
    assert wire.client.call("post", "nodes/a/lxc", lambda: found.pop(0), vmid=101) == UPID
    wire = Wire(Dropped(), answered(400, "memory: too small"))
    with pytest.raises(ApiError, match="memory: too small"):
        wire.client.call("post", "nodes/a/lxc", lambda: None, vmid=101)


def test_without_a_look_up_what_may_have_been_done_is_not_sent_again() -> None:
    wire = Wire(Dropped(), UPID)
    with pytest.raises(ApiError, match="it was dropped"):
        wire.client.call("post", "nodes/a/lxc", vmid=101)
    assert len(wire.sent) == 1


def test_a_look_up_that_fails_is_told_and_nothing_is_sent_again() -> None:
    def worked() -> None:
        raise ApiError("the node is gone", "")

    wire = Wire(Dropped(), UPID)
    with pytest.raises(ApiError) as failed:
        wire.client.call("post", "nodes/a/lxc", worked)
    assert failed.value.cause == "it was dropped; whether it was done all the same cannot be read (the node is gone)"
    assert len(wire.sent) == 1
