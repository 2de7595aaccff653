# SPDX-License-Identifier: GPL-3.0-or-later
"""Tables of engines, read from their source."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.slipway.model import registry
from model_environment import Environment


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path / "venv")


def test_sglang(environment: Environment) -> None:
    environment.sglang()
    environment.write("sglang/srt/models/broken.py", "EntryClass = [\n")
    environment.write("sglang/srt/models/none.py", "class Helper: pass\n")
    found = registry.read("sglang", environment.site)
    assert found is not None
    assert found.architectures == {
        "LlamaForCausalLM": "sglang/srt/models/llama.py",
        "KimiK25ForConditionalGeneration": "sglang/srt/models/kimi_k25.py",
        "Glm4MoeForCausalLM": "sglang/srt/models/glm4_moe.py",
        "GlmMoeDsaForCausalLM": "sglang/srt/models/glm4_moe.py",
    }
    assert found.types == {"kimi_k25"}
    assert registry.quantisation("sglang", environment.site) == {
        "fp8": 0,
        "modelopt_fp4": 100,
        "compressed-tensors": 0,
    }


def test_vllm(environment: Environment) -> None:
    environment.vllm()
    found = registry.read("vllm", environment.site)
    assert found is not None
    assert found.architectures == {
        "LlamaForCausalLM": "vllm/model_executor/models/llama.py",
        "GlmMoeDsaForCausalLM": "vllm/model_executor/models/deepseek_v2.py",
        "KimiK25ForConditionalGeneration": "vllm/model_executor/models/kimi_k25.py",
    }
    assert found.types == {"chatglm", "kimi_k25"}
    assert registry.quantisation("vllm", environment.site)["modelopt_fp4"] == 75


@pytest.mark.parametrize("engine", ["sglang", "vllm", "another"])
def test_what_is_not_there_or_has_another_form(environment: Environment, engine: str) -> None:
    assert registry.read(engine, environment.site) is None
    assert registry.quantisation(engine, environment.site) == {}
    environment.write("vllm/model_executor/models/registry.py", "MODELS = build()\n")
    assert registry.read(engine, environment.site) is None
