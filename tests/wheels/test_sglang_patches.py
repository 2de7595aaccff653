# SPDX-License-Identifier: GPL-3.0-or-later
"""The shipped patches over the real wheels of SGLang, installed by the real uv with hard links into one cache.

It fetches some 10 MB from the package index that this machine is set up for. ``make test-full`` runs it (SLIPWAY_WHEELS=1), ``make unit`` does not.
"""

from __future__ import annotations

import base64
import csv
import hashlib
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.modules import lock_wheels_info, site_patch, wheel_cache

Run = t.Callable[..., dict[str, t.Any]]
pytestmark = pytest.mark.skipif(
    not os.environ.get("SLIPWAY_WHEELS"), reason="real wheels: SLIPWAY_WHEELS=1, with a network"
)
UV = Path(sys.executable).parent / "uv"
LOCKS = {
    "0.5.8.post1": "sglang==0.5.8.post1 --hash=sha256:3fe5ddf6d8b47b234bb192737eb52c94e76282bf910b1185e020f88ec7367e6e\n",
    "0.5.9": "sglang==0.5.9 --hash=sha256:8a936c4d25fea605f44254e533cff2144c73ceffbc1f8738aba393461bbb64d1\n",
}
TRITON = "sglang/srt/layers/attention/triton_ops"
EXTEND, PREFILL = f"{TRITON}/extend_attention.py", f"{TRITON}/prefill_attention.py"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uv-cache")


@pytest.fixture
def make(tmp_path: Path, cache: Path) -> t.Callable[[str, str], Path]:
    """An environment with SGLang alone, whose files are hard links into uv's cache."""

    def uv(*arguments: str) -> None:
        environment = {**os.environ, "UV_CACHE_DIR": str(cache), "UV_LINK_MODE": "hardlink"}
        subprocess.run([UV, "--quiet", *arguments], check=True, env=environment, cwd=tmp_path)

    def made(name: str, version: str) -> Path:
        venv, lock = tmp_path / name, tmp_path / f"{version}.lock"
        lock.write_text(LOCKS[version])
        uv("venv", "--no-project", "--python", sys.executable, str(venv))
        python = str(venv / "bin" / "python")
        uv("pip", "install", "--no-deps", "--require-hashes", "--python", python, "--requirements", str(lock))
        return venv

    return made


@pytest.fixture
def patch(tmp_path: Path, root: Path, run_module: Run) -> t.Callable[..., dict[str, t.Any]]:
    """The module with both shipped patches."""
    patches = [str(root / "patches" / f"sglang-sm120-{name}-attention") for name in ("extend", "prefill")]

    def run(venv: Path, state: str, **options: t.Any) -> dict[str, t.Any]:
        given = {"venv": str(venv), "patches": patches, "state": state, "record_directory": str(tmp_path / "records")}
        result = run_module(site_patch, {**given, **options})
        assert result["rc"] == 0, result["msg"]
        return result

    return run


def site(venv: Path) -> Path:
    (found,) = venv.glob("lib/python*/site-packages")
    return found


def differing(venv: Path) -> list[str]:
    """The files that are not as RECORD has them, read here by other code than Slipway's."""
    (record,) = site(venv).glob("sglang-*.dist-info/RECORD")
    with record.open(newline="") as file:
        rows = [row for row in csv.reader(file) if row[1]]
    found = []
    for path, told, _size in rows:
        digest = hashlib.sha256((site(venv) / path).read_bytes()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != told.partition("=")[2]:
            found.append(path)
    return found


def states(result: dict[str, t.Any]) -> list[str]:
    return [one["state"] for one in result["patches"]]


def test_applied_on_the_older_and_reverted_byte_for_byte(
    make: t.Callable[[str, str], Path], patch: t.Callable[..., dict[str, t.Any]]
) -> None:
    patched, other = make("patched", "0.5.8.post1"), make("other", "0.5.8.post1")
    assert (site(patched) / EXTEND).stat().st_ino == (site(other) / EXTEND).stat().st_ino, "one cache for both"
    assert (differing(patched), differing(other)) == ([], [])
    assert states(patch(patched, "applied")) == ["applied", "applied"]
    assert (differing(patched), differing(other)) == ([EXTEND, PREFILL], [])
    for path in (EXTEND, PREFILL):
        compile((site(patched) / path).read_bytes(), path, "exec")
    assert patch(patched, "applied")["changed"] is False
    assert states(patch(patched, "reverted")) == ["pristine", "pristine"]
    assert (differing(patched), differing(other)) == ([], [])
    again = make("again", "0.5.8.post1")
    assert differing(again) == [], "what the cache hands out next is the wheel's"


def test_already_upstream_on_the_newer(
    make: t.Callable[[str, str], Path], patch: t.Callable[..., dict[str, t.Any]]
) -> None:
    venv = make("newer", "0.5.9")
    assert states(patch(venv, "applied")) == ["upstream", "applied"]
    assert differing(venv) == [PREFILL]
    assert states(patch(venv, "reverted")) == ["upstream", "pristine"]
    assert differing(venv) == [], "upstream's own change is still there"


def test_a_release_with_the_change_by_hash(
    make: t.Callable[[str, str], Path], patch: t.Callable[..., dict[str, t.Any]]
) -> None:
    """Somebody put 0.5.9's file, which has pull request 14311, into the older release."""
    older, newer = make("older", "0.5.8.post1"), make("newer", "0.5.9")
    content = (site(newer) / EXTEND).read_bytes()
    (site(older) / EXTEND).unlink()
    (site(older) / EXTEND).write_bytes(content)
    assert states(patch(older, "applied")) == ["upstream", "applied"]
    assert (site(older) / EXTEND).read_bytes() == content


def test_the_files_of_the_wheel_back_after_debugging(
    tmp_path: Path, make: t.Callable[[str, str], Path], patch: t.Callable[..., dict[str, t.Any]], run_module: Run
) -> None:
    lock = LOCKS["0.5.8.post1"]
    chosen = run_module(lock_wheels_info, {"lock_content": lock, "python": [sys.executable], "uv": str(UV)})
    assert run_module(wheel_cache, {"path": str(tmp_path / "wheels"), "wheels": chosen["wheels"]})["rc"] == 0
    venv = make("debugged", "0.5.8.post1")
    patch(venv, "applied")
    for path in (EXTEND, f"{TRITON}/decode_attention.py"):
        content = (site(venv) / path).read_bytes()
        (site(venv) / path).unlink()
        (site(venv) / path).write_bytes(content + b"\ntorch.save({}, '/tmp/dump.pt')\n")
    restored = patch(venv, "restored", wheels=str(tmp_path / "wheels"), lock_content=lock)
    assert states(restored) == ["pristine", "pristine"]
    assert len(restored["files"]) == 3
    assert differing(venv) == []
