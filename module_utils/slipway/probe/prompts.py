# SPDX-License-Identifier: GPL-3.0-or-later
"""Prompts of a wanted length, with sentences hidden in them. Pure.

The filler is an inventory of a warehouse in which no two sentences are alike, so that a model has nothing to fall into a loop over,
and no sentence answers any question about the world. What is hidden stands on a line of its own.
"""

from __future__ import annotations

import itertools
import typing as t

# Of most tokenizers and English; what the server counted of a first request takes its place.
CHARACTERS_PER_TOKEN = 4.0
# Numbers of sentences have four digits: some tokenizers take a token a digit, and lengths would differ.
FIRST = 1001
LAST = 9000

_THINGS = (
    *("copper wire", "oak planks", "glass jars", "wool blankets", "roof tiles", "paper rolls", "rubber hoses"),
    *("brass hinges", "tin plates", "clay pots", "cotton sacks"),
)
_PLACES = (
    *("near the north door", "under the window", "behind the scale", "beside the stairs", "along the east wall"),
    *("in front of the office", "above the workshop"),
)
_ACTS = ("weighed", "counted", "sealed", "opened", "painted", "moved", "labelled", "cleaned")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")


def filler(characters: int, start: int = FIRST) -> str:
    """Sentences of together about that many characters, numbered from ``start``."""
    sentences: list[str] = []
    size = 0
    for number in itertools.count(start):
        if size >= characters:
            return " ".join(sentences)
        thing, place = _THINGS[number % len(_THINGS)], _PLACES[number % len(_PLACES)]
        act, day = _ACTS[number % len(_ACTS)], _DAYS[number % len(_DAYS)]
        sentences.append(f"Crate {number} holds {thing}, stands {place}, and was {act} on {day}.")
        size += len(sentences[-1]) + 1
    raise AssertionError("not reached")


def grown(text: str, characters: int) -> str:
    """A user's own text, cut to that many characters or followed by filler; the filler alone without one."""
    if len(text) >= characters:
        return text[:characters].rsplit(" ", 1)[0]
    return "\n".join(part for part in (text, filler(characters - len(text))) if part)


def hidden(text: str, needles: t.Sequence[tuple[str, float]]) -> str:
    """The text with each sentence as a line of its own at its place, 0 (start) to 1 (end), between two words."""
    cuts = []
    for needle, place in needles:
        at = int(len(text) * place)
        at = text.find(" ", at) if 0 < at < len(text) else at
        cuts.append((len(text) if at < 0 else at, needle))
    for at, needle in sorted(cuts, reverse=True):
        text = f"{text[:at].rstrip()}\n{needle}\n{text[at:].lstrip()}".strip()
    return text


def place(name: str) -> float:
    """Where ``start``, ``middle`` and ``end`` are. None is the very edge, which models attend to most."""
    return {"start": 0.05, "middle": 0.5, "end": 0.95}[name]


def spread(count: int) -> list[float]:
    """Places for so many sentences, evenly."""
    return [(number + 1) / (count + 1) for number in range(count)]
