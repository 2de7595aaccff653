# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import stat
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway import files


@pytest.fixture(autouse=True)
def strict_umask() -> t.Iterator[None]:
    old = os.umask(0o077)
    yield
    os.umask(old)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_was_there_is_replaced_and_has_the_mode_that_was_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("old, and longer")
    # Of a process with this number that was killed.
    (tmp_path / f"file.slipway.{os.getpid()}").write_text("half")
    files.replace(path, "new\r\n")
    assert (path.read_bytes(), mode(path), os.listdir(tmp_path)) == (b"new\r\n", 0o644, ["file"])
    files.replace(path, "", mode=0o660)
    assert (path.read_bytes(), mode(path)) == (b"", 0o660)


def test_a_file_system_that_refuses_chmod_is_not_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: t.Any) -> None:
        raise PermissionError(1, "Operation not permitted")

    for name in ("chmod", "fchmod"):
        monkeypatch.setattr(files.os, name, refuse)
    files.replace(tmp_path / "101.conf", "x", mode=0o640, chmod=False)
    assert mode(tmp_path / "101.conf") == 0o600
    with pytest.raises(PermissionError):
        files.replace(tmp_path / "102.conf", "x")
    assert os.listdir(tmp_path) == ["101.conf"]


@pytest.mark.parametrize("call", ["fsync", "replace"])
def test_a_write_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    path = tmp_path / "file"
    path.write_text("old")

    def fail(*_arguments: t.Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, call, fail)
    with pytest.raises(OSError, match="No space left"):
        files.replace(path, "new")
    assert (path.read_text(), os.listdir(tmp_path)) == ("old", ["file"])


def test_any_bytes_come_back(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"caf\xe9\r\n\xff\n")
    files.replace(path, files.read(path))
    assert path.read_bytes() == b"caf\xe9\r\n\xff\n"
