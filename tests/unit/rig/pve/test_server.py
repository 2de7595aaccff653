# SPDX-License-Identifier: GPL-3.0-or-later
"""The server as its clients see it: proxmoxer with a token and with a password, over TLS that is verified."""

from __future__ import annotations

import json
import re
import ssl
import threading
import typing as t
import urllib.error
import urllib.request

import pytest
import requests
from proxmoxer import AuthenticationError, ProxmoxAPI, ResourceException
from pve import faults
from pve.node import Node
from pve.server import Server, context


@pytest.fixture
def port(node: Node) -> t.Iterator[int]:
    server = Server(("127.0.0.1", 0), node, context(node))
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    server.server_close()
    thread.join()


def _client(node: Node, port: int, **who: t.Any) -> ProxmoxAPI:
    authority = str(node.etc_pve / "pve-root-ca.pem")
    return ProxmoxAPI("127.0.0.1", port=port, verify_ssl=authority, cert=None, **who)


def test_token(node: Node, port: int, guest: int) -> None:
    client = _client(node, port, user="slipway@pve", token_name="deploy", token_value="token-secret")
    assert client.version.get()["release"] == "9.1"
    client.nodes("node1").lxc(101).config.put(cores=3, tags="a;b")
    assert client.nodes("node1").lxc(101).config.get()["tags"] == "a;b"
    with pytest.raises(ResourceException) as caught:
        client.nodes("node1").lxc(101).config.put(memory="lots")
    assert (caught.value.status_code, caught.value.errors) == (
        400,
        {"memory": "type check ('integer') failed - got 'lots'"},
    )
    with pytest.raises(ResourceException) as caught:
        client.nodes("node1").lxc(101).config.put(dev1="/dev/nvidia0")
    assert (caught.value.status_code, caught.value.content) == (
        403,
        "Permission check failed (configuring device passthrough is only allowed for root@pam)",
    )
    with pytest.raises(ResourceException) as caught:
        client.nodes("node1").qemu.get()
    assert caught.value.status_code == 501


def test_ticket(node: Node, port: int, guest: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # proxmoxer's login request does not take the authority of its other requests
    monkeypatch.setenv("REQUESTS_CA_BUNDLE", str(node.etc_pve / "pve-root-ca.pem"))
    client = _client(node, port, user="root@pam", password="a-root-password")
    client.nodes("node1").lxc(101).config.put(dev1="/dev/nvidia1")
    assert client.nodes("node1").lxc(101).config.get()["dev1"] == "/dev/nvidia1"
    with pytest.raises(AuthenticationError):
        _client(node, port, user="root@pam", password="wrong-password")


def _raw(node: Node, port: int, path: str, **headers: str) -> tuple[int, str, bytes]:
    tls = ssl.create_default_context(cafile=str(node.etc_pve / "pve-root-ca.pem"))
    request = urllib.request.Request(f"https://localhost:{port}/api2/json{path}", headers=headers)
    with pytest.raises(urllib.error.HTTPError) as caught:
        urllib.request.urlopen(request, context=tls)  # noqa: S310 - https
    return caught.value.code, caught.value.reason, caught.value.read()


def test_answers_to_strangers(node: Node, port: int) -> None:
    assert _raw(node, port, "/version") == (401, "No ticket", b'{"data": null, "message": "No ticket\\n"}')
    bad = _raw(node, port, "/version", Authorization="PVEAPIToken=slipway@pve!deploy=guess")
    assert bad[:2] == (401, "invalid token value!")


@pytest.mark.parametrize(("kind", "cores"), [("drop_before", 4), ("drop_after", 3)])
def test_dropped_connections(node: Node, port: int, guest: int, kind: str, cores: int) -> None:
    client = _client(node, port, user="slipway@pve", token_name="deploy", token_value="token-secret")
    client.version.get()
    (node.root / faults.FILE).parent.mkdir(parents=True, exist_ok=True)
    (node.root / faults.FILE).write_text(json.dumps([{"request": "PUT *", "kind": kind, "times": 1}]))
    with pytest.raises(requests.exceptions.ConnectionError, match="Remote end closed connection without response"):
        client.nodes("node1").lxc(101).config.put(cores=3)
    assert client.nodes("node1").lxc(101).config.get()["cores"] == cores


def test_access_log(node: Node, port: int, guest: int) -> None:
    client = _client(node, port, user="slipway@pve", token_name="deploy", token_value="token-secret")
    client.nodes("node1").lxc(101).config.get()
    client.nodes("node1").lxc(101).config.put(cores=3)
    _raw(node, port, "/version")
    lines = (node.root / "var/log/pveproxy/access.log").read_text().splitlines()
    assert [re.sub(r"\[.*?\]", "[]", line).rpartition(" ")[0] for line in lines] == [
        '127.0.0.1 - slipway@pve!deploy [] "GET /api2/json/nodes/node1/lxc/101/config HTTP/1.1" 200',
        '127.0.0.1 - slipway@pve!deploy [] "PUT /api2/json/nodes/node1/lxc/101/config HTTP/1.1" 200',
        '127.0.0.1 - - [] "GET /api2/json/version HTTP/1.1" 401',
    ]
    assert "token-secret" not in "".join(lines)
