# SPDX-License-Identifier: GPL-3.0-or-later
"""The probe against a stand-in server."""

from __future__ import annotations

import json
import socket
import typing as t
from pathlib import Path

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
    speed = result["throughput"]
    assert (result["findings"], result["changed"], speed["output_tokens"], speed["fixed_length"]) == (
        [],
        False,
        20,
        True,
    )
    assert (speed["baseline"], set(speed["warm_up"])) == (None, {"seconds", "prompt_tokens", "output_tokens"})
    slow = probe(checks=["throughput"], throughput_tokens=20, thresholds={"output_tokens_per_second": 1e12})
    assert ids(slow) == ["THROUGHPUT_LOW"]
    assert slow["throughput"]["loads"][0]["threshold"] == 1e12


def test_throughput_of_several_streams(server: OpenAIServer, probe: Probe) -> None:
    server.pause_seconds = 0.001
    result = probe(checks=["throughput"], throughput_concurrency=[3, 1], throughput_rounds=2, throughput_tokens=8)
    loads = result["throughput"]["loads"]
    assert [(one["concurrency"], one["requests"], one["failed"], one["output_tokens"]) for one in loads] == [
        (1, 2, 0, 16),
        (3, 6, 0, 48),
    ]
    assert loads[0]["prompt_tokens_per_second"] > 0
    assert loads[1]["prompt_tokens_per_second"] is None
    for one in loads:
        assert 0 < one["decode_seconds"] < one["seconds"]
        assert 0 < one["time_to_first_token_seconds"]["p50"] <= one["time_to_first_token_seconds"]["p99"]
    # No two prompts begin alike, and each is about as long as was asked for.
    asked = [body for _path, body in server.requests if body and body.get("ignore_eos")]
    assert len({body["messages"][0]["content"][:40] for body in asked}) == len(asked)
    assert {body["max_tokens"] for body in asked} == {4, 8}
    assert all(100 <= len(body["messages"][0]["content"]) // 4 <= 180 for body in asked)


def test_throughput_of_a_server_that_does_not_know_ignore_eos(server: OpenAIServer, probe: Probe) -> None:
    server.strict = True
    result = probe(checks=["throughput"], throughput_tokens=9)
    assert (result["findings"], result["throughput"]["fixed_length"]) == ([], False)


def test_throughput_of_a_server_that_does_not_count_is_unknown(server: OpenAIServer, probe: Probe) -> None:
    server.usage = False
    result = probe(checks=["throughput"], throughput_tokens=3)
    assert (result["throughput"], ids(result)) == (None, ["THROUGHPUT_UNKNOWN"])
    assert result["findings"][0]["severity"] == "unknown"


def test_errors_under_load_are_named(server: OpenAIServer, probe: Probe) -> None:
    server.most_at_once = 2
    server.pause_seconds = 0.05
    result = probe(checks=["throughput"], throughput_tokens=8, throughput_concurrency=[1, 4])
    (found,) = result["findings"]
    assert (found["id"], found["severity"]) == ("LOAD_ERRORS", "fail")
    failed = result["throughput"]["loads"][1]["failed"]
    assert found["detail"] == f"4 at a time, {failed} of 4 requests failed: HTTP 429 too many ({failed})"


def test_an_error_within_a_stream_is_named(server: OpenAIServer, probe: Probe) -> None:
    server.breaks_after = 3
    result = probe(checks=["throughput"], throughput_tokens=8)
    assert ids(result) == ["THROUGHPUT_UNKNOWN"]
    assert "CUDA error" in result["findings"][0]["detail"]


def test_the_baseline_of_a_host(server: OpenAIServer, probe: Probe, tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    options = {"checks": ["throughput"], "throughput_tokens": 9, "baseline": str(path), "record_baseline": True}
    seen = probe(check=True, **options)
    assert (seen["changed"], seen["throughput"]["baseline"]["recorded"], path.exists()) == (False, False, False)
    made = probe(**options)
    assert (made["changed"], made["throughput"]["baseline"]["recorded"]) == (True, True)
    kept = json.loads(path.read_text())
    assert kept["of"] == {"model": "m", "prompt_tokens_wanted": 128, "output_tokens_wanted": 9}
    kept["speeds"] = dict.fromkeys(kept["speeds"], 1e12)
    path.write_text(json.dumps(kept))
    below = probe(**options)
    assert (below["changed"], set(ids(below))) == (False, {"THROUGHPUT_BELOW_BASELINE"})
    assert below["throughput"]["loads"][0]["baseline"] == 1e12
    other = probe(**options, baseline_of={"gpus": ["A"]})
    assert ids(other) == ["THROUGHPUT_BASELINE_UNUSABLE"]


def test_a_slow_server_leaves_no_baseline(server: OpenAIServer, probe: Probe, tmp_path: Path) -> None:
    path = tmp_path / "speed.json"
    wanted = {"output_tokens_per_second": 1e12}
    options = {"checks": ["throughput"], "throughput_tokens": 9, "baseline": str(path), "record_baseline": True}
    assert ids(probe(**options, thresholds=wanted)) == ["THROUGHPUT_LOW"]
    assert not path.exists()


@pytest.mark.parametrize(
    ("metrics", "detail"),
    [
        ((200, '# HELP\nvllm:num_requests_running{engine="0"} 0.0\nvllm:num_requests_waiting{engine="0"} 0.0\n'), None),
        ((200, 'sglang:num_running_reqs{tp_rank="0"} 0.0\nsglang:num_queue_reqs 0.0\n'), None),
        ((200, "llamacpp:requests_processing 0\nllamacpp:requests_deferred 0\n"), None),
        ((200, "vllm:num_requests_running 2.0\nvllm:num_requests_waiting 1.0\n"), "it has 3 at this moment"),
        ((200, "other 0\n"), "it does not say how many it serves"),
        ((404, ""), "it does not say how many it serves"),
    ],
)
def test_a_server_that_serves_others_is_not_loaded(
    server: OpenAIServer, probe: Probe, metrics: tuple[int, str], detail: str | None
) -> None:
    server.metrics = metrics
    result = probe(checks=["throughput"], throughput_tokens=9, require_idle=True)
    assert [(one["id"], one["severity"], one["detail"]) for one in result["findings"]] == (
        [("SERVER_IN_USE", "unknown", detail)] if detail else []
    )
    assert (result["throughput"] is None) == bool(detail)


def test_warm_up_is_before_anything_and_what_it_meets_is_told(server: OpenAIServer, probe: Probe) -> None:
    probe(checks=["coherence"], cases=[{"id": "a", "prompt": "a"}])
    assert len(server.requests[3][1]["messages"][0]["content"]) >= 300
    server.mind = lambda body: (500, {"error": {"message": "no kernel"}}) if body["max_tokens"] == 8 else "Hello."
    result = probe(checks=["coherence", "throughput"], cases=[{"id": "a", "prompt": "a"}])
    assert ids(result) == ["SERVER_NOT_READY", "CHECK_NOT_MADE", "CHECK_NOT_MADE"]
    assert result["findings"][0]["detail"] == "warm-up: HTTP 500 no kernel"
    assert result["answers"] == []


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
        ({"warm_up_timeout_seconds": 1}, "warm_up_timeout_seconds is less than 5"),
        ({"throughput_tokens": 1}, "throughput_tokens is 1"),
        ({"throughput_concurrency": []}, "throughput_concurrency is []"),
        ({"throughput_concurrency": [0, 1]}, "throughput_concurrency is [0, 1]"),
        (
            {"checks": ["throughput"], "thresholds": {"by_concurrency": [{"concurrency": 16}]}},
            "thresholds name 16 at a time, and throughput_concurrency is [1]",
        ),
        ({"cases": [{"id": "bad", "prompt": "?", "expect": "("}]}, "case 'bad': expect '(' is no regular expression"),
    ],
)
def test_refuses(server: OpenAIServer, probe: Probe, arguments: dict[str, t.Any], part: str) -> None:
    result = probe(**arguments)
    assert result["rc"] == 1
    assert part in result["msg"]
    assert server.requests == []
