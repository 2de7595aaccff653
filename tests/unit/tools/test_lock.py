# SPDX-License-Identifier: GPL-3.0-or-later
"""tools/lock.py: what it makes of uv's answer, and uv itself against an index on the loopback."""

from __future__ import annotations

import hashlib
import json
import sys
import typing as t
from pathlib import Path

import package_servers
import pytest
from package_servers import make_wheel

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))
import lock
import wheel_metadata

TARGET = lock.Target("3.12", "x86_64-manylinux_2_36", "2026-03-16T00:00:00Z")


def package(name: str, version: str = "1.0", *digests: str) -> lock.Package:
    return lock.Package(
        name, version, tuple({"url": "", "hashes": {"sha256": digest}} for digest in digests or ("0" * 64,))
    )


def test_a_lock_is_sorted_and_holds_no_address() -> None:
    text = lock.render_lock([package("b", "2.0", "f" * 64, "0" * 64), package("a", "1.0", "1" * 64)], TARGET)
    assert text.splitlines()[3:] == [
        "a==1.0 \\",
        f"    --hash=sha256:{'1' * 64}",
        "b==2.0 \\",
        f"    --hash=sha256:{'0' * 64} \\",
        f"    --hash=sha256:{'f' * 64}",
    ]
    assert "CPython 3.12 on Linux with glibc 2.36" in text
    assert "//" not in text


@pytest.mark.parametrize(
    ("requires", "said"),
    [
        ("b>=1", []),
        ("b==2.0", ["a requires b==2.0, but 1.0 is installed"]),
        ("B_==2.0", ["a requires b-==2.0, but it's not installed"]),
        ("b<1,!=3", ["a requires b!=3,<1, but 1.0 is installed"]),
        ("b==2.0; python_version < '3.12'", []),
        (
            "b==2.0; sys_platform == 'linux' and platform_machine == 'x86_64'",
            ["a requires b==2.0, but 1.0 is installed"],
        ),
        ("b==2.0; extra == 'more'", []),
        ("c", ["a requires c, but it's not installed"]),
        ("b @ https://mirror.example/b.whl", []),
    ],
)
def test_what_a_dependency_check_will_say(requires: str, said: list[str]) -> None:
    assert lock.complaints([package("a"), package("b")], {"a": [requires], "b": []}, TARGET) == said


def test_a_pre_release_that_was_chosen_satisfies() -> None:
    assert lock.complaints([package("a"), package("b", "2.0rc1")], {"a": ["b>=1"], "b": []}, TARGET) == []


def test_a_requirement_that_nobody_can_read_is_told() -> None:
    with pytest.raises(lock.Unlockable, match=r"a 1\.0 requires 'b >> 2'"):
        lock.complaints([package("a")], {"a": ["b >> 2"]}, TARGET)


def test_only_an_override_explains_a_complaint() -> None:
    told = ["a requires b==2.0, but 1.0 is installed", "a requires b-more<1, but 2.0 is installed"]
    assert lock.unexplained(told, "# why\nB==1.0 # because\n") == told[1:]
    assert lock.unexplained(told, "") == told


RELEASES = (
    ("slip_one", "1.0", (), "2026-01-01"),
    ("slip_one", "2.0", (), "2026-01-01"),
    ("slip_two", "1.0", ("slip-one==1.0",), "2026-01-01"),
    ("slip_two", "1.1", (), "2026-03-17"),
)


@pytest.fixture
def index(tmp_path: Path) -> t.Iterator[package_servers.Listener]:
    """An index with these releases; it serves the metadata of one of them beside its wheel."""
    pages: dict[str, str | int | bytes] = {}
    projects: dict[str, list[dict[str, t.Any]]] = {}
    for name, version, requires, day in RELEASES:
        make_wheel(tmp_path, name, version, "", requires)
        file = f"{name}-{version}-py3-none-any.whl"
        content = (tmp_path / file).read_bytes()
        pages[f"/files/{file}"] = content
        told = {"filename": file, "url": f"/files/{file}", "hashes": {"sha256": hashlib.sha256(content).hexdigest()}}
        told |= {"size": len(content), "upload-time": f"{day}T00:00:00Z"}
        projects.setdefault(name.replace("_", "-"), []).append(told)
    for project, files in projects.items():
        pages[f"/simple/{project}/"] = json.dumps({"meta": {"api-version": "1.1"}, "name": project, "files": files})
    pages["/files/slip_one-2.0-py3-none-any.whl.metadata"] = b"Metadata-Version: 2.1\nName: slip-one\nVersion: 2.0\n"
    server = package_servers.index(pages)
    yield server
    server.close()


@pytest.fixture
def profile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, index: package_servers.Listener) -> Path:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{index.address}/simple")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=":")
    folder = tmp_path / "mine"
    (folder / "stack").mkdir(parents=True)
    (folder / "profile.yml").write_text(
        'stack: {target: {python: "3.12", platform: x86_64-manylinux_2_36, exclude_newer: "2026-03-16T00:00:00Z"}}\n'
    )
    (folder / "stack/requirements.in").write_text("slip-two\n")
    return folder


def test_a_profile_is_locked_by_uv(profile: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert lock.main([str(profile)]) == 0
    assert capsys.readouterr().out.startswith("mine: 2 packages, ")
    text = (profile / "stack/requirements.lock").read_text()
    digest = hashlib.sha256((tmp_path / "slip_one-1.0-py3-none-any.whl").read_bytes()).hexdigest()
    assert f"slip-one==1.0 \\\n    --hash=sha256:{digest}\nslip-two==1.0 \\\n" in text
    assert "127.0.0.1" not in text
    assert sorted(path.name for path in (profile / "stack").iterdir()) == ["requirements.in", "requirements.lock"]
    lock.main([str(profile)])
    assert (profile / "stack/requirements.lock").read_text() == text


def test_an_override_leaves_its_complaint_beside_the_lock(profile: Path) -> None:
    (profile / "stack/overrides.txt").write_text("slip-one==2.0\n")
    assert lock.main([str(profile)]) == 0
    assert "slip-one==2.0" in (profile / "stack/requirements.lock").read_text()
    said = (profile / "stack/expected-complaints.txt").read_text().splitlines()
    assert said[-1] == "slip-two requires slip-one==1.0, but 2.0 is installed"
    (profile / "stack/overrides.txt").unlink()
    assert lock.main([str(profile)]) == 0
    assert not (profile / "stack/expected-complaints.txt").exists()


def test_what_cannot_be_locked_leaves_everything_as_it_was(profile: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (profile / "stack/requirements.lock").write_text("old\n")
    (profile / "stack/requirements.in").write_text("slip-two\nslip-one==2.0\n")
    assert lock.main([str(profile)]) == 1
    said = capsys.readouterr().err
    assert said.startswith("Cannot lock profile 'mine': ")
    assert "slip-two" in said
    assert (profile / "stack/requirements.lock").read_text() == "old\n"


@pytest.mark.parametrize("text", ["stack: {}\n", "stack:\n", "- 1\n", "stack: {target: {python: '3.12'}}\n", None])
def test_a_profile_without_a_target_is_told(
    profile: Path, capsys: pytest.CaptureFixture[str], text: str | None
) -> None:
    (profile / "profile.yml").unlink()
    if text is not None:
        (profile / "profile.yml").write_text(text)
    assert lock.main([str(profile)]) == 1
    assert "profile.yml" in capsys.readouterr().err


def test_an_address_that_is_no_web_servers_is_not_opened() -> None:
    with pytest.raises(OSError, match="web server"):
        wheel_metadata.metadata({"url": "file:///etc/passwd", "size": 1})
