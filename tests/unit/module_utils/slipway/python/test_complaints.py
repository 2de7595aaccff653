# SPDX-License-Identifier: GPL-3.0-or-later
"""Which sentences of a dependency check are expected."""

from __future__ import annotations

import pytest
from ansible.module_utils.slipway.python import complaints

# What uv 0.13.9 printed for SGLang 0.5.9 with transformers 5.2.0.
UV = """\
Using Python 3.12.1 environment at: glm
Checked 170 packages in 291ms
Found 2 incompatibilities
The package `compressed-tensors` requires `transformers<5.0.0`, but `5.2.0` is installed
The package `sglang` requires `transformers==4.57.1`, but `5.2.0` is installed
"""
SAID = [
    "compressed-tensors requires transformers<5.0.0, but 5.2.0 is installed",
    "sglang requires transformers==4.57.1, but 5.2.0 is installed",
]


def test_what_uv_prints_is_read() -> None:
    assert complaints.read_uv(UV) == SAID
    assert complaints.read_uv("Checked 2 packages in 1ms\nAll installed packages are compatible\n") == []


def test_a_file_may_explain_itself() -> None:
    assert complaints.read(["# why", "", f"{SAID[0]}  # since then", SAID[1]]) == SAID


@pytest.mark.parametrize(
    ("said", "expected", "left"),
    [
        (SAID, SAID, []),
        (SAID, SAID[:1], SAID[1:]),
        ([], SAID, []),
        (["a requires b>=1,<2, but 3 is installed"], ["A requires B <2, >=1, but 3 is installed"], []),
        (
            ["a requires b[x]>=1 ; sys_platform == 'linux', but 0 is installed"],
            ["a requires b>=1, but 0 is installed"],
            [],
        ),
        (["a requires b<1, but 3 is installed"], ["a requires b<2, but 3 is installed"], None),
        (["a requires b<1, but 3 is installed"], ["a requires b<1, but 4 is installed"], None),
        (["a requires b<1, but 3 is installed"], ["c requires b<1, but 3 is installed"], None),
        (["a requires b, but it's not installed"], ["a requires b, but it's not installed"], []),
        (["a requires Python >=3.13, but `3.12` is installed"], [], None),
        (["a has several versions"], ["a has several versions"], []),
    ],
)
def test_only_what_is_expected_is_accepted(said: list[str], expected: list[str], left: list[str] | None) -> None:
    assert complaints.unexpected(said, expected) == (said if left is None else left)
