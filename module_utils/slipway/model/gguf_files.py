# SPDX-License-Identifier: GPL-3.0-or-later
"""GGUF files of a folder for an engine that is not llama.cpp: whether they are whole, and whether vLLM has names for their tensors."""

from __future__ import annotations

import ast
from pathlib import Path

from ..errors import SlipwayError
from ..findings import Finding, finding
from . import gguf

LOADER = "vllm/model_executor/model_loader/gguf_loader.py"
NAMES = "gguf/constants.py"


def look(folder: Path) -> tuple[int, list[Finding]]:
    """The bytes of all tensors, and the files that are torn. Raises ``OSError``."""
    total, found = 0, []
    for path in sorted(folder.glob("*.gguf")):
        try:
            total += gguf.read_header(path).tensor_bytes
        except SlipwayError as error:
            found.append(finding("MODEL_FILE_DAMAGED", path.name, str(error)))
    return total, found


def loader(model_type: str, engine: str, version: str, site: Path) -> list[Finding]:
    """Whether vLLM's loader translates the type, or the installed package gguf has an architecture of exactly this name.

    Else it ends with "Unknown gguf model_type" (0.18.1, ``_get_gguf_weights_map``). Later releases have the loader in a package of its own.
    """
    try:
        source = (site / LOADER).read_text(encoding="utf-8", errors="replace")
        tree = ast.parse((site / NAMES).read_text(encoding="utf-8", errors="replace"))
    except (OSError, SyntaxError, ValueError):
        detail = f"{engine} {version} has no {LOADER}, or no {NAMES} beside it: who loads GGUF there is not known here"
        return [finding("MODEL_ARCHITECTURE_UNKNOWN", model_type, detail, "unknown")]
    if f'"{model_type}"' in source or model_type in _names(tree):
        return []
    detail = f"{engine} {version}: neither {LOADER} nor MODEL_ARCH_NAMES of the installed gguf has it ('Unknown gguf model_type')"
    return [finding("MODEL_ARCHITECTURE_UNKNOWN", model_type, detail)]


def _names(tree: ast.Module) -> set[str]:
    return {
        value.value
        for node in tree.body
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.target.id == "MODEL_ARCH_NAMES"
        and isinstance(node.value, ast.Dict)
        for value in node.value.values
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }
