# SPDX-License-Identifier: GPL-3.0-or-later
"""Imports point downwards only, wherever they stand in a file."""

from __future__ import annotations

import ast
import graphlib
from pathlib import Path

import pytest


def imported(name: str, source: str, known: set[str]) -> set[str]:
    """Which of the ``known`` modules a module of this dotted name imports; those for type checkers alone do not count."""
    tree = ast.parse(source)
    typed = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level and id(node) not in typed:
            base = [*name.split(".")[: -node.level], *(node.module.split(".") if node.module else [])]
            found |= {".".join([*base, alias.name]) for alias in node.names} | {".".join(base)}
    return found & known


def test_imports_are_seen() -> None:
    source = "from . import y\nfrom ..errors import E\nif t.TYPE_CHECKING:\n    from . import z\ndef f():\n    from . import w"
    assert imported("a.x", source, {"a.y", "a.z", "a.w", "errors"}) == {"a.y", "a.w", "errors"}


def test_there_is_no_circle(root: Path) -> None:
    folder = root / "module_utils/slipway"
    files = {".".join(path.relative_to(folder).with_suffix("").parts): path for path in folder.rglob("*.py")}
    graph = {name: imported(name, path.read_text(), set(files)) for name, path in files.items()}
    assert len(graph["pve.connect"]) >= 3
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_only_the_way_to_proxmox_knows_ansible(root: Path) -> None:
    files = [path for path in (root / "module_utils/slipway").rglob("*.py") if "from ansible" in path.read_text()]
    assert [path.name for path in files] == ["connect.py"]
