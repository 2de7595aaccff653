# SPDX-License-Identifier: GPL-3.0-or-later
"""Print docs/findings.md from the catalogue: ``python tools/findings_doc.py > docs/findings.md``.

Run by ``make docs``. It loads the catalogue by its path, so that neither Ansible nor an installed collection is needed.
"""

from __future__ import annotations

import ast
import importlib.util
import re
import sys
import typing as t
from pathlib import Path

CATALOGUE_FILE = Path(__file__).resolve().parent.parent / "module_utils" / "slipway" / "findings.py"
_GROUP = re.compile(r"^\s*# --- (.+?) ---\s*$")
_HEAD = """\
# Findings

Each check that Slipway makes ends in findings. This page lists every fault that it knows, by the name that playbooks,
reports and logs print. It is made from `module_utils/slipway/findings.py` by `make docs`; do not edit it.

Severities: `fail` and `unknown` stop the play, `warn` and `info` are reported. `unknown` means that the check could not be
made, which is no good news. Any finding can come as `unknown`.
"""


def catalogue(path: Path = CATALOGUE_FILE) -> dict[str, t.Any]:
    """The catalogue, loaded from its file: id to an object with ``severity summary remedy reference``."""
    spec = importlib.util.spec_from_file_location("slipway_findings", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"Cannot load the catalogue from {path}.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up by its name
    spec.loader.exec_module(module)
    return dict(module.CATALOGUE)


def groups(path: Path = CATALOGUE_FILE) -> dict[str, str]:
    """Which group each id stands in: the comment of the form ``# --- name ---`` above it in the file."""
    source = path.read_text(encoding="utf-8")
    titles = [(number, found[1]) for number, line in enumerate(source.splitlines(), 1) if (found := _GROUP.match(line))]
    named: dict[str, str] = {}
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Dict):
            for key in node.keys:
                if isinstance(key, ast.Constant):
                    above = [title for number, title in titles if number < key.lineno]
                    named[str(key.value)] = above[-1] if above else "Other"
    return named


def page(path: Path = CATALOGUE_FILE) -> str:
    """The Markdown page."""
    group_of, parts, current = groups(path), [_HEAD], ""
    for fault_id, fault in catalogue(path).items():
        if group_of[fault_id] != current:
            current = group_of[fault_id]
            parts.append(f"## {current}\n")
        summary, remedy = (text.replace("<", "&lt;") for text in (fault.summary, fault.remedy))
        entry = [f"### {fault_id}\n", f"`{fault.severity}` {summary}\n", f"What to do: {remedy}\n"]
        if fault.reference:
            entry.append(f"Seen in: {_linked(fault.reference)}\n")
        parts.append("\n".join(entry))
    return "\n".join(parts)


def _linked(reference: str) -> str:
    """A report of the form ``owner/repository#number`` as a link; anything else as it is."""
    return re.sub(r"\b([\w.-]+/[\w.-]+)#(\d+)\b", r"[\1#\2](https://github.com/\1/issues/\2)", reference)


if __name__ == "__main__":
    sys.stdout.write(page())
