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
# Of Latin letters with their accents taken away; other alphabets are not judged by vowels.
_VOWELS = frozenset("aeiouy\u00e6\u0153\u00f8\u0131")
_SIGNS = ("Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Sm", "Sk", "Sc")
# Names in code that is not marked as such.
_CODE = re.compile(r"\S*[(){}\[\]=<>;_$#/\\]\S*|\S*[^\W\d_]\.[^\W\d_]\S*")
_WORD = re.compile(r"[^\W\d_]+(?:['\u2019][^\W\d_]+)?")


def odd_share(prose: str) -> float:
    """The share of words that are none: very long, without a vowel, or with capitals inside. 0 for fewer than eight words."""
    words = [word for word in _WORD.findall(_CODE.sub(" ", prose)) if len(word) > 1]
    return sum(map(_is_odd, words)) / len(words) if len(words) >= LEAST_WORDS else 0.0


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
