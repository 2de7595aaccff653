# SPDX-License-Identifier: GPL-3.0-or-later
"""What keeps the contract from touching what is not its own, made to fire."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.pve import api
from ansible.module_utils.slipway.pve.client import ApiError
from ansible.modules import pve_container
from contract.guard import Guard, NotAllowed
from contract.settings import Settings, Unusable
from contract.stage import Stage, raw_by_ansible
from rig_node import AS_TOKEN, OVER_SSH, TEMPLATE, Rig

Run = t.Callable[..., dict[str, t.Any]]
MARK = "slipway-contract-1"


@pytest.fixture(params=["https", "ssh"])
def stage(request: pytest.FixtureRequest, run_module: Run, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Stage:
    guard = Guard()
    guard.stand(monkeypatch)
    settings = Settings(
        node="node1",
        ways={"https": {**AS_TOKEN, "api_backend": "https"}, "ssh": OVER_SSH},
        ostemplate=TEMPLATE,
        storage="local-zfs",
        vmids=range(900, 903),
    )
    return Stage(settings, request.param, MARK, run_module, guard)


def cleaned(stage: Stage) -> list[str]:
    left: list[str] = []
    stage.clean(left)
    return left


def test_who_only_reads_changes_nothing(stage: Stage, rig: Rig) -> None:
    rig.guest(101, run=True)
    before = rig.file(101)
    guest = {"vmid": 900, "ostemplate": TEMPLATE, "rootfs": {"storage": "local-zfs", "size_gib": 2}}
    for options in (
        guest,
        {"vmid": 101, "cores": 7},
        {"vmid": 101, "state": "absent"},
        {"vmid": 101, "state": "stopped"},
    ):
        with pytest.raises(NotAllowed):
            stage.run(pve_container, options)
    assert rig.writes == [] and rig.file(101) == before and rig.containers.up == {101}


def test_a_guest_that_came_in_between_is_not_touched(stage: Stage, rig: Rig) -> None:
    guest = stage.guest()
    rig.guest(900, "hostname: somebodys", "tags: theirs")
    before = rig.file(900)
    with pytest.raises(NotAllowed, match="is of a guest that was not made here; it was not sent"):
        stage.run(pve_container, guest)
    assert cleaned(stage) == [] and rig.file(900) == before and rig.writes == []


def test_a_guest_that_came_onto_a_vmid_that_was_ours_is_not_touched(stage: Stage, rig: Rig) -> None:
    guest = stage.guest()
    stage.becomes(pve_container, guest)
    stage.becomes(pve_container, {"vmid": 900, "state": "absent"})
    rig.guest(900, "hostname: somebodys", "tags: theirs")
    with pytest.raises(NotAllowed):
        stage.run(pve_container, {"vmid": 900, "state": "absent"})
    assert cleaned(stage) == [] and rig.node.vmids() == [900]


def test_a_guest_without_the_tag_stays(stage: Stage, rig: Rig) -> None:
    stage.becomes(pve_container, stage.guest())
    stage.by_hand(900, tags="theirs")
    (left,) = cleaned(stage)
    assert "it has not the tag of this run, so it may be somebody's" in left
    assert rig.node.vmids() == [900]


def test_whatever_it_made_goes(stage: Stage, rig: Rig) -> None:
    stage.becomes(pve_container, stage.guest(state="template"))
    stage.becomes(pve_container, {"vmid": stage.free_vmid(), "clone": {"vmid": 900, "full": False}, "state": "started"})
    stage.becomes(pve_container, stage.guest())
    stage.by_hand(902, protection=1)
    assert cleaned(stage) == [] and rig.node.vmids() == [] and rig.containers.up == set()
    assert list((rig.node.root / "rpool/data").iterdir()) == []


def test_what_it_may_have_made_goes(stage: Stage, rig: Rig) -> None:
    stage.guest()
    rig.fault("POST */lxc", "drop_after")
    order = {"vmid": 900, "ostemplate": TEMPLATE, "rootfs": "local-zfs:2", "tags": MARK}
    with pytest.raises(ApiError):
        api.create(stage.client, "node1", order)
    assert stage.guard.unanswered == [900] and stage.guard.ours == [] and rig.node.vmids() == [900]
    assert cleaned(stage) == [] and rig.node.vmids() == []


def test_what_was_refused_is_not_looked_for(stage: Stage, rig: Rig) -> None:
    stage.guest()
    with pytest.raises(ApiError):
        api.create(stage.client, "node1", {"vmid": 900, "ostemplate": TEMPLATE, "memory": "lots"})
    # Over SSH an exit status says only that something went wrong, so it is.
    assert stage.guard.unanswered == {"https": [], "ssh": [900]}[stage.way]
    assert cleaned(stage) == [] and rig.node.vmids() == []


def test_a_range_that_is_full(stage: Stage, rig: Rig) -> None:
    for vmid in (900, 901, 902):
        rig.guest(vmid)
    with pytest.raises(Unusable, match="none of the vmids 900-902 is free"):
        stage.guest()


def test_raw_lines_go_by_ansible_as_root_over_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: dict[str, t.Any] = {}

    class Done:
        returncode, stderr = 0, ""
        stdout = 'node | CHANGED => {\n    "changed": true,\n    "lines": []\n}\n'

    def run(command: list[str], **options: t.Any) -> Done:
        asked.update(command=command, **options)
        return Done()

    monkeypatch.setattr("contract.stage.subprocess.run", run)
    way = {"api_host": "pve1.example.com", "api_ssh_port": 2222, "api_ssh_known_hosts_file": "/k h"}
    assert raw_by_ansible(way)(900, {"lines": []}, True)["changed"]
    assert asked["command"][1:] == [
        *("node", "-i", "/dev/stdin", "-m", "pve_container_raw", "-a", '{"vmid": 900, "lines": []}', "--check")
    ]
    assert '"ansible_user": "root"' in asked["input"] and '"ansible_port": 2222' in asked["input"]
    assert "-o UserKnownHostsFile='/k h' -o StrictHostKeyChecking=yes" in asked["input"]
