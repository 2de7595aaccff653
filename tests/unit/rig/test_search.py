# SPDX-License-Identifier: GPL-3.0-or-later
"""Secrets are found where they lie, in base64 too, and never shown."""

from __future__ import annotations

import base64
import io
import os
import time
from pathlib import Path

import pytest
import search

SECRET = "S3cretOfTheTest"
OTHER = "another-secret-x"


def places(folder: Path, *also: Path, since: float = 0) -> list[str]:
    secrets = search.read(io.StringIO(f"{SECRET}\n{OTHER}\n"))
    return search.places(secrets, folder, [], [(above, since) for above in also])


@pytest.mark.parametrize("before", ["", "a", "ab", "abc"])
@pytest.mark.parametrize("after", ["", "z", "\n"])
def test_in_base64_at_every_offset(tmp_path: Path, before: str, after: str) -> None:
    (tmp_path / "slurped").write_bytes(b"content: " + base64.b64encode(f"{before}{SECRET}{after}".encode()))
    (tmp_path / "slurped").chmod(0o640)
    assert places(tmp_path) == [f"1 slurped -rw-r----- {os.getuid()}:{os.getgid()}"]


def test_each_place_and_none_else(tmp_path: Path) -> None:
    rig, outside = tmp_path / "rig", tmp_path / "outside"
    (rig / "lxc").mkdir(parents=True)
    outside.mkdir()
    (rig / "lxc/binary").write_bytes(b"\0\xff" + SECRET.encode() + b"\0")
    (rig / "lxc/both").write_text(f"{OTHER} {SECRET}")
    (rig / "lxc/empty").touch()
    (rig / "lxc/part").write_text(SECRET[:-1])
    (outside / "log").write_text(OTHER)
    (outside / "link").symlink_to("log")
    found = places(rig, outside)
    assert [line.split()[:2] for line in found] == [
        ["1", "lxc/binary"],
        ["1", "lxc/both"],
        ["2", f"{outside}/log"],
        ["2", "lxc/both"],
    ]
    assert SECRET not in "".join(found)


def test_of_other_folders_what_is_new(tmp_path: Path) -> None:
    (tmp_path / "rig").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/log").write_text(SECRET)
    assert len(places(tmp_path / "rig", tmp_path / "other", since=time.time() - 60)) == 1
    assert places(tmp_path / "rig", tmp_path / "other", since=time.time() + 60) == []


@pytest.mark.parametrize("text", ["", "\n\n", "short\n"])
def test_nothing_to_look_for_is_an_error(text: str) -> None:
    with pytest.raises(SystemExit, match="give the secrets on standard input"):
        search.read(io.StringIO(text))


def test_command_lines(tmp_path: Path) -> None:
    secrets = search.read(io.StringIO(f"{SECRET}\n{OTHER}\n"))
    # The shell's own command line has the one; the other comes in two parts that only its variable joins.
    shell = f"two=another-sec; two=${{two}}ret-x; : {SECRET}; sleep 0.5; exit 7"
    status = search.watch(secrets, ["sh", "-c", shell], tmp_path / "seen")
    assert status == 7
    assert (tmp_path / "seen").read_text() == "1 command line of sh\n"


def test_quiet_command(tmp_path: Path) -> None:
    secrets = search.read(io.StringIO(f"{SECRET}\n"))
    assert search.watch(secrets, ["true"], tmp_path / "seen") == 0
    assert (tmp_path / "seen").read_text() == ""
