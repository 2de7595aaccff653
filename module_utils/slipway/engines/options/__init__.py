# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of engines, release by release, as their own parsers have them. ``tools/engine_options.py`` writes the tables.

A table is a text with a line an option: its names without dashes, what it takes (``flag switch deprecated whole size number json text``; ``*`` behind it: several),
and its choices. A switch is ``--x`` or ``--no-x``. Names with one dash are left out.
"""

from __future__ import annotations

import typing as t

from . import sglang_0_5_9, sglang_0_5_10_post1, vllm_0_16_0, vllm_0_19_1


class Option(t.NamedTuple):
    """One option of an engine. ``names`` holds all its spellings, the engine's first choice in front."""

    names: tuple[str, ...]
    kind: str
    many: bool
    choices: tuple[str, ...]


_TABLES = {
    ("sglang", "0.5.9"): sglang_0_5_9.TABLE,
    ("sglang", "0.5.10.post1"): sglang_0_5_10_post1.TABLE,
    ("vllm", "0.16.0"): vllm_0_16_0.TABLE,
    ("vllm", "0.19.1"): vllm_0_19_1.TABLE,
}
RELEASES = tuple(_TABLES)


def read(table: str) -> list[Option]:
    """The options of a table. Raises ``ValueError`` for a line that is none."""
    options = []
    for line in table.strip().splitlines():
        names, kind, *rest = line.split(" ", 2)
        choices = tuple(rest[0].split("|")) if rest else ()
        options.append(Option(tuple(names.split(",")), kind.rstrip("*"), kind.endswith("*"), choices))
    return options


def write(options: t.Iterable[Option]) -> str:
    """The table of these options, as ``read`` takes it."""
    lines = []
    for option in options:
        choices = f" {'|'.join(option.choices)}" if option.choices else ""
        lines.append(f"{','.join(option.names)} {option.kind}{'*' if option.many else ''}{choices}")
    return "\n".join(lines)


def known(engine: str, version: str) -> dict[str, Option] | None:
    """The options of this release by each of their names; ``None`` for a release that Slipway has no table of."""
    table = _TABLES.get((engine, version))
    if table is None:
        return None
    return {name: option for option in read(table) for name in option.names}
