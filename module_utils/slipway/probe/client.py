# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests to an OpenAI-compatible server, with the standard library. The API's key stays in here."""

from __future__ import annotations

import http.client
import json
import socket
import ssl
import time
import typing as t
import urllib.error
import urllib.request

ANSWER_LIMIT_BYTES = 8 * 1024 * 1024


class Unreachable(Exception):
    """No answer came: nothing listens there, the connection broke, it took too long, or it was refused. The message says which.

    ``status`` is that of a stream's refusal, else 0.
    """

    def __init__(self, message: str, status: int = 0) -> None:
        super().__init__(message)
        self.status = status


class Reply(t.NamedTuple):
    """What a server answered. ``body`` is an empty dictionary where it was no JSON object."""

    status: int
    body: dict[str, t.Any]
    text: str

    @property
    def words(self) -> str:
        """The answer in a few words: ``HTTP 503 Loading model``."""
        error = self.body.get("error")
        message = error.get("message") if isinstance(error, dict) else error or self.body.get("message")
        if not isinstance(message, str):
            message = "" if self.text.lstrip()[:1] in ("{", "[") else self.text.strip()
        return f"HTTP {self.status} {' '.join(message.split())[:200]}".rstrip()


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would take the key to another server."""

    def redirect_request(self, *_arguments: t.Any) -> None:
        return None


class Client:
    """One endpoint, ``http://ADDRESS:PORT/v1``, reached directly and not through a proxy."""

    def __init__(self, endpoint: str, api_key: str | None = None, ca_path: str | None = None) -> None:
        self.endpoint = endpoint.rstrip("/")
        self.root = self.endpoint[: -len("/v1")] if self.endpoint.endswith("/v1") else self.endpoint
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        if api_key:
            self._headers["Authorization"] = f"Bearer {api_key}"
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({}), _NoRedirect()]
        if self.endpoint.startswith("https:"):
            handlers.append(urllib.request.HTTPSHandler(context=ssl.create_default_context(cafile=ca_path)))
        self._opener = urllib.request.build_opener(*handlers)

    def health(self, timeout_seconds: float) -> Reply:
        """``GET /health`` beside the API."""
        return self._request(f"{self.root}/health", None, timeout_seconds)

    def metrics(self, timeout_seconds: float) -> Reply:
        """``GET /metrics`` beside the API, in the text form of Prometheus."""
        return self._request(f"{self.root}/metrics", None, timeout_seconds)

    def models(self, timeout_seconds: float) -> Reply:
        """``GET /models``."""
        return self._request(f"{self.endpoint}/models", None, timeout_seconds)

    def chat(self, request: dict[str, t.Any], timeout_seconds: float) -> Reply:
        """``POST /chat/completions``, the answer as a whole."""
        return self._request(f"{self.endpoint}/chat/completions", request, timeout_seconds)

    def stream(self, request: dict[str, t.Any], timeout_seconds: float) -> t.Iterator[dict[str, t.Any]]:
        """``POST /chat/completions``, the events of the answer as they come.

        Raises ``Unreachable``, also for an answer that is an error or no stream.
        """
        deadline = time.monotonic() + timeout_seconds
        url = f"{self.endpoint}/chat/completions"
        body = {**request, "stream": True}
        with _faults_named(timeout_seconds), self._open(url, body, timeout_seconds) as response:
            for line in response:
                if time.monotonic() > deadline:
                    raise TimeoutError
                if not line.startswith(b"data:"):
                    continue
                data = line[len(b"data:") :].strip()
                if data == b"[DONE]":
                    return
                event = json.loads(data)
                if isinstance(event, dict) and event.get("error"):  # the status was sent before the fault was known
                    raise Unreachable(Reply(response.status, event, "").words)
                yield event if isinstance(event, dict) else {}
        raise Unreachable("the stream of the answer broke off")

    def _request(self, url: str, body: dict[str, t.Any] | None, timeout_seconds: float) -> Reply:
        deadline = time.monotonic() + timeout_seconds
        with _faults_named(timeout_seconds):
            try:
                with self._open(url, body, timeout_seconds) as response:
                    return _reply(response.status, _read(response, deadline))
            except urllib.error.HTTPError as error:
                with error:
                    return _reply(error.code, _read(error, deadline))
        raise AssertionError("not reached")

    def _open(self, url: str, body: dict[str, t.Any] | None, timeout_seconds: float) -> t.Any:
        data = None if body is None else json.dumps(body).encode("utf-8")
        # S310 is about other schemes: the module takes http and https only.
        request = urllib.request.Request(url, data, self._headers)  # noqa: S310
        return self._opener.open(request, timeout=timeout_seconds)


class _faults_named:
    """Turns what the standard library raises into ``Unreachable`` with a few words."""

    def __init__(self, timeout_seconds: float) -> None:
        self.timeout_seconds = timeout_seconds

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: t.Any, error: BaseException | None, _trace: t.Any) -> None:
        if isinstance(error, urllib.error.HTTPError):
            raise Unreachable(_reply(error.code, error.read(ANSWER_LIMIT_BYTES)).words, error.code) from None
        reason = error.reason if isinstance(error, urllib.error.URLError) else error
        # Python 3.9 has two kinds.
        if isinstance(reason, (TimeoutError, socket.timeout)):
            raise Unreachable(f"no answer within {self.timeout_seconds:.0f} s") from None
        if isinstance(error, (OSError, http.client.HTTPException, ValueError)):
            words = getattr(reason, "strerror", None) or str(reason) or type(reason).__name__
            raise Unreachable(words) from None


def _read(response: t.Any, deadline: float) -> bytes:
    """The whole body. The socket's own timeout starts again with every byte, so the deadline is kept here."""
    parts: list[bytes] = []
    size = 0
    while True:
        part = response.read1(65536) if hasattr(response, "read1") else response.read(65536)
        if not part:
            return b"".join(parts)
        parts.append(part)
        size += len(part)
        if time.monotonic() > deadline:
            raise TimeoutError
        if size > ANSWER_LIMIT_BYTES:
            raise ValueError("the answer is larger than any answer should be")


def _reply(status: int, raw: bytes) -> Reply:
    text = raw.decode("utf-8", errors="replace")
    try:
        body = json.loads(text)
    except ValueError:
        body = {}
    return Reply(status, body if isinstance(body, dict) else {}, text)
