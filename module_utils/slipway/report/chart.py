# SPDX-License-Identifier: GPL-3.0-or-later
"""A small chart of one figure over runs, as SVG in the page's own colours. Pure."""

from __future__ import annotations

import html
import typing as t

WIDTH, HEIGHT, GAP = 320, 56, 2


def bars(values: t.Sequence[float | None], title: str) -> str:
    """One bar a run, the oldest first, from zero; a run without the figure leaves a gap. Empty where there are not two to compare."""
    known = [value for value in values if value is not None]
    top = max(known, default=0.0)
    if len(known) < 2 or top <= 0:
        return ""
    step = min(WIDTH / len(values), 32)
    shapes = []
    for place, value in enumerate(values):
        if value is not None:
            height = max(HEIGHT * value / top, 1)
            shapes.append(
                f'<rect x="{place * step:.1f}" y="{HEIGHT - height:.1f}" width="{step - GAP:.1f}" height="{height:.1f}"/>'
            )
    label = f"{title}: {', '.join('none' if value is None else f'{value:.1f}' for value in values)}"
    return (
        f'<svg class="bars" viewBox="0 0 {WIDTH} {HEIGHT + 1}" role="img" aria-label="{html.escape(label)}">'
        f'{"".join(shapes)}<line x1="0" y1="{HEIGHT}.5" x2="{WIDTH}" y2="{HEIGHT}.5"/></svg>'
    )
