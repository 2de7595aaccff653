# SPDX-License-Identifier: GPL-3.0-or-later
"""Characters that no answer has: what no language writes, and UTF-8 that was read as something else. Pure."""

from __future__ import annotations

import re
import unicodedata

# A letter of two to four bytes in UTF-8, each byte read as a letter of Windows-1252 (or of Latin-1, for the bytes that it lacks).
_LEAD = "\u00c2-\u00f4"
_TAIL = "\u0080-\u00bf" + "".join(
    bytes([byte]).decode("cp1252") for byte in range(0x80, 0xA0) if byte not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
)
_MISREAD = re.compile(f"[{_LEAD}][{_TAIL}]{{1,3}}")
# Fewer may be chance: a French É before a closing quote reads the same.
_LEAST_MISREAD = 3


def garbage_share(text: str) -> float:
    """Share of characters that no language has: replacement, control, unassigned, private ones and halves of a pair."""
    return sum(1 for char in text if char == "\ufffd" or _is_odd(char)) / len(text) if text else 0.0


def _is_odd(char: str) -> bool:
    return unicodedata.category(char) in ("Cc", "Cn", "Co", "Cs") and char not in "\n\t\r"


def mojibake_share(text: str) -> float:
    """Of the characters beyond ASCII, the share that is UTF-8 read byte by byte; 0 where it may be chance."""
    beyond = sum(1 for char in text if ord(char) > 0x7F)
    misread = [found.group() for found in _MISREAD.finditer(text) if _is_utf8(found.group())]
    return sum(map(len, misread)) / beyond if len(misread) >= _LEAST_MISREAD else 0.0


def _is_utf8(piece: str) -> bool:
    try:
        raw = b"".join(char.encode("latin-1") if ord(char) < 0x100 else char.encode("cp1252") for char in piece)
        raw.decode("utf-8")
    except UnicodeError:
        return False
    return True
