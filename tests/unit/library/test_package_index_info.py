# SPDX-License-Identifier: GPL-3.0-or-later
"""The index as a machine reaches it: real sockets on the loopback, and every way in which they can disappoint."""

from __future__ import annotations

import errno
import socket
import ssl
import subprocess
import typing as t
import urllib.error
from pathlib import Path

import package_servers
import pytest
from ansible.module_utils.slipway.python import index
from ansible.modules import package_index_info

Run = t.Callable[..., dict[str, t.Any]]
ONE, TWO = "1" * 64, "2" * 64
LOCK = f"slip-one==1.0 --hash=sha256:{ONE}\nslip_two==2.0 --hash=sha256:{TWO}\n"
PAGES: dict[str, t.Any] = {
    "/simple/slip-one/": f'<a href="slip_one-1.0.whl#sha256={ONE}">',
    "/simple/slip-two/": '{"files": [{"hashes": {"sha256": "' + TWO + '"}}]}',
}


@pytest.fixture
def serve() -> t.Iterator[t.Callable[[package_servers.Listener], package_servers.Listener]]:
    running: list[package_servers.Listener] = []

    def start(listener: package_servers.Listener) -> package_servers.Listener:
        running.append(listener)
        return listener

    yield start
    for listener in running:
        listener.close()


def found(result: dict[str, t.Any]) -> list[tuple[str, str]]:
    assert (result["rc"], result["changed"]) == (0, False)
    return [(one["id"], one["subject"]) for one in result["findings"]]


@pytest.mark.parametrize("check", [False, True])
def test_an_index_that_has_all_of_it(serve: t.Any, run_module: Run, check: bool) -> None:
    mirror = serve(package_servers.index(PAGES))
    result = run_module(
        package_index_info,
        {"index": f"{mirror.address}/simple", "index_login": "me:p%40ss", "lock_content": LOCK},
        check,
    )
    assert found(result) == []
    assert result["packages"] == 2
    assert sorted(mirror.asked) == ["/simple/slip-one/", "/simple/slip-two/"]
    assert mirror.logins == ["Basic bWU6cEBzcw=="] * 2  # me:p@ss


def test_packages_and_files_that_it_does_not_have(serve: t.Any, run_module: Run) -> None:
    pages = {"/simple/slip-one/": f'<a href="slip_one-1.0.whl#sha256={TWO}">'}
    result = run_module(
        package_index_info, {"index": f"{serve(package_servers.index(pages)).address}/simple/", "lock_content": LOCK}
    )
    assert found(result) == [("PACKAGE_UNAVAILABLE", "slip-one"), ("PACKAGE_UNAVAILABLE", "slip-two")]
    assert "none of its files is one that the lock means by version 1.0" in result["findings"][0]["detail"]
    assert "the index does not have it (404)" in result["findings"][1]["detail"]


def test_a_listing_without_hashes_tells_nothing_of_them(serve: t.Any, run_module: Run) -> None:
    pages = {"/simple/slip-one/": '<a href="slip_one-1.0.whl">', "/simple/slip-two/": ""}
    arguments = {"index": f"{serve(package_servers.index(pages)).address}/simple", "lock_content": LOCK}
    assert found(run_module(package_index_info, arguments)) == []


@pytest.mark.parametrize(
    ("status", "fault", "words"),
    [
        (401, "INDEX_UNREACHABLE", "it refuses with 401"),
        (403, "INDEX_UNREACHABLE", "it refuses with 403"),
        (502, "INDEX_UNREACHABLE", "it answers 502"),
    ],
)
def test_an_index_that_refuses(serve: t.Any, run_module: Run, status: int, fault: str, words: str) -> None:
    mirror = serve(package_servers.index({"/simple/slip-one/": status}))
    result = run_module(package_index_info, {"index": f"{mirror.address}/simple", "lock_content": LOCK})
    assert found(result) == [(fault, f"{mirror.address}/simple")]
    assert words in result["findings"][0]["detail"]
    assert mirror.asked == ["/simple/slip-one/"], "the others would say the same"


@pytest.mark.parametrize("failing", [2, 3])
def test_one_answer_of_many_that_gets_lost(
    serve: t.Any, run_module: Run, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    monkeypatch.setattr(index, "PAUSES_SECONDS", (0.0, 0.0))
    whole = package_servers.index(PAGES)
    serve(whole)

    def answer(request: t.Any) -> tuple[int, bytes]:
        lost = request.path == "/simple/slip-two/" and request.server.asked.count(request.path) <= failing
        return (503, b"") if lost else whole.answer(request)

    mirror = serve(package_servers.Listener(answer))
    result = run_module(package_index_info, {"index": f"{mirror.address}/simple", "lock_content": LOCK})
    assert mirror.asked.count("/simple/slip-two/") == 3
    assert found(result) == ([] if failing == 2 else [("INDEX_UNREACHABLE", f"{mirror.address}/simple")])


def test_an_index_that_nobody_serves(run_module: Run) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, and nobody listens
        result = run_module(
            package_index_info, {"index": f"http://127.0.0.1:{taken.getsockname()[1]}/simple", "lock_content": LOCK}
        )
    assert [one[0] for one in found(result)] == ["INDEX_UNREACHABLE"]
    assert "connection refused" in result["findings"][0]["detail"]


def test_an_address_that_is_none(run_module: Run) -> None:
    for address in ("", "file:///srv/simple"):
        result = run_module(package_index_info, {"index": address, "lock_content": LOCK})
        assert [one[0] for one in found(result)] == ["INDEX_UNREACHABLE"]


def test_an_index_that_says_nothing(run_module: Run) -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen()
        result = run_module(
            package_index_info,
            {"index": f"http://127.0.0.1:{silent.getsockname()[1]}", "lock_content": LOCK, "timeout_seconds": 1},
        )
    assert "it did not answer in time" in result["findings"][0]["detail"]


def test_through_a_proxy_with_a_login(serve: t.Any, run_module: Run) -> None:
    mirror = serve(package_servers.index(PAGES))
    guard = serve(package_servers.proxy(login="me:p@ss"))
    arguments = {"index": f"{mirror.address}/simple", "proxy": guard.address, "lock_content": LOCK}
    assert found(run_module(package_index_info, {**arguments, "proxy_login": "me:p%40ss"})) == []
    assert len(guard.asked) == 2, "it went through the proxy"

    refused = run_module(package_index_info, arguments)
    assert [one[0] for one in found(refused)] == ["PROXY_REFUSED"]
    assert "the proxy asks for a login (407)" in refused["findings"][0]["detail"]
    assert "slipway_proxy" in refused["findings"][0]["remedy"]

    assert found(run_module(package_index_info, {**arguments, "no_proxy": ["127.0.0.1"]})) == []


def test_a_tunnel_that_is_refused_and_a_proxy_that_is_not_there(serve: t.Any, run_module: Run) -> None:
    guard = serve(package_servers.proxy(status=403))
    arguments = {"index": "https://mirror.invalid/simple", "lock_content": LOCK}
    refused = run_module(package_index_info, {**arguments, "proxy": guard.address})
    assert found(refused) == [("PROXY_REFUSED", "https://mirror.invalid/simple")]
    assert "does not let the connection through (403)" in refused["findings"][0]["detail"]
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        gone = run_module(package_index_info, {**arguments, "proxy": f"http://127.0.0.1:{taken.getsockname()[1]}"})
    assert [one[0] for one in found(gone)] == ["PROXY_REFUSED"]
    assert "the proxy does not answer: connection refused" in gone["findings"][0]["detail"]


def test_a_certificate_of_an_own_ca(serve: t.Any, run_module: Run, tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "ca.pem"
    subject = ["-subj", "/CN=own", "-addext", "subjectAltName=IP:127.0.0.1", "-days", "2"]
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", *subject]
    subprocess.run([*command, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    mirror = serve(package_servers.index(PAGES))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    mirror.socket = context.wrap_socket(mirror.socket, server_side=True)
    arguments = {"index": f"{mirror.address.replace('http', 'https')}/simple", "lock_content": LOCK}
    untrusted = run_module(package_index_info, arguments)
    assert [one[0] for one in found(untrusted)] == ["CA_UNTRUSTED"]
    assert "slipway_ca_bundle" in untrusted["findings"][0]["remedy"]
    assert found(run_module(package_index_info, {**arguments, "ca_content": certificate.read_text()})) == []


@pytest.mark.parametrize(
    ("error", "fault", "words"),
    [
        (socket.gaierror(socket.EAI_AGAIN, "Temporary failure"), "NETWORK_UNREACHABLE", "no name server answers"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service"), "INDEX_UNREACHABLE", "nobody knows its name"),
        (OSError(errno.ENETUNREACH, "unreachable"), "NETWORK_UNREACHABLE", "no route leads there"),
        (OSError(errno.ECONNRESET, "reset by peer"), "INDEX_UNREACHABLE", "reset by peer"),
    ],
)
def test_no_network_is_not_an_index_that_is_down(error: OSError, fault: str, words: str) -> None:
    told = index.explain(urllib.error.URLError(error), proxied=False)
    assert told[0] == fault
    assert words in told[1]


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        *(("mirror.example", True), ("a.mirror.example", True), ("badmirror.example", False), ("other.example", False)),
        *(("198.51.100.7", True), ("198.51.101.7", False), ("[2001:db8::7]", True), ("2001:db9::7", False)),
    ],
)
def test_what_is_reached_without_the_proxy(host: str, expected: bool) -> None:
    assert index.bypassed(host, ["", ".mirror.example", "198.51.100.0/24", "2001:db8::/32", "no/network"]) is expected


def test_a_lock_that_cannot_be_read(run_module: Run) -> None:
    failed = run_module(package_index_info, {"lock_content": "slip_one>=1", "index": "http://127.0.0.1:1"})
    assert failed["rc"] == 1
    assert [one["id"] for one in failed["findings"]] == ["LOCK_INVALID"]
