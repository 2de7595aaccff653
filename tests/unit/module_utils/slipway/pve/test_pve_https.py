# SPDX-License-Identifier: GPL-3.0-or-later
"""The way to the API over HTTPS where it does not lead there: the sentence has the system's reason and not a wall of text."""

from __future__ import annotations

import http.server
import socket
import ssl
import subprocess
import threading
import typing as t
from pathlib import Path

import pytest
import requests
from ansible.module_utils.slipway.pve import api, https
from ansible.module_utils.slipway.pve.client import ApiError, Fate


def _params(host: str, port: int, ca: Path | None = None) -> dict[str, t.Any]:
    return {
        "api_host": host,
        "api_port": port,
        "api_user": "deploy@pve",
        "api_token_id": "slipway",
        "api_token_secret": "s3cret",
        "validate_certs": True,
        "ca_path": str(ca) if ca else None,
        "api_timeout_seconds": 10,
    }


def _told(host: str, port: int, ca: Path | None = None) -> str:
    params = _params(host, port, ca)
    with pytest.raises(ApiError) as caught:
        api.nodes(https.connect(params))
    return str(caught.value)


@pytest.fixture
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_proxy")
def test_a_port_that_nothing_listens_on() -> None:
    with socket.socket() as bound:  # and does not listen, so that nobody else can
        bound.bind(("127.0.0.1", 0))
        port = bound.getsockname()[1]
        told = _told("127.0.0.1", port)
    assert told == (
        f"it cannot be reached on port {port} (Connection refused). Check address, port, firewall and the service pveproxy."
    )


@pytest.mark.usefixtures("no_proxy")
def test_a_certificate_that_does_not_fit(tmp_path: Path) -> None:
    key, certificate = tmp_path / "key.pem", tmp_path / "cert.pem"
    command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    command += [
        "-subj",
        "/CN=pve1",
        "-addext",
        "subjectAltName=DNS:pve1",
        "-keyout",
        str(key),
        "-out",
        str(certificate),
    ]
    subprocess.run(command, check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate, key)
    server = http.server.HTTPServer(("127.0.0.1", 0), http.server.BaseHTTPRequestHandler)
    server.socket = tls.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        unknown = _told("127.0.0.1", server.server_port)
        other_name = _told("127.0.0.1", server.server_port, ca=certificate)
    finally:
        server.shutdown()
        server.server_close()
    assert unknown.startswith(
        "its TLS certificate is not trusted (self-signed certificate). Set ca_path to the cluster's CA"
    )
    assert other_name.startswith(
        "its TLS certificate is not trusted (IP address mismatch, certificate is not valid for '127.0.0.1'). Set ca_path"
    )


def _fate(port: int) -> Fate:
    """What a call over a real connection that brings no answer is taken for."""
    client = https.connect(_params("127.0.0.1", port) | {"api_timeout_seconds": 1})
    with pytest.raises(ApiError) as caught:
        client._once("get", "nodes", {})
    return caught.value.fate


@pytest.mark.usefixtures("no_proxy")
def test_what_a_broken_connection_leaves_to_hope_for(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        # Nobody takes the call: it is connected, and nothing comes.
        assert _fate(port) is Fate.OPEN
        threading.Thread(target=lambda: [listener.accept()[0].close() for _ in range(2)], daemon=True).start()
        # It is taken and closed at once.
        assert _fate(port) is Fate.OPEN
    assert _fate(port) is Fate.UNREACHED


@pytest.mark.parametrize(
    ("error", "fate"),
    [
        (requests.exceptions.ConnectTimeout("slow"), Fate.UNREACHED),
        (requests.exceptions.ReadTimeout("slow"), Fate.OPEN),
        (requests.exceptions.ConnectionError(ConnectionResetError(104, "Connection reset by peer")), Fate.OPEN),
        (requests.exceptions.ChunkedEncodingError("half a body"), Fate.OPEN),
        (requests.exceptions.SSLError(ssl.SSLEOFError(8, "EOF occurred in violation of protocol")), Fate.OPEN),
        (requests.exceptions.SSLError("self-signed"), Fate.FINAL),
        (requests.exceptions.ProxyError("no"), Fate.FINAL),
        (requests.exceptions.InvalidURL("no"), Fate.FINAL),
    ],
)
def test_the_fate_of_an_error_of_the_way(error: Exception, fate: Fate) -> None:
    assert https._explain(error, "deploy@pve", 8006, 30).fate is fate


def test_a_login_is_tried_again_and_a_wrong_password_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    statuses = [595, 503, 200, 401]

    def post(url: str, **_options: t.Any) -> requests.Response:
        response = requests.Response()
        response.status_code = statuses.pop(0)
        response._content = b'{"data": {"ticket": "PVE:root@pam:1", "CSRFPreventionToken": "x"}}'
        return response

    monkeypatch.setattr(requests, "post", post)
    monkeypatch.setattr("time.sleep", lambda _seconds: None)
    params = _params("127.0.0.1", 8006) | {"api_user": "root@pam", "api_token_secret": None, "api_password": "pw"}
    assert https.connect(params).identity == "root@pam"
    with pytest.raises(ApiError, match="refused the password of 'root@pam'") as refused:
        https.connect(params)
    assert refused.value.status == 401 and statuses == []
