# SPDX-License-Identifier: GPL-3.0-or-later
"""Sections as HTML and as Markdown, by the templates beside this file.

Everything is escaped unless it was made here: names and answers of models hold what they like. Control characters, which can turn text around or move
a terminal's cursor, are shown as their number.
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import jinja2
from markupsafe import Markup, escape

Data = t.Mapping[str, t.Any]
_TEMPLATES = Path(__file__).parent / "templates"
# C0 and C1 but for tab and newline, what turns the direction of text, what is invisible, and lone surrogates.
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_MARKDOWN = re.compile(r"([\\`*\[\]<>|~$])|(?<![^\W_])_|_(?![^\W_])|&(?=#?\w+;)")
_LINE_START = re.compile(r"^([#+=-]+|(\d+)([.)]))(?= |$)")


def clean(value: t.Any) -> t.Any:
    """A text without characters that change what is around them; anything else as it is."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", value.replace("\r\n", "\n"))


def markdown_text(value: t.Any) -> str:
    """One line of Markdown that says just these characters."""
    if isinstance(value, Markup):
        return str(value)
    line = re.sub(r"[ \t\n]+", " ", str(clean(value))).strip()
    shown = _MARKDOWN.sub(lambda found: f"\\{found[0]}", line)
    return _LINE_START.sub(lambda found: f"{found[2]}\\{found[3]}" if found[2] else f"\\{found[0]}", shown)


def html(template: str, **values: t.Any) -> str:
    """A page. ``template`` is a file beside this one."""
    environment = _environment(lambda value: escape(clean(value)))
    environment.filters["made"] = _made
    return environment.get_template(template).render(**values)


def markdown(template: str, **values: t.Any) -> str:
    """The same as Markdown."""
    environment = _environment(markdown_text)
    environment.filters["made"] = _made
    # The matrix, which has stars and bars of its own, but no other signs: those would be of a GPU's name.
    environment.filters["plain"] = lambda text: _made(re.sub(r"([\[\]`<&])", r"\\\1", text))
    environment.filters["indented"] = lambda text: _made(text.replace("\n", "\n    "))
    return environment.get_template(template).render(**values)


def _environment(finalize: t.Callable[[t.Any], str]) -> jinja2.Environment:
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(_TEMPLATES),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        finalize=finalize,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
    )


def _made(text: str) -> Markup:
    """What Slipway itself made of parts that it had escaped: the heat map, the chart, a cell, a row."""
    return Markup(clean(text))  # noqa: S704 - that it is safe is what calling this says
