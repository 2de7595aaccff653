# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks an engine's own parser, in the engine's environment, about a command line or about its options."""

from __future__ import annotations

import inspect
import json
import os
import signal
import subprocess
import tempfile
import typing as t

from ..errors import SlipwayError
from . import parser_program

# Modules that are run as the server, by engine.
MODULES = {"sglang": "sglang.launch_server", "vllm": "vllm.entrypoints.openai.api_server"}
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def ask(python: str, engine: str, argv: list[str] | None, timeout_seconds: float) -> dict[str, t.Any]:
    """What ``parser_program`` answers. ``argv`` is what follows the server's name, ``None`` asks for the options.

    Raises ``SlipwayError`` whose message is the cause: no such interpreter, no answer, not in time.
    """
    asked = json.dumps({"engine": engine, "argv": argv})
    # Caches and configuration of engines go to a folder that is taken away; GPUs stay hidden, since nothing is to be held.
    with tempfile.TemporaryDirectory(prefix="slipway-parser-") as home:
        environment = {"PATH": _PATH, "HOME": home, "TMPDIR": home, "LANG": "C.UTF-8", "HF_HUB_OFFLINE": "1"}
        environment |= {"CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1", "COLUMNS": "10000"}
        try:
            process = subprocess.Popen(
                [python, "-P", "-", asked],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                env=environment,
                cwd=home,
                text=True,
                errors="replace",
                start_new_session=True,
            )
        except OSError as error:
            raise SlipwayError(f"{python} cannot be run: {error.strerror}") from None
        try:
            output, _none = process.communicate(inspect.getsource(parser_program), timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            raise SlipwayError(f"{engine}'s parser gave no answer within {timeout_seconds:.0f} seconds") from None
        finally:
            _end(process)
    answers = [line for line in output.splitlines() if line.startswith(parser_program.MARK)]
    if not answers:
        last = (output.strip().splitlines() or ["nothing"])[-1]
        raise SlipwayError(f"{engine}'s parser gave no answer (status {process.returncode}); its last line was: {last}")
    answer = json.loads(answers[-1][len(parser_program.MARK) :])
    if "broken" in answer:
        raise SlipwayError(f"{engine} has no parser here: {answer['broken']}")
    return t.cast("dict[str, t.Any]", answer)


def _end(process: subprocess.Popen[str]) -> None:
    """End what is left of it: engines start helpers when they are imported."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()


def arguments(argv: list[str], engine: str) -> list[str]:
    """What follows the server's name in a planned command line. Raises ``SlipwayError`` whose message is the cause."""
    if "--" in argv[:5]:  # behind Slipway's launcher
        return argv[argv.index("--") + 1 :]
    if argv[1:3] == ["-m", MODULES[engine]]:
        return argv[3:]
    raise SlipwayError(f"{engine}'s arguments are not to be found in the command line")
