# SPDX-License-Identifier: GPL-3.0-or-later
"""The index of weights against its files."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.slipway.model import index
from ansible.module_utils.slipway.model.safetensors import Header, parse
from weights import tensors

ONE, TWO = "model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"


def header(**sizes: int) -> Header:
    """The header of a sound file."""
    content = tensors(**sizes)
    length = int.from_bytes(content[:8], "little")
    return parse(content[8 : 8 + length], len(content) - 8 - length)


def told(table: t.Any, headers: dict[str, Header | None], total: t.Any = 10) -> list[tuple[str, str, str]]:
    """Ids, subjects and details."""
    text = json.dumps({"metadata": {"total_size": total}, "weight_map": table})
    return [(found.id, found.subject, found.detail) for found in index.compare(text, headers)]


WHOLE = {ONE: header(a=4), TWO: header(b=4, c=2)}
TABLE = {"a": ONE, "b": TWO, "c": TWO}


def test_nothing_is_wrong() -> None:
    assert told(TABLE, WHOLE) == []
    assert told(TABLE, WHOLE, total=None) == []
    assert index.compare(json.dumps({"weight_map": TABLE}), WHOLE) == []


def test_a_shard_is_missing() -> None:
    assert told(TABLE, {ONE: WHOLE[ONE]}) == [("MODEL_FILE_MISSING", TWO, f"{index.NAME} names it for 2 tensors")]


def test_a_shard_that_could_not_be_read_is_not_missing() -> None:
    assert told(TABLE, {**WHOLE, TWO: None}) == []


def test_a_tensor_in_another_shard_and_one_in_none() -> None:
    moved = {ONE: header(a=4, c=2), TWO: header(b=4)}
    assert told(TABLE, moved) == [("MODEL_INDEX_WRONG", index.NAME, f"c is in {ONE}, not in {TWO}")]
    lost = {ONE: header(a=4), TWO: header(b=6)}
    assert told(TABLE, lost) == [("MODEL_INDEX_WRONG", index.NAME, f"c is not in {TWO}")]


def test_many_are_named_by_a_few() -> None:
    table = {f"t{number}": ONE for number in range(9)}
    found = told({**table, "a": ONE}, {ONE: header(a=10)})
    assert found == [
        ("MODEL_INDEX_WRONG", index.NAME, f"t0 is not in {ONE}, t1 is not in {ONE}, t2 is not in {ONE}, and 6 more")
    ]


def test_what_it_does_not_name() -> None:
    more = {**WHOLE, TWO: header(b=4, c=2, d=1), "other.safetensors": header(x=1)}
    assert told(TABLE, more, total=11) == [
        ("MODEL_INDEX_INEXACT", index.NAME, "it does not name the tensors d"),
        ("MODEL_INDEX_INEXACT", index.NAME, "it does not name other.safetensors"),
    ]


def test_another_total() -> None:
    assert told(TABLE, WHOLE, total=12) == [
        ("MODEL_INDEX_INEXACT", index.NAME, "it tells 12 bytes of weights, and its files hold 10")
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "it is no JSON"),
        ("[]", "it has no weight_map"),
        ('{"weight_map": {}}', "it has no weight_map"),
        ('{"weight_map": {"a": 1}}', "it has no weight_map"),
        ('{"weight_map": {"a": "../b.safetensors"}}', "it names '../b.safetensors', which is no file beside it"),
    ],
)
def test_one_that_cannot_be_used(text: str, words: str) -> None:
    (found,) = index.compare(text, WHOLE)
    assert (found.id, found.severity, found.subject) == ("MODEL_INDEX_WRONG", "fail", index.NAME)
    assert words in found.detail
