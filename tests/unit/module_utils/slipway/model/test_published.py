# SPDX-License-Identifier: GPL-3.0-or-later
"""Which files of a repository are a model's, and what stands for its commit."""

from __future__ import annotations

import pytest
from ansible.module_utils.slipway.errors import SlipwayError
from ansible.module_utils.slipway.model.published import File, choose, commit_of

FILES = [File(path, 1) for path in ("b.safetensors", "a.json", "original/c.pth", ".gitattributes")]


@pytest.mark.parametrize(
    ("include", "exclude", "expected"),
    [
        ([], [], ["a.json", "b.safetensors", "original/c.pth"]),
        (["*.json", "*.pth"], [], ["a.json", "original/c.pth"]),
        ([], ["original/*"], ["a.json", "b.safetensors"]),
        (["*"], ["*.pth"], ["a.json", "b.safetensors"]),
    ],
)
def test_patterns(include: list[str], exclude: list[str], expected: list[str]) -> None:
    assert [file.path for file in choose(FILES, include, exclude)] == expected


@pytest.mark.parametrize("path", ["/etc/passwd", "../x", "a/../../x", "a//b", "./a"])
def test_a_path_outside_is_refused(path: str) -> None:
    with pytest.raises(SlipwayError, match="outside of the model's folder"):
        choose([File(path, 1)], [], [])


def test_nothing_left() -> None:
    with pytest.raises(SlipwayError, match=r"it has no file that matches \*\.gguf"):
        choose(FILES, ["*.gguf"], [])


def test_what_stands_for_a_commit() -> None:
    first = commit_of([File("a", 1, mtime_ns=5), File("b", 2, "sha256:x", 7)])
    assert first == commit_of([File("b", 2, "sha256:x", 8), File("a", 1, mtime_ns=5)])
    others = [File("a", 1, mtime_ns=6), File("a", 2, mtime_ns=5), File("c", 1, mtime_ns=5)]
    assert len({first, *(commit_of([one, File("b", 2, "sha256:x")]) for one in others)}) == 4


def test_a_part_belongs_to_its_content() -> None:
    assert File("a", 1, "sha256:x").key == File("other", 1, "sha256:x").key
    assert File("a", 1, mtime_ns=5).key != File("a", 1, mtime_ns=6).key
