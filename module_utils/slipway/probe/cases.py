# SPDX-License-Identifier: GPL-3.0-or-later
"""What is asked of a model: cases of several kinds, checked before the first of them is asked. Pure."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from . import scripts

# One question each; they differ in what a person reads in the report.
SINGLE = ("factual", "reasoning", "creative")
KINDS = (*SINGLE, "conversation", "long_prompt", "same_twice", "cached_prefix", "streaming")
LONG = ("long_prompt", "cached_prefix")
PLACES = ("start", "middle", "end")


@dataclass(frozen=True)
class Turn:
    """One question. Without ``expect`` its answer is only judged for sense. ``needle`` is a sentence to hide in a long prompt."""

    prompt: str
    expect: re.Pattern[str] | None = None
    needle: str = ""


@dataclass(frozen=True)
class Case:
    """Questions of one kind with what their answers must be. ``tokens`` is the length of a long prompt, ``agreement`` a share of words."""

    id: str
    turns: tuple[Turn, ...]
    kind: str = "factual"
    max_tokens: int = 64
    script: str = ""
    least_characters: int = 0
    ends: bool = False
    tokens: int = 0
    text: str = ""
    at: tuple[str, ...] = ("middle",)
    agreement: float = 0.4


def read(given: t.Sequence[t.Mapping[str, t.Any]]) -> list[Case]:
    """The cases, with their expressions compiled. Raises ``ValueError`` whose message names case and cause."""
    cases: list[Case] = []
    for one in given:
        name = one.get("id")
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"a case has no id: {str(dict(one))[:80]}")
        if name in {case.id for case in cases}:
            raise ValueError(f"two cases have the id '{name}'")
        try:
            cases.append(_case(name, one))
        except ValueError as error:
            raise ValueError(f"case '{name}': {error}") from None
    return cases


def _case(name: str, given: t.Mapping[str, t.Any]) -> Case:
    kind = given.get("kind") or "factual"
    if kind not in KINDS:
        raise ValueError(f"kind '{kind}' is none of {', '.join(KINDS)}")
    case = Case(
        id=name,
        kind=kind,
        turns=_turns(kind, given),
        max_tokens=_number(given, "max_tokens", 64, least=1),
        script=_script(given.get("script") or ""),
        least_characters=_number(given, "least_characters", 0),
        ends=bool(given.get("ends")),
        tokens=_number(given, "tokens", 0, least=1 if kind in LONG else 0),
        text=given.get("text") or "",
        at=_places(given.get("at")),
        agreement=_share(given.get("agreement")),
    )
    if kind not in LONG and (case.tokens or case.text or any(turn.needle for turn in case.turns)):
        raise ValueError(f"tokens, text and needle are for {' and '.join(LONG)}, not for kind {kind}")
    if kind == "cached_prefix" and not all(turn.expect for turn in case.turns):
        raise ValueError("each of its turns needs expect, since only that shows whether the prefix was read")
    return case


def _turns(kind: str, given: t.Mapping[str, t.Any]) -> tuple[Turn, ...]:
    several = kind in ("conversation", "cached_prefix")
    if given.get("prompt" if several else "turns"):
        raise ValueError(f"kind {kind} has {'turns in place of a prompt' if several else 'a prompt and no turns'}")
    rows = given.get("turns") or [] if several else [given]
    if several and len(rows) < 2:
        raise ValueError(f"kind {kind} needs at least two turns")
    return tuple(_turn(row) for row in rows)


def _turn(row: t.Any) -> Turn:
    if not isinstance(row, t.Mapping) or not isinstance(row.get("prompt"), str) or not row["prompt"].strip():
        raise ValueError("it has no prompt")
    expect = row.get("expect")
    try:
        return Turn(row["prompt"], re.compile(expect, re.IGNORECASE) if expect else None, row.get("needle") or "")
    except (re.error, TypeError) as error:
        raise ValueError(f"expect '{expect}' is no regular expression: {error}") from None


def _number(given: t.Mapping[str, t.Any], name: str, default: int, least: int = 0) -> int:
    value = given.get(name)
    value = default if value is None else value
    if isinstance(value, bool) or not re.fullmatch("[0-9]+", str(value)) or int(value) < least:
        raise ValueError(f"{name} '{value}' is no whole number from {least} up")
    return int(value)


def _share(value: t.Any) -> float:
    if value is None:
        return Case.agreement
    if isinstance(value, bool) or not re.fullmatch(r"0(\.[0-9]+)?|1(\.0+)?", str(value)):
        raise ValueError(f"agreement '{value}' is no share from 0 to 1")
    return float(value)


def _script(value: str) -> str:
    if value and not scripts.is_known(value):
        raise ValueError(
            f"script '{value}' is unknown; such as latin, cyrillic, han, japanese, korean, arabic are known"
        )
    return value


def _places(value: t.Any) -> tuple[str, ...]:
    places = tuple(value) if isinstance(value, (list, tuple)) else (value,) if value else Case.at
    wrong = [str(one) for one in places if one not in PLACES]
    if wrong or not places:
        raise ValueError(f"at '{', '.join(wrong)}' is none of {', '.join(PLACES)}")
    return places
