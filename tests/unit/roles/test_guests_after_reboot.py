# SPDX-License-Identifier: GPL-3.0-or-later
"""Which guests a node that was rebooted still waits for, as the role's expressions have it."""

from __future__ import annotations

import base64
import typing as t
from pathlib import Path

import pytest
from evaluate import evaluate

GUESTS = {101: False, 102: True, 103: False, 104: False}


@pytest.fixture
def value(root: Path) -> t.Callable[[str], t.Any]:
    """The value of a variable of the role. Of the guests above all but 104 ran; 101 was told to start, 103 refused."""
    started = [
        {"item": {"vmid": 101}, "rc": 0, "stderr": ""},
        {"item": {"vmid": 103}, "rc": 255, "stderr": "no such volume"},
    ]
    given = {
        "__pve_host_guests": {
            "guests": [{"vmid": vmid, "name": f"g{vmid}", "running": runs} for vmid, runs in GUESTS.items()]
        },
        "__pve_host_reboot_noted": {"content": base64.b64encode(b"[101, 102, 103]\n").decode()},
        "__pve_host_started": {"results": started},
    }
    return lambda name: evaluate(f"{{{{ {name} }}}}", given, root / "roles/pve_host")


def test_what_ran_and_does_not_run_is_missing(value: t.Callable[[str], t.Any]) -> None:
    assert [guest["vmid"] for guest in value("__pve_host_guests_missing")] == [101, 103]


def test_only_one_that_was_told_to_start_is_waited_for(value: t.Callable[[str], t.Any]) -> None:
    assert [guest["vmid"] for guest in value("__pve_host_guests_starting")] == [101]
    assert value("__pve_host_start_said") == "no such volume"
