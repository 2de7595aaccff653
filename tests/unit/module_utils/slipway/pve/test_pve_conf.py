# SPDX-License-Identifier: GPL-3.0-or-later
"""Editing raw lines: what comes and goes, and that everything else stays as it was."""

from __future__ import annotations

import json
import random
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.pve import conf
from ansible.module_utils.slipway.pve.conf import Raw

MOUNT = Raw("lxc.mount.entry", "/srv/models srv/models none bind,ro,create=dir")
SHM = Raw("lxc.mount.entry", "tmpfs dev/shm tmpfs size=64G,create=dir 0 0")
MEMLOCK = Raw("lxc.prlimit.memlock", "unlimited")
SECTIONS = "\n[pve:pending]\ndelete: dev0\n\n[before]\n#note\nmemory: 4096\nlxc.prlimit.memlock: 8\ngpu0: yes"
MAIN = "# BEGIN ANSIBLE MANAGED BLOCK\narch: amd64\ngpu0: yes\nlxc.cap.drop = sys_rawio\nmemory: 4096\n"


def edit(text: str, declared: list[Raw], ours: t.Collection[Raw] = (), exclusive: t.Collection[str] = ()) -> conf.Edit:
    made = conf.edit(text, declared, ours, exclusive)
    again = conf.edit(made.text, declared, declared, exclusive)
    assert not again and again.text == made.text
    return made


def test_lines_go_after_the_last_raw_line_of_the_main_part() -> None:
    made = edit(MAIN + SECTIONS, [MOUNT, MEMLOCK])
    assert (
        made.text
        == MAIN.replace(
            "sys_rawio\n",
            "sys_rawio\nlxc.mount.entry: /srv/models srv/models none bind,ro,create=dir\nlxc.prlimit.memlock: unlimited\n",
        )
        + SECTIONS
    )
    assert made.added == (MOUNT, MEMLOCK) and made.removed == ()


def test_lines_go_to_the_end_of_the_main_part_where_there_is_no_raw_line() -> None:
    assert edit("memory: 4096\n\n[before]\nmemory: 1\n", [MEMLOCK]).text == (
        "memory: 4096\nlxc.prlimit.memlock: unlimited\n\n[before]\nmemory: 1\n"
    )
    assert edit("memory: 4096", [MEMLOCK]).text == "memory: 4096\nlxc.prlimit.memlock: unlimited\n"
    assert edit("", [MEMLOCK]).text == "lxc.prlimit.memlock: unlimited\n"
    assert edit("memory: 4096\r\n", [MEMLOCK]).text == "memory: 4096\r\nlxc.prlimit.memlock: unlimited\r\n"


def test_what_equals_a_declared_line_is_left_however_it_is_written() -> None:
    text = f"lxc.prlimit.memlock =   unlimited  \nmemory: 1\n{MOUNT}\n"
    assert not edit(text, [MEMLOCK, MOUNT])


@pytest.mark.parametrize(
    ("ours", "exclusive", "gone"),
    [
        ((), (), []),
        ([SHM], (), [SHM]),
        ((), ["lxc.mount.entry"], [SHM]),
        # In the record, and not in the file any more: nothing to do.
        ([Raw("lxc.x", "1")], ["lxc.y"], []),
    ],
)
def test_only_ours_and_exclusive_keys_go(ours: list[Raw], exclusive: list[str], gone: list[Raw]) -> None:
    made = edit(f"memory: 1\n{SHM}\n{MOUNT}\n", [MOUNT], ours, exclusive)
    assert list(made.removed) == gone
    assert made.text == ("memory: 1\n" if gone else f"memory: 1\n{SHM}\n") + f"{MOUNT}\n"


def test_the_order_within_a_key_is_the_declared_one() -> None:
    assert edit(f"{MOUNT}\n", [MOUNT, SHM]).text == f"{MOUNT}\n{SHM}\n"
    # The other order: one that nests in another must come after it, so both are put anew.
    assert edit(f"{MOUNT}\nmemory: 1\n", [SHM, MOUNT]).text == f"memory: 1\n{SHM}\n{MOUNT}\n"
    # Between different keys order says nothing.
    assert not edit(f"{MOUNT}\n{MEMLOCK}\n", [MEMLOCK, MOUNT])


def test_a_line_that_is_there_twice_is_there_once() -> None:
    assert edit(f"{MOUNT}\n{MEMLOCK}\n{MOUNT}\n", [MOUNT, MOUNT]).text == f"{MOUNT}\n{MEMLOCK}\n"


def test_a_snapshot_section_is_no_place_for_lines(shared_data: Path) -> None:
    # tteck/Proxmox#2230: appended at the end of the file, they are in the last snapshot.
    for name, case in json.loads((shared_data / "pve-golden.json").read_text())["configs"].items():
        text = case["input"]
        end = "\r\n" if "\r\n" in text else "\n"
        made = edit(text, [SHM]).text
        before, line, after = made.partition(f"{SHM}{end}")
        assert line and "\n[" not in before, name
        kept = before + after
        # A file without a final newline has one now.
        assert kept == text or kept == text + end, name


# Read at collection, so that each is a test of its own; there are none where the reference data is not.
GOLDEN_FILE = Path(__file__).resolve().parents[6] / "shared" / "data" / "pve-golden.json"
GOLDEN: dict[str, t.Any] = json.loads(GOLDEN_FILE.read_text())["configs"] if GOLDEN_FILE.is_file() else {}


@pytest.mark.parametrize("name", GOLDEN)
def test_a_golden_file_is_parsed_and_rendered_as_proxmox_does(name: str) -> None:
    case = GOLDEN[name]
    config = conf.parse(case["input"])
    # As JSON, in which 1 is not true and not "1".
    assert json.dumps(config.as_dict(), sort_keys=True) == json.dumps(case["parsed"], sort_keys=True)
    assert conf.render(config) == case["written"]
    again = conf.parse(case["written"])
    assert conf.render(again) == case["written"] and not any(part.lost for part in again.parts)
    unread = [line for part in config.parts for line in part.lost]
    assert all(any(line.partition(":")[0] in warning for warning in case["warnings"]) for line in unread)
    unheaded = [line for line in case["warnings"] if "unable to parse config" in line or "auto generated" in line]
    assert len(unread) == len(unheaded)


def test_every_golden_file_was_tried(shared_data: Path) -> None:
    assert len(GOLDEN) == len(json.loads((shared_data / "pve-golden.json").read_text())["configs"]) >= 19


def parsed(text: str) -> dict[str, t.Any]:
    """What is parsed beside the digest and what is empty."""
    found = conf.parse(text).as_dict()
    return {key: value for key, value in found.items() if key != "digest" and value}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("onboot: yes\nconsole: off\ndebug: maybe\n", {"onboot": 1, "debug": "maybe"}),
        ("memory: 1k\ncores: 04\ncpulimit: 1.5\n", {"memory": "1k", "cores": 4, "cpulimit": "1.5"}),
        ("delete: dev0\nmemory: 1\n", {"memory": 1}),
        ("[pve:pending]\ndelete: dev0,!net1\n", {"pending": {"delete": "dev0,!net1"}}),
        ("snapstate: prepare\n[s1]\nsnapstate: delete\n", {"snapshots": {"s1": {"snapstate": "delete"}}}),
        ("[s1]\nmemory: 1\n[s1]\ncores: 1\n", {"snapshots": {"s1": {"cores": 1}}}),
        ("[PVE:Pending]\ncores: 1\n[Two]  \ncores: 2\n", {"pending": {"cores": 1}, "snapshots": {"Two": {"cores": 2}}}),
        ("description: a%3Ab\n#c\n", {"description": "a:bc\n"}),
        ("#\n# x\n\n#caf%C3%A9\n", {"description": "\n x\ncafé\n"}),
        (
            "lxc.limit.nofile: 1\nlxc.utsname: x\nlxc.init.uid: 1\n",
            {"lxc": [["lxc.limit.nofile", "1"], ["lxc.utsname", "x"]]},
        ),
    ],
)
def test_what_no_golden_file_has(text: str, found: dict[str, t.Any]) -> None:
    assert parsed(text) == found


def test_what_is_rendered() -> None:
    config = conf.parse(
        "#é: 100%\nunused0: tank:vol-1\nunused1: tank:vol-2\nmp0: mp=/x,volume=tank:vol-1\nrootfs: a=1,a=2\n"
    )
    assert conf.render(config) == (
        "#%C3%A9%3A 100%25\nmp0: mp=/x,volume=tank:vol-1\nrootfs: a=1,a=2\nunused1: tank:vol-2\n"
    )
    # Perl's split leaves nothing of a description that is one empty line.
    assert conf.render(conf.parse("#\nmemory: 1\n")) == "memory: 1\n"
    config.main.settings["hostname"] = "a\nlock: backup"
    with pytest.raises(ValueError, match="has a line break"):
        conf.render(config)


def test_a_virtual_machine_has_another_header_of_what_is_pending() -> None:
    assert conf.pending("memory: 1\n\n[PENDING]\nhostpci0: 0000:06:00\n\n[s1]\nmemory: 2\n") == {
        "hostpci0": "0000:06:00"
    }
    assert conf.pending("memory: 1\n[pending]\nmemory: 2\n") == {}


def test_golden_files_are_read_as_proxmox_reads_them(shared_data: Path) -> None:
    unread = {"lxc.rootfs.path", "lxc.nonsense"}
    for name, case in json.loads((shared_data / "pve-golden.json").read_text())["configs"].items():
        parsed = case["parsed"]
        found = [[line.key, line.value] for line in conf.raw_lines(case["input"]) if line.key not in unread]
        assert found == parsed.get("lxc", []), name
        assert conf.lock(case["input"]) == parsed.get("lock"), name
        assert conf.digest(case["input"]) == parsed["digest"], name


def test_digest_is_of_the_bytes() -> None:
    text = b"#caf\xe9\n".decode("utf-8", "surrogateescape")
    assert conf.digest(text) == "f3107344be6c03e04f78f86c60f6b128b3f7ad5e"


def test_a_section_header_in_a_description_is_none() -> None:
    text = "#a\u2028[not a section]\nmemory: 1\n"
    assert edit(text, [MEMLOCK]).text == text + "lxc.prlimit.memlock: unlimited\n"


def test_random_files_keep_everything_that_is_not_ours() -> None:
    chance = random.Random(20261130)  # noqa: S311 - for files, not for secrets
    pieces = [
        f"{MOUNT}\n",
        f"{SHM}\n",
        "memory: 1\n",
        "#[note]\n",
        "\n",
        "  odd: 1\n",
        "lxc.a.b = 1\n",
        "\x0bx\n",
        "lxc.c: 2\n",
    ]
    for _ in range(300):
        main = "".join(chance.choices(pieces, k=chance.randint(0, 8)))
        sections = "".join(
            f"[s{number}]\n" + "".join(chance.choices(pieces, k=4)) for number in range(chance.randint(0, 3))
        )
        declared = chance.sample([MOUNT, SHM, MEMLOCK], chance.randint(0, 3))
        ours = chance.sample([MOUNT, SHM], 1)
        made = edit(main + sections, declared, ours)
        assert made.text.endswith(sections)
        changed = made.text[: len(made.text) - len(sections)]
        foreign = [line for line in main.splitlines() if conf.raw(line) not in [*declared, *ours]]
        assert [line for line in changed.splitlines() if conf.raw(line) not in [*declared, *ours]] == foreign
        assert sorted(line for line in conf.raw_lines(changed) if line in declared) == sorted(declared)
