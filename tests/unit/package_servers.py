# SPDX-License-Identifier: GPL-3.0-or-later
"""Tiny wheels, and a package index and a proxy on the loopback, for tests of how packages are reached."""

from __future__ import annotations

import base64
import hashlib
import http.server
import re
import threading
import typing as t
import urllib.request
import zipfile
from pathlib import Path


def make_wheel(folder: Path, name: str, version: str, code: str, requires: t.Iterable[str] = ()) -> str:
    """A wheel with one module, that requires others; its line for a lock."""
    info = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    files = {
        f"{name}.py": code,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = f"{info}/RECORD,,\n"
    for path, text in files.items():
        value = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={value},{len(text)}\n"
    wheel = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, text in {**files, f"{info}/RECORD": record}.items():
            archive.writestr(zipfile.ZipInfo(path), text)
    return f"{name}=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


class _Handler(http.server.BaseHTTPRequestHandler):
    server: Listener

    def log_message(self, *_arguments: t.Any) -> None:
        """Tests are quiet."""

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.server.logins.append(self.headers.get("Authorization", ""))
        status, body = self.server.answer(self)
        self.send_response(status, None)
        self.send_header("Content-Length", str(len(body)))
        json = body.startswith(b"{")
        self.send_header("Content-Type", "application/vnd.pypi.simple.v1+json" if json else "text/html")
        self.end_headers()
        self.wfile.write(body)

    do_HEAD = do_CONNECT = do_GET


class Listener(http.server.ThreadingHTTPServer):
    """Answers every request by ``answer``, and remembers what was asked."""

    daemon_threads = True

    def __init__(self, answer: t.Callable[[_Handler], tuple[int, bytes]]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answer = answer
        self.asked: list[str] = []
        self.logins: list[str] = []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def close(self) -> None:
        self.shutdown()
        self.server_close()


def index(pages: dict[str, str | int | bytes]) -> Listener:
    """An index: a page, or a status, by path, in whole or the part that is asked for; everything else is 404."""

    def answer(request: _Handler) -> tuple[int, bytes]:
        page = pages.get(request.path, 404)
        if isinstance(page, int):
            return page, b""
        content = page.encode() if isinstance(page, str) else page
        part = re.fullmatch(r"bytes=(\d+)-(\d+)", request.headers.get("Range") or "")
        return (206, content[int(part[1]) : int(part[2]) + 1]) if part else (200, content)

    return Listener(answer)


def proxy(status: int = 0, login: str = "") -> Listener:
    """A proxy for plain HTTP that asks for ``login`` where one is given, and answers ``status`` to all where one is given."""
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def answer(request: _Handler) -> tuple[int, bytes]:
        wanted = f"Basic {base64.b64encode(login.encode()).decode()}" if login else ""
        if login and request.headers.get("Proxy-Authorization") != wanted:
            return 407, b""
        if status:
            return status, b""
        with direct.open(request.path, timeout=10) as got:
            return got.status, got.read()

    return Listener(answer)
