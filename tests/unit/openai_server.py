# SPDX-License-Identifier: GPL-3.0-or-later
"""A stand-in for an OpenAI-compatible server, whose answers a test sets."""

from __future__ import annotations

import json
import re
import threading
import time
import typing as t
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Answer = tuple[int, t.Any]
# One token of the stand-in's, in characters.
TOKEN = 4


class OpenAIServer:
    """Serves in a thread. ``health`` and ``models`` are status and body; ``say`` makes an answer of a question.

    A ``mind`` (stand_in_models.py) takes the place of ``say`` where a test sets one: it makes an answer of the whole request. An answer is
    a text, a choice with its message, or a status with a body. A load (``ignore_eos``) gets as many words as it asks for, unless the
    server is ``strict`` and refuses the field; each word takes ``pause_seconds``. Of a
    prompt it counts ``cut_at_tokens`` at most. Streams beyond ``most_at_once`` are refused, and each breaks after so many words.

    ``loading`` are the answers of the first questions for its health, before ``health`` counts.
    """

    def __init__(self) -> None:
        self.health: Answer = (200, {"status": "ok"})
        self.loading: list[Answer] = []
        self.models: Answer = (200, {"data": [{"id": "m"}]})
        self.say: t.Callable[[str], t.Any] = lambda question: f"echo {question}"
        self.mind: t.Callable[[dict[str, t.Any]], t.Any] | None = None
        self.chat_status = 200
        self.strict = False
        self.pause_seconds = 0.0
        self.cut_at_tokens = 10**9
        self.most_at_once = 10**9
        self.breaks_after = 10**9
        self.metrics: Answer = (404, {})
        self._at_once = 0
        self._lock = threading.Lock()
        self.api_key = ""
        self.usage = True
        self.requests: list[tuple[str, t.Any]] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            wbufsize = -1  # head and body in one packet: the kernel holds a second one back for 40 ms
            disable_nagle_algorithm = True

            def log_message(self, *_arguments: t.Any) -> None:
                return None

            def do_GET(self) -> None:
                server.requests.append((self.path, None))
                health = server.loading.pop(0) if self.path == "/health" and server.loading else server.health
                answers = {"/health": health, "/v1/models": server.models, "/metrics": server.metrics}
                self.reply(*(server.refusal(self.headers, self.path) or answers.get(self.path, (404, {}))))

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                server.requests.append((self.path, body))
                refusal = server.refusal(self.headers, self.path)
                if refusal or server.chat_status != 200:
                    self.reply(*(refusal or (server.chat_status, {"error": {"message": "no slot"}})))
                elif server.strict and "ignore_eos" in body:
                    self.reply(400, {"error": {"message": "ignore_eos is unknown"}})
                elif body.get("ignore_eos") or (body.get("stream") and server.mind is None):
                    self.stream([f"{number} " for number in range(body["max_tokens"])], "length", body)
                else:
                    self.answer(body)

            def answer(self, body: dict[str, t.Any]) -> None:
                said = server.mind(body) if server.mind else server.say(body["messages"][-1]["content"])
                if isinstance(said, tuple):
                    self.reply(*said)
                    return
                choice = {
                    "finish_reason": "stop",
                    **(said if isinstance(said, dict) else {"message": {"content": said}}),
                }
                text = choice["message"].get("content") or ""
                if body.get("stream"):
                    self.stream(re.findall(r"\S+\s*|\s+", text), choice["finish_reason"], body)
                else:
                    usage = {"usage": self.counted(body, len(text) // TOKEN + 1)} if server.usage else {}
                    self.reply(200, {"choices": [choice], **usage})

            def counted(self, body: dict[str, t.Any], output_tokens: int) -> dict[str, int]:
                prompt = sum(len(message["content"]) for message in body["messages"])
                return {
                    "prompt_tokens": min(prompt // TOKEN + 1, server.cut_at_tokens),
                    "completion_tokens": output_tokens,
                }

            def stream(self, pieces: list[str], finish_reason: str, body: dict[str, t.Any]) -> None:
                with server._lock:
                    server._at_once += 1
                    refused = server._at_once > server.most_at_once
                if refused:
                    self.reply(429, {"error": {"message": "too many"}})
                else:
                    self.write(pieces, finish_reason, body)
                with server._lock:
                    server._at_once -= 1

            def write(self, pieces: list[str], finish_reason: str, body: dict[str, t.Any]) -> None:
                self.send_response(200)
                self.send_header("Content-Type", "text/event-stream")
                self.end_headers()
                for number, piece in enumerate(pieces):
                    if number == server.breaks_after:
                        self.event({"error": {"message": "CUDA error"}})
                        return
                    time.sleep(server.pause_seconds)
                    self.event({"choices": [{"delta": {"content": piece}}]})
                self.event({"choices": [{"delta": {}, "finish_reason": finish_reason}]})
                if server.usage:
                    self.event({"choices": [], "usage": self.counted(body, len(pieces))})
                self.wfile.write(b"data: [DONE]\n\n")

            def event(self, data: dict[str, t.Any]) -> None:
                self.wfile.write(b"data: " + json.dumps(data).encode() + b"\n\n")
                if server.pause_seconds:
                    self.wfile.flush()

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
