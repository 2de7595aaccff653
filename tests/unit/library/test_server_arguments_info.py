# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine's own parser asked in its environment, with an engine of a few lines."""

from __future__ import annotations

import typing as t
from pathlib import Path

import engine_environment
import pytest
from ansible.module_utils.slipway.engines import own_parser
from ansible.modules import server_arguments_info

Run = t.Callable[..., dict[str, t.Any]]
PLAIN = ["/opt/env/bin/python", "-m", "sglang.launch_server"]
LAUNCHED = ["/opt/env/bin/python", "/opt/bin/serve", "--api-key-file", "/etc/key", "--"]
GOOD = ["--model-path", "/m", "--attention-backend", "triton", "--numa-node", "0", "1"]


def ask(run_module: Run, venv: Path, argv: list[str], **options: t.Any) -> dict[str, t.Any]:
    return run_module(
        server_arguments_info, {"engine": "sglang", "venv": str(venv), "argv": argv, **options}, check=True
    )


@pytest.mark.parametrize("start", [PLAIN, LAUNCHED], ids=["plain", "launched"])
def test_it_takes_a_command_line(run_module: Run, tmp_path: Path, start: list[str]) -> None:
    result = ask(run_module, engine_environment.sglang(tmp_path / "env"), start + GOOD)
    assert result["rc"] == 0
    told = {key: result[key] for key in ("changed", "available", "accepted", "said", "findings")}
    assert told == {"changed": False, "available": True, "accepted": True, "said": "", "findings": []}


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--attention-backend", "nsa"], "argument --attention-backend: invalid choice: 'nsa'"),
        (["--nonsense"], "unrecognized arguments: --nonsense"),
        (["--numa-node", "x"], "argument --numa-node: invalid int value: 'x'"),
    ],
)
def test_it_refuses_one_and_says_why(run_module: Run, tmp_path: Path, arguments: list[str], said: str) -> None:
    result = ask(run_module, engine_environment.sglang(tmp_path / "env"), PLAIN + GOOD + arguments)
    assert (result["rc"], result["accepted"]) == (0, False)
    (found,) = result["findings"]
    assert (found["id"], found["severity"], found["subject"]) == ("COMMAND_LINE_REFUSED", "fail", "sglang")
    assert found["detail"] == result["said"]
    assert said in result["said"]


def test_nothing_is_left_in_the_environment(run_module: Run, tmp_path: Path) -> None:
    venv = engine_environment.sglang(tmp_path / "env")
    before = sorted(tmp_path.rglob("*"))
    ask(run_module, venv, PLAIN + GOOD)
    assert sorted(tmp_path.rglob("*")) == before


def test_without_an_environment_nothing_is_said(run_module: Run, tmp_path: Path) -> None:
    result = ask(run_module, tmp_path / "none", PLAIN + GOOD)
    assert (result["rc"], result["available"], result["accepted"], result["findings"]) == (0, False, None, [])


@pytest.mark.parametrize(
    ("broken", "cause"),
    [
        ("raise ImportError('libcuda.so.1: no such file')", "sglang has no parser here: ImportError: libcuda.so.1"),
        ("import os; print('last words'); os.abort()", "sglang's parser gave no answer (status -6); its last line was"),
        ("import time; time.sleep(600)", "sglang's parser gave no answer within 1 seconds"),
        ("import os; os.fork() or __import__('time').sleep(600); os._exit(0)", "sglang's parser gave no answer"),
    ],
    ids=["import", "abort", "hang", "left behind"],
)
def test_an_environment_that_gives_no_answer_is_unknown(
    run_module: Run, tmp_path: Path, broken: str, cause: str
) -> None:
    venv = engine_environment.sglang(tmp_path / "env", broken)
    limit = 1 if "within" in cause or "fork" in broken else 600
    result = ask(run_module, venv, PLAIN + GOOD, timeout_seconds=limit)
    assert (result["rc"], result["accepted"]) == (0, None)
    (found,) = result["findings"]
    assert (found["id"], found["severity"]) == ("COMMAND_LINE_UNCHECKED", "unknown")
    assert cause in found["detail"]


@pytest.mark.parametrize(
    ("changes", "cause"),
    [
        ({"argv": ["/opt/env/bin/python", "serve.py"]}, "sglang's arguments are not to be found in the command line"),
        ({"timeout_seconds": 0}, "timeout_seconds 0 is less than 1"),
    ],
)
def test_refuses(run_module: Run, tmp_path: Path, changes: dict[str, t.Any], cause: str) -> None:
    options = {"argv": PLAIN + GOOD, **changes}
    result = ask(run_module, engine_environment.sglang(tmp_path / "env"), **options)
    assert result["rc"] == 1
    assert "Cannot check command line of 'sglang' on " in result["msg"]
    assert f": {cause}" in result["msg"]


def test_the_options_are_listed_with_what_they_take(tmp_path: Path) -> None:
    venv = engine_environment.sglang(tmp_path / "env")
    told = own_parser.ask(str(venv / "bin" / "python"), "sglang", None, 600)["options"]
    assert [(one["names"], one["kind"], one["many"], one["choices"]) for one in told] == [
        (["model-path", "model"], "text", False, []),
        (["attention-backend"], "text", False, ["triton", "flashinfer"]),
        (["numa-node"], "whole", True, []),
        (["fraction"], "number", False, []),
        (["extra"], "json", False, []),
        (["fast"], "flag", False, []),
    ]
