# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment markers of requirements (packaging.python.org, "Dependency specifiers"), without a package to do it.

A lock for one Python and platform rarely has any; one made for several has. ``extra`` is unknown here: a lock has none.
"""

from __future__ import annotations

import re
import typing as t

TOKEN = re.compile(
    r"\s*(?:(?P<paren>[()])|(?P<op>===|==|~=|!=|<=|>=|<|>)|(?P<quoted>'[^']*'|\"[^\"]*\")|(?P<word>[a-z_.]+))"
)
VERSIONS = frozenset({"python_version", "python_full_version", "implementation_version"})

# What the interpreter is asked to print, as JSON: the names that markers may use.
PROBE = """
import json, os, platform, sys
version = platform.python_version()
print(json.dumps({
    "implementation_name": sys.implementation.name,
    "implementation_version": version,
    "os_name": os.name,
    "platform_machine": platform.machine(),
    "platform_python_implementation": platform.python_implementation(),
    "platform_release": platform.release(),
    "platform_system": platform.system(),
    "platform_version": platform.version(),
    "python_full_version": version,
    "python_version": ".".join(platform.python_version_tuple()[:2]),
    "sys_platform": sys.platform,
}))
"""


def evaluate(marker: str, environment: dict[str, str]) -> bool:
    """Whether the marker holds in this environment. Raises ``ValueError`` for one that cannot be read."""
    parser = _Parser(_tokens(marker), environment)
    result = parser.alternatives()
    if parser.tokens:
        raise ValueError(f"unexpected {parser.tokens[0][1]!r}")
    return result


def _tokens(marker: str) -> list[tuple[str, str]]:
    tokens: list[tuple[str, str]] = []
    position, end = 0, len(marker.rstrip())
    while position < end:
        match = TOKEN.match(marker, position)
        if not match:
            raise ValueError(f"unexpected {marker[position:].strip()[:20]!r}")
        kind = t.cast(str, match.lastgroup)
        tokens.append((kind, match.group(kind)))
        position = match.end()
    return tokens


class _Parser:
    """The tokens that are still to be read."""

    def __init__(self, tokens: list[tuple[str, str]], environment: dict[str, str]) -> None:
        self.tokens = tokens
        self.environment = environment

    def take(self) -> tuple[str, str]:
        if not self.tokens:
            raise ValueError("it ends too early")
        return self.tokens.pop(0)

    def next_is(self, token: tuple[str, str]) -> bool:
        if self.tokens[:1] == [token]:
            self.tokens.pop(0)
            return True
        return False

    def alternatives(self) -> bool:
        result = self.conditions()
        while self.next_is(("word", "or")):
            # Read in any case: the rest must be understood also where it no longer decides.
            other = self.conditions()
            result = result or other
        return result

    def conditions(self) -> bool:
        result = self.comparison()
        while self.next_is(("word", "and")):
            other = self.comparison()
            result = result and other
        return result

    def comparison(self) -> bool:
        if self.next_is(("paren", "(")):
            result = self.alternatives()
            if not self.next_is(("paren", ")")):
                raise ValueError("a bracket is not closed")
            return result
        left_name, left = self.value()
        operator = self.operator()
        right_name, right = self.value()
        if operator in ("in", "not in"):
            return (left in right) == (operator == "in")
        if left_name in VERSIONS or right_name in VERSIONS:
            return _compare_versions(left, operator, right)
        return _compare_strings(left, operator, right)

    def value(self) -> tuple[str, str]:
        kind, text = self.take()
        if kind == "quoted":
            return "", text[1:-1]
        if kind == "word" and text in self.environment:
            return text, self.environment[text]
        raise ValueError(f"{text!r} is not known here")

    def operator(self) -> str:
        kind, text = self.take()
        if kind == "op" or text == "in":
            return text
        if text == "not" and self.next_is(("word", "in")):
            return "not in"
        raise ValueError(f"{text!r} compares nothing")


def _release(version: str) -> tuple[int, ...]:
    numbers = [int(part) for part in re.findall(r"\d+", re.split(r"[^0-9.]", version)[0])]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def _compare_versions(left: str, operator: str, right: str) -> bool:
    if right.endswith(".*") and operator in ("==", "!="):
        same = (left + ".").startswith(right[:-1])
        return same == (operator == "==")
    if operator == "~=":
        family = right.rsplit(".", 1)[0]
        return _release(left) >= _release(right) and (left + ".").startswith(family + ".")
    return _ordered(_release(left), operator, _release(right))


def _compare_strings(left: str, operator: str, right: str) -> bool:
    return _ordered(left, operator, right)


def _ordered(left: t.Any, operator: str, right: t.Any) -> bool:
    results = {
        "==": left == right,
        "===": left == right,
        "!=": left != right,
        "<": left < right,
        "<=": left <= right,
        ">": left > right,
        ">=": left >= right,
    }
    if operator not in results:
        raise ValueError(f"{operator!r} compares no text")
    return results[operator]
