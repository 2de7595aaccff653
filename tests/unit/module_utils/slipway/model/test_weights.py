# SPDX-License-Identifier: GPL-3.0-or-later
"""A folder of weights as it is."""

from __future__ import annotations

import json
from pathlib import Path

from ansible.module_utils.slipway.model import index, weights
from weights import tensors


def test_a_folder_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "one.safetensors").write_bytes(tensors(a=4))
    (tmp_path / "two.safetensors").write_bytes(tensors(b=4)[:-1])
    (tmp_path / "config.json").write_text("{}")
    table = {"a": "one.safetensors", "b": "two.safetensors", "c": "three.safetensors"}
    (tmp_path / index.NAME).write_text(json.dumps({"weight_map": table}))
    headers, findings = weights.look(tmp_path)
    assert [(found.id, found.subject, found.detail) for found in findings] == [
        ("MODEL_FILE_DAMAGED", "two.safetensors", "it is torn: its tensors take 4 bytes, and 3 follow its header"),
        ("MODEL_FILE_MISSING", "three.safetensors", f"{index.NAME} names it for one tensor"),
    ]
    assert sorted(headers) == ["one.safetensors", "two.safetensors"]
    assert weights.total_bytes(headers.values()) == 4


def test_a_folder_without_index(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(tensors(a=4, b=2))
    headers, findings = weights.look(tmp_path)
    assert findings == []
    assert weights.total_bytes(headers.values()) == 6
