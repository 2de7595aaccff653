# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated machine in a folder: what its kernel would show, as a node sees it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from gpu import hardware, runfile

VERSION = "595.58.03"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine with four GPUs and no driver, laid out as a node's ``/``. Any device number counts as one that opens."""
    monkeypatch.setattr(hardware, "_opens", lambda path, major, minor: True)
    root = tmp_path / "machine"
    hardware.power_on(root, 4)
    (root / "etc").mkdir()
    (root / "etc/rig").mkdir()
    (root / "etc/rig/hardware").symlink_to(root / "hardware")
    return root


@pytest.fixture(scope="session")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The driver's package of ``VERSION``."""
    if not shutil.which("gcc"):
        pytest.skip("no C compiler")
    return runfile.build(tmp_path_factory.mktemp("package"), VERSION)


@pytest.fixture
def root_only() -> None:
    """Skip where device nodes cannot be made."""
    if os.geteuid():
        pytest.skip("only root can make device nodes")
