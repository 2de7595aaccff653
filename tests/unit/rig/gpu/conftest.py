# SPDX-License-Identifier: GPL-3.0-or-later
"""A simulated machine in a folder: what its kernel would show, as a node sees it."""

from __future__ import annotations

import os
import shutil
import typing as t
from pathlib import Path

import pytest
from gpu import hardware, runfile
from simulated_gpus import SimulatedMachine

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


@pytest.fixture(scope="session")
def simulation(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The folder that stands for ``/``, and the simulated ``libcuda.so.1`` compiled for it."""
    if not shutil.which("gcc"):
        pytest.skip("no C compiler")
    folder = tmp_path_factory.mktemp("simulation")
    runfile.compile_libcuda(folder / "libcuda.so.1", VERSION, folder / "root")
    return folder / "root", folder / "libcuda.so.1"


@pytest.fixture
def gpus(simulation: tuple[Path, Path]) -> SimulatedMachine:
    """A machine with eight GPUs, two on each of four switches, on two sockets; nothing is wrong with it.

    Tests that change more of it than ``faults`` does take ``fresh_gpus``: making one is most of a test's time.
    """
    (simulation[0] / "proc/driver/gpu-faults").unlink(missing_ok=True)
    return SimulatedMachine(*simulation)


@pytest.fixture
def fresh_gpus(simulation: tuple[Path, Path]) -> t.Iterator[SimulatedMachine]:
    """The same, made for one test."""
    shutil.rmtree(simulation[0], ignore_errors=True)
    yield SimulatedMachine(*simulation)
    shutil.rmtree(simulation[0])
