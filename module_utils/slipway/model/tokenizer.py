# SPDX-License-Identifier: GPL-3.0-or-later
"""A model's tokenizer and own code as files: what is there, and what that code imports. Pure but for reading; runs nothing of it."""

from __future__ import annotations

import ast
import json
import typing as t
from dataclasses import dataclass
from pathlib import Path

from .ask import Import

# Any one of these holds a vocabulary; vocab.json needs merges.txt beside it.
VOCABULARIES = ("tokenizer.json", "tokenizer.model", "tiktoken.model", "tekken.json", "spiece.model", "vocab.txt")
TEMPLATES = ("chat_template.jinja", "chat_template.json")


@dataclass(frozen=True)
class Tokenizer:
    """The tokenizer of a folder. ``name`` is its class, ``code`` the file of the repository that has it, ``files`` the vocabularies."""

    name: str
    code: str
    files: tuple[str, ...]
    template: bool
    fault: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {"class": self.name, "code": self.code, "files": list(self.files), "chat_template": self.template}


def read(folder: Path) -> Tokenizer:
    """What a folder has of a tokenizer; ``fault`` says what is wrong with ``tokenizer_config.json``, if anything."""
    files = [name for name in VOCABULARIES if (folder / name).is_file()]
    if (folder / "vocab.json").is_file() and (folder / "merges.txt").is_file():
        files.append("vocab.json")
    files += sorted(path.name for path in folder.glob("*.tiktoken"))
    told: t.Any = {}
    fault = ""
    try:
        told = json.loads((folder / "tokenizer_config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        fault = f"tokenizer_config.json cannot be read ({error})"
    told = told if isinstance(told, dict) else {}
    template = bool(told.get("chat_template")) or any((folder / name).is_file() for name in TEMPLATES)
    return Tokenizer(str(told.get("tokenizer_class") or ""), _code(told), tuple(files), template, fault)


def _code(told: t.Mapping[str, t.Any]) -> str:
    """The file of ``auto_map``: ``{"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", null]}``, or a text alone."""
    entry = (told.get("auto_map") or {}).get("AutoTokenizer") if isinstance(told.get("auto_map"), dict) else None
    named = next((one for one in entry if one), "") if isinstance(entry, list) else entry
    return file_of(named) if isinstance(named, str) and named else ""


def file_of(entry: str) -> str:
    """The file of an entry of ``auto_map``, ``[repository--]module.Class``; empty where it belongs to another repository."""
    repository, dashes, name = entry.rpartition("--")
    return "" if dashes and repository else f"{name.partition('.')[0]}.py"


def imports(folder: Path, names: t.Iterable[str]) -> tuple[list[Import], list[str]]:
    """What these files of the repository, and those that they import, take from elsewhere when they load; and what is wrong with them.

    Only what always runs: imports below ``try`` or ``if`` are the author's own precautions, and those inside functions come later.
    """
    found: list[Import] = []
    faults: list[str] = []
    pending, seen = list(names), set()
    while pending:
        name = pending.pop(0)
        if not name or name in seen:
            continue
        seen.add(name)
        try:
            tree = ast.parse((folder / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            faults.append(f"{name} is not there")
            continue
        except (OSError, SyntaxError, ValueError) as error:
            faults.append(f"{name} cannot be read ({error})")
            continue
        for node in tree.body:
            if isinstance(node, ast.Import):
                found += [Import(name, node.lineno, alias.name, ()) for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.level:
                modules = [node.module] if node.module else [alias.name for alias in node.names]
                pending += [f"{module.partition('.')[0]}.py" for module in modules]
            elif isinstance(node, ast.ImportFrom) and node.module:
                found.append(Import(name, node.lineno, node.module, tuple(alias.name for alias in node.names)))
    return found, faults


def imports_of_package(site: Path, path: str, package: str) -> list[Import]:
    """What one file of an installed engine takes from ``package`` when it loads; nothing where the file cannot be read."""
    try:
        tree = ast.parse((site / path).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return []
    return [
        Import(path, node.lineno, node.module, tuple(alias.name for alias in node.names))
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        and node.module
        and not node.level
        and node.module.partition(".")[0] == package
    ]
