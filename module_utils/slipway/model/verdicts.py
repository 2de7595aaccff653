# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether an environment can load a model: what it was asked, as findings. Pure."""

from __future__ import annotations

import typing as t

from ..findings import Finding, finding
from .ask import Answer
from .config import Model
from .quantisation import MADE_FOR
from .registry import Registry
from .server import Server
from .tokenizer import Tokenizer

# The first transformers that knows a type, where the type alone would leave one guessing. Read from the wheels.
KNOWN_FROM = {"glm_moe_dsa": "5.2.0", "kimi_k25": "5.13.0"}
# Where the tokenizer is elsewhere, the folder's own does not matter.
TOKENIZER_ELSEWHERE = ("tokenizer", "tokenizer-path", "skip-tokenizer-init")
# Mistral's own form, which engines read themselves where the folder has no other.
TEKKEN = "tekken.json"
LONGEST = 300


def identity(model: Model, expected_type: str, expected_architecture: str, subject: str) -> list[Finding]:
    """Whether it is the model that the profile means. Nothing is expected where that says nothing."""
    told = []
    if expected_type and model.type != expected_type:
        told.append(f"model_type is '{model.type}' and the profile says '{expected_type}'")
    if expected_architecture and model.architecture != expected_architecture:
        told.append(f"the architecture is '{model.architecture}' and the profile says '{expected_architecture}'")
    return [finding("MODEL_UNEXPECTED", subject, "; ".join(told))] if told else []


def model_type(model: Model, registry: Registry | None, answer: Answer, server: Server) -> list[Finding]:
    """Whether somebody reads its config.json: transformers, the engine, or the repository's own code where that is allowed."""
    if answer.failure:
        return [finding("MODEL_TYPE_UNKNOWN", model.type, f"not asked: {answer.failure}", "unknown")]
    if registry and model.type in registry.types:
        return []
    if not answer.transformers:
        return [finding("IMPORT_FAILED", "transformers", answer.transformers_error)]
    if answer.type_known:
        error = (answer.config or {}).get("error", "")
        detail = f"AutoConfig of transformers {answer.transformers} says: {_short(error)}"
        return [finding("MODEL_CONFIG_REFUSED", model.type, detail)] if error else []
    asked = f"asked CONFIG_MAPPING of transformers {answer.transformers} in the environment, and the table of {server.engine} {server.version}"
    if "AutoConfig" in model.code:
        if server.trust_remote_code:
            return []  # what its code lacks is told by `own_code`
        detail = f"{asked}; neither knows the type, and the repository's own {model.code['AutoConfig']} may not run"
        return [finding("MODEL_CODE_NOT_ALLOWED", model.type, detail)]
    if registry is None:
        detail = f"{asked}; transformers does not know it, and the engine's table has another form than is known here"
        return [finding("MODEL_TYPE_UNKNOWN", model.type, detail, "unknown")]
    first = KNOWN_FROM.get(model.type)
    more = f"; transformers has it from {first} on" if first else ""
    return [finding("MODEL_TYPE_UNKNOWN", model.type, f"{asked}; neither knows it{more}")]


def own_code(faults: t.Sequence[str], answer: Answer, files: t.Collection[str], fault_id: str) -> list[Finding]:
    """What the repository's own Python lacks: files that are not there, and imports that the environment refuses, with file and line."""
    told = dict.fromkeys(faults, "")
    for wanted, cause in answer.lacking:
        if wanted.file in files:
            told[f"{wanted.file}, line {wanted.line}: from {wanted.module}: {_short(cause)}"] = wanted.file
    with_version = f" (transformers {answer.transformers})" if answer.transformers else ""
    return [finding(fault_id, name or text.partition(" ")[0], f"{text}{with_version}") for text, name in told.items()]


def architecture(model: Model, registry: Registry | None, answer: Answer, server: Server) -> list[Finding]:
    """Whether the engine has a model class for it, whose file finds in transformers what it imports from there."""
    subject = model.architecture or model.type
    if registry is None:
        detail = f"{server.engine} {server.version} keeps its table of models in another form than is known here"
        return [finding("MODEL_ARCHITECTURE_UNKNOWN", subject, detail, "unknown")]
    path = registry.architectures.get(model.architecture)
    asked = f"{server.engine} {server.version}, {registry.asked}"
    if path is None:
        if answer.architecture_known or "AutoModelForCausalLM" in model.code:
            detail = f"{asked}: it is not there; transformers' own model would run in its place, slower and without what the engine adds"
            return [finding("MODEL_ARCHITECTURE_UNKNOWN", subject, detail, "warn")]
        return [finding("MODEL_ARCHITECTURE_UNKNOWN", subject, f"{asked}: it is not there")]
    lacking = [f"line {one.line}, {one.module}: {_short(cause)}" for one, cause in answer.lacking if one.file == path]
    if lacking:
        detail = f"{path} has it and does not import beside transformers {answer.transformers} ({lacking[0]}), and {server.engine} leaves it out"
        return [finding("MODEL_ARCHITECTURE_UNKNOWN", subject, detail)]
    return []


def quantised(model: Model, server: Server, methods: t.Mapping[str, int], sm: int, subject: str) -> list[Finding]:
    """Whether the engine has the method that these weights need, and the GPU what the method needs."""
    form, declared = model.quantisation, server.quantisation

    def unsupported(detail: str, severity: str | None = None) -> list[Finding]:
        return [finding("QUANTISATION_UNSUPPORTED", subject, detail, severity)]

    if not form and not declared:
        return []
    engine = f"{server.engine} {server.version}"
    if not methods:
        return unsupported(f"{engine} keeps its table of methods in another form than is known here", "unknown")
    if declared and declared not in methods:
        return unsupported(f"{engine} has no method '{declared}'; it has {', '.join(sorted(methods))}")
    if form and declared and declared not in form.names:
        return unsupported(f"the weights are {form.words}, and server.arguments.quantization is '{declared}'")
    if not form and declared in MADE_FOR:
        return unsupported(
            f"the weights are not quantised ({model.dtype}), and '{declared}' needs ones that were made for it"
        )
    method = declared or next((name for name in form.names if name in methods), "") if form else declared
    if not method:
        return unsupported(
            f"the weights are {form.words if form else ''}, and {engine} has none of {', '.join(form.names if form else ())}"
        )
    least = methods[method]
    if sm and least > sm:
        return unsupported(f"'{method}' of {engine} needs compute capability {least}, and the GPU has {sm}")
    return []


def tokens(tokenizer: Tokenizer, answer: Answer, server: Server, subject: str) -> list[Finding]:
    """Whether text becomes tokens in this environment, and a conversation becomes text."""
    if any(server.arguments.get(name) for name in TOKENIZER_ELSEWHERE):
        return []
    found = []
    told = answer.tokenizer or {}
    if tokenizer.fault:
        found.append(finding("TOKENIZER_BROKEN", subject, tokenizer.fault))
    elif not tokenizer.files:
        code = f"; {tokenizer.code} may read another file" if tokenizer.code else ""
        detail = f"none of its usual files is there (tokenizer.json, tokenizer.model, tiktoken.model, vocab.json with merges.txt){code}"
        found.append(finding("TOKENIZER_MISSING", subject, detail, "warn" if code else None))
    elif tokenizer.code and not server.trust_remote_code and "class" not in told:
        detail = f"its tokenizer is {tokenizer.code} of the repository, which may not run"
        found.append(finding("MODEL_CODE_NOT_ALLOWED", subject, detail))
    elif "error" in told and tokenizer.files != (TEKKEN,):
        detail = f"AutoTokenizer of transformers {answer.transformers} in the environment says: {_short(told['error'])}"
        found.append(finding("TOKENIZER_BROKEN", subject, detail))
    elif told.get("tokens") == 0:
        found.append(finding("TOKENIZER_BROKEN", subject, f"{told['class']} makes no token of a text"))
    if not tokenizer.template and not server.arguments.get("chat-template"):
        detail = "neither tokenizer_config.json nor chat_template.jinja has one, and server.arguments names none"
        found.append(finding("CHAT_TEMPLATE_MISSING", subject, detail, "info" if tokenizer.code else None))
    return found


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 3]}..."
