# SPDX-License-Identifier: GPL-3.0-or-later
"""The module with stand-ins for systemd's commands: a start that goes on, dies in each way, and hangs."""

from __future__ import annotations

import json
import time
import typing as t
from pathlib import Path

import pytest
from ansible.modules import server_log_info

COMMAND = """#!/bin/sh
echo "$(basename $0) $@" >> {folder}/calls
cat {folder}/$(basename $0).says
"""
RUNNING = {
    "LoadState": "loaded",
    "ActiveState": "active",
    "SubState": "running",
    "Result": "success",
    "NRestarts": "0",
    "InvocationID": "1a",
    "ExecMainCode": "0",
    "ExecMainStatus": "0",
}
Look = t.Callable[..., dict[str, t.Any]]


@pytest.fixture
def look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run_module: t.Callable[..., dict[str, t.Any]]) -> Look:
    """Calls the module with what systemd shows and the journal has: texts with how many seconds ago they were written."""
    for name in ("systemctl", "journalctl"):
        (tmp_path / name).write_text(COMMAND.format(folder=tmp_path))
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    def run(log: list[tuple[t.Any, ...]], state: dict[str, str] | None = None, **arguments: t.Any) -> dict[str, t.Any]:
        now = time.monotonic()
        shown = {**RUNNING, "ExecMainStartTimestampMonotonic": str(int((now - 500) * 1e6)), **(state or {})}
        (tmp_path / "systemctl.says").write_text("".join(f"{name}={value}\n" for name, value in shown.items()))
        entries = [
            {"MESSAGE": text, "__MONOTONIC_TIMESTAMP": str(int((now - ago) * 1e6)), **dict(rest)}
            for ago, text, *rest in log
        ]
        (tmp_path / "journalctl.says").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
        return run_module(server_log_info, {"unit": "serve.service", **arguments}, False)

    return run


def ids(result: dict[str, t.Any]) -> list[str]:
    return [found["id"] for found in result["findings"]]


def test_a_start_that_goes_on(look: Look, tmp_path: Path) -> None:
    bar = [ord(char) for char in "\rLoading safetensors checkpoint shards:  8% Completed | 5/64 [00:01<00:16]"]
    result = look([(400, "[2026-01-29 00:50:31 TP0] Load weight begin."), (7, bar)], engine="sglang")
    assert (result["rc"], result["changed"], result["words"]) == (0, False, "loading shard 6 of 64")
    assert (result["phase"], result["done"], result["total"]) == ("loading", 5, 64)
    assert [round(result[name], -1) for name in ("seconds", "phase_seconds", "quiet_seconds")] == [500, 400, 10]
    assert (result["died"], result["hung"], result["findings"]) == ("", False, [])
    assert (result["run_id"], result["restarts"]) == ("1a", 0)
    assert (tmp_path / "calls").read_text().splitlines()[1].endswith("-b -u serve.service")


def test_without_an_engine_there_is_no_phase(look: Look) -> None:
    result = look([(400, "torch.OutOfMemoryError: CUDA out of memory.")], limits={"loading": {"quiet_seconds": 1}})
    assert (result["phase"], result["words"], result["hung"]) == (None, "", False)
    assert ids(result) == ["GPU_MEMORY_WEIGHTS"]


def test_a_hang_is_told_with_the_fault_that_was_said_before(look: Look) -> None:
    log = [(400, "[2026-01-29 00:50:31 TP0] Load weight begin."), (390, "OSError: [Errno 28] No space left on device")]
    result = look(log, engine="sglang", limits={"loading": {"quiet_seconds": 300}})
    assert (result["hung"], ids(result)) == (True, ["DISK_FULL", "SERVER_HUNG"])
    assert "loading weights: no sign of progress for 39" in result["findings"][1]["detail"]


def test_one_that_serves_for_long_has_its_time_from_the_first_look_on(look: Look) -> None:
    log = [(400, "llamacpp-server: serving m at http://0.0.0.0:8000")]
    arguments = {"engine": "llamacpp", "limits": {"ready": {"quiet_seconds": 60, "total_seconds": 60}}}
    assert look(log, waited_seconds=59, **arguments)["hung"] is False
    assert look(log, waited_seconds=61, **arguments)["hung"] is True


@pytest.mark.parametrize(
    ("state", "arguments", "died"),
    [
        ({"ActiveState": "failed", "Result": "exit-code", "ExecMainCode": "1", "ExecMainStatus": "3"}, {},
         "is not running, result exit-code, exit code 3"),
        ({"ActiveState": "failed", "Result": "signal", "ExecMainCode": "2", "ExecMainStatus": "9"}, {},
         "is not running, result signal, signal 9"),
        ({"SubState": "auto-restart", "Result": "exit-code"}, {}, "died and is restarted by systemd, result exit-code"),
        ({"NRestarts": "2"}, {"restarts": 1}, "died and was restarted by systemd"),
        ({"InvocationID": "2b"}, {"run_id": "1a"}, "died and was restarted by systemd"),
    ],
)  # fmt: skip
def test_each_way_to_die(look: Look, state: dict[str, str], arguments: dict[str, t.Any], died: str) -> None:
    log = [
        (9, "llamacpp-server: loading /m"),
        (8, "ValueError: odd"),
        (7, "serve.service: Failed with result 'exit-code'."),
    ]
    result = look(log, state, engine="llamacpp", **arguments)
    assert (result["died"], ids(result)) == (died, ["SERVER_DIED"])
    assert result["findings"][0]["detail"] == "while loading weights; its last word: ValueError: odd"
    assert result["log"] == ["llamacpp-server: loading /m", "ValueError: odd"]
    assert result["run_id"] == "1a" or not arguments.get("run_id")


def test_the_lines_of_a_run_are_those_between_what_systemd_says_of_it(look: Look) -> None:
    log = [
        (99, "Started serve.service - a model.", ("INVOCATION_ID", "0f")),
        (98, "ValueError: of the run before", ("_SYSTEMD_INVOCATION_ID", "0f")),
        (9, "Started serve.service - a model.", ("INVOCATION_ID", "1a")),
        (8, "llamacpp-server: loading /m"),  # a process that is gone when journald looks for its run
        (7, "serve.service: Failed with result 'exit-code'.", ("INVOCATION_ID", "1a")),
    ]
    result = look(log, {"ActiveState": "failed", "Result": "exit-code"}, engine="llamacpp")
    assert (result["phase"], result["log"]) == ("loading", ["llamacpp-server: loading /m"])


def test_the_kernels_kill_is_named(look: Look) -> None:
    result = look(
        [(9, "llamacpp-server: loading /m")], {"ActiveState": "failed", "Result": "oom-kill"}, engine="llamacpp"
    )
    assert ids(result) == ["SERVER_OOM_KILLED"]


def test_one_whose_start_is_waiting_is_not_dead(look: Look) -> None:
    assert look([], {"ActiveState": "inactive", "Job": "812"}, engine="vllm")["died"] == ""


def test_a_unit_that_does_not_exist(look: Look) -> None:
    result = look([], {"LoadState": "not-found", "ActiveState": "inactive"}, engine="vllm")
    assert (result["died"], result["findings"]) == ("does not exist", [])


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"engine": "vllm", "limits": {"reading": {}}}, "Cannot watch unit 'serve.service' on "),
        ({"engine": "other"}, "value of engine must be one of"),
    ],
)
def test_refuses(look: Look, arguments: dict[str, t.Any], part: str) -> None:
    result = look([], **arguments)
    assert (result["rc"], part in result["msg"]) == (1, True), result["msg"]


def test_systemd_that_does_not_answer(look: Look, tmp_path: Path) -> None:
    (tmp_path / "systemctl").write_text("#!/bin/sh\necho 'Failed to connect to bus' >&2\nexit 1\n")
    result = look([])
    assert (result["rc"], "Failed to connect to bus. Run as root." in result["msg"]) == (1, True), result["msg"]
