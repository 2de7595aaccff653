# SPDX-License-Identifier: GPL-3.0-or-later
"""Do the words look like words. Without a dictionary: by length, vowels, capitals and signs. Pure.

It is for the soup of a model whose numbers are broken: pieces of words glued together, out of all languages.
"""

from __future__ import annotations

import re
import unicodedata

from . import scripts

# No word, but German compounds have up to some 35 letters, so one alone says nothing.
LONG_WORD = 25
ODD_SHARE = 0.4
LEAST_WORDS = 8
# Of the characters that are no space, the share of signs. Code that is not marked as such has about 0.3.
SIGNS_SHARE = 0.6
LEAST_CHARACTERS = 40
_ACRONYM = 6
# A salad of pieces of a vocabulary: words of 7.5 letters and more on average, hardly a sign between them, and here and there two glued together.
# Finnish and Turkish come to 7.4 letters with a sign every five words; a model drawn from at random to 8 to 11 with next to none.
SALAD_WORDS = 20
_SALAD_LETTERS = 7.5
_SALAD_SIGNS = 0.08
_SALAD_GLUED = 0.02
# Of Latin letters with their accents taken away; other alphabets are not judged by vowels.
_VOWELS = frozenset("aeiouy\u00e6\u0153\u00f8\u0131")
_SIGNS = ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sk", "Sc")
# Names in code that is not marked as such.
_CODE = re.compile(r"\S*[(){}\[\]=<>;_$#/\\]\S*|\S*[^\W\d_]\.[^\W\d_]\S*")
_BREAK = re.compile(r"[,;:|\n]")
_GLUED = re.compile(r"[a-z\u00df-\u00ff][A-Z]")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")


def odd_share(prose: str) -> float:
    """The share of words that are none: very long, without a vowel, or with capitals inside. 0 for fewer than eight words.

    What stands alone or in pairs between signs and line breaks is an entry of a list, often a name, and is not counted.
    """
    pieces = [_WORD.findall(piece) for piece in _BREAK.split(_CODE.sub(" ", prose))]
    words = [word for piece in pieces if len(piece) > 2 for word in piece if len(word) > 1]
    return sum(map(_is_odd, words)) / len(words) if len(words) >= LEAST_WORDS else 0.0


def is_salad(prose: str) -> bool:
    """Whether it is words of one vocabulary in no order. ``False`` for fewer than twenty words in Latin letters."""
    text = _CODE.sub(" ", prose).strip()
    words = [word for word in _WORD.findall(text) if scripts.of_letter(word[0]) == "latin"]
    if len(words) < SALAD_WORDS:
        return False
    signs = sum(1 for char in text if char in ".,;:!?\n")  # a list has its lines in place of signs
    glued = sum(1 for word in words if _GLUED.search(word))
    long = sum(map(len, words)) >= _SALAD_LETTERS * len(words)
    return long and signs <= _SALAD_SIGNS * len(words) and glued >= _SALAD_GLUED * len(words)


def _is_odd(word: str) -> bool:
    script = scripts.of_letter(word[0])
    if script not in ("latin", "cyrillic", "greek"):
        return False
    if len(word) >= LONG_WORD:
        return True
    if word.isupper():
        return len(word) > _ACRONYM and script == "latin" and not _has_vowel(word)
    if any(char.isupper() for char in word[1:]):
        return True
    return script == "latin" and len(word) >= 4 and not _has_vowel(word)


def _has_vowel(word: str) -> bool:
    return any(char in _VOWELS for char in unicodedata.normalize("NFD", word.casefold()))


def signs_share(prose: str) -> float:
    """The share of signs (``{ ; & %``) in what is no space. Pictures are none. 0 for a short text."""
    seen = [char for char in prose if not char.isspace()]
    if len(seen) < LEAST_CHARACTERS:
        return 0.0
    return sum(1 for char in seen if unicodedata.category(char) in _SIGNS) / len(seen)
