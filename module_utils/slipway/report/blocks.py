# SPDX-License-Identifier: GPL-3.0-or-later
"""What a page is made of: sections with blocks, as data. HTML and Markdown are two ways to print the same ones. Pure.

A block is a dictionary with a ``kind``: ``text list table talk code matrix chart``. A cell of a table is a text, a number, a ``mark`` or a ``link``.
"""

from __future__ import annotations

import re
import typing as t

Block = dict[str, t.Any]
NOTHING = "not measured"
_MOMENT = re.compile(r"^(\d{4}-\d\d-\d\d)T(\d\d)[:-](\d\d)([:-]\d\d)?(\.\d+)?(Z|\+00:00)$")


def section(name: str, title: str, *blocks: Block | None) -> dict[str, t.Any]:
    """A part of the page. ``name`` is its anchor; blocks that are none are left out."""
    return {"name": name, "title": title, "blocks": [block for block in blocks if block]}


def text(*sentences: str) -> Block | None:
    """A paragraph, or nothing where there is nothing to say."""
    said = " ".join(sentence for sentence in sentences if sentence)
    return {"kind": "text", "text": said} if said else None


def listing(items: t.Sequence[t.Any]) -> Block | None:
    """A list of sentences."""
    return {"kind": "list", "items": list(items)} if items else None


def table(
    caption: str, heads: t.Sequence[str], rows: t.Sequence[t.Sequence[t.Any]], right: t.Sequence[int] = ()
) -> Block | None:
    """A table whose first column names the row. ``right`` are the columns of figures."""
    if not rows:
        return None
    return {
        "kind": "table",
        "caption": caption,
        "heads": list(heads),
        "rows": [list(row) for row in rows],
        "right": list(right),
    }


def mark(tone: str, word: str) -> dict[str, str]:
    """A verdict: a word and a sign, so that it does not rest on colour. ``tone`` is ``good``, ``bad``, ``doubt`` or ``open``."""
    return {"tone": tone, "word": word}


def link(address: str, word: str) -> dict[str, str]:
    """A way to another page. ``address`` is a relative one that Slipway made."""
    return {"address": address, "word": word}


def figure(value: t.Any, digits: int = 1, scale: float = 1.0) -> str:
    """A number for people, or that there is none. What is no number is shown as it is."""
    if value is None or value == "":
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, (int, float)):
        return str(value)
    shown = value * scale
    return f"{shown:,.0f}".replace(",", "\u202f") if digits == 0 or abs(shown) >= 1000 else f"{shown:.{digits}f}"


def moment(value: t.Any) -> str:
    """A time as it is told: ``2026-12-01 16:00 UTC``. What is none is shown as it is."""
    found = _MOMENT.match(str(value or ""))
    return f"{found[1]} {found[2]}:{found[3]} UTC" if found else str(value or NOTHING)


def duration(seconds: t.Any) -> str:
    """Seconds as minutes, where they are that many."""
    if not isinstance(seconds, (int, float)):
        return NOTHING
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"
