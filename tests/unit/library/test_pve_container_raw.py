# SPDX-License-Identifier: GPL-3.0-or-later
"""pve_container_raw, driven through main() on a folder that is a node, with a pct that reads the file."""

from __future__ import annotations

import fcntl
import json
import os
import random
import re
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway import files
from ansible.module_utils.slipway.pve import conf, node
from ansible.modules import pve_container_raw
from raw_node import CONF, MEMLOCK, MOUNT, NET, SHM, USERS, Node, node_in

Run = t.Callable[..., dict[str, t.Any]]


@pytest.fixture
def pve(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Node:
    return node_in(tmp_path, monkeypatch)


def ask(*lines: str, **options: t.Any) -> dict[str, t.Any]:
    return {"vmid": 101, "lines": list(lines), **options}


def test_lines_come_into_the_main_part_and_stay(run_module: Run, pve: Node) -> None:
    result = run_module(pve_container_raw, ask(MOUNT, MEMLOCK))
    assert result["rc"] == 0, result
    written = CONF.replace(f"{USERS}\n", f"{USERS}\n{MOUNT}\n{MEMLOCK}\n")
    assert pve.place.config.read_text() == written
    assert result["changed"] and result["unmanaged"] == [USERS] and result["lines"] == [USERS, MOUNT, MEMLOCK]
    assert result["diff"]["before"] == f"{USERS}\n" and result["diff"]["after"] == f"{USERS}\n{MOUNT}\n{MEMLOCK}\n"
    again = run_module(pve_container_raw, ask(MOUNT, MEMLOCK))
    assert not again["changed"] and again["digest"] == result["digest"]
    assert pve.place.config.read_text() == written
    assert os.listdir(pve.place.config.parent) == ["101.conf"]


def test_what_is_ours_goes_when_it_is_no_longer_declared(run_module: Run, pve: Node) -> None:
    run_module(pve_container_raw, ask(MOUNT, MEMLOCK))
    result = run_module(pve_container_raw, ask(MEMLOCK))
    assert result["changed"] and result["lines"] == [USERS, MEMLOCK]
    assert run_module(pve_container_raw, ask())["lines"] == [USERS]
    assert pve.place.config.read_text() == CONF
    assert pve.record["lines"] == [] and pve.place.record.stat().st_mode & 0o777 == 0o600


def test_lines_of_others_stay_unless_their_key_is_exclusive(run_module: Run, pve: Node) -> None:
    text = CONF.replace(USERS, f"{SHM}\n{USERS}")
    pve.place.config.write_text(text)
    assert run_module(pve_container_raw, ask(MOUNT))["unmanaged"] == [SHM, USERS]
    result = run_module(pve_container_raw, ask(MOUNT, exclusive_keys=["lxc.mount.entry"]))
    assert result["lines"] == [USERS, MOUNT]


def test_check_mode_writes_nothing(run_module: Run, pve: Node) -> None:
    pve.start()
    result = run_module(pve_container_raw, ask(MOUNT), check=True)
    assert result["changed"] and result["restart_required"] and result["lines"] == [USERS, MOUNT]
    assert pve.place.config.read_text() == CONF
    assert not pve.place.record.exists() and not pve.place.lock.exists()


def test_a_guest_that_is_not_here(run_module: Run, pve: Node) -> None:
    pve.place.config.unlink()
    foretold = run_module(pve_container_raw, ask(MOUNT), check=True)
    assert foretold["changed"] and foretold["digest"] is None and foretold["diff"]["after"] == f"{MOUNT}\n"
    result = run_module(pve_container_raw, ask(MOUNT))
    assert result["rc"] == 1 and "it is not on this node" in result["msg"]


def test_a_guest_that_a_task_has_locked_is_refused(run_module: Run, pve: Node) -> None:
    pve.place.config.write_text("lock: snapshot\n" + CONF)
    result = run_module(pve_container_raw, ask(MOUNT))
    assert result["rc"] == 1 and "it is locked (snapshot)" in result["msg"]
    assert result["findings"][0]["id"] == "PVE_GUEST_LOCKED"
    assert pve.place.config.read_text() == "lock: snapshot\n" + CONF
    assert not pve.place.record.exists() and not pve.place.lock.exists()
    foretold = run_module(pve_container_raw, ask(MOUNT), check=True)
    assert foretold["changed"] and [(f["id"], f["severity"]) for f in foretold["findings"]] == [
        ("PVE_GUEST_LOCKED", "warn")
    ]
    # What is right already needs no lock, and the lock of a snapshot's own section is none.
    assert not run_module(pve_container_raw, ask(USERS))["findings"]
    pve.place.config.write_text(CONF.replace("[before]\n", "[before]\nlock: snapshot\n"))
    assert run_module(pve_container_raw, ask(MOUNT))["changed"]


def test_a_lock_that_came_in_between_is_refused_too(
    run_module: Run, pve: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A backup begins after the file was looked at and before its lock is held."""
    really = node.locked

    def locked(place: node.Place) -> t.ContextManager[None]:
        place.config.write_text("lock: backup\n" + CONF)
        return really(place)

    monkeypatch.setattr(node, "locked", locked)
    assert "it is locked (backup)" in run_module(pve_container_raw, ask(MOUNT))["msg"]
    assert pve.place.config.read_text() == "lock: backup\n" + CONF


def test_what_somebody_wrote_past_the_lock_is_not_lost(
    run_module: Run, pve: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    really = conf.edit
    theirs = CONF.replace("memory: 4096", "memory: 8192")

    def edit(*args: t.Any) -> conf.Edit:
        made = really(*args)
        if pve.place.lock.exists():
            pve.place.config.write_text(theirs)
        return made

    monkeypatch.setattr(conf, "edit", edit)
    result = run_module(pve_container_raw, ask(MOUNT))
    assert result["rc"] == 1 and "somebody changed the file at this moment" in result["msg"]
    assert pve.place.config.read_text() == theirs


def test_the_lock_of_proxmox_is_respected(run_module: Run, pve: Node) -> None:
    pve.place.lock.parent.mkdir(parents=True)
    with open(pve.place.lock, "a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        result = run_module(pve_container_raw, ask(MOUNT))
    assert result["rc"] == 1 and "another process has held" in result["msg"]
    assert pve.place.config.read_text() == CONF
    assert run_module(pve_container_raw, ask(MOUNT))["changed"]


def test_what_proxmox_does_not_know_is_put_back(run_module: Run, pve: Node) -> None:
    result = run_module(pve_container_raw, ask(MOUNT, "lxc.nonsense: 1"))
    assert result["rc"] == 1 and "Proxmox does not know lxc.nonsense: 1; the file is as it was" in result["msg"]
    assert result["findings"][0]["id"] == "PVE_RAW_LINE_UNKNOWN"
    assert pve.place.config.read_text() == CONF


@pytest.mark.parametrize(
    "line", ["memory: 1", "lxc.rootfs.path: /x", "lxc.rootfs.options: ro", "lxc.a.b:", f"{MOUNT}\nmemory: 1"]
)
def test_what_is_no_raw_line_is_refused(run_module: Run, pve: Node, line: str) -> None:
    result = run_module(pve_container_raw, ask(line), check=True)
    assert result["rc"] == 1 and "is not a raw configuration line that Proxmox accepts" in result["msg"]


def test_a_file_that_can_not_be_written_is_still_whole(
    run_module: Run, pve: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.replace

    def read_only(source: t.Any, target: t.Any) -> None:
        if Path(target) == pve.place.config:
            raise PermissionError(1, "Operation not permitted")
        real(source, target)

    monkeypatch.setattr(files.os, "replace", read_only)
    result = run_module(pve_container_raw, ask(MOUNT))
    assert result["rc"] == 1 and "quorum" in result["msg"]
    assert pve.place.config.read_text() == CONF and os.listdir(pve.place.config.parent) == ["101.conf"]


def test_a_running_guest_asks_for_a_restart_until_it_had_one(run_module: Run, pve: Node) -> None:
    assert not run_module(pve_container_raw, ask(MOUNT))["restart_required"]
    pve.start(inode=7)
    assert not run_module(pve_container_raw, ask(MOUNT))["restart_required"]
    assert run_module(pve_container_raw, ask(MOUNT, MEMLOCK))["restart_required"]
    assert run_module(pve_container_raw, ask(MOUNT, MEMLOCK))["restart_required"]
    # Proxmox writes LXC's configuration at each change through its API too: that is no restart.
    pve.start(inode=7)
    assert run_module(pve_container_raw, ask(MOUNT, MEMLOCK))["restart_required"]
    pve.start(inode=8)
    assert not run_module(pve_container_raw, ask(MOUNT, MEMLOCK))["restart_required"]


def test_a_removed_line_asks_for_a_restart_and_one_that_came_back_does_not(run_module: Run, pve: Node) -> None:
    run_module(pve_container_raw, ask(MOUNT))
    pve.start()
    assert run_module(pve_container_raw, ask())["restart_required"]
    assert run_module(pve_container_raw, ask())["restart_required"]
    assert not run_module(pve_container_raw, ask(MOUNT))["restart_required"]


def test_a_line_that_somebody_wrote_by_hand_asks_for_a_restart(run_module: Run, pve: Node) -> None:
    pve.start()
    pve.place.config.write_text(CONF.replace(USERS, f"{USERS}\n{MOUNT}"))
    result = run_module(pve_container_raw, ask(MOUNT))
    assert not result["changed"] and result["restart_required"]


def test_a_run_that_was_killed_after_the_record_is_completed(run_module: Run, pve: Node) -> None:
    run_module(pve_container_raw, ask(MOUNT))
    pve.place.config.write_text(CONF)
    assert run_module(pve_container_raw, ask(MOUNT))["lines"] == [USERS, MOUNT]
    # Killed before the last record was written: what came is known for ours all the same.
    pve.place.record.write_text(json.dumps({**pve.record, "lines": [MOUNT, SHM], "devices": ["/dev/nvidia0"]}))
    assert run_module(pve_container_raw, ask())["lines"] == [USERS]
    assert pve.record["devices"] == ["/dev/nvidia0"]


def test_a_lost_record_makes_less_ours(run_module: Run, pve: Node) -> None:
    run_module(pve_container_raw, ask(MOUNT))
    pve.place.record.write_text("{half")
    assert run_module(pve_container_raw, ask())["unmanaged"] == [USERS, MOUNT]


def test_check_mode_tells_of_a_key_that_proxmox_does_not_know(run_module: Run, pve: Node) -> None:
    result = run_module(pve_container_raw, ask("lxc.nonsense: 1", MOUNT), check=True)
    assert [(f["id"], f["severity"]) for f in result["findings"]] == [("PVE_RAW_LINE_UNKNOWN", "warn")]
    assert "'lxc.nonsense: 1'" in result["findings"][0]["detail"]


def test_the_record_of_a_guest_that_was_destroyed_says_nothing_of_the_next_one(run_module: Run, pve: Node) -> None:
    run_module(pve_container_raw, ask(MOUNT))
    assert pve.record["guest"]["hwaddr"] == "BC:24:11:00:00:01"
    pve.place.config.write_text(CONF.replace("00:00:01", "00:00:02").replace(USERS, f"{USERS}\n{MOUNT}"))
    result = run_module(pve_container_raw, ask())
    assert result["unmanaged"] == [USERS, MOUNT] and not result["changed"]
    assert pve.record["lines"] == [] and pve.record["guest"]["hwaddr"] == "BC:24:11:00:00:02"


def test_a_guest_made_anew_with_the_same_address_is_another_one(run_module: Run, pve: Node) -> None:
    run_module(pve_container_raw, ask(MOUNT))
    pve.place.record.write_text(json.dumps({**pve.record, "guest": {**pve.record["guest"], "created": 1}}))
    assert node.identity(pve.place, CONF)["created"] > 1
    assert run_module(pve_container_raw, ask())["unmanaged"] == [USERS, MOUNT]


def test_bytes_that_are_no_text_survive(run_module: Run, pve: Node) -> None:
    pve.place.config.write_bytes(b"#caf\xe9\r\nmemory: 1\n[s]\n#\xff\n")
    run_module(pve_container_raw, ask(MEMLOCK))
    assert pve.place.config.read_bytes() == b"#caf\xe9\r\nmemory: 1\n" + MEMLOCK.encode() + b"\n[s]\n#\xff\n"


# What a file may be made of: (line, whether it is a raw one). Lines of ours in all spellings, of others, and what Proxmox
# would not understand.
PIECES = [
    *((MOUNT, True), (SHM, True), (MEMLOCK, True), ("lxc.prlimit.memlock =  unlimited ", True)),
    *((USERS, True), ("lxc.mount.entry: /a b none bind", True), ("lxc.cgroup2.devices.allow = c 195:* rwm", True)),
    *((f"{MOUNT}\t", True), ("lxc.mount.entry:/tight x none bind", True), ("lxc.environment: A=[b]", True)),
    *(("memory: 4096", False), ("memory: 8192", False), ("dev0: /dev/nvidia0,gid=44", False), ("tags:gpu", False)),
    *(("# a note: 100%25", False), ("#[not a section]", False), (f"#{MOUNT}", False), ("", False), ("   ", False)),
    *(("  cores: 4", False), (" lxc.indented: 1", False), ("no line of any kind", False), ("delete: dev0", False)),
    *(("description: caf\udce9\u2028x\x0by", False), (f"net0: {NET[6:]},name=[x]", False), ("LXC.UPPER: 1", False)),
]
HEADERS = ["[pve:pending]", "[before]", "[Before-2]", "[PVE:PENDING] ", "[x_y-z]", "[a]"]


def random_file(chance: random.Random) -> tuple[list[tuple[str, bool]], str, str]:
    """A main part as lines, its line end, and the sections after it."""
    end = chance.choice(["\n", "\n", "\n", "\r\n"])
    main = chance.choices(PIECES, k=chance.randint(0, 9))
    sections = ""
    for header in chance.sample(HEADERS, chance.randint(0, 3)):
        lines = [header, *(line for line, _ in chance.choices(PIECES, k=chance.randint(0, 6)))]
        sections += chance.choice(["", end]) + "".join(line + end for line in lines)
    # A file need not end with the end of a line.
    return main, end, sections[: -len(end)] if chance.random() < 0.3 else sections


@pytest.mark.parametrize("seed", range(60))
def test_whatever_is_in_the_file_only_what_is_ours_changes(run_module: Run, pve: Node, seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - for files, not for secrets
    main, end, sections = random_file(chance)
    text = "".join(line + end for line, _ in main) + sections
    written = text.encode("utf-8", "surrogateescape")
    pve.place.config.write_bytes(written)
    declared = chance.sample([MOUNT, SHM, MEMLOCK], chance.randint(0, 3))
    exclusive = chance.sample(["lxc.mount.entry", "lxc.cap.drop"], chance.choice([0, 0, 1]))

    def meant(line: str) -> str:
        """A raw line in the spelling in which it is declared."""
        return re.sub(r"^([a-z0-9.]+)(?::|\s*=)\s*", r"\1: ", line).strip()

    def check(result: dict[str, t.Any], wanted: list[str]) -> bytes:
        assert result["rc"] == 0, result
        content = pve.place.config.read_bytes()
        tail = sections.encode("utf-8", "surrogateescape")
        assert content.endswith(tail)
        head = content[: len(content) - len(tail)].decode("utf-8", "surrogateescape")
        # The empty line before the first section is of the main part, where it is the last.
        lines = [line.removesuffix("\r") for line in head.split("\n")]
        assert lines.pop() == ""
        assert [line for line in lines if not line.startswith("lxc.")] == [line for line, is_raw in main if not is_raw]
        users = [line for line, is_raw in main if is_raw and meant(line) not in [MOUNT, SHM, MEMLOCK]]
        kept = [line for line in users if meant(line).partition(":")[0] not in exclusive]
        raw = [line for line in lines if line.startswith("lxc.")]
        assert [line for line in raw if meant(line) not in [MOUNT, SHM, MEMLOCK]] == kept
        assert sorted(meant(line) for line in raw if meant(line) in wanted) == sorted(wanted)
        of_one_key = [line for line in wanted if line.startswith("lxc.mount.entry")]
        assert [meant(line) for line in raw if meant(line) in of_one_key] == of_one_key
        return content

    def run(*lines: str) -> tuple[dict[str, t.Any], bytes]:
        foretold = run_module(pve_container_raw, ask(*lines, exclusive_keys=exclusive), check=True)
        result = run_module(pve_container_raw, ask(*lines, exclusive_keys=exclusive))
        assert result["rc"] == 0, result
        assert foretold["changed"] == result["changed"] and foretold["diff"] == result["diff"]
        content = check(result, list(lines))
        assert result["changed"] == (content != before[-1])
        before.append(content)
        again = run_module(pve_container_raw, ask(*lines, exclusive_keys=exclusive))
        assert not again["changed"] and pve.place.config.read_bytes() == content
        return result, content

    before = [written]
    run(*declared)
    run(*declared[1:])
    run()
