# SPDX-License-Identifier: GPL-3.0-or-later
"""How a file differs from what a patch knows, in a few lines that a person can read. Pure."""

from __future__ import annotations

import difflib
import typing as t

from . import hunks
from .manifest import sha256

if t.TYPE_CHECKING:
    from .diff import Change

SHOWN_LINES = 20


def of(found: bytes | None, original: bytes | None, change: Change | None) -> str:
    """The rest of a sentence that begins with the file's path. ``original`` is its content before the patch, where that is known."""
    if found is None:
        return "is not there"
    if original is not None:
        made = _made(change, original)
        if made is not None and len(lines(made, found)) < len(lines(original, found)):
            return f"differs from what the patch makes of it: {lines(made, found)}"
        return f"differs from what it was before the patch: {lines(original, found)}"
    told = f"has sha256 {sha256(found)}, which is neither that before the patch nor that after it"
    if change is None or not change.old:
        return told
    try:
        hunks.apply(change, found)
    except hunks.Mismatch as error:
        return f"{told}; {error}"
    return f"{told}; the lines that the patch is about are as they should be, so it differs elsewhere"


def _made(change: Change | None, original: bytes) -> bytes | None:
    try:
        return hunks.apply(change, original) if change else None
    except hunks.Mismatch:
        return None


def lines(before: bytes, after: bytes) -> str:
    """The lines that differ, with their numbers, at most twenty."""
    old, new = (content.decode("utf-8", "replace").splitlines() for content in (before, after))
    shown = [line for line in difflib.unified_diff(old, new, lineterm="", n=0) if not line.startswith(("---", "+++"))]
    more = [f"and {len(shown) - SHOWN_LINES} lines more"] if len(shown) > SHOWN_LINES else []
    return " | ".join(shown[:SHOWN_LINES] + more) or "in line ends only"
