# SPDX-License-Identifier: GPL-3.0-or-later
"""What uv would install, and a folder of it: uv, the index and the wheels are real."""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import threading
import time
import typing as t
from pathlib import Path

import package_servers
import pytest
from ansible.module_utils.slipway.python import chosen
from ansible.modules import lock_wheels_info, python_stack, wheel_cache
from package_servers import make_wheel

Run = t.Callable[..., dict[str, t.Any]]
UV = Path(sys.executable).parent / "uv"
ONE, TWO = "slip_one-1.0-py3-none-any.whl", "slip_two-2.0-py3-none-any.whl"


class Place:
    """An index with two wheels, the lock of both, and a folder for them."""

    def __init__(self, folder: Path, run_module: Run) -> None:
        self.wheels, self.cache = folder / "wheels", folder / "cache"
        self.wheels.mkdir()
        self.lock = make_wheel(self.wheels, "slip_one", "1.0", "A = 1\n")
        self.lock += make_wheel(self.wheels, "slip_two", "2.0", "B = 2\n")
        self.pages: dict[str, t.Any] = {}
        for name, file in (("slip-one", ONE), ("slip-two", TWO)):
            content = (self.wheels / file).read_bytes()
            sha256 = hashlib.sha256(content).hexdigest()
            self.pages[f"/simple/{name}/"] = f'<a href="/files/{file}#sha256={sha256}">{file}</a>'
            self.pages[f"/files/{file}"] = content
        self.server = package_servers.index(self.pages)
        self.run_module = run_module

    def choose(self, **arguments: t.Any) -> dict[str, t.Any]:
        given = {"lock_content": self.lock, "python": [sys.executable], "uv": str(UV)}
        given["index"] = f"{self.server.address}/simple"
        return self.run_module(lock_wheels_info, given | arguments)

    def keep(self, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        given = {"path": str(self.cache), "index": f"{self.server.address}/simple"}
        if "wheels" not in arguments:
            given["wheels"] = self.choose()["wheels"]
        return self.run_module(wheel_cache, given | arguments, check)

    @property
    def there(self) -> dict[str, bytes]:
        return {path.name: path.read_bytes() for path in self.cache.glob("*.whl")}

    @property
    def downloads(self) -> list[str]:
        return sorted(path for path in self.server.asked if path.startswith("/files/") and path.endswith(".whl"))


@pytest.fixture
def place(tmp_path: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Place]:
    for variable in [name for name in os.environ if name.startswith("UV_") or name.lower().endswith("_proxy")]:
        monkeypatch.delenv(variable)
    for name, value in (("UV_HTTP_RETRIES", "0"), ("UV_CACHE_DIR", str(tmp_path / "uv"))):
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    made = Place(tmp_path, run_module)
    yield made
    made.server.close()


def ids(result: dict[str, t.Any]) -> list[tuple[str, str]]:
    return [(one["id"], one["subject"]) for one in result["findings"]]


def test_uv_says_what_it_would_install_and_where_that_is(place: Place) -> None:
    result = place.choose()
    assert (result["rc"], result["changed"], result["findings"]) == (0, False, [])
    content = (place.wheels / ONE).read_bytes()
    assert result["wheels"][0] == {
        "name": "slip-one",
        "file": ONE,
        "url": f"{place.server.address}/files/{ONE}",
        "sha256": hashlib.sha256(content).hexdigest(),
        "size_bytes": 0,
    }
    assert [wheel["file"] for wheel in result["wheels"]] == [ONE, TWO]


def test_a_package_whose_marker_does_not_hold_here_is_not_chosen(place: Place) -> None:
    place.lock = place.lock.replace("slip_two==2.0", "slip_two==2.0 ; sys_platform == 'win32'")
    assert [wheel["file"] for wheel in place.choose()["wheels"]] == [ONE]


def test_an_index_that_says_no_and_a_python_that_is_none(place: Place) -> None:
    assert ids(place.choose(python=["/nonexistent/python"])) == [("PYTHON_MISSING", "/nonexistent/python")]
    place.pages["/simple/slip-one/"] = 503
    result = place.choose()
    assert [one[0] for one in ids(result)] == ["INDEX_UNREACHABLE"]
    assert result["msg"].startswith("Cannot choose the wheels of the lock on ")


def test_a_file_that_the_lock_does_not_mean_is_not_chosen(place: Place) -> None:
    other = "0" * 64
    place.pages["/simple/slip-one/"] = f'<a href="/files/{ONE}#sha256={other}">{ONE}</a>'
    result = place.choose()
    assert result["rc"] == 1 and ids(result)[0][0] in ("HASH_MISMATCH", "PACKAGE_UNAVAILABLE")


def test_an_address_is_told_without_its_login() -> None:
    text = """
[[packages]]
name = "Slip.One"
version = "1.0"
wheels = [{ url = "https://me:geheim@mirror.example/a%2Bb/slip_one-1.0%2Bcpu-py3-none-any.whl#sha256=0", size = 7, hashes = { sha256 = "ab" } }]
"""
    wheel = chosen.read(text)[0]
    assert wheel.url == "https://mirror.example/a%2Bb/slip_one-1.0%2Bcpu-py3-none-any.whl"
    assert (wheel.name, wheel.file, wheel.size_bytes) == ("slip-one", "slip_one-1.0+cpu-py3-none-any.whl", 7)


def test_what_is_missing_is_fetched_once(place: Place) -> None:
    foretold = place.keep(check=True)
    assert foretold["changed"] and foretold["fetched"] == [ONE, TWO] and not place.cache.exists()
    assert foretold["diff"][0]["after"] == f"{ONE}\n{TWO}\n"
    first = place.keep()
    assert (first["rc"], first["changed"], first["fetched"]) == (0, True, [ONE, TWO]), first
    assert place.there == {name: (place.wheels / name).read_bytes() for name in (ONE, TWO)}
    assert oct(place.cache.stat().st_mode)[-3:] == "755"
    assert {oct((place.cache / name).stat().st_mode)[-3:] for name in (ONE, TWO)} == {"644"}
    again = place.keep()
    assert (again["changed"], again["fetched"]) == (False, [])
    assert place.downloads == [f"/files/{ONE}", f"/files/{TWO}"]


def test_an_environment_is_built_from_it_whatever_uv_remembers_of_the_index(
    place: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", f"{place.server.address}/simple")
    place.keep()
    place.server.asked.clear()
    arguments = {"venv": str(tmp_path / "envs/one"), "lock_content": place.lock, "python": [sys.executable]}
    arguments |= {"uv": str(UV), "wheels": str(place.cache), "imports": ["slip_one", "slip_two"]}
    result = place.run_module(python_stack, arguments)
    assert (result["rc"], result["actions"]) == (0, ["build", "constrain"]), result
    next((tmp_path / "envs/one").glob("lib/python*/site-packages/slip_one.py")).unlink()
    result = place.run_module(python_stack, arguments)
    assert (result["rc"], result["actions"]) == (0, ["mend"]), result
    assert place.server.asked == []


def test_a_torn_file_is_fetched_again_and_a_strange_one_left_alone(place: Place) -> None:
    place.keep()
    (place.cache / ONE).write_bytes(b"torn")
    (place.cache / "mine-1.0-py3-none-any.whl").write_bytes(b"mine")
    (place.cache / f".{ONE}.part").write_bytes(b"half, of a run that was killed")
    assert place.keep()["fetched"] == [ONE]
    assert place.there[ONE] == (place.wheels / ONE).read_bytes()
    assert place.there["mine-1.0-py3-none-any.whl"] == b"mine"
    assert not list(place.cache.glob(".*.part"))


def test_another_file_than_the_lock_means_never_gets_the_name(place: Place) -> None:
    wheels = place.choose()["wheels"]
    place.pages[f"/files/{ONE}"] = b"something else"
    result = place.keep(wheels=wheels)
    assert result["rc"] == 1 and ids(result) == [("HASH_MISMATCH", "slip-one")]
    assert ONE not in place.there and not list(place.cache.glob(f".{ONE}.part"))


@pytest.mark.parametrize(
    ("status", "fault", "asked"),
    [(404, "PACKAGE_UNAVAILABLE", 1), (403, "INDEX_UNREACHABLE", 1), (503, "INDEX_UNREACHABLE", 3)],
)
def test_a_server_that_refuses(
    place: Place, monkeypatch: pytest.MonkeyPatch, status: int, fault: str, asked: int
) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    wheels = place.choose()["wheels"][:1]
    place.pages[f"/files/{ONE}"] = status
    result = place.keep(wheels=wheels)
    assert [one[0] for one in ids(result)] == [fault] and str(status) in result["msg"]
    assert len(place.downloads) == asked


def test_a_connection_that_breaks_is_tried_again(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "sleep", lambda seconds: None)
    wheels, whole = place.choose()["wheels"], place.server.answer
    broken: list[str] = []

    def answer(request: t.Any) -> tuple[int, bytes]:
        if request.path == f"/files/{ONE}" and not broken:
            broken.append(request.path)
            request.send_response(200)
            request.send_header("Content-Length", "1000")
            request.end_headers()
            request.wfile.write(b"half")
            request.wfile.flush()
            request.connection.shutdown(socket.SHUT_RDWR)
        return whole(request)

    place.server.answer = answer
    monkeypatch.setattr(place.server, "handle_error", lambda *arguments: None)  # of writing on after that
    assert place.keep(wheels=wheels)["rc"] == 0
    assert broken and place.there[ONE] == (place.wheels / ONE).read_bytes()


def test_the_login_goes_to_the_index_and_to_nobody_else(place: Place) -> None:
    wheels = place.choose()["wheels"]
    other = package_servers.index(place.pages)
    wheels[1]["url"] = f"{other.address}/files/{TWO}"
    place.server.logins.clear()
    assert place.keep(wheels=wheels, index_login="me:geheim")["rc"] == 0
    assert [login.partition(" ")[0] for login in place.server.logins] == ["Basic"]
    assert other.logins == [""]
    other.close()


def test_what_is_no_wheel_or_no_address_is_refused(place: Place) -> None:
    wheel = place.choose()["wheels"][0]
    for wrong in ({"file": "../x.whl"}, {"file": "x.tar.gz"}):
        assert place.keep(wheels=[wheel | wrong])["msg"].startswith(f"Cannot keep wheel '{wrong['file']}'")
    result = place.keep(wheels=[wheel | {"url": "file:///etc/passwd"}])
    assert "does not begin with http" in result["msg"] and place.there == {}


def test_too_little_room_is_told_before_anything_is_fetched(place: Place) -> None:
    wheels = [wheel | {"size_bytes": 2**60} for wheel in place.choose()["wheels"]]
    assert "MiB are to be fetched" in place.keep(wheels=wheels)["msg"]
    assert place.downloads == []


def test_two_runs_at_once_fetch_once(place: Place) -> None:
    from ansible.module_utils.slipway.python import cache, source

    wheels = [chosen.Wheel(**wheel) for wheel in place.choose()["wheels"]]
    runs = [
        threading.Thread(target=cache.fetch, args=(place.cache, wheels, source.Source(), 10)) for _number in range(4)
    ]
    for one in runs:
        one.start()
    for one in runs:
        one.join()
    assert place.downloads == [f"/files/{ONE}", f"/files/{TWO}"]
