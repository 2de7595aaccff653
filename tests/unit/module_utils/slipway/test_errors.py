# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from ansible.module_utils.slipway.errors import SlipwayError, cannot
from ansible.module_utils.slipway.findings import Finding


def test_the_sentence_of_the_house() -> None:
    error = cannot("start", "container '101'", "node1", "it is locked (backup)", "Wait for the backup to end")
    assert isinstance(error, SlipwayError)
    assert str(error) == "Cannot start container '101' on node1: it is locked (backup). Wait for the backup to end."
    assert error.findings == []


def test_full_stops_and_blanks_at_the_end_of_a_part_are_not_doubled() -> None:
    assert str(cannot("read", "file 'a'", "node1", "no such file.\n", " Make it. ")) == (
        "Cannot read file 'a' on node1: no such file. Make it."
    )


def test_findings_travel_with_the_error() -> None:
    found = Finding("ODD", "fail", "thing", "It is odd.")
    assert cannot("use", "thing 'a'", "node1", "it is odd", "Make it even", [found]).findings == [found]
