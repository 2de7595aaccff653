# SPDX-License-Identifier: GPL-3.0-or-later
"""What a dependency check (``uv pip check``) says of an environment, and what of it was expected. Pure.

Where a profile overrides a requirement, somebody's wish stays unfulfilled on purpose. ``expected-complaints.txt`` beside the lock holds these
sentences; any other is a fault of the stack.
"""

from __future__ import annotations

import re
import typing as t

from .lock import normalise

SAID = re.compile(r"^The package `.*$", re.MULTILINE)
WISH = re.compile(
    r"(?P<package>[A-Za-z0-9._-]+) requires (?P<name>[A-Za-z0-9._-]+)(?:\[[^\]]*\])?\s*(?P<clauses>[^;,]*(?:,[^;,]*)*?)\s*(?:;.*)?"
    r", but (?:(?P<has>\S+) is installed|it's not installed)"
)


def read_uv(output: str) -> list[str]:
    """The complaints in what ``uv pip check`` printed, without its quotes. Seen with uv 0.13."""
    return [match[0].removeprefix("The package ").replace("`", "").rstrip(".") for match in SAID.finditer(output)]


def read(lines: t.Iterable[str]) -> list[str]:
    """Those of a file: a line each, ``#`` begins a comment."""
    return [text for line in lines if (text := re.sub(r"(^|\s)#.*$", "", line).strip())]


def unexpected(said: t.Iterable[str], expected: t.Iterable[str]) -> list[str]:
    """The complaints that nobody expects. Order of clauses, space and spelling of names make no difference."""
    known = {_meaning(line) for line in expected}
    return [line for line in said if _meaning(line) not in known]


def _meaning(line: str) -> t.Hashable:
    match = WISH.fullmatch(line.strip())
    if not match:
        return line.strip()
    clauses = frozenset(re.sub(r"\s", "", clause) for clause in match["clauses"].split(",") if clause.strip())
    return normalise(match["package"]), normalise(match["name"]), clauses, match["has"]
