# SPDX-License-Identifier: GPL-3.0-or-later
"""The action plugin through ansible-playbook itself, with a stand-in server and stand-ins for systemd's commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import typing as t
from pathlib import Path

import pytest
from openai_server import OpenAIServer

SYSTEMCTL = """#!/bin/sh
echo "$@" >> {folder}/calls
cat {folder}/state
"""
JOURNALCTL = """#!/bin/sh
cat {folder}/journal
"""
RUNNING = "LoadState=loaded\nActiveState=active\nSubState=running\nResult=success\nNRestarts=0\nInvocationID=1a\n"
LOG = [
    "Started serve.service - a model.",
    "llamacpp-server: loading /srv/m.gguf",
    "RuntimeError: torn file",
    "serve.service: Main process exited, code=exited, status=1/FAILURE",
]


class Play:
    """Runs one task; ``state`` is what systemctl shows."""

    def __init__(self, folder: Path, root: Path, server: OpenAIServer) -> None:
        self.folder, self.root, self.server = folder, root, server
        for name, text in {"systemctl": SYSTEMCTL, "journalctl": JOURNALCTL}.items():
            command = folder / name
            command.write_text(text.format(folder=folder))
            command.chmod(0o755)
        (folder / "ansible.cfg").touch()
        self.state(RUNNING)
        self.log(LOG)

    def state(self, text: str) -> None:
        (self.folder / "state").write_text(text)

    def log(self, texts: list[str], seconds_ago: float = 0) -> None:
        """What the journal has, all of it written so long ago."""
        at = str(int((time.monotonic() - seconds_ago) * 1e6))
        entries = [json.dumps({"MESSAGE": text, "__MONOTONIC_TIMESTAMP": at}) for text in texts]
        (self.folder / "journal").write_text("\n".join(entries) + "\n")

    def __call__(self, *options: str, **arguments: t.Any) -> tuple[int, str, dict[str, t.Any]]:
        """Exit code, everything that was shown, and the task's result."""
        result = self.folder / "result.json"
        tasks: list[dict[str, t.Any]] = [
            {"inference_probe": {"endpoint": self.server.endpoint, **arguments}, "register": "probed"},
        ]
        always = [{"copy": {"content": "{{ probed | to_json }}", "dest": str(result)}, "check_mode": False}]
        play = {"hosts": "guest1", "gather_facts": False, "tasks": [{"block": tasks, "always": always}]}
        (self.folder / "play.yml").write_text(json.dumps([play]))
        (self.folder / "hosts").write_text(
            f"guest1 ansible_connection=local ansible_python_interpreter={sys.executable}\n"
        )
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "PATH": f"{self.folder}:{os.environ['PATH']}",
            "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_REMOTE_TMP": str(self.folder / "remote"),
            "ANSIBLE_LIBRARY": str(self.root / "library"),
            "ANSIBLE_MODULE_UTILS": str(self.root / "module_utils"),
            "ANSIBLE_ACTION_PLUGINS": str(self.root / "action_plugins"),
        }
        command = [Path(sys.executable).parent / "ansible-playbook", "-i", "hosts", "play.yml", *options]
        done = subprocess.run(command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=300)
        return done.returncode, done.stdout + done.stderr, json.loads(result.read_text())


@pytest.fixture
def play(tmp_path: Path, root: Path, server: OpenAIServer) -> Play:
    return Play(tmp_path, root, server)


def test_says_what_the_server_says_and_ends_when_it_is_ready(play: Play, server: OpenAIServer) -> None:
    server.loading = [(503, {"error": {"message": "Loading model"}})] * 2
    server.api_key = "geheim"
    cases = [{"id": "one", "prompt": "Tokyo?", "expect": "tokyo"}]
    arguments = {"wait": True, "unit": "serve.service", "api_key": "geheim", "checks": ["coherence"], "cases": cases}
    code, shown, result = play("-vvv", **arguments)
    assert code == 0, shown
    waiting = rf"\[guest1\] waiting for {server.endpoint}: \d+ s, /health: HTTP 503 Loading model"
    assert re.search(waiting, shown)
    assert server.loading == []
    assert "geheim" not in shown
    assert (result["ready"], [one["passed"] for one in result["answers"]]) == (True, [True])
    assert (play.folder / "calls").read_text().splitlines()[0].endswith("-- serve.service")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (
            "LoadState=loaded\nActiveState=failed\nSubState=failed\nResult=exit-code\nNRestarts=5\n",
            "is not running, result exit-code",
        ),
        (
            "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nResult=exit-code\nNRestarts=1\n",
            "died and is restarted by systemd, result exit-code",
        ),
    ],
    ids=["failed", "restarting"],
)
def test_a_dead_unit_ends_the_wait_with_its_log(play: Play, server: OpenAIServer, state: str, words: str) -> None:
    server.health = (503, {})
    play.state(state)
    code, _shown, result = play(wait=True, unit="serve.service", timeout_seconds=50)
    assert code != 0
    assert result["msg"].startswith(
        f"Cannot use server '{server.endpoint}' on guest1: serve.service {words}. SERVER_DIED"
    )
    assert "its last word: RuntimeError: torn file." in result["msg"]
    assert (
        " The last lines of its log: llamacpp-server: loading /srv/m.gguf | RuntimeError: torn file." in result["msg"]
    )
    assert result["msg"].endswith("mend the cause and run this again.")
    assert result["log"] == LOG[1:3]
    assert [one["id"] for one in result["findings"]] == ["SERVER_DIED", "SERVER_NOT_READY"]


def test_a_unit_that_does_not_exist_ends_the_wait(play: Play, server: OpenAIServer) -> None:
    server.health = (503, {})
    play.state("LoadState=not-found\nActiveState=inactive\nSubState=dead\nNRestarts=0\n")
    code, _shown, result = play(wait=True, unit="serve.service", timeout_seconds=50)
    assert (code != 0, [one["id"] for one in result["findings"]]) == (True, ["SERVER_NOT_READY"])
    assert f"Cannot use server '{server.endpoint}' on guest1: serve.service does not exist." in result["msg"]


def test_a_known_fault_leads_and_the_log_is_not_quoted(play: Play, server: OpenAIServer) -> None:
    server.health = (503, {})
    play.state("LoadState=loaded\nActiveState=failed\nResult=exit-code\nExecMainCode=1\nExecMainStatus=1\n")
    play.log([*LOG[:2], "llamacpp-server: Cannot start: [Errno 98] Address already in use."])
    code, _shown, result = play(wait=True, unit="serve.service", engine="llamacpp")
    assert code != 0
    assert result["msg"].startswith(
        f"Cannot use server '{server.endpoint}' on guest1: serve.service is not running, result exit-code, exit code 1 while loading weights."
        " PORT_IN_USE, serve.service: Another process listens at the server's port. llamacpp-server: Cannot start: [Errno 98] Address already"
    )
    assert "last lines" not in result["msg"]
    assert "inference_server_port" in result["msg"]


def test_a_phase_that_hangs_ends_the_wait_by_its_name(play: Play, server: OpenAIServer) -> None:
    server.health = (503, {})
    play.log(LOG[:2], seconds_ago=40)
    limits = {"loading": {"quiet_seconds": 30}}
    code, shown, result = play(
        wait=True, unit="serve.service", engine="llamacpp", phase_limits=limits, timeout_seconds=90
    )
    assert (code != 0, result["phase"], result["findings"][0]["id"]) == (True, "loading", "SERVER_HUNG"), shown
    assert "serve.service hangs while loading weights. SERVER_HUNG, serve.service: " in result["msg"]


def test_the_phase_is_shown_while_it_waits(play: Play, server: OpenAIServer) -> None:
    server.loading = [(503, {"error": {"message": "Loading model"}})] * 2
    play.log(LOG[:2])
    code, shown, _result = play(wait=True, unit="serve.service", engine="llamacpp")
    assert code == 0, shown
    assert re.findall(r"waiting for \S+: \d+ s, (.*)", shown) == ["loading weights"]


def test_what_waiting_can_not_help_ends_at_once(play: Play, server: OpenAIServer) -> None:
    code, _shown, result = play(wait=True, model="other", timeout_seconds=50)
    assert (code != 0, result["findings"][0]["id"]) == (True, "MODEL_NAME_MISMATCH")
    assert "asked for other, served are m" in result["msg"]


def test_the_wait_has_an_end(play: Play, server: OpenAIServer) -> None:
    server.health = (503, {})
    code, _shown, result = play(wait=True, timeout_seconds=0)
    assert code != 0
    assert "it is not ready after" in result["msg"]


def test_check_mode_asks_once_and_does_not_wait(play: Play, server: OpenAIServer) -> None:
    server.health = (503, {})
    code, shown, result = play("--check", wait=True, unit="serve.service", timeout_seconds=50)
    assert (code, result["ready"], result["changed"]) == (0, False, False), shown
