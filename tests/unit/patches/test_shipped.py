# SPDX-License-Identifier: GPL-3.0-or-later
"""The shipped patches are sound, say what they rest on, and add lines only. Over the real wheels they run in tests/wheels."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.slipway.patching import folders, manifest

PATCHES = sorted((Path(__file__).parents[3] / "patches").iterdir())


def test_there_are_patches() -> None:
    assert [folder.name for folder in PATCHES] == ["sglang-sm120-extend-attention", "sglang-sm120-prefill-attention"]


@pytest.mark.parametrize("folder", PATCHES, ids=lambda folder: folder.name)
def test_a_patch_is_sound_and_bears_the_name_of_its_folder(folder: Path) -> None:
    (declared,) = folders.declared([str(folder)])
    assert manifest.read(declared).id == folder.name
    assert sorted(path.name for path in folder.iterdir()) == ["change.diff", "patch.yml"]
    for key in ("why", "upstream", "licence", "evidence"):
        assert declared[key], key


@pytest.mark.parametrize("folder", PATCHES, ids=lambda folder: folder.name)
def test_a_patch_adds_lines_and_takes_none_away(folder: Path) -> None:
    lines = (folder / "change.diff").read_text().splitlines()
    assert [line for line in lines if line.startswith("-") and not line.startswith("--- ")] == []
