# SPDX-License-Identifier: GPL-3.0-or-later
"""Base images: built once, whole or not at all, and one that cannot be had is said and left out."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import typing as t
from pathlib import Path

import images
import pytest

ROOT = Path(__file__).parents[3]
# Stands for mmdebstrap: writes what it is told to make, and fails for one release as it does without a way to the archive.
BUILDER = """#!/bin/sh
echo "$@" >> {log}
for word; do last=$word; done
case "$*" in
  *ubuntu-keyring*) mkdir -p "$last"; exit 0 ;;
  *noble*) echo "E: half a file" > "$last"; echo "E: apt-get update failed"; exit 25 ;;
esac
echo image > "$last"
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The calls of the builder, a line each."""
    (tmp_path / "bin").mkdir()
    builder = tmp_path / "bin/mmdebstrap"
    builder.write_text(BUILDER.format(log=tmp_path / "log"))
    builder.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setattr(images, "CACHE", tmp_path / "cache")
    return tmp_path / "log"


def rig() -> t.Any:
    loader = importlib.machinery.SourceFileLoader("rig_command", str(ROOT / "molecule/rig/rig"))
    spec = importlib.util.spec_from_loader("rig_command", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_an_image_is_built_once(log: Path) -> None:
    first = images.guest("debian-12")
    assert images.guest("debian-12") == first
    assert first.read_text() == "image\n"
    (call,) = log.read_text().splitlines()
    assert " bookworm " in call and "--include=apt,systemd," in call and "--keyring" not in call


def test_each_template_is_another_image(log: Path) -> None:
    assert images.guest("debian-12") != images.guest("debian-13")


def test_ubuntu_is_checked_with_the_keys_of_debians_package(log: Path) -> None:
    with pytest.raises(images.NotToBeHad):
        images.guest("ubuntu-24.04")
    keys, build = log.read_text().splitlines()
    assert "--include=ubuntu-keyring trixie" in keys
    assert "/usr/share/keyrings/ubuntu-archive-keyring.gpg" in build


def test_one_that_fails_says_why_and_leaves_nothing(log: Path, tmp_path: Path) -> None:
    with pytest.raises(images.NotToBeHad, match="E: apt-get update failed"):
        images.guest("ubuntu-24.04")
    assert list((tmp_path / "cache/images").iterdir()) == []


def test_one_that_cannot_be_had_is_said_and_left_out(
    log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    fleet: dict[str, t.Any] = {"template": "debian-13.tar.zst", "nodes": [{"name": "pve1"}]}
    rig().more_templates(tmp_path, fleet, ["debian-12", "ubuntu-24.04"])
    assert "rig: template ubuntu-24.04 cannot be had: E: apt-get update failed" in capsys.readouterr().out
    assert json.loads((tmp_path / "fleet.json").read_text())["templates"] == {
        "debian-13": "debian-13.tar.zst",
        "debian-12": "debian-12-standard_12.12-1_amd64.tar.zst",
    }
    cache = tmp_path / "lxc/pve1/rootfs/var/lib/vz/template/cache"
    assert [path.name for path in cache.iterdir()] == ["debian-12-standard_12.12-1_amd64.tar.zst"]
