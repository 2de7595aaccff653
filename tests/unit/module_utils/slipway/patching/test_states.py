# SPDX-License-Identifier: GPL-3.0-or-later
"""States by hash alone, also where patches lie on each other."""

from __future__ import annotations

import pytest
from ansible.module_utils.slipway.patching import states, versions
from ansible.module_utils.slipway.patching.states import Layer, Side

LOWER = Layer("lower", {"x": Side("h0", "h1")})
UPPER = Layer("upper", {"x": Side("h1", "h2")})
TOP = Layer("top", {"x": Side("h2", "h3")})
BESIDE = Layer("beside", {"x": Side("h0", "b1", upstream=("u",), equivalents=("e",))})


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ("h0", ["pristine", "pristine", "pristine"]),
        ("h1", ["applied", "pristine", "pristine"]),
        ("h2", ["applied", "applied", "pristine"]),
        ("h3", ["applied", "applied", "applied"]),
        ("zz", ["foreign", "foreign", "foreign"]),
        ("absent", ["foreign", "foreign", "foreign"]),
    ],
)
def test_a_chain(found: str, expected: list[str]) -> None:
    assert [one["x"] for one in states.of_files([LOWER, UPPER, TOP], {"x": found})] == expected


def test_patches_that_are_not_made_for_each_other() -> None:
    assert [one["x"] for one in states.of_files([LOWER, BESIDE], {"x": "h1"})] == ["applied", "foreign"]
    assert [one["x"] for one in states.of_files([LOWER, BESIDE], {"x": "h0"})] == ["pristine", "pristine"]
    assert [one["x"] for one in states.of_files([LOWER, BESIDE], {"x": "e"})] == ["foreign", "equivalent"]
    assert [one["x"] for one in states.of_files([BESIDE], {"x": "u"})] == ["upstream"]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["applied", "applied"], "applied"),
        (["applied", "pristine"], "mixed"),
        (["upstream", "pristine"], "mixed"),
        (["upstream", "applied"], "upstream"),
        (["upstream", "equivalent"], "equivalent"),
        (["foreign", "applied"], "foreign"),
    ],
)
def test_a_patch_by_its_files(files: list[str], expected: str) -> None:
    assert states.of_patch(dict(zip("ab", files))) == expected


ORDER = [
    "0.5.6.post2",
    "0.5.7",
    "0.5.8",
    "0.5.8.post1",
    "0.5.9.dev3",
    "0.5.9a1",
    "0.5.9rc1",
    "0.5.9",
    "0.5.10",
    "0.6",
    "1!0.1",
]


def test_versions_in_their_order() -> None:
    assert sorted(sorted(ORDER), key=versions.key) == ORDER
    assert versions.key("v1.0.0+cu128") == versions.key("1.0")
    assert versions.key("1.0-1") == versions.key("1.0.post1") and versions.key("1.0-rc.1") == versions.key("1.0rc1")
    assert versions.reached("0.5.10.post1", "0.5.9") and not versions.reached("0.5.8.post1", "0.5.9")
    with pytest.raises(ValueError, match=r"'1\.x' is no version"):
        versions.key("1.x")
