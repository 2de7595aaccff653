# SPDX-License-Identifier: GPL-3.0-or-later
"""Asks an environment's own Python what its transformers makes of a model, in a child process with a time limit.

No GPU is looked for and no network is used, and no code of the model's repository is run: it would run as root, before anybody has
agreed to what it does. What such code imports is asked instead.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import typing as t
from dataclasses import dataclass
from pathlib import Path

# Runs in the environment. Whatever is printed there goes to standard error; the answer is the one line on standard output.
SCRIPT = r"""
import importlib, importlib.util, json, os, sys
answer_file = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)
question = json.load(sys.stdin)
answer = {"transformers": "", "type_known": None, "architecture_known": None, "config": {}, "tokenizer": {}, "imports": []}

def told(error):
    return f"{type(error).__name__}: {error}"

try:
    import transformers
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES
except Exception as error:
    answer["transformers_error"] = told(error)
else:
    answer["transformers"] = transformers.__version__
    answer["type_known"] = question["type"] in CONFIG_MAPPING_NAMES
    answer["architecture_known"] = question["architecture"] in dir(transformers)
    if question["config"]:
        try:
            made = transformers.AutoConfig.from_pretrained(question["path"], local_files_only=True, trust_remote_code=False)
            answer["config"] = {"class": type(made).__name__}
        except Exception as error:
            answer["config"] = {"error": told(error)}
    if question["tokenizer"]:
        try:
            made = transformers.AutoTokenizer.from_pretrained(question["path"], local_files_only=True, trust_remote_code=False)
            tokens = made.encode("Slipway 123", add_special_tokens=False)
            answer["tokenizer"] = {"class": type(made).__name__, "tokens": len(tokens), "text": made.decode(tokens)}
        except Exception as error:
            answer["tokenizer"] = {"error": told(error)}

for wanted in question["imports"]:
    cause = ""
    try:
        if wanted["module"].partition(".")[0] == "transformers":
            module = importlib.import_module(wanted["module"])
            lacking = [name for name in wanted["names"] if name != "*" and not hasattr(module, name)]
            for name in list(lacking):  # a module of a package is a name of it as well
                if importlib.util.find_spec(wanted["module"] + "." + name) if hasattr(module, "__path__") else None:
                    lacking.remove(name)
            cause = "cannot import name " + ", ".join(lacking) if lacking else ""
        elif importlib.util.find_spec(wanted["module"].partition(".")[0]) is None:
            cause = "no module named " + wanted["module"].partition(".")[0]
    except Exception as error:
        cause = told(error)
    answer["imports"].append(cause)

json.dump(answer, answer_file)
answer_file.close()
os._exit(0)  # what the environment would still do at its exit is of no interest
"""
OFFLINE = {
    "CUDA_VISIBLE_DEVICES": "",
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TRANSFORMERS_VERBOSITY": "error",
    "TOKENIZERS_PARALLELISM": "false",
}


class Import(t.NamedTuple):
    """An import of a file: its line, the module and the names that it takes from it."""

    file: str
    line: int
    module: str
    names: tuple[str, ...]


@dataclass(frozen=True)
class Question:
    """What is asked of the environment about the model in a folder. Configuration and tokenizer are loaded where asked for."""

    path: str
    type: str
    architecture: str
    config: bool
    tokenizer: bool
    imports: tuple[Import, ...]


@dataclass(frozen=True)
class Answer:
    """What the environment said. ``failure`` is why it said nothing, empty where it did.

    ``transformers`` is its version, empty where it does not import (then ``transformers_error``). ``config`` and ``tokenizer`` hold
    ``class`` or ``error``, or nothing where not asked. ``lacking`` are imports that fail, each with the cause.
    """

    failure: str = ""
    transformers: str = ""
    transformers_error: str = ""
    type_known: bool | None = None
    architecture_known: bool | None = None
    config: t.Mapping[str, t.Any] | None = None
    tokenizer: t.Mapping[str, t.Any] | None = None
    lacking: tuple[tuple[Import, str], ...] = ()


def ask(python: str, question: Question, timeout_seconds: int) -> Answer:
    """Ask. Whatever goes wrong is the answer's ``failure``. The child and what it started are ended after the time limit."""
    asked = {
        **question.__dict__,
        "imports": [{"module": one.module, "names": list(one.names)} for one in question.imports],
    }
    with tempfile.TemporaryDirectory(prefix="slipway-ask-") as home:
        environment = {
            **{key: value for key, value in os.environ.items() if key in ("PATH", "LANG", "LC_ALL")},
            **OFFLINE,
            "HOME": home,
            "HF_HOME": home,
        }
        try:
            child = subprocess.Popen(
                [python, "-I", "-B", "-c", SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                encoding="utf-8",
                errors="replace",
                env=environment,
                cwd=home,
                start_new_session=True,
            )
        except OSError as error:
            return Answer(failure=f"{python} does not run ({error.strerror or error})")
        try:
            out, err = child.communicate(json.dumps(asked), timeout=timeout_seconds)
        except subprocess.TimeoutExpired:
            return Answer(failure=f"{python} did not answer within {timeout_seconds} seconds")
        finally:
            _end(child)
    return _answer(child.returncode, out, err, question)


def _end(child: subprocess.Popen[str]) -> None:
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
        child.communicate()


def _answer(code: int, out: str, err: str, question: Question) -> Answer:
    try:
        told = json.loads(out)
    except ValueError:
        last = next((line.strip() for line in reversed(err.splitlines()) if line.strip()), "it said nothing")
        return Answer(failure=f"the environment's Python ended with {code}: {last[:300]}")
    lacking = [(one, cause) for one, cause in zip(question.imports, told.pop("imports"), strict=True) if cause]
    return Answer(**told, lacking=tuple(lacking))


def python_of(venv: Path) -> str:
    """The interpreter of an environment; where a folder ``site-packages`` itself was given there is none, and the path will not run."""
    return str(venv / "bin" / "python")
