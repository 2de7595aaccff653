# SPDX-License-Identifier: GPL-3.0-or-later
"""The launcher as a process of its own, with a stand-in for the library: what it is told, says and ends with."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

# Writes down what it was given, and says as many times as told that a request is running.
LIBRARY = """
import json, os, time, types
class CommonParams(types.SimpleNamespace):
    def __init__(self):
        space = types.SimpleNamespace
        super().__init__(model=space(path=""), cpuparams=space(), cpuparams_batch=space())
class Server:
    def __init__(self, params):
        if "torn" in params.model.path:
            raise RuntimeError("Failed to init server.")
        told = dict(vars(params), model=params.model.path, model_alias=sorted(params.model_alias))
        told.update(cpuparams=vars(params.cpuparams), cpuparams_batch=vars(params.cpuparams_batch))
        with open(os.environ["TOLD"], "w") as file:
            json.dump(told, file)
        self.busy = int(os.environ.get("BUSY", "0"))
        self.listening_address = "http://127.0.0.1:1"
    def handle_metrics(self):
        self.busy -= 1
        return "# TYPE llamacpp:requests_processing gauge\\nllamacpp:requests_processing %d\\n" % max(self.busy, 0)
    def __del__(self):
        time.sleep(600 if hasattr(self, "busy") else 0)
"""


class Launcher:
    """Starts it with a model and a free port, and more."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder = folder
        self.script = root / "roles/inference_server/files/llamacpp_server.py"
        (folder / "xllamacpp.py").write_text(LIBRARY)
        self.model = folder / "m.gguf"
        self.model.write_bytes(b"GGUF...")
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])

    def start(self, *options: str, **environment: str) -> subprocess.Popen[str]:
        command = [sys.executable, str(self.script), "--alias", "m", "--port", self.port]
        command += [] if "--model" in options else ["--model", str(self.model)]
        variables = {"PYTHONPATH": str(self.folder), "TOLD": str(self.folder / "told"), **environment}
        return subprocess.Popen([*command, *options], env=variables, stderr=subprocess.PIPE, text=True)

    def run(self, *options: str) -> tuple[int, str]:
        """Exit code and log of one that ends by itself."""
        process = self.start(*options)
        _out, log = process.communicate(timeout=60)
        return process.returncode, log

    def serve(self, *options: str, **environment: str) -> subprocess.Popen[str]:
        """One that serves."""
        process = self.start(*options, **environment)
        assert process.stderr
        for line in process.stderr:
            if "serving" in line:
                return process
        raise AssertionError("it ended")

    @property
    def told(self) -> dict[str, t.Any]:
        return json.loads((self.folder / "told").read_text())


@pytest.fixture
def launcher(tmp_path: Path, root: Path) -> Launcher:
    return Launcher(tmp_path, root)


def test_tells_the_library_and_ends_well_on_sigterm(launcher: Launcher) -> None:
    key = launcher.folder / "key"
    key.write_text("# who may\n\nsecret-one\nsecret-two\n")
    options = ["--context-length", "512", "--parallel", "3", "--threads", "2", "--api-key-file", str(key)]
    process = launcher.serve(*options)
    process.send_signal(signal.SIGTERM)
    _out, log = process.communicate(timeout=60)
    assert process.returncode == 0
    assert log.splitlines()[-1] == "llamacpp-server: stopped, no request is running"
    assert "secret" not in log
    told = launcher.told
    assert (told["model"], told["model_alias"]) == (str(launcher.model), ["m"])
    assert (told["hostnames"], told["port"]) == (["127.0.0.1"], int(launcher.port))
    # The library shares its context out over the slots.
    assert (told["n_ctx"], told["n_parallel"], told["cpuparams"]) == (1536, 3, {"n_threads": 2})
    assert told["api_keys"] == ["secret-one", "secret-two"]
    assert (told["endpoint_metrics"], told["endpoint_slots"]) == (True, False)


def test_a_stop_waits_for_running_requests(launcher: Launcher) -> None:
    process = launcher.serve(BUSY="5")
    process.send_signal(signal.SIGTERM)
    _out, log = process.communicate(timeout=60)
    assert (process.returncode, log.splitlines()[-1]) == (0, "llamacpp-server: stopped, no request is running")


def test_a_stop_does_not_wait_for_ever(launcher: Launcher) -> None:
    short = launcher.folder / "short.py"
    short.write_text(launcher.script.read_text().replace("STOP_SECONDS = 10", "STOP_SECONDS = 0.3"))
    launcher.script = short
    process = launcher.serve(BUSY="1000")
    process.send_signal(signal.SIGTERM)
    _out, log = process.communicate(timeout=60)
    assert (process.returncode, log.splitlines()[-1]) == (0, "llamacpp-server: stopped, running requests were cut off")


@pytest.mark.parametrize(
    ("options", "cause"),
    [
        (["--model", "/nonexistent/m.gguf"], "No such file or directory: '/nonexistent/m.gguf'"),
        (["--model", "/etc/passwd"], "/etc/passwd is not a GGUF file"),
        (["--api-key-file", "/nonexistent/key"], "No such file or directory: '/nonexistent/key'"),
        (["--api-key-file", "/dev/null"], "/dev/null holds no key"),
        (["--host", "192.0.2.1"], "Cannot assign requested address"),
    ],
)
def test_says_why_it_can_not_start(launcher: Launcher, options: list[str], cause: str) -> None:
    code, log = launcher.run(*options)
    assert code == 1
    assert log.startswith("llamacpp-server: Cannot start: ")
    assert cause in log
    assert len(log.splitlines()) == 1


def test_a_taken_port_and_a_torn_model_are_told(launcher: Launcher) -> None:
    with socket.create_server(("127.0.0.1", int(launcher.port))):
        assert launcher.run() == (1, "llamacpp-server: Cannot start: [Errno 98] Address already in use.\n")
    torn = launcher.folder / "torn.gguf"
    torn.write_bytes(b"GGUF")
    code, log = launcher.run("--model", str(torn))
    assert (code, log.splitlines()[-1]) == (1, "llamacpp-server: Cannot start: Failed to init server.")


@pytest.mark.parametrize("option", [["--port", "0"], ["--parallel", "0"], ["--threads", "-1"], ["--contex", "9"]])
def test_refuses_arguments(launcher: Launcher, option: list[str]) -> None:
    code, log = launcher.run(*option)
    assert (code, "error: " in log) == (2, True)
