# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for a Hugging Face hub on the loopback: what huggingface_hub and Slipway ask of one, as the hub answers it.

Large files (those of LFS) are given by a second server, to which a redirect leads, as the hub's own are.
"""

from __future__ import annotations

import hashlib
import http.server
import json
import re
import threading
import typing as t
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

LARGE = (".safetensors", ".gguf", ".bin")


@dataclass
class Repository:
    """Its files by commit, and names of commits. ``gated`` is the token that may fetch, empty for all."""

    commits: dict[str, dict[str, bytes]]
    branches: dict[str, str] = field(default_factory=dict)
    gated: str = ""
    renamed: str = ""


@dataclass(frozen=True)
class Asked:
    """One request: to the hub or to the ``files`` server."""

    server: str
    method: str
    path: str
    range: str
    token: str


class _Handler(http.server.BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def log_message(self, *_arguments: t.Any) -> None:
        """Tests are quiet."""

    def do_GET(self) -> None:
        hub = self.server.hub
        token = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        asked = Asked(self.server.name, self.command, unquote(self.path), self.headers.get("Range") or "", token)
        hub.asked.append(asked)
        hub.answer(self, asked)

    do_HEAD = do_GET

    def give(self, status: int, body: bytes = b"", **headers: str) -> None:
        """Answer, with ``x_error_code`` and the like as headers."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


class _Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, hub: HubServer, name: str) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.hub, self.name = hub, name
        threading.Thread(target=self.serve_forever, args=(0.05,), daemon=True).start()

    def handle_error(self, *_arguments: t.Any) -> None:
        """A client that has gone is no error here."""


class HubServer:
    """The hub and its server of large files; tests change what it has, and what is wrong with it.

    ``cut`` closes the connection after so many bytes of a file, by path; ``damaged`` gives other bytes of the same size; ``status`` answers
    everything; ``gone`` are paths that are listed and not there; ``ranges`` says whether parts are given.
    """

    def __init__(self) -> None:
        self.repositories: dict[str, Repository] = {}
        self.asked: list[Asked] = []
        self.cut: dict[str, int] = {}
        self.damaged: set[str] = set()
        self.gone: set[str] = set()
        self.status = 0
        self.ranges = True
        self.token = ""
        self._hub, self._files = _Server(self, "hub"), _Server(self, "files")

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._hub.server_port}"

    def close(self) -> None:
        for server in (self._hub, self._files):
            server.shutdown()
            server.server_close()

    def fetched(self) -> list[str]:
        """Paths of the files whose content was asked for, in their order."""
        paths = [
            re.sub("^.*/resolve/[^/]*/", "", one.path)
            for one in self.asked
            if one.method == "GET" and "/resolve/" in one.path
        ]
        return [path for path in paths if not path.startswith("api/")]

    def answer(self, request: _Handler, asked: Asked) -> None:
        """What the hub says."""
        path = urlsplit(asked.path).path
        match = re.fullmatch(r"/api/models/([^/]+/[^/]+)/revision/(.+)|/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", path)
        if self.status:
            return request.give(self.status)
        if not match:
            return request.give(404)
        name, revision = match[1] or match[3], match[2] or match[4]
        repository = self.repositories.get(name)
        if self.token and asked.token not in ("", self.token):
            return request.give(401, x_error_message="Invalid credentials in Authorization header")
        if repository is None:
            return request.give(
                404 if asked.token else 401, x_error_code="RepoNotFound", x_error_message="Repository not found"
            )
        if repository.renamed:
            return request.give(307, location=asked.path.replace(name, repository.renamed, 1))
        commit = repository.branches.get(revision, revision)
        if commit not in repository.commits:
            return request.give(404, x_error_code="RevisionNotFound", x_error_message=f"Invalid rev id: {revision}")
        if match[1]:
            return self._list(request, commit, repository.commits[commit])
        if asked.server == "hub" and repository.gated and asked.token != repository.gated:
            return request.give(
                403 if asked.token else 401, x_error_code="GatedRepo", x_error_message="Access is restricted."
            )
        return self._file(request, asked, commit, match[5], repository.commits[commit])

    def _list(self, request: _Handler, commit: str, files: dict[str, bytes]) -> None:
        siblings = []
        for path, content in files.items():
            blob = hashlib.sha1(f"blob {len(content)}\0".encode() + content, usedforsecurity=False).hexdigest()
            entry: dict[str, t.Any] = {"rfilename": path, "size": len(content), "blobId": blob}
            if path.endswith(LARGE):
                sha256 = hashlib.sha256(content).hexdigest()
                entry |= {"blobId": "0" * 40, "lfs": {"sha256": sha256, "size": len(content), "pointerSize": 134}}
            siblings.append(entry)
        request.give(200, json.dumps({"sha": commit, "siblings": siblings}).encode(), content_type="application/json")

    def _file(self, request: _Handler, asked: Asked, commit: str, path: str, files: dict[str, bytes]) -> None:
        content = files.get(path)
        if content is None or path in self.gone:
            return request.give(404, x_error_code="EntryNotFound", x_error_message="Entry not found")
        if asked.server == "hub" and path.endswith(LARGE):
            elsewhere = f"http://127.0.0.1:{self._files.server_port}{asked.path}"
            return request.give(302, location=elsewhere, x_repo_commit=commit, x_linked_size=str(len(content)))
        if path in self.damaged:
            content = bytes(255 - byte for byte in content)
        begin = int(part[1]) if (part := re.fullmatch(r"bytes=(\d+)-", asked.range)) and self.ranges else 0
        body = content[begin:]
        request.send_response(206 if begin else 200)
        if begin:
            request.send_header("Content-Range", f"bytes {begin}-{len(content) - 1}/{len(content)}")
        request.send_header("Content-Length", str(len(body)))
        request.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        request.send_header("X-Repo-Commit", commit)
        request.end_headers()
        if request.command == "HEAD":
            return None
        limit = self.cut.pop(path, len(body))
        request.wfile.write(body[:limit])
        if limit < len(body):
            request.close_connection = True
        return None
