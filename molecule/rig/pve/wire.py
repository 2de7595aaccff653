# SPDX-License-Identifier: GPL-3.0-or-later
"""One request as it comes over HTTPS, and its answer: who asks, with which parameters, and how a result or an error looks."""

from __future__ import annotations

import dataclasses
import json
import traceback
import typing as t
import urllib.parse
from collections.abc import Mapping
from http.cookies import SimpleCookie

from . import api, faults
from .errors import ApiError, not_implemented, unauthorized
from .node import Node

PREFIX = "/api2/json"


@dataclasses.dataclass(frozen=True)
class Request:
    """``target`` is the path with its query; header names are found in any case."""

    verb: str
    target: str
    headers: Mapping[str, str]
    body: bytes = b""


@dataclasses.dataclass(frozen=True)
class Answer:
    """``user`` is who Proxmox took the client for, empty for a stranger."""

    status: int
    reason: str
    body: dict[str, t.Any]
    user: str = ""

    @property
    def data(self) -> bytes:
        return json.dumps(self.body).encode()


def answer(node: Node, request: Request) -> Answer:
    """Answer a request, whatever it is. Raises faults.Dropped where the connection is to be dropped."""
    user = ""
    try:
        body = _body(request)
        url = urllib.parse.urlsplit(request.target)
        path = urllib.parse.unquote(url.path)
        if not path.startswith(PREFIX):
            raise not_implemented(request.verb, path)
        path = path.removeprefix(PREFIX)
        if (request.verb, path.rstrip("/")) != ("POST", "/access/ticket"):
            user = _user(node, request)
        data = api.call(node, user, request.verb, path, {**form(url.query), **body})
    except ApiError as error:
        return refusal(error, user)
    except faults.Dropped:
        raise
    except Exception as error:  # a fault of the rig must reach the client as an answer, and its trace the journal
        traceback.print_exc()
        return refusal(ApiError(500, f"{type(error).__name__}: {error}".split("\n")[0]), user)
    return Answer(200, "OK", {"data": data}, user)


def refusal(error: ApiError, user: str = "") -> Answer:
    """How an error looks to a client."""
    body: dict[str, t.Any] = {"data": None, "message": error.message + "\n"}
    if error.errors:
        body["errors"] = error.errors
    return Answer(error.status, error.message.strip().split("\n")[0], body, user)


def _body(request: Request) -> dict[str, t.Any]:
    """The parameters in the body of a request, from a form or JSON."""
    text = request.body.decode(errors="replace")
    if not text:
        return {}
    if request.headers.get("Content-Type", "").partition(";")[0].strip().lower() == "application/json":
        try:
            found = json.loads(text)
        except ValueError:
            raise ApiError(400, "unable to parse request body as JSON") from None
        if not isinstance(found, dict):
            raise ApiError(400, "request body is no JSON object")
        return {key: value for key, value in found.items() if value is not None}
    return form(text)


def form(text: str) -> dict[str, t.Any]:
    """The parameters of a query or a form; one that comes several times is a list."""
    found = urllib.parse.parse_qs(text, keep_blank_values=True)
    return {key: values[0] if len(values) == 1 else values for key, values in found.items()}


def _user(node: Node, request: Request) -> str:
    """Who asks: the owner of the API token or of the ticket."""
    access = node.access
    header = request.headers.get("Authorization", "")
    if header.startswith("PVEAPIToken="):
        return access.by_token(header)
    cookie = SimpleCookie(request.headers.get("Cookie", "")).get("PVEAuthCookie")
    if not cookie:
        raise unauthorized("No ticket")
    ticket = urllib.parse.unquote(cookie.value)
    return access.by_ticket(ticket, request.headers.get("CSRFPreventionToken"), request.verb != "GET")
