# SPDX-License-Identifier: GPL-3.0-or-later
"""The drivers as Debian packages. That apt installs them is shown on a node and in a guest."""

from __future__ import annotations

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest
from gpu import packages


@pytest.fixture(scope="module")
def repository(package: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("dpkg-deb"):
        pytest.skip("needs dpkg-deb")
    folder = tmp_path_factory.mktemp("repository")
    shutil.copy(package, folder / "NVIDIA-Linux-x86_64-595.58.03.run")
    return packages.build(folder)


def test_the_index_names_each_package_once(repository: Path) -> None:
    index = (repository / "Packages").read_text()
    assert re.findall(r"^Package: (.+)\nVersion: (.+)$", index, re.MULTILINE) == [
        ("libcuda1", "595.58.03-1"),
        ("libnvidia-ml1", "595.58.03-1"),
        ("nvidia-driver-cuda", "595.58.03-1"),
        ("nvidia-kernel-open-dkms", "595.58.03-1"),
        ("nvidia-modprobe", "595.58.03-1"),
        ("nvidia-open", "595.58.03-1"),
        ("nvidia-persistenced", "595.58.03-1"),
    ]
    assert "Depends: nvidia-driver-cuda (= 595.58.03-1), nvidia-kernel-open-dkms (= 595.58.03-1)" in index


def test_the_user_part_holds_the_library_and_no_module(repository: Path) -> None:
    line = ["dpkg-deb", "--contents", repository / "libcuda1_595.58.03-1_amd64.deb"]
    listed = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert "./usr/lib/x86_64-linux-gnu/libcuda.so.1 -> libcuda.so.595.58.03" in listed
    assert ".ko" not in listed


def test_done_again_it_does_nothing_until_there_is_another_driver(repository: Path) -> None:
    mark = repository / ".made-from"
    before = mark.stat().st_mtime_ns
    packages.build(repository.parent)
    assert mark.stat().st_mtime_ns == before
    with tarfile.open(repository.parent / "packages.tar") as tar:
        assert "Packages" in tar.getnames()
        assert ".made-from" not in tar.getnames()
