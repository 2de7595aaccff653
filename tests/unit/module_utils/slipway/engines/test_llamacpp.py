# SPDX-License-Identifier: GPL-3.0-or-later
"""From a request to a command line, and what is refused on the way."""

from __future__ import annotations

import importlib.util
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.engines import arguments, llamacpp, server
from ansible.module_utils.slipway.engines.plan import ENGINES
from ansible.module_utils.slipway.errors import SlipwayError

BASE: dict[str, t.Any] = {
    "engine": "llamacpp",
    "venv": "/opt/env",
    "model_path": "/srv/models/m.gguf",
    "model_name": "m",
    "host": "127.0.0.1",
    "port": 8000,
    "launcher": "/opt/bin/serve",
}
FIXED = ["/opt/env/bin/python", "/opt/bin/serve", "--model", "/srv/models/m.gguf", "--alias", "m"]
FIXED += ["--host", "127.0.0.1", "--port", "8000"]


def plan(**changes: t.Any) -> server.ServerPlan:
    request = server.Request(**{**BASE, **changes})
    server.check_request(request)
    return ENGINES[request.engine](request)


@pytest.mark.parametrize(
    ("changes", "more"),
    [
        ({}, []),
        ({"context_length": 2048}, ["--context-length", "2048"]),
        ({"api_key_file": "/etc/key"}, ["--api-key-file", "/etc/key"]),
        # Numbers that a template made text of, and either spelling of a name.
        ({"arguments": {"threads": "2", "parallel": 4}}, ["--parallel", "4", "--threads", "2"]),
    ],
)
def test_command_line(changes: dict[str, t.Any], more: list[str]) -> None:
    assert plan(**changes).argv == FIXED + more


def test_environment() -> None:
    assert plan(environment={"B": 2, "A": "x y"}).environment == {"A": "x y", "B": "2", "PYTHONUNBUFFERED": "1"}


@pytest.mark.parametrize(
    ("changes", "findings"),
    [
        (
            {"arguments": {"paralel": 2}},
            [("FLAG_UNKNOWN", "--paralel", "llamacpp: the nearest that it has is --parallel")],
        ),
        ({"arguments": {"zzz": True}}, [("FLAG_UNKNOWN", "--zzz", "llamacpp: it has nothing like it")]),
        ({"arguments": {"api_key": "geheim"}}, [("SECRET_EXPOSED", "api-key", None)]),
        ({"environment": {"HF_TOKEN": "geheim"}}, [("SECRET_EXPOSED", "HF_TOKEN", None)]),
        ({"host": "::"}, [("API_OPEN", ":::8000", None)]),
        ({"host": "::", "api_key_file": "/etc/key"}, []),
    ],
)
def test_findings(changes: dict[str, t.Any], findings: list[tuple[str, str, str | None]]) -> None:
    done = plan(**changes)
    assert [(one.id, one.subject) for one in done.findings] == [one[:2] for one in findings]
    assert all(detail in (None, one.detail) for one, (_id, _subject, detail) in zip(done.findings, findings))
    assert "geheim" not in str(done)


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"port": 0}, "port 0 is not one of 1 to 65535"),
        ({"port": 65536}, "port 65536 is not one of 1 to 65535"),
        ({"host": "a b"}, "host 'a b' is neither a name nor an address"),
        ({"venv": "env"}, "venv 'env' is not an absolute path"),
        ({"model_name": " "}, "model_name ' ' is empty or has space around it"),
        ({"context_length": 0}, "context_length 0 is less than 1"),
        ({"tensor_parallel": -1}, "tensor_parallel -1 is less than 1"),
        ({"tensor_parallel": 2}, "tensor_parallel is 2 and llama.cpp runs on the CPU here, as one"),
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype 'fp8' cannot be chosen for llama.cpp here, only auto"),
        ({"launcher": None}, "launcher is not given: the path on the guest of llamacpp_server.py"),
        ({"open_devices": True}, "open_devices is asked for and no GPU has a device node"),
        ({"arguments": {"parallel": -1}}, "argument --parallel must be a whole number of at least 1, not '-1'"),
        (
            {"arguments": {"parallel": True}},
            "argument --parallel must be a whole number of at least 1, not 'True'",
        ),
        ({"arguments": {"parallel": ""}}, "argument --parallel must be a whole number of at least 1, not ''"),
        (
            {"arguments": {"parallel": None}},
            "argument --parallel must be a whole number of at least 1, not 'None'",
        ),
        ({"arguments": {"port": 9}}, "argument --port is set by port and cannot be given beside it"),
        (
            {"arguments": {"context_length": 9}},
            "argument --context-length is set by server.context_length and cannot be given beside it",
        ),
        ({"environment": {"A B": "x"}}, "'A B' is not the name of an environment variable"),
        (
            {"environment": {"A": "x\ny"}},
            "environment variable A must be a text or number of one line, not 'x\ny'",
        ),
        ({"environment": {"A": None}}, "environment variable A must be a text or number of one line, not 'None'"),
    ],
)
def test_refuses(changes: dict[str, t.Any], cause: str) -> None:
    with pytest.raises(SlipwayError) as caught:
        plan(**changes)
    assert str(caught.value) == cause


def test_one_argument_in_two_spellings_is_refused() -> None:
    request = server.Request(**BASE, arguments={"max-len": 1, "max_len": 2})
    with pytest.raises(SlipwayError, match="argument --max-len is given twice, in two spellings"):
        arguments.render(request, {"max-len": server.Argument("count")})


@pytest.mark.parametrize(("value", "argv"), [(True, ["--fast"]), (False, [])], ids=["on", "off"])
def test_flags(value: bool, argv: list[str]) -> None:
    request = server.Request(**BASE, arguments={"fast": value})
    assert arguments.render(request, {"fast": server.Argument("flag")}) == argv


@pytest.mark.parametrize(
    ("word", "quoted"),
    [
        ("/opt/x", "/opt/x"),
        ("a b", '"a b"'),
        ('say "x"', '"say \\"x\\""'),
        ("100%", '"100%%"'),
        ("$HOME", '"$$HOME"'),
        ("c:\\x", '"c:\\\\x"'),
        ("", '""'),
        ("{a: 1}", '"{a: 1}"'),
    ],
)
def test_words_are_quoted_for_systemd(word: str, quoted: str) -> None:
    assert server.command_line([word]) == quoted


def test_a_dollar_sign_is_only_doubled_in_a_command_line() -> None:
    assert server.environment_lines({"A": "$x y"}) == ['"A=$x y"']


def test_devices_are_opened_by_systemd_only_where_asked_for() -> None:
    devices = ("/dev/nvidia0", "/dev/nvidia1")
    asked = server.Request(**BASE, open_devices=True, devices=devices)
    assert server.service_settings(asked)["OpenFile"] == ["/dev/nvidia0", "/dev/nvidia1"]
    assert "OpenFile" not in server.service_settings(server.Request(**BASE, devices=devices))


def test_the_engine_knows_exactly_the_launchers_options(root: Path) -> None:
    path = root / "roles/inference_server/files" / llamacpp.LAUNCHER
    spec = importlib.util.spec_from_file_location("launcher", path)
    assert spec and spec.loader
    launcher = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(launcher)
    options = {string for action in launcher.build_parser()._actions for string in action.option_strings}
    assert options - {"-h", "--help"} == {server.option(name) for name in llamacpp.ARGUMENTS}
