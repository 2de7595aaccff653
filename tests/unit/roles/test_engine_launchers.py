# SPDX-License-Identifier: GPL-3.0-or-later
"""The launchers of SGLang and vLLM, run over engines of a few lines: the key reaches the server and nothing that others can read."""

from __future__ import annotations

import subprocess
import typing as t
from pathlib import Path

import engine_environment
import pytest

ENGINES = {"sglang": engine_environment.sglang, "vllm": engine_environment.vllm}


@pytest.fixture
def launch(root: Path, tmp_path: Path) -> t.Callable[[str, str], subprocess.CompletedProcess[str]]:
    def run(engine: str, key: str) -> subprocess.CompletedProcess[str]:
        venv = ENGINES[engine](tmp_path / engine)
        (tmp_path / "key").write_text(key)
        launcher = root / "roles/inference_server/files" / f"{engine}_server.py"
        command = [str(venv / "bin" / "python"), str(launcher), "--api-key-file", str(tmp_path / "key")]
        return subprocess.run([*command, "--", "--model-path", "/m"], capture_output=True, text=True, check=False)

    return run


def test_sglang_has_the_key_and_does_not_log_it(launch: t.Callable[..., t.Any]) -> None:
    done = launch("sglang", "geheim\n")
    assert done.returncode == 0, done.stderr
    arguments, header, seen, ended = done.stdout.splitlines()
    assert arguments == "server_args=ServerArgs(model_path='/m', api_key='(hidden)')"
    assert (header, seen, ended) == ("Bearer geheim True", "False False", "ended")


def test_vllm_has_the_key_in_a_variable_that_the_unit_does_not_have(launch: t.Callable[..., t.Any]) -> None:
    done = launch("vllm", "geheim\n")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == ["['--model-path', '/m'] geheim", "False False"]


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("key", "cause"), [("\n", "holds no keys"), ("a\nb\n", "holds 2 keys")])
def test_without_one_key_it_does_not_start(launch: t.Callable[..., t.Any], engine: str, key: str, cause: str) -> None:
    done = launch(engine, key)
    assert (done.returncode, done.stdout) == (1, "")
    assert f"{engine}-server: Cannot start: " in done.stderr
    assert cause in done.stderr
