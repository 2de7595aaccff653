# SPDX-License-Identifier: GPL-3.0-or-later
"""A file's content with a change applied: every line must be where the diff says, to the byte. Pure."""

from __future__ import annotations

import typing as t

if t.TYPE_CHECKING:
    from .diff import Change


class Mismatch(Exception):
    """Where a file is not what a diff was made from, as the rest of a sentence."""


def apply(change: Change, content: bytes | None) -> bytes | None:
    """What a file with this content becomes; ``None`` where there is no file. For a rename, ``content`` is that of the old name.

    No fuzz and no offset. Raises ``Mismatch``.
    """
    if (content is None) != (not change.old):
        raise Mismatch("there is a file already" if content is not None else "there is no file")
    lines = _lines(content or b"")
    result: list[bytes] = []
    at = 0
    for hunk in change.hunks:
        result += lines[at : hunk.old_at]
        _compare(hunk.old, lines, hunk.old_at)
        result += hunk.new
        at = hunk.old_at + len(hunk.old)
    result += lines[at:]
    if not change.new and result:
        raise Mismatch(f"it has {len(result)} lines more than the diff deletes")
    _ends(result)
    return b"".join(result) if change.new else None


def _lines(content: bytes) -> list[bytes]:
    """Lines with their ends. Only a line feed ends one: the diff is made so."""
    parts = content.split(b"\n")
    return [part + b"\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _compare(wanted: tuple[bytes, ...], lines: list[bytes], at: int) -> None:
    if at > len(lines):
        raise Mismatch(f"it has {len(lines)} lines, and the diff begins at line {at + 1}")
    for offset, line in enumerate(wanted):
        found = lines[at + offset] if at + offset < len(lines) else None
        if found != line:
            raise Mismatch(f"line {at + offset + 1} is {_shown(found)}, and the diff was made from {_shown(line)}")


def _ends(lines: list[bytes]) -> None:
    """A line without an end in the middle would join two lines, which no diff means."""
    if any(not line.endswith(b"\n") for line in lines[:-1]):
        raise Mismatch("the diff leaves a line without an end before others")


def _shown(line: bytes | None) -> str:
    return "not there" if line is None else repr(line.decode("utf-8", "replace"))[:100]
