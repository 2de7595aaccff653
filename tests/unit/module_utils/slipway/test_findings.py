# SPDX-License-Identifier: GPL-3.0-or-later
"""The catalogue, its page, and that the code names no fault that the catalogue does not have."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway import findings

FOLDERS = ("module_utils", "library", "action_plugins", "filter_plugins")


def python_files(root: Path) -> list[Path]:
    return sorted(file for folder in FOLDERS for file in (root / folder).rglob("*.py"))


def literal_ids(argument: ast.expr) -> t.Iterator[str]:
    """The ids that an argument can be: a literal, or either side of a choice between literals."""
    if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        yield argument.value
    elif isinstance(argument, ast.IfExp):
        yield from literal_ids(argument.body)
        yield from literal_ids(argument.orelse)


def used_ids(source: str) -> set[str]:
    """Ids in calls of ``finding()``, however it was imported."""
    used: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
            given = node.args[:1] + [keyword.value for keyword in node.keywords if keyword.arg == "fault_id"]
            if name == "finding" and given:
                used.update(literal_ids(given[0]))
    return used


@pytest.mark.parametrize("fault_id", findings.CATALOGUE)
def test_each_fault_is_complete(fault_id: str) -> None:
    fault = findings.CATALOGUE[fault_id]
    assert re.fullmatch(r"[A-Z][A-Z0-9]*(_[A-Z0-9]+)*", fault_id)
    assert fault.severity in {"info", "warn", "fail", "unknown"}
    assert re.fullmatch(r"\S.*\S\.", fault.summary)
    assert len(fault.remedy) > 10
    assert fault.remedy == fault.remedy.strip()


def test_no_id_stands_twice(root: Path) -> None:
    sources = [file.read_text() for file in (root / "module_utils/slipway/faults").glob("*.py")]
    keys = [key for source in sources for key in re.findall(r'^    "([A-Z0-9_]+)": Fault\(', source, re.MULTILINE)]
    assert sorted(keys) == sorted(findings.CATALOGUE)


def test_the_scan_sees_each_form_of_a_call() -> None:
    source = (
        'finding("A", s)\nfindings.finding("B", s)\nfinding("C" if x else "D", s)\nfinding(fault_id="E")\nother("F")'
    )
    assert used_ids(source) == {"A", "B", "C", "D", "E"}


def test_the_code_names_only_faults_of_the_catalogue(root: Path) -> None:
    unknown = {
        f"{file.relative_to(root)}: {fault_id}"
        for file in python_files(root)
        for fault_id in used_ids(file.read_text())
        if fault_id not in findings.CATALOGUE
    }
    assert unknown == set()


def test_each_fault_is_named_somewhere_in_the_code(root: Path) -> None:
    texts = [file.read_text() for file in python_files(root) if file.parent.name != "faults"]
    unused = {fault_id for fault_id in findings.CATALOGUE if not any(f'"{fault_id}"' in text for text in texts)}
    assert unused == set()


def test_the_page_is_up_to_date(root: Path) -> None:
    command = [sys.executable, str(root / "tools/findings_doc.py")]
    page = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert (root / "docs/findings.md").read_text() == page, "run make docs"


def test_a_finding_takes_the_text_of_its_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(findings.CATALOGUE, "ODD", findings.Fault("warn", "It is odd.", "Make it even.", "a/b#1"))
    assert findings.finding("ODD", "thing", "it is 3").as_dict() == {
        "id": "ODD",
        "severity": "warn",
        "subject": "thing",
        "summary": "It is odd.",
        "detail": "it is 3",
        "remedy": "Make it even.",
        "reference": "a/b#1",
    }
    assert findings.finding("ODD", "thing", severity="unknown").severity == "unknown"
    with pytest.raises(ValueError, match="severity 'bad' is none of ok, info, warn, fail, unknown"):
        findings.finding("ODD", "thing", severity="bad")
    with pytest.raises(KeyError):
        findings.finding("NOT_THERE", "thing")
