# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.gpu import hops
from gpu_facts import hop, way


def pairs(path: list[dict[str, t.Any]]) -> list[tuple[str, str]]:
    return [(upper["bus_id"][5:], lower["bus_id"][5:]) for upper, lower in hops.links(path)]


def test_links_are_between_a_port_and_what_hangs_on_it() -> None:
    expected = [("00:01.1", "01:00.0"), ("02:00.0", "06:00.0")]
    assert pairs(way("06")) == expected
    # The same where a container cannot read what the ports are.
    assert pairs([{**one, "kind": None} for one in way("06")]) == expected
    assert pairs([hop("00:01.1", "root port"), hop("06:00.0", "endpoint")]) == [("00:01.1", "06:00.0")]
    assert pairs([hop("06:00.0", "endpoint")]) == []
    assert pairs([{**one, "kind": None} for one in way("06")[1:]]) == []


@pytest.mark.parametrize(
    ("ports", "redirect"),
    [
        ([0x11, 0x00], False),
        ([0x11, None], False),
        ([0x11, 0x15], True),
        ([0x19], True),
    ],
)
def test_one_port_that_redirects_is_enough(ports: list[int | None], redirect: bool) -> None:
    path = [hop(f"0{number}:00.0", "downstream port", acs) for number, acs in enumerate(ports)]
    assert hops.acs([[*path, hop("06:00.0", "endpoint", 0x1D)]])["redirect"] is redirect


def test_what_cannot_be_read_is_not_known() -> None:
    unread = {**hop("01:00.0", None), "acs_control": None, "request_redirect": None, "completion_redirect": None}
    end = hop("06:00.0", "endpoint", None)
    assert hops.acs([[hop("00:01.1", "root port"), unread, end]])["redirect"] is None
    assert hops.acs([[hop("00:01.1", "root port", 0x1D), unread, end]])["redirect"] is True
    assert hops.acs([None])["redirect"] is None
    assert hops.acs([None, way("06")])["redirect"] is None
    assert hops.acs([]) == {"redirect": None, "hops": []}


def test_a_port_that_several_gpus_share_is_told_once() -> None:
    found = hops.acs([way("06"), way("07")])["hops"]
    assert [one["bus_id"][5:] for one in found] == ["00:01.1", "01:00.0", "02:00.0", "02:01.0"]
