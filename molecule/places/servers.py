# SPDX-License-Identifier: GPL-3.0-or-later
"""What a real place has: a forward proxy that asks for a login, a package index over HTTP, and one over HTTPS with a CA of its own.

    servers.py FOLDER ADDRESS LOGIN

serves FOLDER/simple, writes where it listens to FOLDER/servers.json and what was asked of the proxy to FOLDER/proxy.log. Whoever
starts it ends it, by its process id in servers.json; forgotten, it ends by itself.
"""

from __future__ import annotations

import base64
import functools
import http.server
import json
import os
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

LIFETIME_SECONDS = 1500


class Proxy(http.server.BaseHTTPRequestHandler):
    """CONNECT and GET for those who know the login."""

    login = ""
    log = Path()
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: object) -> None:
        """The log below is the only one."""

    def note(self, line: str) -> None:
        with self.log.open("a") as file:
            file.write(line + "\n")

    def allowed(self) -> bool:
        wanted = f"Basic {base64.b64encode(self.login.encode()).decode()}"
        if self.headers.get("Proxy-Authorization") == wanted:
            self.tell_of_command_lines()
            return True
        self.note(f"refused {self.path}")
        self.send_response(407)
        self.send_header("Proxy-Authenticate", 'Basic realm="place"')
        self.send_header("Content-Length", "0")
        self.end_headers()
        return False

    def tell_of_command_lines(self) -> None:
        """Processes of nodes and guests are seen from here: none may show the password to whoever lists them."""
        password = self.login.partition(":")[2].rstrip("!").encode()  # "!" is written in another way in an address
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes()
            except OSError:
                continue
            if password in line and b"servers.py" not in line:
                self.note(f"exposed {line[:300]!r}")

    def do_CONNECT(self) -> None:
        if not self.allowed():
            return
        self.note(f"tunnel {self.path}")
        host, _colon, port = self.path.rpartition(":")
        try:
            there = socket.create_connection((host, int(port)), timeout=30)
        except OSError:
            self.send_error(502)
            return
        self.send_response(200)
        self.end_headers()
        pair = [self.connection, there]
        with there:
            while True:
                readable, _w, _x = select.select(pair, [], [], 120)
                if not readable:
                    break
                for one in readable:
                    data = one.recv(65536)
                    if not data:
                        self.close_connection = True
                        return
                    (there if one is self.connection else self.connection).sendall(data)
        self.close_connection = True

    def do_GET(self) -> None:
        if not self.allowed():
            return
        self.note(f"get {self.path}")
        kept = {name: value for name, value in self.headers.items() if name in ("If-Modified-Since", "Range")}
        if not self.path.startswith("http://"):
            self.send_error(400)
            return
        request = urllib.request.Request(self.path, headers=kept)  # noqa: S310 - it is http
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - it is http
                body, status, headers = answer.read(), answer.status, answer.headers
        except urllib.error.HTTPError as error:
            body, status, headers = error.read(), error.code, error.headers
        except OSError:
            body, status, headers = b"", 502, {}
        self.send_response(status)
        for name in ("Content-Type", "Last-Modified", "Content-Range"):
            if headers.get(name):
                self.send_header(name, headers[name])
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def certificate(folder: Path, address: str) -> tuple[Path, Path]:
    """A certificate for the address, signed by a CA that is made for it, and its key."""
    command = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:P-256",
        "-nodes",
        "-days",
        "2",
    ]
    ca, ca_key, pem, key = (folder / name for name in ("own-ca.pem", "own-ca.key", "index.pem", "index.key"))
    own = ["-subj", "/CN=place CA", "-keyout", ca_key, "-out", ca]
    signed = ["-subj", "/CN=place", "-CA", ca, "-CAkey", ca_key, "-keyout", key, "-out", pem]
    signed += ["-addext", f"subjectAltName=IP:{address}", "-addext", "basicConstraints=critical,CA:FALSE"]
    for options in (own, signed):
        subprocess.run([*command, *options], check=True, capture_output=True)
    return pem, key


def main() -> None:
    folder, address, login = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]).read_text().strip()
    signal.alarm(LIFETIME_SECONDS)
    Proxy.login, Proxy.log = login, folder / "proxy.log"
    quiet = type("Quiet", (http.server.SimpleHTTPRequestHandler,), {"log_message": lambda *_: None})
    files = functools.partial(quiet, directory=str(folder))
    servers = {
        "proxy": http.server.ThreadingHTTPServer((address, 0), Proxy),
        "index": http.server.ThreadingHTTPServer((address, 0), files),
        "secure_index": http.server.ThreadingHTTPServer((address, 0), files),
    }
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate(folder, address))
    secure = servers["secure_index"]
    secure.socket = context.wrap_socket(secure.socket, server_side=True, do_handshake_on_connect=False)
    for server in servers.values():
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
    told = {name: f"{address}:{server.server_port}" for name, server in servers.items()}
    part = folder / "servers.json.part"
    part.write_text(json.dumps({**told, "pid": os.getpid()}))
    part.rename(folder / "servers.json")
    signal.pause()


if __name__ == "__main__":
    main()
