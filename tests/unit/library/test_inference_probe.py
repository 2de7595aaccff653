# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe against a stand-in server."""

from __future__ import annotations

import json
import socket
import threading
import time
import typing as t

import pytest
from ansible.modules import inference_probe
from openai_server import OpenAIServer

Probe = t.Callable[..., dict[str, t.Any]]


@pytest.fixture
def server() -> t.Iterator[OpenAIServer]:
    running = OpenAIServer()
    yield running
    running.close()


@pytest.fixture
def probe(server: OpenAIServer, run_module: t.Callable[..., dict[str, t.Any]]) -> Probe:
    def run(check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        return run_module(inference_probe, {"endpoint": server.endpoint, **arguments}, check)

    return run


def ids(result: dict[str, t.Any]) -> list[str]:
    return [one["id"] for one in result["findings"]]


def test_ready_means_generated(server: OpenAIServer, probe: Probe) -> None:
    result = probe(check=True)
    assert (result["rc"], result["changed"], result["ready"], result["model"]) == (0, False, True, "m")
    assert result["findings"] == []
    assert [path for path, _body in server.requests] == ["/health", "/v1/models", "/v1/chat/completions"]
    assert server.requests[-1][1]["max_tokens"] == 1


@pytest.mark.parametrize(
    ("changes", "finding_id", "detail", "final"),
    [
        (
            {"health": (503, {"error": {"message": "Loading model"}})},
            "SERVER_NOT_READY",
            "/health: HTTP 503 Loading model",
            False,
        ),
        ({"health": (500, "<html>oops</html>")}, "SERVER_NOT_READY", "/health: HTTP 500 <html>oops</html>", False),
        ({"models": (503, {})}, "SERVER_NOT_READY", "/models: HTTP 503", False),
        ({"models": (200, {"data": []})}, "SERVER_NOT_READY", "/models: it lists no model", False),
        ({"models": (200, "nonsense")}, "SERVER_NOT_READY", "/models: it lists no model", False),
        ({"models": (302, {})}, "SERVER_NOT_READY", "/models: HTTP 302", False),
        ({"chat_status": 500}, "SERVER_NOT_READY", "generation: HTTP 500 no slot", False),
        ({"api_key": "other"}, "SERVER_UNAUTHORIZED", "HTTP 401", True),
        ({"models": (200, {"data": [{"id": "x"}]})}, "MODEL_NAME_MISMATCH", "asked for m, served are x", True),
    ],
)
def test_not_ready(
    server: OpenAIServer, probe: Probe, changes: dict[str, t.Any], finding_id: str, detail: str, final: bool
) -> None:
    for name, value in changes.items():
        setattr(server, name, value)
    result = probe(model="m", checks=["ready", "coherence"])
    assert (result["rc"], result["ready"], result["final"]) == (0, False, final)
    assert result["findings"][0]["id"] == finding_id
    assert result["findings"][0]["detail"] == detail
    # What could not be looked at is not good.
    assert (ids(result)[1:], result["findings"][1]["severity"]) == (["CHECK_NOT_MADE"], "unknown")


def test_a_gateway_without_a_health_page_can_be_ready(server: OpenAIServer, probe: Probe) -> None:
    server.health = (404, {})
    assert probe()["ready"] is True


def test_nothing_listens(run_module: t.Callable[..., dict[str, t.Any]]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    result = run_module(inference_probe, {"endpoint": f"http://127.0.0.1:{port}/v1"})
    assert (ids(result), result["findings"][0]["detail"]) == (["SERVER_UNREACHABLE"], "Connection refused")


def test_an_answer_that_never_comes_ends_at_the_deadline(
    server: OpenAIServer, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansible.module_utils.slipway.probe.ready.QUICK_SECONDS", 0.2)
    listening = socket.create_server(("127.0.0.1", 0))  # accepts, and says nothing
    started = time.monotonic()
    result = probe(endpoint=f"http://127.0.0.1:{listening.getsockname()[1]}/v1")
    listening.close()
    assert time.monotonic() - started < 2
    assert (ids(result), result["findings"][0]["detail"]) == (["SERVER_UNREACHABLE"], "no answer within 0 s")


def test_the_key_is_sent_and_never_shown(server: OpenAIServer, probe: Probe) -> None:
    server.api_key = "geheim-1"
    assert probe(api_key="geheim-1")["ready"] is True
    refused = probe(api_key="geheim-2", wait=True, timeout_seconds=30)
    assert (refused["rc"], ids(refused)) == (1, ["SERVER_UNAUTHORIZED"])
    assert "geheim" not in json.dumps(refused)


def test_coherence(server: OpenAIServer, probe: Probe) -> None:
    reasoning = {"message": {"content": None, "reasoning_content": "hm " * 9}, "finish_reason": "length"}
    answers = {"one": "It is Tokyo.", "two": "It is Kyoto.", "three": "", "four": "no " * 99, "five": reasoning}
    server.say = lambda question: answers.get(question, "")
    cases = [{"id": f"case-{name}", "prompt": name, "expect": "tokyo"} for name in answers]
    result = probe(checks=["coherence"], cases=cases)
    assert [(one["case"], one["passed"]) for one in result["answers"]] == [
        ("case-one", True),
        ("case-two", False),
        ("case-three", False),
        ("case-four", False),
        ("case-five", False),
    ]
    assert ids(result) == ["ANSWER_WRONG", "ANSWER_EMPTY", "ANSWER_INCOHERENT", "REASONING_OVER_BUDGET"]
    assert (result["answers"][0]["question"], result["answers"][0]["answer"]) == ("one", "It is Tokyo.")
    assert result["throughput"] is None
    asked = [body for _path, body in server.requests if body and body["max_tokens"] != 1]
    assert {body["temperature"] for body in asked} == {0}


def test_a_good_server_is_good_a_hundred_times(server: OpenAIServer, probe: Probe) -> None:
    cases = [{"id": str(number), "prompt": "Tokyo?", "expect": "Tokyo"} for number in range(100)]
    result = probe(checks=["coherence"], cases=cases)
    assert (sum(one["passed"] for one in result["answers"]), result["findings"]) == (100, [])


def test_throughput(server: OpenAIServer, probe: Probe) -> None:
    result = probe(checks=["throughput"], throughput_tokens=20, thresholds={"output_tokens_per_second": 1})
    speed = result["throughput"]
    assert result["findings"] == []
    assert speed["output_tokens"] == 20
    # The stand-in pauses 5 ms after each of its tokens: 19 pauses lie between first and last.
    assert 20 < speed["output_tokens_per_second"] < 210
    assert 0 <= speed["time_to_first_token_seconds"] < speed["seconds"]
    slow = probe(checks=["throughput"], throughput_tokens=20, thresholds={"output_tokens_per_second": 5000})
    assert ids(slow) == ["THROUGHPUT_LOW"]


def test_throughput_of_a_server_that_does_not_count_is_unknown(server: OpenAIServer, probe: Probe) -> None:
    server.usage = False
    result = probe(checks=["throughput"], throughput_tokens=3)
    assert (result["throughput"], ids(result)) == (None, ["THROUGHPUT_UNKNOWN"])
    assert result["findings"][0]["severity"] == "unknown"


def test_waits_until_ready(server: OpenAIServer, probe: Probe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inference_probe, "PAUSE_SECONDS", 0.05)
    server.health = (503, {})
    threading.Timer(0.3, lambda: setattr(server, "health", (200, {}))).start()
    result = probe(wait=True, timeout_seconds=30)
    assert (result["rc"], result["ready"]) == (0, True)
    assert len(server.requests) > 4


def test_waiting_in_vain_fails_with_the_cause(
    server: OpenAIServer, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inference_probe, "PAUSE_SECONDS", 0.05)
    server.health = (503, {"error": "loading shard 3 of 9"})
    result = probe(wait=True, timeout_seconds=1)
    assert result["rc"] == 1
    assert result["msg"].startswith(f"Cannot probe server '{server.endpoint}' on ")
    assert "it is not ready after 1 s: /health: HTTP 503 loading shard 3 of 9. Read its log" in result["msg"]
    assert probe(check=True, wait=True, timeout_seconds=1)["rc"] == 0


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"endpoint": "127.0.0.1:8000"}, "no address of the form http://ADDRESS:PORT/v1"),
        ({"endpoint": "file:///etc/passwd"}, "no address of the form"),
        ({"answer_timeout_seconds": 1}, "answer_timeout_seconds is less than 5"),
        ({"cases": [{"id": "bad", "prompt": "?", "expect": "("}]}, "expect of case 'bad' is no regular expression"),
    ],
)
def test_refuses(server: OpenAIServer, probe: Probe, arguments: dict[str, t.Any], part: str) -> None:
    result = probe(**arguments)
    assert result["rc"] == 1
    assert part in result["msg"]
    assert server.requests == []
