# SPDX-License-Identifier: GPL-3.0-or-later
"""Compilers of this machine for real; nvcc is a stand-in, since it comes with CUDA alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.modules import build_tools_info

NVCC = """#!/bin/sh
[ "$1" = --version ] && {{ echo 'Cuda compilation tools, release {release}, V{release}.93'; exit; }}
[ "$1" = -gencode=arch=compute_120,code=sm_120 ] && grep -q __global__ probe.cu || exit 1
{rest}
"""
# ninja is a package of the engine's stack and not of this project: only the one rule of the probe is needed here.
NINJA = """#!/bin/sh
cd "$2" && eval "$(sed -n 's/^  command = //p' build.ninja | sed 's/$in/probe.c/; s/$out/slipway_probe.so/')"
"""


class Machine:
    """A folder of programs that is the whole path, and an environment."""

    def __init__(self, folder: Path, run_module: t.Any) -> None:
        self.compiled: list[str] = []
        self.programs, self.venv, self.run_module = folder / "bin", folder / "env", run_module
        self.programs.mkdir()
        for name in ("cc", "c++", "sed", "sh", "grep", "as", "ld"):
            (self.programs / name).symlink_to(str(shutil.which(name)))
        self.program("ninja", NINJA)
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", self.venv], check=True)

    def program(self, name: str, text: str) -> None:
        (self.programs / name).write_text(text)
        (self.programs / name).chmod(0o755)

    def __call__(self, **arguments: t.Any) -> list[tuple[str, str, str]]:
        result = self.run_module(build_tools_info, {"venv": str(self.venv), "cuda_root": str(self.venv), **arguments})
        assert (result["rc"], result["changed"]) == (0, False)
        self.compiled = result["compiled"]
        return [(one["id"], one["subject"], one["detail"]) for one in result["findings"]]


@pytest.fixture
def machine(tmp_path: Path, run_module: t.Any, monkeypatch: pytest.MonkeyPatch) -> Machine:
    if not shutil.which("cc") or not shutil.which("c++"):
        pytest.skip("no C compiler here")
    made = Machine(tmp_path, run_module)
    monkeypatch.setenv("PATH", str(made.programs))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return made


def test_what_compiles_is_no_finding_and_leaves_nothing(machine: Machine, tmp_path: Path) -> None:
    before = sorted(os.listdir(tmp_path))
    machine.program("nvcc", NVCC.format(release="12.8", rest="exit 0"))
    assert machine(libraries=["libc.so.6"], cuda="12.8") == []
    assert machine.compiled == ["extension", "kernel"]
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.parametrize("name", ["cc", "c++", "ninja"])
def test_a_program_that_is_missing_is_named(machine: Machine, name: str) -> None:
    (machine.programs / name).unlink()
    assert machine() == [("BUILD_TOOL_MISSING", name, "")]


def test_a_library_that_does_not_load_is_named(machine: Machine) -> None:
    [(fault, subject, _detail)] = machine(libraries=["libnothing.so.9"])
    assert (fault, subject) == ("BUILD_TOOL_MISSING", "libnothing.so.9")


def test_a_header_that_is_missing_is_told(machine: Machine) -> None:
    (machine.programs / "cc").unlink()
    machine.program("cc", "#!/bin/sh\necho 'probe.c:2:10: fatal error: Python.h: No such file or directory'\nexit 1\n")
    [(fault, subject, detail)] = machine()
    assert (fault, subject) == ("BUILD_TOOL_BROKEN", "cc")
    assert "Python.h: No such file" in detail


def test_what_compiles_and_does_not_import_is_told(machine: Machine) -> None:
    machine.program("ninja", '#!/bin/sh\necho "not a library" > "$2/slipway_probe.so"\n')
    [(fault, _subject, detail)] = machine()
    assert fault == "BUILD_TOOL_BROKEN"
    assert "does not import" in detail


@pytest.mark.parametrize(
    ("nvcc", "fault", "part"),
    [
        (None, "BUILD_TOOL_MISSING", "cuda-12.8/bin nor on the path"),
        (
            NVCC.format(release="12.4", rest="exit 0"),
            "BUILD_TOOL_BROKEN",
            "it is of CUDA 12.4, and the stack is built for 12.8",
        ),
        ("#!/bin/sh\nexit 0\n", "BUILD_TOOL_BROKEN", "it tells no version"),
        (
            NVCC.format(release="12.8", rest="echo 'probe.cu(5): error: curand_kernel.h not found'; exit 2"),
            "BUILD_TOOL_BROKEN",
            "a kernel for SM120 does not compile: probe.cu(5): error",
        ),
        (NVCC.format(release="12.8", rest="exec sleep 60"), "BUILD_TOOL_BROKEN", "did not end within 1 seconds"),
    ],
)
def test_an_nvcc_that_is_of_no_use_is_told(machine: Machine, nvcc: str | None, fault: str, part: str) -> None:
    if nvcc:
        machine.program("nvcc", nvcc)
    if "sleep" in str(nvcc):
        (machine.programs / "sleep").symlink_to("/bin/sleep")
    [(found, _subject, detail)] = machine(cuda="12.8", timeout_seconds=1 if "sleep" in str(nvcc) else 60)
    assert (found, machine.compiled) == (fault, ["extension"])
    assert part in detail
