# SPDX-License-Identifier: GPL-3.0-or-later
"""In which script is a text written, and does it jump between scripts. Pure.

The standard library has no property of a letter's script. Its name in Unicode begins with it.
"""

from __future__ import annotations

import functools
import re
import typing as t
import unicodedata

# What a case may expect, and what of Unicode belongs to it. Others are named as Unicode names them, such as ``georgian``.
FAMILIES = {
    "japanese": ("han", "hiragana", "katakana"),
    "korean": ("hangul", "han"),
    "chinese": ("han", "bopomofo"),
}
# A letter of these is a syllable or a word.
_DENSE = {"han", "hiragana", "katakana", "hangul"}
_NAMES = {"cjk": "han", "kangxi": "han", "katakana-hiragana": "katakana"}
# Names that begin with these are letters of every script, or of none.
_COMMON = {"fullwidth", "halfwidth", "mathematical", "modifier", "combining", "double-struck", "script", "black-letter"}
_COMMON |= {"superscript", "subscript", "feminine", "masculine", "micro", "ohm", "kelvin", "angstrom", "planck", "alef"}
# Of the words, how many may hold two scripts, or follow upon a word of another one with nothing but space between.
MIXED_SHARE = 0.2
JUMPS_SHARE = 0.3
LEAST_WORDS = 10
LEAST_SCRIPTS = 3
_WORD = re.compile(r"[^\W\d_]+")


@functools.lru_cache(maxsize=4096)
def of_letter(char: str) -> str:
    """``latin``, ``han``, ``cyrillic``...; empty for what is no letter or belongs to no script."""
    if not char.isalpha():
        return ""
    first = unicodedata.name(char, "").split(" ")[0].lower()
    return "" if first in _COMMON else _NAMES.get(first, first)


def is_known(script: str) -> bool:
    """Whether a case may expect it."""
    return script in FAMILIES or script in _all_scripts()


@functools.lru_cache(maxsize=1)
def _all_scripts() -> frozenset[str]:
    return frozenset(of_letter(chr(code)) for code in range(0x20000)) - {""}


def share(text: str, script: str) -> float:
    """How much of the text is in that script, 0 to 1; 1 where it has no letters. Four letters of an alphabet count as one of Han."""
    wanted = FAMILIES.get(script, (script,))
    amounts = _amounts(text)
    whole = sum(amounts.values())
    return sum(amounts.get(name, 0.0) for name in wanted) / whole if whole else 1.0


def most(text: str) -> str:
    """The script of most of the text; empty without letters."""
    amounts = _amounts(text)
    return max(amounts, key=lambda name: amounts[name]) if amounts else ""


def _amounts(text: str) -> dict[str, float]:
    amounts: dict[str, float] = {}
    for char in text:
        script = of_letter(char)
        if script:
            amounts[script] = amounts.get(script, 0.0) + (1.0 if script in _DENSE else 0.25)
    return amounts


def mixed_share(text: str) -> float:
    """The share of words that hold letters of two alphabets. Han, kana and Hangul stand beside others without a space, Greek in formulas."""
    words = [_of_word(word) for word in _WORD.findall(text)]
    words = [found for found in words if found]
    return sum(1 for found in words if len(found) > 1) / len(words) if len(words) >= LEAST_WORDS else 0.0


def jumps_share(text: str) -> float:
    """The share of words that follow upon one of another script with only space between; 0 for fewer than three scripts.

    A list of greetings in many languages has a colon, a comma or a line's end there.
    """
    pairs, jumps = 0, 0
    seen: set[str] = set()
    for line in text.splitlines():
        before: t.Match[str] | None = None
        for word in _WORD.finditer(line):
            script = of_letter(word.group()[0])
            seen.add(script)
            if before is not None:
                pairs += 1
                only_space = not line[before.end() : word.start()].strip()
                jumps += only_space and script != of_letter(before.group()[-1])
            before = word
    return jumps / pairs if len(seen - {""}) >= LEAST_SCRIPTS and pairs >= LEAST_WORDS else 0.0


def _of_word(word: str) -> set[str]:
    found = {of_letter(char) for char in word} - {"", "greek"} - _DENSE
    return found
