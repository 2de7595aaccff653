# SPDX-License-Identifier: GPL-3.0-or-later
"""file_download, driven through main() against a web server on the loopback."""

from __future__ import annotations

import hashlib
import typing as t
from pathlib import Path

import package_servers
import pytest
from ansible.modules import file_download

Run = t.Callable[..., dict[str, t.Any]]
NAME = "NVIDIA-Linux-x86_64-580.105.08.run"
CONTENT = b"#!/bin/sh\n" + bytes(range(256)) * 64
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Place:
    """A server that has the file, with ranges or without, and the folder that keeps it."""

    def __init__(self, folder: Path, run_module: Run) -> None:
        self.folder, self._run_module = folder / "drivers", run_module
        self.content, self.ranges, self.status, self.login = CONTENT, True, 0, ""
        self.asked: list[tuple[str, str]] = []
        self.server = package_servers.Listener(self._answer)

    def _answer(self, request: t.Any) -> tuple[int, bytes]:
        wanted = request.headers.get("Range", "")
        self.asked.append((request.command, wanted))
        if self.status:
            return self.status, b""
        if self.login and request.headers.get("Authorization") != self.login:
            return 401, b""
        if request.command == "HEAD":
            return 200, b""
        if wanted and self.ranges:
            begin = int(wanted.removeprefix("bytes=").rstrip("-"))
            return (206, self.content[begin:]) if begin < len(self.content) else (416, b"")
        return 200, self.content

    def run(self, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        given = {"url": f"{self.server.address}/drivers/{NAME}", "sha256": SHA256, "path": str(self.folder)}
        return self._run_module(file_download, given | arguments, check)

    @property
    def file(self) -> Path:
        return self.folder / NAME

    @property
    def part(self) -> Path:
        return self.folder / f".{NAME}.part"


@pytest.fixture
def place(tmp_path: Path, run_module: Run, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Place]:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Place(tmp_path, run_module)
    yield made
    made.server.close()


def test_it_is_fetched_once(place: Place) -> None:
    first = place.run()
    assert (first["changed"], first["path"], place.file.read_bytes()) == (True, str(place.file), CONTENT)
    assert not place.part.exists()
    assert place.run()["changed"] is False
    assert place.asked == [("GET", "")]


def test_another_file_under_its_name_is_replaced(place: Place) -> None:
    place.folder.mkdir()
    place.file.write_bytes(b"torn")
    assert place.run()["changed"] is True
    assert place.file.read_bytes() == CONTENT


def test_what_had_come_is_gone_on_with(place: Place) -> None:
    place.folder.mkdir()
    place.part.write_bytes(CONTENT[:1000])
    assert place.run()["changed"] is True
    assert place.file.read_bytes() == CONTENT
    assert place.asked == [("GET", "bytes=1000-")]


def test_a_server_without_ranges_sends_all_of_it(place: Place) -> None:
    place.folder.mkdir()
    place.part.write_bytes(CONTENT[:1000])
    place.ranges = False
    place.run()
    assert place.file.read_bytes() == CONTENT


def test_a_part_that_is_longer_than_the_file_is_fetched_anew(place: Place) -> None:
    place.folder.mkdir()
    place.part.write_bytes(CONTENT + b"more")
    place.run()
    assert place.file.read_bytes() == CONTENT
    assert place.asked == [("GET", f"bytes={len(CONTENT) + 4}-"), ("GET", "")]


def test_another_sha256_leaves_nothing_behind(place: Place) -> None:
    place.content = CONTENT + b"x"
    failed = place.run()
    assert failed["rc"] == 1
    assert f"its sha256 is {hashlib.sha256(place.content).hexdigest()}, and {SHA256} is declared" in failed["msg"]
    assert not place.file.exists() and not place.part.exists()


def test_check_mode_asks_and_fetches_nothing(place: Place) -> None:
    told = place.run(check=True)
    assert (told["rc"], told["changed"], place.asked, place.folder.exists()) == (0, True, [("HEAD", "")], False)
    place.status = 404
    failed = place.run(check=True)
    assert failed["rc"] == 1
    assert failed["msg"].endswith("the server does not have it (404). Correct its address.")


def test_its_login_is_sent_and_never_shown(place: Place) -> None:
    place.login = "Basic dTpwLXc="  # u:p-w
    refused = place.run()
    assert refused["rc"] == 1 and "401" in refused["msg"]
    assert place.run(login="u:p-w")["changed"] is True


def test_a_server_that_is_not_there_is_a_sentence(place: Place) -> None:
    failed = place.run(url=f"http://127.0.0.1:1/{NAME}")
    assert failed["rc"] == 1
    assert failed["msg"].startswith(f"Cannot fetch file 'http://127.0.0.1:1/{NAME}' on ")
    assert "connection refused" in failed["msg"]


def test_a_proxy_that_does_not_answer_is_named(place: Place) -> None:
    failed = place.run(proxy="http://127.0.0.1:1")
    assert "the proxy does not answer" in failed["msg"] and "slipway_proxy" in failed["msg"]
    assert place.run(proxy="http://127.0.0.1:1", no_proxy=["127.0.0.1"])["changed"] is True


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"sha256": "abc"}, "'abc' is no sha256"),
        ({"url": "ftp://mirror.example/x.run"}, "does not begin with http:// or https://"),
        ({"url": "http://mirror.example/"}, "its address names no file"),
        ({"url": "http://mirror.example/a/..%2fx"}, "its address names no file"),
    ],
)
def test_what_makes_no_sense_is_refused(place: Place, arguments: dict[str, str], says: str) -> None:
    failed = place.run(**arguments)
    assert failed["rc"] == 1 and says in failed["msg"]
    assert not place.folder.exists() or not list(place.folder.glob("*"))


def test_a_sha256_in_capitals_is_the_same(place: Place) -> None:
    assert place.run(sha256=SHA256.upper())["changed"] is True
