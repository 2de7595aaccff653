# SPDX-License-Identifier: GPL-3.0-or-later
"""Readiness: a server is ready when it has generated something. A listed model or a good health page is not enough."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ..findings import Finding, finding
from .client import Client, Reply, Unreachable

# The health page of a busy engine may take seconds; a shorter probe would call a working server dead.
QUICK_SECONDS = 10


@dataclass(frozen=True)
class Readiness:
    """``model`` is the served name that requests must use. ``final``: waiting longer would change nothing.

    ``template_tokens``: what the server counted of a prompt of one word, which is that of the chat template; 0 where it does not count.
    """

    ready: bool
    model: str | None = None
    findings: list[Finding] = field(default_factory=list)
    final: bool = False
    template_tokens: int = 0


def probe(client: Client, model: str | None, answer_timeout_seconds: float) -> Readiness:
    """Ask for health, then for the models, then for one token. Stops at the first that is not well."""
    try:
        health = client.health(QUICK_SECONDS)
        # A gateway may have no health page; then the rest decides.
        if health.status >= 400 and health.status not in (401, 403, 404, 405):
            return _not_ready(client, f"/health: {health.words}")
        listed = client.models(QUICK_SECONDS)
    except Unreachable as error:
        return Readiness(False, findings=[finding("SERVER_UNREACHABLE", client.endpoint, str(error))])
    if listed.status in (401, 403):
        return _unauthorized(client, listed)
    if listed.status != 200:
        return _not_ready(client, f"/models: {listed.words}")
    names = _names(listed.body)
    if not names:
        return _not_ready(client, "/models: it lists no model")
    if model and model not in names:
        served = f"asked for {model}, served are {', '.join(names)}"
        return Readiness(False, None, [finding("MODEL_NAME_MISMATCH", client.endpoint, served)], final=True)
    return _generate(client, model or names[0], answer_timeout_seconds)


def _generate(client: Client, model: str, timeout_seconds: float) -> Readiness:
    request = {"model": model, "max_tokens": 1, "messages": [{"role": "user", "content": "Hello"}]}
    try:
        reply = client.chat(request, timeout_seconds)
    except Unreachable as error:
        return _not_ready(client, f"generation: {error}")
    if reply.status in (401, 403):
        return _unauthorized(client, reply)
    if reply.status != 200 or not reply.body.get("choices"):
        return _not_ready(client, f"generation: {reply.words}")
    usage = reply.body.get("usage")
    usage = usage if isinstance(usage, dict) else {}
    if usage.get("completion_tokens") == 0:
        return _not_ready(client, "generation: it answers without having generated a token")
    counted = usage.get("prompt_tokens")
    return Readiness(True, model, template_tokens=counted if isinstance(counted, int) else 0)


def _names(body: dict[str, t.Any]) -> list[str]:
    entries = body.get("data")
    if not isinstance(entries, list):
        return []
    return [entry["id"] for entry in entries if isinstance(entry, dict) and isinstance(entry.get("id"), str)]


def _not_ready(client: Client, detail: str) -> Readiness:
    return Readiness(False, findings=[finding("SERVER_NOT_READY", client.endpoint, detail)])


def _unauthorized(client: Client, reply: Reply) -> Readiness:
    # Not the server's words: some repeat the key that they were given.
    detail = f"HTTP {reply.status}"
    return Readiness(False, findings=[finding("SERVER_UNAUTHORIZED", client.endpoint, detail)], final=True)
