# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of many files, by children that are forked."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible.module_utils.slipway.python import hashing
from ansible.module_utils.slipway.python.hashing import Wanted

# printf hello | sha256sum, sha512sum | cut -c-16; of nothing; of 9 MiB of zeros.
HELLO = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
HELLO_512 = "9b71d224bd62f378"
NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
ZEROS = "d2ee4703cd9698945ca7b9fe1689ea3095597eac1a0afd8dba00cac7894fdc43"


def files(folder: Path) -> list[Wanted]:
    (folder / "hello").write_text("hello")
    (folder / "empty").touch()
    (folder / "folder").mkdir()
    os.mkfifo(folder / "pipe")
    names = ["hello", "empty", "absent", "folder", "pipe"]
    return [Wanted(str(folder / name), 5) for name in names] + [Wanted(str(folder / "hello"), 5, "sha512")]


@pytest.mark.parametrize("workers", [0, 1, 3])
def test_digests_come_in_the_order_of_what_was_wanted(tmp_path: Path, workers: int) -> None:
    hello, empty, absent, folder, pipe, other = hashing.start(files(tmp_path), workers).results()
    assert (hello, empty, absent, folder, pipe) == (HELLO, NOTHING, "", "", NOTHING)
    assert other.startswith(HELLO_512) and len(other) == 128


def test_many_files_of_all_sizes(tmp_path: Path) -> None:
    for number in range(700):
        (tmp_path / str(number)).write_text("hello" if number % 2 else "")
    (tmp_path / "large").write_bytes(bytes(9 * 2**20))
    wanted = [Wanted(str(tmp_path / str(number)), 5 * (number % 2)) for number in range(700)]
    wanted.insert(350, Wanted(str(tmp_path / "large"), 9 * 2**20))
    digests = hashing.start(wanted, 4).results()
    assert digests.pop(350) == ZEROS
    assert digests == [NOTHING, HELLO] * 350


def test_nothing_is_nothing() -> None:
    assert hashing.start([]).results() == []


def test_a_child_that_is_killed_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hashing, "digest", lambda *_arguments: os.kill(os.getpid(), 9))
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="was killed"):
        hashing.start([Wanted(str(tmp_path / "file"), 0)], 2).results()


def test_stopped_children_are_gone(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    under_way = hashing.start([Wanted(str(tmp_path / "file"), 0)], 1)
    children = list(under_way.children)
    under_way.stop()
    assert len(children) == 1
    with pytest.raises(ChildProcessError):
        os.waitpid(children[0], 0)
    assert under_way.results() == [""]
