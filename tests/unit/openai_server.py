# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for an OpenAI-compatible server, whose answers a test sets."""

from __future__ import annotations

import json
import threading
import typing as t
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, t.Any]


class OpenAIServer:
    """Serves in a thread. ``health`` and ``models`` are status and body; ``say`` makes an answer of a question.

    ``loading`` are the answers of the first questions for its health, before ``health`` counts.
    """

    def __init__(self) -> None:
        self.health: Answer = (200, {"status": "ok"})
        self.loading: list[Answer] = []
        self.models: Answer = (200, {"data": [{"id": "m"}]})
        self.say: t.Callable[[str], t.Any] = lambda question: f"echo {question}"
        self.chat_status = 200
        self.api_key = ""
        self.usage = True
        self.requests: list[tuple[str, t.Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_arguments: t.Any) -> None:
                return None

            def do_GET(self) -> None:
                server.requests.append((self.path, None))
                health = server.loading.pop(0) if self.path == "/health" and server.loading else server.health
                answers = {"/health": health, "/v1/models": server.models}
                self.reply(*(server.refusal(self.headers, self.path) or answers.get(self.path, (404, {}))))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append((self.path, body))
                refusal = server.refusal(self.headers, self.path)
                if refusal or server.chat_status != 200:
                    self.reply(*(refusal or (server.chat_status, {"error": {"message": "no slot"}})))
                elif body.get("stream"):
                    self.stream(body)
                else:
                    said = server.say(body["messages"][-1]["content"])
                    message = said if isinstance(said, dict) else {"message": {"content": said}}
                    self.reply(200, {"choices": [{"finish_reason": "stop", **message}]})

            def stream(self, body: dict[str, t.Any]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for number in range(body["max_tokens"]):
                    self.event({"choices": [{"delta": {"content": f"{number} "}}]})
                if server.usage:
                    self.event({"choices": [], "usage": {"completion_tokens": body["max_tokens"]}})
                self.wfile.write(b"data: [DONE]\n\n")

            def event(self, data: dict[str, t.Any]) -> None:
                self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")

            def reply(self, status: int, body: t.Any) -> None:
                raw = body.encode() if isinstance(body, str) else json.dumps(body).encode()
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "/v1/elsewhere")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        threading.Thread(target=self._http.serve_forever, args=(0.05,), daemon=True).start()
        self.endpoint = f"http://127.0.0.1:{self._http.server_address[1]}/v1"

    def refusal(self, headers: t.Any, path: str) -> Answer | None:
        """What a request without the key gets; the key that was sent is repeated, as some servers do."""
        sent = headers.get("Authorization", "")
        if not self.api_key or path == "/health" or sent == f"Bearer {self.api_key}":
            return None
        return 401, {"error": {"message": f"bad key: {sent}"}}

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()
