# SPDX-License-Identifier: GPL-3.0-or-later
"""tools/setup finds the newest Python that really runs; a name on the PATH proves nothing."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

SETUP = Path(__file__).parents[3] / "tools/setup"


def interpreter(tmp_path: Path, programs: dict[str, str]) -> str:
    """What the script chooses with these programs first on the PATH, and no pyenv of the user's."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name, text in programs.items():
        (folder / name).write_text(text)
        (folder / name).chmod(stat.S_IRWXU)
    environment = {"PATH": f"{folder}:/usr/bin:/bin", "HOME": str(tmp_path), "PYENV_ROOT": str(tmp_path / "none")}
    done = subprocess.run([str(SETUP), "interpreter"], env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


# Says that it is Python 3.19, whatever it is asked.
NEWEST = "#!/bin/sh\necho 319\n"


def test_a_newer_one_that_runs_is_taken(tmp_path: Path) -> None:
    assert interpreter(tmp_path, {"python3.19": NEWEST}).endswith("python3.19")


@pytest.mark.parametrize(
    "shim",
    [
        "#!/bin/sh\necho 'pyenv: python3.19: command not found' >&2\nexit 127\n",
        "#!/no/such/interpreter\n",
        "#!/bin/sh\necho \"ModuleNotFoundError: No module named 'ensurepip'\" >&2\nexit 1\n",
    ],
    ids=["shim without a version", "broken shebang", "no ensurepip"],
)
def test_one_that_exists_but_does_not_run_fools_nobody(tmp_path: Path, shim: str) -> None:
    real = f'#!/bin/sh\nexec {os.path.realpath(sys.executable)} "$@"\n'
    chosen = interpreter(tmp_path, {"python3.19": shim, "python3.12": real})
    assert chosen
    assert not chosen.endswith("python3.19")
