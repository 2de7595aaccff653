# SPDX-License-Identifier: GPL-3.0-or-later
"""Module options on disk, read as kmod reads them (modprobe.d(5), libkmod's configuration): pure."""

from __future__ import annotations

import typing as t

from .host import command_line

# In the order of precedence: a file name found in an earlier folder hides the same name in a later one.
FOLDERS = (
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
)


def reading_order(folders: t.Mapping[str, t.Iterable[str]]) -> list[str]:
    """Paths of the configuration files in the order in which kmod reads them: by file name over all folders.

    ``folders`` maps each of ``FOLDERS`` that exists to its file names. Only ``*.conf`` counts, hidden files never do.
    """
    chosen: dict[str, str] = {}
    for folder in FOLDERS:
        for name in folders.get(folder, ()):
            if name.endswith(".conf") and not name.startswith("."):
                chosen.setdefault(name, f"{folder}/{name}")
    return [chosen[name] for name in sorted(chosen)]


def directives(text: str) -> list[list[str]]:
    """The lines of a file as words. A backslash joins a line to the next, also at the end of a comment."""
    lines = text.replace("\\\n", "").splitlines()
    return [line.split() for line in lines if line.strip() and not line.startswith("#")]


def module_options(texts: t.Iterable[str], module: str, cmdline: str = "") -> dict[str, str | None]:
    """Options that ``module`` is loaded with: name to value, or to ``None`` where no value is given.

    ``texts`` are the files in their reading order. Options add up and the kernel takes the last value; those of the
    kernel command line (``module.option=value``) come after the files. ``-`` and ``_`` in a module's name are one.
    """
    wanted = module.replace("-", "_")
    options: dict[str, str | None] = {}
    for text in texts:
        for words in directives(text):
            if words[0] == "options" and len(words) > 2 and words[1].replace("-", "_") == wanted:
                for word in words[2:]:
                    name, separator, value = word.replace('"', "").partition("=")
                    options[name] = value if separator else None
    for parameter, setting in command_line(cmdline):
        owner, dot, option = parameter.partition(".")
        if dot and owner.replace("-", "_") == wanted:
            options[option] = setting
    return options
