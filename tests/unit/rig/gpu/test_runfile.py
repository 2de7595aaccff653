# SPDX-License-Identifier: GPL-3.0-or-later
"""The package as a program: what it says of itself, and which options it takes. What it installs is shown on a node."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from gpu import runfile
from gpu.kmod import read_image

VERSION = "595.58.03"


def run(program: Path, *arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["sh", str(program), *arguments], capture_output=True, text=True, cwd=cwd, timeout=30)


@pytest.fixture
def unpacked(package: Path, tmp_path: Path) -> Path:
    assert run(package, "-x", cwd=tmp_path).returncode == 0
    return tmp_path / f"NVIDIA-Linux-x86_64-{VERSION}"


def test_name_and_identity(package: Path) -> None:
    assert package.name == f"NVIDIA-Linux-x86_64-{VERSION}.run"
    assert f"Linux-x86_64 {VERSION}" in run(package, "--info").stdout
    assert run(package, "--version").stdout.strip() == f"nvidia-installer:  version {VERSION}"
    assert run(package, "--check").stdout == "Verifying archive integrity... OK\n"


def test_a_damaged_package_is_refused(package: Path, tmp_path: Path) -> None:
    damaged = tmp_path / package.name
    damaged.write_bytes(package.read_bytes()[:-100])
    done = run(damaged, "--silent", "--no-kernel-modules")
    assert done.returncode == 1
    assert "Error in checksums" in done.stderr


def test_contents(unpacked: Path) -> None:
    assert read_image(unpacked / "open/nvidia-uvm.ko").version == VERSION
    assert read_image(unpacked / "open/nvidia.ko").is_open
    assert not read_image(unpacked / "proprietary/nvidia.ko").is_open
    for script in ("nvidia-smi", "nvidia-modprobe", "nvidia-installer"):
        text = (unpacked / script).read_text()
        assert f"version={VERSION}\n" in text
        assert "@VERSION@" not in text and "@CUDA@" not in text and "@MEMORY_MIB@" not in text


@pytest.mark.parametrize(
    "arguments",
    [
        ["--bogus"],
        ["--silent", "--no-such-check"],
        ["--silent=yes"],
        ["--kernel-name"],
        ["--ui=gtk"],
        ["-M=closed"],
        ["-m=source"],
        ["leftover"],
    ],
)
def test_unknown_options_end_it_before_anything_is_done(unpacked: Path, arguments: list[str]) -> None:
    # A log that cannot be written would stop it in any case: nothing is ever installed by this test.
    done = run(unpacked / "nvidia-installer", "--log-file-name=/nonexistent/log", *arguments)
    assert done.returncode == 1
    assert "ERROR: Invalid" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        "--silent --no-questions --ui=none --accept-license --kernel-module-type=open --no-x-check --no-nouveau-check --dkms",
        "-s -q -a -m=kernel-open --no-kernel-module --no-nvidia-modprobe --no-install-compat32-libs --no-opengl-files",
        "-s -M proprietary --no-kernel-modules --no-systemd --no-drm --no-dkms --disable-nouveau --no-rebuild-initramfs",
        "--rebuild-initramfs --tmpdir=/tmp --tmpdir /tmp -k 6.1 --kernel-name=6.1 --skip-module-load --ui none -j 2",
    ],
)
def test_known_options(unpacked: Path, arguments: str) -> None:
    """Taken to the end of the line, where the last option makes it print something and stop."""
    done = run(unpacked / "nvidia-installer", *arguments.split(), "--print-recommended-kernel-module-type")
    assert (done.returncode, done.stdout, done.stderr) == (0, "open\n", "")


def test_cuda_version_of_a_branch() -> None:
    assert [runfile.cuda_version(v) for v in ("595.58.03", "580.95.05", "585.10", "575.57.08")] == [
        13020,
        13000,
        13000,
        12090,
    ]


def test_a_name_that_is_no_version(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="not a driver version"):
        runfile.build(tmp_path, "latest")
