# SPDX-License-Identifier: GPL-3.0-or-later
"""The rig is a stage: it takes nothing from what it tests, and nothing that is tested knows of it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[3]


def imported(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def python_files(folder: str) -> list[Path]:
    found = []
    for path in (ROOT / folder).rglob("*"):
        if path.is_file() and (path.suffix == ".py" or path.read_bytes()[:40].startswith(b"#!/usr/bin/env python3")):
            found.append(path)
    return found


def test_the_rig_imports_nothing_of_slipway() -> None:
    files = python_files("molecule/rig")
    assert len(files) > 10
    for path in files:
        assert not [name for name in imported(path) if re.search(r"module_utils|slipway|ansible", name)], path


def test_nothing_of_slipway_knows_the_rig() -> None:
    files = [
        path
        for folder in ("library", "module_utils", "action_plugins", "callback_plugins", "roles", "playbooks")
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    ]
    assert len(files) > 50
    for path in files:
        assert not re.search(r"\brig\b|SLIPWAY_RIG|molecule", path.read_text(), re.IGNORECASE), path
