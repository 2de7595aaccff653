# SPDX-License-Identifier: GPL-3.0-or-later
"""The API over HTTPS on port 8006: reading requests, finding out who asks, writing answers."""

from __future__ import annotations

import http.server
import json
import socket
import ssl
import sys
import time
import traceback
import typing as t
import urllib.parse
from http.cookies import SimpleCookie

from . import api, cluster
from .errors import ApiError, not_implemented, unauthorized
from .local import ACCESS_LOG, this_node
from .node import Node

PORT = 8006
PREFIX = "/api2/json"
LARGEST_BODY_BYTES = 4 * 1024 * 1024


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection; answers are ``{"data": ...}``."""

    protocol_version = "HTTP/1.1"
    server_version = "pve-api-daemon/3.0"
    sys_version = ""
    wbufsize = -1  # one write an answer, so that small packets do not wait for acknowledgements
    disable_nagle_algorithm = True
    server: Server
    user = ""

    def do_GET(self) -> None:
        self._answer()

    do_POST = do_PUT = do_DELETE = do_GET

    def _answer(self) -> None:
        url = urllib.parse.urlsplit(self.path)
        self.user = ""  # a connection may carry requests of several
        try:
            body = self._body()
            status, reason, answer = 200, "OK", {"data": self._call(url, body)}
        except ApiError as error:
            status, reason = error.status, error.message.strip().split("\n")[0]
            answer = {"data": None, "message": error.message + "\n"}
            if error.errors:
                answer["errors"] = error.errors
        except Exception as error:  # a fault of the rig must reach the client as an answer, and its trace the journal
            traceback.print_exc()
            status, reason = 500, f"{type(error).__name__}: {error}".split("\n")[0]
            answer = {"data": None, "message": reason + "\n"}
        data = json.dumps(answer).encode()
        self._log(status, len(data))
        self.send_response(status, reason.encode("latin-1", "replace").decode("latin-1"))
        self.send_header("Content-Type", "application/json;charset=UTF-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "max-age=0")
        self.end_headers()
        self.wfile.write(data)

    def _body(self) -> dict[str, t.Any]:
        """The parameters in the body of a request, from a form or JSON."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > LARGEST_BODY_BYTES:
            self.close_connection = True
            raise ApiError(413, "request entity too large")
        text = self.rfile.read(length).decode(errors="replace")
        if not text:
            return {}
        if self.headers.get_content_type() == "application/json":
            try:
                found = json.loads(text)
            except ValueError:
                raise ApiError(400, "unable to parse request body as JSON") from None
            if not isinstance(found, dict):
                raise ApiError(400, "request body is no JSON object")
            return {key: value for key, value in found.items() if value is not None}
        return _form(text)

    def _call(self, url: urllib.parse.SplitResult, body: dict[str, t.Any]) -> t.Any:
        path = urllib.parse.unquote(url.path)
        if not path.startswith(PREFIX):
            raise not_implemented(self.command, path)
        path = path.removeprefix(PREFIX)
        public = (self.command, path.rstrip("/")) == ("POST", "/access/ticket")
        self.user = "" if public else self._user()
        return api.call(self.server.node, self.user, self.command, path, {**_form(url.query), **body})

    def _user(self) -> str:
        """Who asks: the owner of the API token or of the ticket."""
        access = self.server.node.access
        header = self.headers.get("Authorization", "")
        if header.startswith("PVEAPIToken="):
            return access.by_token(header)
        cookie = SimpleCookie(self.headers.get("Cookie", "")).get("PVEAuthCookie")
        if not cookie:
            raise unauthorized("No ticket")
        ticket = urllib.parse.unquote(cookie.value)
        return access.by_ticket(ticket, self.headers.get("CSRFPreventionToken"), self.command != "GET")

    def _log(self, status: int, size: int) -> None:
        """A line in the access log, in pveproxy's form (APIServer/AnyEvent.pm, log_request)."""
        at = time.strftime("%d/%m/%Y:%H:%M:%S %z")
        line = f'{self.client_address[0]} - {self.user or "-"} [{at}] "{self.requestline}" {status} {size}\n'
        with (self.server.node.root / ACCESS_LOG).open("a") as log:
            log.write(line)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing more: the access log has it."""

    def log_message(self, format: str, *args: t.Any) -> None:
        sys.stderr.write(f"{self.client_address[0]} {format % args}\n")


def _form(text: str) -> dict[str, t.Any]:
    found = urllib.parse.parse_qs(text, keep_blank_values=True)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


class Server(http.server.ThreadingHTTPServer):
    """Accepts connections; each has a thread, which also does its TLS handshake."""

    request_queue_size = 64
    daemon_threads = True
    address_family = socket.AF_INET

    def __init__(self, address: tuple[str, int], node: Node, tls: ssl.SSLContext) -> None:
        super().__init__(address, Handler)
        self.node = node
        self.socket = tls.wrap_socket(self.socket, server_side=True, do_handshake_on_connect=False)


def context(node: Node) -> ssl.SSLContext:
    """TLS with the certificate of the node."""
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    folder = node.etc_pve / "nodes" / node.name
    tls.load_cert_chain(folder / "pve-ssl.pem", folder / "pve-ssl.key")
    return tls


def main() -> None:
    """Serve until stopped."""
    node = this_node()
    print(f"{cluster.manager_version()} on port {PORT}", flush=True)
    Server(("0.0.0.0", PORT), node, context(node)).serve_forever()


if __name__ == "__main__":
    main()
