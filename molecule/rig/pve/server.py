# SPDX-License-Identifier: GPL-3.0-or-later
"""The API over HTTPS on port 8006: connections, TLS, the access log."""

from __future__ import annotations

import http.server
import socket
import ssl
import sys
import time
import typing as t

from . import cluster, faults, wire
from .errors import ApiError
from .local import ACCESS_LOG, this_node
from .node import Node

PORT = 8006
LARGEST_BODY_BYTES = 4 * 1024 * 1024


class Handler(http.server.BaseHTTPRequestHandler):
    """One connection; answers are ``{"data": ...}``."""

    protocol_version = "HTTP/1.1"
    server_version = "pve-api-daemon/3.0"
    sys_version = ""
    wbufsize = -1  # one write an answer, so that small packets do not wait for acknowledgements
    disable_nagle_algorithm = True
    server: Server

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        if length > LARGEST_BODY_BYTES:
            self.close_connection = True
            self._send(wire.refusal(ApiError(413, "request entity too large")))
            return
        request = wire.Request(self.command, self.path, t.cast("t.Any", self.headers), self.rfile.read(length))
        try:
            answer = wire.answer(self.server.node, request)
        except faults.Dropped:
            self.close_connection = True
            return
        self._send(answer)

    do_POST = do_PUT = do_DELETE = do_GET

    def _send(self, answer: wire.Answer) -> None:
        data = answer.data
        self._log(answer, len(data))
        self.send_response(answer.status, answer.reason.encode("latin-1", "replace").decode("latin-1"))
        self.send_header("Content-Type", "application/json;charset=UTF-8")
        self.send_header("Content-Length", str(len(data)))
        self.send_header("Cache-Control", "max-age=0")
        self.end_headers()
        self.wfile.write(data)

    def _log(self, answer: wire.Answer, size: int) -> None:
        """A line in the access log, in pveproxy's form (APIServer/AnyEvent.pm, log_request)."""
        at = time.strftime("%d/%m/%Y:%H:%M:%S %z")
        line = f'{self.client_address[0]} - {answer.user or "-"} [{at}] "{self.requestline}" {answer.status} {size}\n'
        with (self.server.node.root / ACCESS_LOG).open("a") as log:
            log.write(line)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Nothing more: the access log has it."""

    def log_message(self, format: str, *args: t.Any) -> None:
        sys.stderr.write(f"{self.client_address[0]} {format % args}\n")


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
