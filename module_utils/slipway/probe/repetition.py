# SPDX-License-Identifier: GPL-3.0-or-later
"""Does a text say one thing over and over. Pure."""

from __future__ import annotations

import re

# A text loops when its end is one piece, this often in a row: a short one, and one of a sentence or a paragraph.
REPEATS = 6
LONG_REPEATS = 3.5
SHORT_PIECE = 80
LONGEST_PIECE = 600
# A rule of dashes, a row of zeros and laughter are no loops as long as they are short.
LEAST_CHARACTERS = 40
# Of all the sequences of four words, the share that differs. Songs with refrains and code keep above a half.
DISTINCT_SHARE = 0.3
LEAST_WORDS = 60
_WORDS_IN_A_ROW = 4
# Languages without spaces between words (Han, kana, Thai and its neighbours) are taken letter by letter.
_WORD = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]|[^\W_]+")


def looped_piece(text: str) -> str:
    """What the end of the text says over and over; empty where it does not.

    A piece without a letter or digit (``-``, ``|``, ``!``) counts where it is most of the text, since tables and rules are made of these.
    """
    end = text.strip()[-8 * LONGEST_PIECE :]
    for length in range(1, min(LONGEST_PIECE, len(end) // 2) + 1):
        run = _period(end, length)
        times = run / length
        if times < (REPEATS if length <= SHORT_PIECE else LONG_REPEATS) or run < LEAST_CHARACTERS:
            continue
        piece = end[-length:]
        if any(char.isalnum() for char in piece) or (piece.strip() and run * 2 > len(text.strip())):
            return piece
    return ""


def _period(text: str, length: int) -> int:
    """How long the end of the text is that repeats itself every ``length`` characters."""
    place = len(text) - length - 1
    while place >= 0 and text[place] == text[place + length]:
        place -= 1
    return len(text) - 1 - place


def distinct_share(text: str) -> float:
    """Of the sequences of four words the share that differs from each other; 1 for a text too short to say."""
    words = _WORD.findall(text.casefold())
    if len(words) < LEAST_WORDS:
        return 1.0
    rows = [tuple(words[at : at + _WORDS_IN_A_ROW]) for at in range(len(words) - _WORDS_IN_A_ROW + 1)]
    return len(set(rows)) / len(rows)
