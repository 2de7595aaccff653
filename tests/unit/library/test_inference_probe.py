# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe against a stand-in server."""

from __future__ import annotations

import json
import socket
import typing as t

import pytest
from ansible.modules import inference_probe
from openai_server import OpenAIServer

Probe = t.Callable[..., dict[str, t.Any]]


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
    with socket.socket() as bound:  # and does not listen, so that nobody else can
        bound.bind(("127.0.0.1", 0))
        result = run_module(inference_probe, {"endpoint": f"http://127.0.0.1:{bound.getsockname()[1]}/v1"})
    assert (ids(result), result["findings"][0]["detail"]) == (["SERVER_UNREACHABLE"], "Connection refused")


def test_an_answer_that_never_comes_ends_at_the_deadline(
    server: OpenAIServer, probe: Probe, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ansible.module_utils.slipway.probe.ready.QUICK_SECONDS", 0.2)
    listening = socket.create_server(("127.0.0.1", 0))  # accepts, and says nothing
    result = probe(endpoint=f"http://127.0.0.1:{listening.getsockname()[1]}/v1")
    listening.close()
    assert (ids(result), result["findings"][0]["detail"]) == (["SERVER_UNREACHABLE"], "no answer within 0 s")


def test_the_key_is_sent_and_never_shown(server: OpenAIServer, probe: Probe) -> None:
    server.api_key = "geheim-1"
    assert probe(api_key="geheim-1")["ready"] is True
    refused = probe(api_key="geheim-2")
    assert (refused["rc"], ids(refused)) == (0, ["SERVER_UNAUTHORIZED"])
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
    assert ids(result) == ["ANSWER_WRONG", "ANSWER_EMPTY", "ANSWER_LOOPS", "REASONING_OVER_BUDGET"]
    assert {one["severity"] for one in result["findings"]} == {"fail"}
    assert (result["answers"][0]["question"], result["answers"][0]["answer"]) == ("one", "It is Tokyo.")
    assert result["throughput"] is None
    asked = [body for _path, body in server.requests if body and body["max_tokens"] != 1]
    assert {body["temperature"] for body in asked} == {0}


def test_a_case_that_expects_nothing_must_make_sense(server: OpenAIServer, probe: Probe) -> None:
    answers = {"any": "A machine that computes.", "none": " ", "loop": "Tokyo " * 40}
    server.say = lambda question: answers.get(question, "")
    cases = [{"id": name, "prompt": name} for name in answers]
    result = probe(checks=["coherence"], cases=cases)
    assert [one["passed"] for one in result["answers"]] == [True, False, False]
    found = [(one["id"], one["severity"], one["subject"]) for one in result["findings"]]
    assert found == [("ANSWER_EMPTY", "fail", "none"), ("ANSWER_LOOPS", "fail", "loop")]


def test_each_case_has_its_own_length(server: OpenAIServer, probe: Probe) -> None:
    probe(checks=["coherence"], cases=[{"id": "a", "prompt": "a", "max_tokens": 7}, {"id": "b", "prompt": "b"}])
    asked = [body for path, body in server.requests if path == "/v1/chat/completions"]
    # The first is the one token that readiness asks for, the second the warm-up.
    assert [body["max_tokens"] for body in asked] == [1, 8, 7, 64]


def test_coherence_without_a_case_is_not_good(server: OpenAIServer, probe: Probe) -> None:
    (found,) = probe(checks=["ready", "coherence"])["findings"]
    assert (found["id"], found["severity"], found["subject"]) == ("CHECK_NOT_MADE", "unknown", "coherence")
    assert found["detail"] == "no case was given to ask"


def test_a_good_server_is_good_a_hundred_times(server: OpenAIServer, probe: Probe) -> None:
    cases = [{"id": str(number), "prompt": "Tokyo?", "expect": "Tokyo"} for number in range(100)]
    result = probe(checks=["coherence"], cases=cases)
    assert (sum(one["passed"] for one in result["answers"]), result["findings"]) == (100, [])


def test_throughput(server: OpenAIServer, probe: Probe) -> None:
    result = probe(checks=["throughput"], throughput_tokens=20, thresholds={"output_tokens_per_second": 1e-9})
    assert (result["findings"], result["throughput"]["output_tokens"]) == ([], 20)
    slow = probe(checks=["throughput"], throughput_tokens=20, thresholds={"output_tokens_per_second": 1e12})
    assert ids(slow) == ["THROUGHPUT_LOW"]


def test_throughput_of_a_server_that_does_not_count_is_unknown(server: OpenAIServer, probe: Probe) -> None:
    server.usage = False
    result = probe(checks=["throughput"], throughput_tokens=3)
    assert (result["throughput"], ids(result)) == (None, ["THROUGHPUT_UNKNOWN"])
    assert result["findings"][0]["severity"] == "unknown"


def test_the_module_looks_once(server: OpenAIServer, probe: Probe) -> None:
    server.health = (503, {"error": "loading shard 3 of 9"})
    result = probe(wait=True, timeout_seconds=30)
    assert (result["rc"], result["ready"], result["final"]) == (0, False, False)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"endpoint": "127.0.0.1:8000"}, "no address of the form http://ADDRESS:PORT/v1"),
        ({"endpoint": "file:///etc/passwd"}, "no address of the form"),
        ({"answer_timeout_seconds": 1}, "answer_timeout_seconds is less than 5"),
        ({"cases": [{"id": "bad", "prompt": "?", "expect": "("}]}, "case 'bad': expect '(' is no regular expression"),
    ],
)
def test_refuses(server: OpenAIServer, probe: Probe, arguments: dict[str, t.Any], part: str) -> None:
    result = probe(**arguments)
    assert result["rc"] == 1
    assert part in result["msg"]
    assert server.requests == []
