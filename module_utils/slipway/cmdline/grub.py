# SPDX-License-Identifier: GPL-3.0-or-later
"""The kernel parameters of GRUB: ``/etc/default/grub`` and its drop-ins, shell scripts that ``grub-mkconfig`` runs. Pure.

Proxmox's installer leaves drop-ins that add (``zfs.cfg`` with root=, ``installer.cfg`` with nomodeset), and so does kdump-tools;
images of others have some that set a variable anew. So what there is comes in parts, each of which is changed where it stands.
Only plain text is read and written. Whatever else a line does with one of the two variables is refused, as nothing short of a
shell could tell what comes of it.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from . import parameters

# In the order in which they come on the command line of a normal boot (grub's util/grub.d/10_linux.in).
VARIABLES = ("GRUB_CMDLINE_LINUX", "GRUB_CMDLINE_LINUX_DEFAULT")
# Where a parameter is added: a recovery entry does without it.
_ADDED_TO = VARIABLES[1]
# A part between the quotes of a line that adds to the variable.
_INNER = "inner"
_MENTION = re.compile(r"\bGRUB_CMDLINE_LINUX(?:_DEFAULT)?\b")
_NAME = r"(?:export[ \t]+)?(?P<name>GRUB_CMDLINE_LINUX(?:_DEFAULT)?)="
_END = r"[ \t]*(?:[ \t]#.*)?\n?"
# Between double quotes, without anything that a shell would put something else for.
_PLAIN = r"(?:[^\"\\$`]|\\.)*"
_ASSIGNMENT = re.compile(rf"{_NAME}(?P<value>\"{_PLAIN}\"|'[^']*'|[\w.,:=/+@%-]*){_END}")
# "$GRUB_CMDLINE_LINUX_DEFAULT crashkernel=384M-:128M"
_ADDITION = re.compile(
    rf"{_NAME}\"(?P<before>{_PLAIN})\$(?:(?P=name)\b|\{{(?P=name)\}})(?P<after>{_PLAIN})\"{_END}", re.ASCII
)


@dataclass(frozen=True)
class Part:
    """A piece of the command line: where it stands in a file (``line`` and the columns between which it is written), and its
    text as a shell reads it. ``line`` is ``None`` for one that is not there yet."""

    file: str
    line: int | None
    columns: tuple[int, int]
    quote: str
    text: str


class Refused(ValueError):
    """A line that is not understood; ``file`` is where it stands."""

    def __init__(self, file: str, line: int) -> None:
        super().__init__(f"line {line + 1} does more with the kernel parameters than to set them to plain text")
        self.file = file


def parts(texts: t.Mapping[str, str]) -> dict[str, list[Part]]:
    """What each of ``VARIABLES`` comes to, in parts. ``texts`` are the files, by path, in the order in which they are run.

    Raises ``Refused``.
    """
    found: dict[str, list[Part]] = {name: [] for name in VARIABLES}
    for file, text in texts.items():
        for number, line in enumerate(text.splitlines(keepends=True)):
            if not _MENTION.search(line) or line.lstrip().startswith("#"):
                continue
            if assignment := _ASSIGNMENT.fullmatch(line):
                found[assignment["name"]] = [_part(file, number, assignment)]
            elif (addition := _ADDITION.fullmatch(line)) and _is_apart(addition):
                before, after = (_inner(file, number, addition, group) for group in ("before", "after"))
                found[addition["name"]] = [before, *found[addition["name"]], after]
            else:
                raise Refused(file, number)
    return found


def change(texts: t.Mapping[str, str], declared: parameters.Wanted) -> tuple[dict[str, str], str]:
    """The files with what is declared, and the command line that they then make. Raises ``Refused``.

    A line whose part stays is not touched. What is new comes where the variable is set, in the first file if that is nowhere.
    """
    known = parts(texts)
    target = next((part for part in known[_ADDED_TO] if part.quote != _INNER), None)
    if target is None:
        target = Part(next(iter(texts)), None, (0, 0), "", "")
        # A drop-in adds to what was set before it, and what it puts before that stays before it.
        at = len(known[_ADDED_TO]) // 2
        known[_ADDED_TO].insert(at, target)
    every = [part for name in VARIABLES for part in known[name]]
    changed = parameters.change([part.text for part in every], declared, every.index(target))
    after = dict(texts)
    # From the end, so that columns of the same line stay true.
    for part, text in sorted(zip(every, changed), key=lambda pair: (pair[0].line or 0, pair[0].columns), reverse=True):
        if text != part.text:
            after[part.file] = _replaced(after[part.file], part, text)
    return after, " ".join(text.strip() for text in changed if text.strip())


def _part(file: str, number: int, assignment: re.Match[str]) -> Part:
    raw = assignment["value"]
    quote = raw[:1] if raw[:1] in ('"', "'") else ""
    text = raw[1:-1] if quote else raw
    return Part(file, number, assignment.span("value"), quote, _unescaped(text) if quote == '"' else text)


def _inner(file: str, number: int, addition: re.Match[str], group: str) -> Part:
    return Part(file, number, addition.span(group), _INNER, _unescaped(addition[group]))


def _is_apart(addition: re.Match[str]) -> bool:
    """Whether blanks part what is added from what is there, so that no word is in both."""
    before, after = addition["before"], addition["after"]
    return (not before or before[-1].isspace()) and (not after or after[0].isspace())


def _unescaped(text: str) -> str:
    # Between double quotes a shell takes a backslash away before these four only.
    return re.sub(r"\\([$`\"\\])", r"\1", text)


def _escaped(text: str) -> str:
    return re.sub(r"([$`\"\\])", r"\\\1", text)


def _replaced(whole: str, part: Part, text: str) -> str:
    lines = whole.splitlines(keepends=True)
    if part.line is None:
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        return "".join([*lines, f'{_ADDED_TO}="{_escaped(text)}"\n'])
    if part.quote == _INNER:
        written = _escaped(text)
    else:
        written = f"'{text}'" if part.quote == "'" and "'" not in text else f'"{_escaped(text)}"'
    start, end = part.columns
    lines[part.line] = lines[part.line][:start] + written + lines[part.line][end:]
    return "".join(lines)
