# SPDX-License-Identifier: GPL-3.0-or-later
"""A start that fails, over both ways to Proxmox: the reason is in the sentence."""

from __future__ import annotations

import re
import typing as t

import pytest
from ansible.modules import pve_container
from pve.errors import died
from rig_node import AS_TOKEN, OVER_SSH, Rig

Run = t.Callable[..., dict[str, t.Any]]
START = {"node": "node1", "vmid": 101, "state": "started"}
STARTS = ("POST", "nodes/node1/lxc/101/status/start")


@pytest.fixture(params=[AS_TOKEN, OVER_SSH], ids=["https", "ssh"])
def api(request: pytest.FixtureRequest) -> dict[str, t.Any]:
    return request.param


class Start:
    """A runtime that says these lines and fails, as many times as told."""

    def __init__(self, rig: Rig, *said: str, failures: int = 99) -> None:
        self.rig = rig
        self.said = said
        self.failures = failures

    def __call__(self, vmid: int, config: str, say: t.Callable[[str], None], debug: bool = False) -> None:
        if self.failures == 0:
            self.rig.containers.up.add(vmid)
            return
        self.failures -= 1
        for line in self.said:
            say(line)
        raise died(f"startup for container '{vmid}' failed")


def starts(rig: Rig) -> list[dict[str, t.Any]]:
    return [params for verb, path, params in rig.requests if (verb, path.strip("/")) == STARTS]


def test_it_brings_what_lxc_said(
    run_module: Run, rig: Rig, api: dict[str, t.Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.guest(101)
    rig.containers.breaks_on = "start"
    result = run_module(pve_container, api | START)
    assert result["rc"] == 1 and result["msg"].startswith("Cannot start container '101' on node1: the task UPID:node1:")
    without, shown = result["msg"].split("What 'pct start --debug' shows:\n")
    assert "the hook of a test fails" not in without and "the hook of a test fails" in shown
    # LXC's chatter is left out.
    assert not re.search(r"\b(DEBUG|INFO|TRACE|NOTICE) ", shown)
    assert "startup for container '101' failed" in result["msg"]
    assert result["msg"].endswith("'pct start 101 --debug' on node1 shows the whole of it.")
    assert [str(params.get("debug", 0)) for params in starts(rig)] == ["0", "1"]


def test_one_that_works_the_second_time_is_told(
    run_module: Run, rig: Rig, api: dict[str, t.Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    rig.guest(101)
    monkeypatch.setattr(rig.containers, "start", Start(rig, "Device /dev/nvidia-uvm does not exist", failures=1))
    result = run_module(pve_container, api | START)
    assert result["rc"] == 0 and result["container"]["status"] == "running"
    assert [found["id"] for found in result["findings"]] == ["PVE_START_REPEATED"]
    assert "Device /dev/nvidia-uvm does not exist" in result["findings"][0]["detail"]


def test_what_was_refused_is_not_tried_again(run_module: Run, rig: Rig) -> None:
    rig.guest(101)
    watcher = {"api_user": "watch@pve", "api_token_id": "t", "api_token_secret": "seen"}
    result = run_module(pve_container, AS_TOKEN | watcher | START)
    assert "VM.PowerMgmt" in result["msg"] and len(starts(rig)) == 1


def test_one_that_still_runs_is_not_begun_again(run_module: Run, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    rig.guest(101)
    monkeypatch.setattr(rig.containers, "start", lambda *arguments: rig.clock.sleep(3600))
    result = run_module(pve_container, AS_TOKEN | START | {"timeout_seconds": 1})
    assert "has not ended within 1 seconds; it still runs" in result["msg"] and len(starts(rig)) == 1
