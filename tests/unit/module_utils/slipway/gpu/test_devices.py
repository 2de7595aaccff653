# SPDX-License-Identifier: GPL-3.0-or-later
"""Nodes are links to devices that every machine has: /dev/null opens, /dev/tty has no terminal behind it (ENXIO)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from ansible.module_utils.slipway.gpu import devices
from ansible.module_utils.slipway.gpu.tree import Tree


@pytest.mark.parametrize(
    ("path", "major"),
    [
        ("/dev/nvidia0", 195),
        ("/dev/nvidiactl", 196),
        ("/dev/nvidia-modeset", 195),
        ("/dev/nvidia-uvm", 511),
        ("/dev/nvidia-uvm-tools", 511),
    ],
)
def test_the_major_is_that_of_the_driver_of_the_node(path: str, major: int) -> None:
    assert (
        devices.expected_major(path, {"nvidia": 195, "nvidiactl": 196, "nvidia-uvm": 511, "nvidia-caps": 234}) == major
    )


def test_majors_of_older_drivers_and_of_none() -> None:
    assert devices.expected_major("/dev/nvidiactl", {"nvidia-frontend": 195}) == 195
    assert devices.expected_major("/dev/nvidia-uvm", {"nvidia-frontend": 195}) is None
    assert devices.expected_major("/dev/nvidia0", None) is None


def test_nodes_are_listed_in_order_and_opened(tmp_path: Path) -> None:
    (tmp_path / "dev/nvidia-caps").mkdir(parents=True)
    for name, target in {
        "nvidia10": "null",
        "nvidia2": "null",
        "nvidia-uvm": "tty",
        "null": "null",
        "nvidia": "null",
        "nvidia3": "gone/null",
    }.items():
        (tmp_path / "dev" / name).symlink_to(f"/dev/{target}")
    (tmp_path / "dev/nvidiactl").write_text("")
    listed = devices.nodes(Tree(str(tmp_path)), {"nvidia": 1, "nvidia-uvm": 511}, 10)
    assert [(node["path"], node["major"], node["expected_major"], node["opens"]) for node in listed] == [
        ("/dev/nvidia2", 1, 1, "ok"),
        ("/dev/nvidia10", 1, 1, "ok"),
        ("/dev/nvidia-uvm", 5, 511, "ENXIO"),
        ("/dev/nvidiactl", None, 1, "not a device"),
    ]
    assert listed[0]["minor"] == 3
    assert (listed[0]["mode"], listed[0]["uid"], listed[0]["gid"]) == ("0666", 0, 0)


def test_a_node_that_hangs_is_named_and_those_after_it_are_not_called_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hanging: Path
) -> None:
    (tmp_path / "dev").mkdir()
    for name in ("nvidia0", "nvidia1", "nvidia2"):
        (tmp_path / "dev" / name).symlink_to("/dev/null")
    really = devices._open_one

    def open_one(path: str) -> str:
        if path.endswith("1"):
            hanging.touch()
            time.sleep(600)
        return really(path)

    monkeypatch.setattr(devices, "_open_one", open_one)
    listed = devices.nodes(Tree(str(tmp_path)), {}, 60)
    assert [node["opens"] for node in listed] == ["ok", "hung", "not tried"]


def test_a_node_is_opened_so_that_the_driver_must_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    given = []
    really = os.open
    monkeypatch.setattr(os, "open", lambda path, flags: given.append(flags) or really(path, flags))
    assert devices._open_one("/dev/null") == "ok"
    # With O_NONBLOCK the driver says yes before it has tried.
    assert [flags & (os.O_NONBLOCK | os.O_NOCTTY | os.O_ACCMODE) for flags in given] == [os.O_NOCTTY | os.O_RDWR]
