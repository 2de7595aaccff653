# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a tokenizer, and what the code of a repository imports."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.model import tokenizer

CODE = '''"""Text."""
from __future__ import annotations
import os, json.decoder
from . import tools
from .more.inner import thing
from transformers import AutoTokenizer, PreTrainedTokenizer
if True:
    import flash_attn
try:
    import tiktoken
except ImportError:
    tiktoken = None

def late():
    import torch
'''


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (["tokenizer.json"], ("tokenizer.json",)),
        (["vocab.json", "merges.txt"], ("vocab.json",)),
        (["vocab.json"], ()),
        (["tiktoken.model", "qwen.tiktoken"], ("tiktoken.model", "qwen.tiktoken")),
        ([], ()),
    ],
)
def test_vocabularies(tmp_path: Path, files: list[str], expected: tuple[str, ...]) -> None:
    for name in files:
        (tmp_path / name).write_text("x")
    assert tokenizer.read(tmp_path).files == expected


@pytest.mark.parametrize(
    ("told", "code", "template"),
    [
        ({"tokenizer_class": "LlamaTokenizer"}, "", False),
        ({"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}}, "tokenization_kimi.py", False),
        ({"auto_map": {"AutoTokenizer": [None, "fast.Fast"]}}, "fast.py", False),
        ({"auto_map": {"AutoTokenizer": "own.Own"}, "chat_template": "{{ x }}"}, "own.py", True),
        ({"auto_map": {"AutoTokenizer": ["someone/else--own.Own", None]}}, "", False),
        ({"auto_map": None}, "", False),
        ([], "", False),
    ],
)
def test_configurations(tmp_path: Path, told: t.Any, code: str, template: bool) -> None:
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(told))
    found = tokenizer.read(tmp_path)
    assert (found.code, found.template, found.fault) == (code, template, "")


def test_a_configuration_that_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "tokenizer_config.json").write_text("{")
    assert tokenizer.read(tmp_path).fault.startswith("tokenizer_config.json cannot be read (")


def test_what_code_imports_when_it_loads(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(CODE)
    (tmp_path / "tools.py").write_text("import regex\nfrom .own import late\n")
    found, faults = tokenizer.imports(tmp_path, ["own.py"])
    assert [(one.file, one.line, one.module, one.names) for one in found] == [
        ("own.py", 2, "__future__", ("annotations",)),
        ("own.py", 3, "os", ()),
        ("own.py", 3, "json.decoder", ()),
        ("own.py", 6, "transformers", ("AutoTokenizer", "PreTrainedTokenizer")),
        ("tools.py", 1, "regex", ()),
    ]
    assert faults == ["more.py is not there"]


def test_code_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("def broken(:\n")
    found, faults = tokenizer.imports(tmp_path, ["own.py", ""])
    assert (found, len(faults)) == ([], 1)
    assert faults[0].startswith("own.py cannot be read (invalid syntax")


def test_imports_of_an_engine_from_one_package(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text(
        "import torch\nfrom transformers import GlmConfig\nfrom transformers_x import y\n"
    )
    found = tokenizer.imports_of_package(tmp_path, "model.py", "transformers")
    assert [(one.line, one.module, one.names) for one in found] == [(2, "transformers", ("GlmConfig",))]
    assert tokenizer.imports_of_package(tmp_path, "nowhere.py", "transformers") == []
