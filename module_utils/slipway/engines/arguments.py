# SPDX-License-Identifier: GPL-3.0-or-later
"""From a profile's arguments to words of a command line: each in the kind, and of the choices, that the engine takes. Pure."""

from __future__ import annotations

import difflib
import json
import re
import typing as t

from ..errors import SlipwayError
from .server import SECRET, Argument, Request, option

_NUMBERS = {
    "count": (r"0*[1-9][0-9]*", "a whole number of at least 1"),
    "whole": (r"[+-]?[0-9]+", "a whole number"),
    "size": (r"auto|[+-]?[0-9]+(\.[0-9]+)?[kKmMgGtT]?", "a whole number, such as 4096 or 4k"),
    "number": (r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?", "a number"),
}


def render(request: Request, known: t.Mapping[str, Argument]) -> list[str]:
    """The request's own arguments as command line, sorted by name, without those that ``lint`` complains about.

    Two names of one option share one ``Argument`` in ``known``. Raises ``SlipwayError`` for a value that is empty, of the wrong kind or none of the
    choices, and for an option that is set twice.
    """
    argv: list[str] = []
    seen: dict[t.Any, str] = {}
    for name in sorted(request.arguments, key=option):
        key, value = option(name)[2:], request.arguments[name]
        argument = known.get(key)
        before = seen.setdefault(id(argument) if argument else key, name)
        if before != name:
            spellings = "in two spellings" if option(before) == option(name) else f"as {option(before)} too"
            raise SlipwayError(f"argument {option(key)} is given twice, {spellings}")
        if argument and not SECRET.search(key):
            argv += render_one(key, value, argument)
    return argv


def render_one(key: str, value: t.Any, argument: Argument) -> list[str]:
    """One argument's words. Raises ``SlipwayError`` as ``render`` does."""
    if argument.set_by:
        raise SlipwayError(f"argument {option(key)} is set by {argument.set_by} and cannot be given beside it")
    if argument.kind in ("flag", "switch", "deprecated"):
        # Templates may hand over truth values as text, and only in these two words.
        if str(value) not in ("True", "False"):
            raise SlipwayError(f"argument {option(key)} must be true or false, not '{value}'")
        off = [f"--no-{key}"] if argument.kind == "switch" else []
        return [option(key)] if str(value) == "True" else off
    if not argument.many:
        return [option(key), _word(key, value, argument)]
    values = value if isinstance(value, list) else str(value).split()
    if not values:
        raise SlipwayError(f"argument {option(key)} must be one value or more, not '{value}'")
    return [option(key), *(_word(key, one, argument) for one in values)]


def _word(key: str, value: t.Any, argument: Argument) -> str:
    if argument.kind == "json":
        return _json(key, value)
    if argument.kind in _NUMBERS:
        form, words = _NUMBERS[argument.kind]
        # A truth value is a number only to Python.
        if isinstance(value, bool) or not re.fullmatch(form, str(value)):
            raise SlipwayError(f"argument {option(key)} must be {words}, not '{value}'")
        word = str(value) if argument.kind in ("number", "size") else str(int(value))
    elif isinstance(value, (dict, list)):
        word = json.dumps(value)
    else:
        word = str(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else value
        if not isinstance(word, str) or not word.strip() or "\n" in word:
            raise SlipwayError(f"argument {option(key)} must be a text of one line, not '{value}'")
    if argument.choices and word not in argument.choices:
        near = difflib.get_close_matches(word, argument.choices, 1)
        hint = f"; the nearest is {near[0]}" if near else ""
        raise SlipwayError(
            f"argument {option(key)} cannot be '{word}': it is one of {', '.join(argument.choices)}{hint}"
        )
    return word


def _json(key: str, value: t.Any) -> str:
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    try:
        json.loads(value)
    except (TypeError, ValueError):
        raise SlipwayError(f"argument {option(key)} must be JSON, or a mapping or list, not '{value}'") from None
    return t.cast(str, value)
