# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel parameters in ``/etc/default/grub`` and its drop-ins, which are shell scripts that ``grub-mkconfig`` runs. Pure.

Only an assignment of plain text is read and written. Whatever else a line does with one of the two variables is refused, as
nothing short of a shell could tell what comes of it.
"""

from __future__ import annotations

import re
import typing as t

from . import parameters

# In the order in which they come on the command line of a normal boot (grub's util/grub.d/10_linux.in).
VARIABLES = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")
_MENTION = re.compile(r"\bGRUB_CMDLINE_LINUX(?:_DEFAULT)?\b")
_ASSIGNMENT = re.compile(
    r"(?P<start>(?:export[ \t]+)?(?P<name>GRUB_CMDLINE_LINUX(?:_DEFAULT)?)=)"
    r"(?P<value>\"(?P<double>(?:[^\"\\$`]|\\.)*)\"|'(?P<single>[^']*)'|(?P<bare>[\w.,:=/+@%-]*))"
    r"(?P<rest>[ \t]*(?:[ \t]#.*)?)\n?"
)
# What a drop-in does that adds to the variable, as kdump-tools has it: "$GRUB_CMDLINE_LINUX_DEFAULT crashkernel=384M-:128M".
_ADDITION = re.compile(
    r"(?:export[ \t]+)?(?P<name>GRUB_CMDLINE_LINUX(?:_DEFAULT)?)="
    r"\"(?P<before>[^\"\\$`]*)\$(?:(?P=name)\b|\{(?P=name)\})(?P<after>[^\"\\$`]*)\"[ \t]*(?:[ \t]#.*)?\n?"
)


def read(text: str) -> dict[str, str]:
    """The values of those of ``VARIABLES`` that are set; of two assignments the later one counts.

    Raises ValueError for a line that does anything else with one of them.
    """
    return {name: _value(found) for _, name, found in _assignments(text)}


def write(text: str, values: t.Mapping[str, str]) -> str:
    """The text with these values; a line whose value stays is not touched, and a variable that is not set gets a line."""
    lines = text.splitlines(keepends=True)
    last = {name: (number, found) for number, name, found in _assignments(text)}
    for name, value in values.items():
        if name in last:
            number, found = last[name]
            if _value(found) != value:
                end = "\n" if lines[number].endswith("\n") else ""
                lines[number] = f"{found['start']}{_quoted(value, found)}{found['rest']}{end}"
        elif value:
            if lines and not lines[-1].endswith("\n"):
                lines[-1] += "\n"
            lines.append(f"{name}={_quoted(value)}\n")
    return "".join(lines)


def added(text: str) -> list[parameters.Parameter]:
    """What a drop-in (``/etc/default/grub.d/*.cfg``) adds. Raises ValueError where it sets a variable anew."""
    found: list[parameters.Parameter] = []
    for number, line in _mentions(text):
        addition = _ADDITION.fullmatch(line)
        if addition is None:
            raise ValueError(f"line {number + 1} sets the kernel parameters anew")
        found += parameters.parse(f"{addition['before']} {addition['after']}")
    return found


def _mentions(text: str) -> list[tuple[int, str]]:
    lines = enumerate(text.splitlines(keepends=True))
    return [(number, line) for number, line in lines if _MENTION.search(line) and not line.lstrip().startswith("#")]


def _assignments(text: str) -> list[tuple[int, str, re.Match[str]]]:
    found = []
    for number, line in _mentions(text):
        assignment = _ASSIGNMENT.fullmatch(line)
        if assignment is None:
            raise ValueError(f"line {number + 1} does more with the kernel parameters than to set them to plain text")
        found.append((number, assignment["name"], assignment))
    return found


def _value(assignment: re.Match[str]) -> str:
    if assignment["double"] is not None:
        # Between double quotes a shell takes a backslash away before these four only.
        return re.sub(r"\\([$`\"\\])", r"\1", assignment["double"])
    return assignment["single"] if assignment["single"] is not None else assignment["bare"]


def _quoted(value: str, old: re.Match[str] | None = None) -> str:
    if old is not None and old["single"] is not None and "'" not in value:
        return f"'{value}'"
    return '"' + re.sub(r"([$`\"\\])", r"\\\1", value) + '"'
