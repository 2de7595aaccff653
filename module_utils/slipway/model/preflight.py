# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of ``model_preflight`` to its result, for a model of Hugging Face's form: looks, asks, and lets pure files judge."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import cannot, here
from ..findings import Finding, finding
from ..python import site
from . import (
    ask,
    config,
    divide,
    fit,
    gguf_files,
    kv,
    llamacpp,
    machine,
    quantisation,
    registry,
    rules,
    server,
    share,
    tokenizer,
    verdicts,
    weights,
)
from .safetensors import Header, Tensor

# The package whose version is the engine's.
PACKAGES = {"sglang": "sglang", "vllm": "vllm", "llamacpp": "xllamacpp"}
SERIES = re.compile(r"-(\d{5})-of-(\d{5})\.safetensors$")
REMEDY = "Correct it in the profile or the inventory"


@dataclass(frozen=True)
class Place:
    """An environment: its folder and site-packages, the engine's version in it, and the versions of its packages by name."""

    venv: Path
    site: Path
    version: str
    installed: t.Mapping[str, str]


def check(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    """The module's result. Raises ``SlipwayError`` where there is nothing to look at, or the server is declared with sizes that are none."""
    told = _check(params)
    found = told.pop("findings")
    if not params["required"]:
        found = [replace(one, severity="warn") if one.severity == "unknown" else one for one in found]
    return {"changed": False, **told, "findings": [one.as_dict() for one in found]}


def _check(params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    place = _place(Path(params["venv"]), params["engine"])
    path = Path(params["model_path"])
    if not path.exists():
        remedy = "Fetch the weights first (ansible-playbook deploy.yml does), or correct the path"
        raise cannot("look at", f"model '{path}'", here(), "it is not there", remedy)
    try:
        asked = server.of(params["engine"], place.version, params["server"])
        if params["engine"] == "llamacpp":
            return llamacpp.check(path, place.site, asked, params["memory_mib"])
        return _repository(path, place, asked, params)
    except ValueError as error:
        raise cannot("look at", f"model '{path}'", here(), str(error), REMEDY) from None
    except OSError as error:
        raise cannot("look at", f"model '{path}'", here(), str(error), "Run as a user who may read it") from None


def _place(venv: Path, engine: str) -> Place:
    try:
        folders = site.folders(venv)
        installed = {one.name: one.version for folder in folders for one in site.distributions(folder)}
    except OSError as error:
        raise cannot("look at", f"environment '{venv}'", here(), str(error), "Run as a user who may read it") from None
    if PACKAGES[engine] not in installed:
        cause = f"it has no package {PACKAGES[engine]}" if folders else "it has no site-packages"
        remedy = "Build the environment first (ansible-playbook deploy.yml does), or correct venv and engine"
        raise cannot("look at", f"environment '{venv}'", here(), cause, remedy)
    home = next(folder for folder in folders if next(folder.glob(f"{PACKAGES[engine]}-*.dist-info"), None))
    return Place(venv, home, installed[PACKAGES[engine]], installed)


def _repository(path: Path, place: Place, asked: server.Server, params: t.Mapping[str, t.Any]) -> dict[str, t.Any]:
    try:
        model = config.read(path)
    except FileNotFoundError:
        return _result({}, {}, [finding("MODEL_FILE_MISSING", "config.json", f"in {path}")])
    except ValueError as error:
        return _result({}, {}, [finding("MODEL_FILE_DAMAGED", "config.json", str(error))])
    gpus = [] if asked.on_cpu else params["gpus"]
    sm = min((gpu["sm"] for gpu in gpus if gpu.get("sm")), default=0)
    headers, gguf_bytes, found = _files(path)
    whole = bool(headers or gguf_bytes) and not found
    if gguf_bytes:  # whatever the configuration beside them says, which is often that of other weights
        model = replace(model, quantisation=quantisation.Quantisation("gguf", "gguf"))
    found += verdicts.identity(model, params["expected_type"], params["expected_architecture"], path.name)
    asking, told = _environment(path, model, place, asked, params["timeout_seconds"])
    found += told
    found += verdicts.quantised(model, asked, registry.quantisation(asked.engine, place.site), sm, path.name)
    found += divide.findings(model, asked, len(gpus) or None, path.name)
    found += rules.findings(model, asked, kv.stored(model, asked, sm), sm, path.name)
    found += rules.cudnn(model, asked, place.installed, params["server"].get("environment") or {})
    table: dict[str, t.Any] = {}
    if whole:
        held = share.of_gguf(gguf_bytes, asked) if gguf_bytes else share.share(_tensors(headers), model, asked)
        made = _fit(model, asked, held, gpus, sm, params["memory_mib"])
        found += fit.findings(made, path.name)
        table = made.as_dict()
    described = {
        "path": str(path),
        "engine": f"{asked.engine} {asked.version}",
        **model.as_dict(),
        "files": len(headers),
        "weights_bytes": gguf_bytes or weights.total_bytes(headers.values()),
        **asking,
    }
    return _result(described, table, found)


def _files(path: Path) -> tuple[dict[str, Header | None], int, list[Finding]]:
    """The headers of the safetensors files, or the bytes of GGUF files where there are none; and what is wrong with either."""
    headers, found = weights.look(path)
    found = [one for one in found if one.severity == "fail"]  # what else an index tells is the store's affair
    gguf_bytes = 0
    if not headers:
        gguf_bytes, torn = gguf_files.look(path)
        found += torn
    return headers, gguf_bytes, found + _incomplete(path, headers, found)


def _environment(
    path: Path, model: config.Model, place: Place, asked: server.Server, timeout_seconds: int
) -> tuple[dict[str, t.Any], list[Finding]]:
    """Who reads the configuration, the architecture and the tokenizer there: what was asked, for the result, and what came of it."""
    known = registry.read(asked.engine, place.site)
    words = tokenizer.read(path)
    answer, code = _ask(path, place, model, known, words, asked, timeout_seconds)
    found = verdicts.model_type(model, known, answer, asked)
    found += verdicts.architecture(model, known, answer, asked)
    if next(path.glob("*.gguf"), None) and not next(path.glob("*.safetensors"), None):
        found += gguf_files.loader(model.type, asked.engine, asked.version, place.site)
    if asked.trust_remote_code:
        if not answer.type_known and not (known and model.type in known.types):
            found += verdicts.own_code(code.config_faults, answer, code.config_files, "MODEL_CODE_BROKEN")
        found += verdicts.own_code(code.tokenizer_faults, answer, code.tokenizer_files, "TOKENIZER_IMPORT")
    found += verdicts.tokens(words, answer, asked, path.name)
    return {"tokenizer": words.as_dict(), "asked": _asked(answer, known)}, found


def _fit(
    model: config.Model,
    asked: server.Server,
    held: share.Share,
    gpus: t.Sequence[t.Mapping[str, t.Any]],
    sm: int,
    memory_mib: int | None,
) -> fit.Fit:
    stored = kv.cache(model, asked, sm)
    if asked.on_cpu:
        memory = memory_mib or machine.memory_mib()
        return fit.on_cpu(round(held.total), stored, memory, asked.context_length, model.shape.context)
    return fit.on_gpus(model, asked, held, stored, _smallest(gpus))


def _incomplete(path: Path, headers: t.Mapping[str, Header | None], told: t.Sequence[Finding]) -> list[Finding]:
    """Weights that are not there at all, and gaps in their numbers, where no index has told of them."""
    if not headers:
        if next(path.glob("*.gguf"), None):
            return []
        return [finding("MODEL_FILE_MISSING", "model.safetensors", f"{path} has no file of weights")]
    known = {one.subject for one in told}
    found = []
    for name in sorted(headers):
        if match := SERIES.search(name):
            stem, last = name[: match.start()], int(match[2])
            wanted = [f"{stem}-{number:05d}-of-{match[2]}.safetensors" for number in range(1, last + 1)]
            found += [
                finding("MODEL_FILE_MISSING", each, f"of {last}") for each in wanted if each not in {*headers, *known}
            ]
            break
    return found


@dataclass(frozen=True)
class Code:
    """The Python of the repository that would run: its files, and what is wrong with them as files."""

    config_files: frozenset[str]
    config_faults: tuple[str, ...]
    tokenizer_files: frozenset[str]
    tokenizer_faults: tuple[str, ...]


def _ask(
    path: Path,
    place: Place,
    model: config.Model,
    known: registry.Registry | None,
    words: tokenizer.Tokenizer,
    asked: server.Server,
    timeout_seconds: int,
) -> tuple[ask.Answer, Code]:
    """Ask the environment about the model, its own code and the engine's file for it."""
    config_code = tokenizer.file_of(model.code["AutoConfig"]) if "AutoConfig" in model.code else ""
    config_imports, config_faults = tokenizer.imports(path, [config_code])
    token_imports, token_faults = tokenizer.imports(path, [words.code])
    engine_file = known.architectures.get(model.architecture, "") if known else ""
    engine_imports = tokenizer.imports_of_package(place.site, engine_file, "transformers") if engine_file else []
    question = ask.Question(
        path=str(path),
        type=model.type,
        architecture=model.architecture,
        config=not (known and model.type in known.types),
        tokenizer=not (words.code and asked.trust_remote_code),
        imports=tuple(dict.fromkeys([*config_imports, *token_imports, *engine_imports])),
    )
    code = Code(
        frozenset(one.file for one in config_imports),
        tuple(config_faults),
        frozenset(one.file for one in token_imports),
        tuple(token_faults),
    )
    return ask.ask(ask.python_of(place.venv), question, timeout_seconds), code


def _tensors(headers: t.Mapping[str, Header | None]) -> dict[str, Tensor]:
    return {name: tensor for header in headers.values() if header for name, tensor in header.tensors.items()}


def _smallest(gpus: t.Sequence[t.Mapping[str, t.Any]]) -> int | None:
    """The memory of the smallest of these GPUs; ``None`` where one does not tell it."""
    memory = [gpu["memory_mib"] for gpu in gpus if gpu.get("memory_mib")]
    return min(memory) if memory and len(memory) == len(gpus) else None


def _asked(answer: ask.Answer, known: registry.Registry | None) -> dict[str, t.Any]:
    """Who was asked and what was said, for the report."""
    return {
        "transformers": answer.transformers,
        "type_known": answer.type_known,
        "config": dict(answer.config or {}),
        "tokenizer": dict(answer.tokenizer or {}),
        "architectures": known.asked if known else "",
        "failure": answer.failure,
    }


def _result(model: dict[str, t.Any], table: dict[str, t.Any], found: t.Sequence[Finding]) -> dict[str, t.Any]:
    return {"model": model, "fit": table, "findings": list(found)}
