# SPDX-License-Identifier: GPL-3.0-or-later
"""Which environments go when the one in use is proven, and which stay."""

from __future__ import annotations

import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.modules import python_environments


class Folder:
    """Environments as python_stack leaves them."""

    def __init__(self, folder: Path, run_module: t.Any) -> None:
        self.folder, self.run_module = folder / "envs", run_module
        self.folder.mkdir()

    def made(self, name: str) -> Path:
        venv = self.folder / name
        (venv / "bin").mkdir(parents=True)
        (venv / "slipway.lock").write_text("x==1\n")
        self.folder.joinpath(f"{name}.lock").write_text("x==1\n")
        return venv

    def use(self, venv: Path) -> None:
        (self.folder / "current").unlink(missing_ok=True)
        (self.folder / "current").symlink_to(venv)

    def __call__(self, check: bool = False) -> dict[str, t.Any]:
        return self.run_module(python_environments, {"directory": str(self.folder)}, check)

    @property
    def names(self) -> list[str]:
        return sorted(os.listdir(self.folder))


@pytest.fixture
def envs(tmp_path: Path, run_module: t.Any) -> Folder:
    return Folder(tmp_path, run_module)


def test_the_one_before_goes_when_the_one_in_use_is_proven(envs: Folder) -> None:
    old, new = envs.made("old"), envs.made("new")
    envs.use(new)
    planned = envs(check=True)
    assert (planned["changed"], planned["removed"]) == (True, [str(old)])
    assert "old" in envs.names
    assert (planned["diff"][0]["before"], planned["diff"][0]["after"]) == ("new\nold\n", "new\n")
    done = envs()
    assert (done["rc"], done["changed"], done["removed"], done["proven"]) == (0, True, [str(old)], str(new))
    assert envs.names == ["current", "new", "new.lock", "proven"]
    assert os.readlink(envs.folder / "proven") == str(new)
    again = envs()
    assert (again["changed"], again["removed"]) == (False, [])


def test_what_is_half_built_or_half_removed_goes_too(envs: Folder) -> None:
    half = envs.folder / "half"
    half.mkdir()
    (envs.folder / ".half.incomplete").write_text("creating\n")
    envs.use(envs.made("new"))
    assert envs()["removed"] == [str(half)]
    assert envs.names == ["current", "new", "new.lock", "proven"]


def test_what_somebody_else_made_or_links_to_stays(envs: Folder) -> None:
    (envs.folder / "theirs/bin").mkdir(parents=True)
    (envs.folder / "notes.txt").write_text("mine")
    (envs.folder / "favourite").symlink_to(envs.made("linked"))
    envs.use(envs.made("new"))
    assert envs()["removed"] == []
    assert {"theirs", "notes.txt", "linked", "favourite"} <= set(envs.names)


def test_what_a_process_uses_stays_until_it_ends(envs: Folder) -> None:
    old = envs.made("old")
    (old / "bin/python").symlink_to(os.path.realpath(sys.executable))
    envs.use(envs.made("new"))
    with subprocess.Popen([old / "bin/python", "-c", "input()"], stdin=subprocess.PIPE) as process:
        told = envs()
        assert (told["removed"], told["used"]) == ([], [str(old)])
        assert process.stdin
        process.stdin.close()
    assert envs()["removed"] == [str(old)]


@pytest.mark.parametrize("state", ["no link", "dangling", "unfinished"])
def test_nothing_goes_where_nothing_is_in_use(envs: Folder, state: str) -> None:
    envs.made("old")
    if state != "no link":
        envs.use(envs.folder / "gone")
    if state == "unfinished":
        (envs.folder / "gone").mkdir()
    failed = envs()
    assert failed["rc"] == 1
    assert failed["msg"].startswith("Cannot settle environments of")
    assert "old" in envs.names


def test_a_killed_removal_is_completed_by_the_next(envs: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    old = envs.made("old")
    envs.use(envs.made("new"))

    def killed(path: Path) -> None:
        (path / "slipway.lock").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("shutil.rmtree", killed)
        with pytest.raises(KeyboardInterrupt):
            python_environments.run({"directory": str(envs.folder)}, check_mode=False)
    assert old.exists()
    assert envs()["removed"] == [str(old)]
    assert envs.names == ["current", "new", "new.lock", "proven"]
