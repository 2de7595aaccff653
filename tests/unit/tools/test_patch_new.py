# SPDX-License-Identifier: GPL-3.0-or-later
"""A patch folder from edited files: what it holds applies, and leads to what was edited."""

from __future__ import annotations

import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.modules import site_patch
from patched_environment import BARE, DOS, FILES, MAIN, Environment, make_wheel

Run = t.Callable[..., dict[str, t.Any]]


@pytest.fixture
def new(tmp_path: Path, root: Path) -> t.Callable[..., subprocess.CompletedProcess[str]]:
    """The command, for files of the environment that were edited."""
    wheel, _line = make_wheel(tmp_path / "wheels")

    def run(environment: Environment, *paths: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, str(root / "tools/patch_new.py"), "mine", "--wheel", str(wheel)]
        command += ["--into", str(tmp_path / "patches"), *(str(environment.site / path) for path in paths)]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_edited_new_and_deleted_files_make_a_patch_that_applies(
    tmp_path: Path, new: t.Callable[..., subprocess.CompletedProcess[str]], run_module: Run
) -> None:
    edited = Environment(tmp_path / "edited")
    goal = {
        **{path: content for path, content in FILES.items() if path != "pkg/other.py"},
        "pkg/main.py": MAIN.replace(b"128", b"64") + b"# caf\xc3\xa9\n",
        "pkg/dos.txt": DOS.replace(b"two", b"2"),
        "pkg/bare.txt": BARE + b" one",
        "pkg/new.py": b"NEW = 1",
    }
    for path, content in goal.items():
        edited.write(path, content)
    (edited.site / "pkg/other.py").unlink()
    made = new(edited, "pkg/main.py", "pkg/dos.txt", "pkg/bare.txt", "pkg/new.py", "pkg/other.py")
    assert made.returncode == 0, made.stderr
    fresh = Environment(tmp_path / "fresh")
    given = {
        "venv": str(fresh.venv),
        "patches": [str(tmp_path / "patches/mine")],
        "record_directory": str(tmp_path / "records"),
    }
    assert run_module(site_patch, given)["rc"] == 0
    assert fresh.files == goal == edited.files
    assert run_module(site_patch, {**given, "state": "reverted"})["rc"] == 0
    assert fresh.files == FILES
    again = new(edited, "pkg/main.py")
    assert again.returncode == 1 and "Cannot make patch 'mine'" in again.stderr


def test_a_file_that_was_not_edited_and_one_that_is_nowhere(
    tmp_path: Path, new: t.Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    environment = Environment(tmp_path / "edited")
    assert "pkg/main.py is as the wheel has it" in new(environment, "pkg/main.py").stderr
    assert "does not lie below a folder site-packages" in new(environment, "/etc/passwd").stderr
    assert not (tmp_path / "patches").exists()
