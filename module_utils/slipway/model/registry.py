# SPDX-License-Identifier: GPL-3.0-or-later
"""What an installed engine says that it can load, read from its own source: architectures, model types, quantisation methods.

Importing an engine takes torch, its kernels and a driver, and half a minute. The same tables stand in its files, which are parsed here
and never run: SGLang's ``EntryClass`` of each file in ``srt/models``, vLLM's ``_..._MODELS`` tables in ``models/registry.py``.
"""

from __future__ import annotations

import ast
import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

SGLANG_MODELS = "sglang/srt/models"
# Where SGLang keeps the table of configurations that it brings; it has moved between releases.
SGLANG_CONFIGS = (
    "sglang/srt/utils/hf_transformers_utils.py",
    "sglang/srt/utils/hf_transformers/*.py",
    "sglang/srt/hf_transformers_utils.py",
)
VLLM_MODELS = "vllm/model_executor/models/registry.py"
VLLM_CONFIGS = "vllm/transformers_utils/config.py"
QUANTISATION = {
    "sglang": "sglang/srt/layers/quantization",
    "vllm": "vllm/model_executor/layers/quantization",
}
# A type that SGLang rewrites by hand before it reads the configuration (_load_deepseek_v32_model), in no table.
BY_HAND = "deepseek_v32"
ENTRY = re.compile(r"^EntryClass\b", re.MULTILINE)
VLLM_TABLE = re.compile(r"_[A-Z_]+_MODELS$")


@dataclass(frozen=True)
class Registry:
    """What an engine knows. ``architectures`` are names and the files that have them, ``types`` model types whose configuration it brings
    itself, ``asked`` where this was read."""

    architectures: t.Mapping[str, str]
    types: frozenset[str]
    asked: str


def read(engine: str, site: Path) -> Registry | None:
    """The registry of the engine that is installed here; ``None`` where it is not, or where its files have another form."""
    found = _sglang(site) if engine == "sglang" else _vllm(site) if engine == "vllm" else None
    return found if found and found.architectures else None


def _sglang(site: Path) -> Registry:
    architectures: dict[str, str] = {}
    for path in sorted((site / SGLANG_MODELS).glob("*.py")):
        source = path.read_text(encoding="utf-8", errors="replace")
        entry = ENTRY.search(source)
        if entry:
            # The assignment is the last statement of a file: parsing the rest of it alone is a hundred times faster.
            names = _names(_assigned(source[entry.start() :], "EntryClass"))
            architectures |= dict.fromkeys(names, str(path.relative_to(site)))
    types: set[str] = set()
    classes = _class_types(site / "sglang/srt/configs")
    for pattern in SGLANG_CONFIGS:
        for path in sorted(site.glob(pattern)):
            source = path.read_text(encoding="utf-8", errors="replace")
            types |= {classes[name] for name in _registered(source) if name in classes}
            types |= {BY_HAND} if f'"{BY_HAND}"' in source else set()
    return Registry(architectures, frozenset(types), f"EntryClass of the files in {SGLANG_MODELS}")


def _registered(source: str) -> set[str]:
    """The classes of SGLang's ``_CONFIG_REGISTRY``, a list or a table of them."""
    found: set[str] = set()
    for node in _parse(source).body:
        value = _value(node, "_CONFIG_REGISTRY")
        if isinstance(value, ast.Dict):
            found |= {name.id for name in value.values if isinstance(name, ast.Name)}
        elif value is not None:
            found |= set(_names(value))
    return found


def _class_types(folder: Path) -> dict[str, str]:
    """``model_type`` by class, of every configuration that SGLang brings."""
    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.py")):
        for node in _parse(path.read_text(encoding="utf-8", errors="replace")).body:
            if isinstance(node, ast.ClassDef):
                for statement in node.body:
                    value = _value(statement, "model_type")
                    if isinstance(value, ast.Constant) and isinstance(value.value, str):
                        found[node.name] = value.value
    return found


def _vllm(site: Path) -> Registry | None:
    path = site / VLLM_MODELS
    if not path.is_file():
        return None
    architectures: dict[str, str] = {}
    for node in _parse(path.read_text(encoding="utf-8", errors="replace")).body:
        for target, value in _assignments(node):
            if VLLM_TABLE.fullmatch(target) and "PREVIOUSLY" not in target and isinstance(value, ast.Dict):
                architectures |= _table(value)
    types: set[str] = set()
    configs = site / VLLM_CONFIGS
    if configs.is_file():
        for node in _parse(configs.read_text(encoding="utf-8", errors="replace")).body:
            registered = _value(node, "_CONFIG_REGISTRY")
            if isinstance(registered, ast.Call):
                types |= {keyword.arg for keyword in registered.keywords if keyword.arg}
            elif isinstance(registered, ast.Dict):
                types |= {
                    key.value for key in registered.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)
                }
    return Registry(architectures, frozenset(types), f"the tables of {VLLM_MODELS}")


def _table(value: ast.Dict) -> dict[str, str]:
    """Architectures and the files that have them: ``{"LlamaForCausalLM": ("llama", "LlamaForCausalLM")}``."""
    found = {}
    for key, entry in zip(value.keys, value.values, strict=True):
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            parts = entry.elts if isinstance(entry, ast.Tuple) else []
            module = str(parts[0].value) if parts and isinstance(parts[0], ast.Constant) else ""
            found[key.value] = f"vllm/model_executor/models/{module}.py" if module else ""
    return found


def quantisation(engine: str, site: Path) -> dict[str, int]:
    """The methods of an engine and the least compute capability of each as one number (0: its class does not say). Empty where unknown."""
    folder = site / QUANTISATION.get(engine, "-")
    try:
        tree = _parse((folder / "__init__.py").read_text(encoding="utf-8", errors="replace"))
    except OSError:
        return {}
    classes: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and isinstance(key.value, str) and isinstance(value, ast.Name):
                    classes[key.value] = value.id
    least = _capabilities(folder, set(classes.values()))
    return {name: least.get(of, 0) for name, of in classes.items()}


def _capabilities(folder: Path, classes: set[str]) -> dict[str, int]:
    """What ``get_min_capability`` of these classes returns, where it is one number."""
    found: dict[str, int] = {}
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8", errors="replace")
        if "get_min_capability" not in source:
            continue
        for node in _parse(source).body:
            if isinstance(node, ast.ClassDef) and node.name in classes:
                for inner in ast.walk(node):
                    if isinstance(inner, ast.FunctionDef) and inner.name == "get_min_capability":
                        numbers = [
                            each.value.value
                            for each in ast.walk(inner)
                            if isinstance(each, ast.Return)
                            and isinstance(each.value, ast.Constant)
                            and isinstance(each.value.value, int)
                        ]
                        if numbers:
                            found[node.name] = numbers[0]
    return found


def _parse(source: str) -> ast.Module:
    try:
        return ast.parse(source)
    except (SyntaxError, ValueError):
        return ast.Module(body=[], type_ignores=[])


def _assignments(node: ast.AST) -> t.Iterator[tuple[str, ast.expr]]:
    if isinstance(node, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name):
                yield target.id, node.value
    elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value:
        yield node.target.id, node.value


def _value(node: ast.AST, name: str) -> ast.expr | None:
    return next((value for target, value in _assignments(node) if target == name), None)


def _assigned(source: str, name: str) -> ast.expr | None:
    return next((value for node in _parse(source).body if (value := _value(node, name))), None)


def _names(value: ast.expr | None) -> list[str]:
    if isinstance(value, ast.Name):
        return [value.id]
    if isinstance(value, (ast.List, ast.Tuple)):
        return [one.id for one in value.elts if isinstance(one, ast.Name)]
    return []
