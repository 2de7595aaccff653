# SPDX-License-Identifier: GPL-3.0-or-later
"""Configurations of Hugging Face as models, and the forms in which quantisation is told."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.model import config, quantisation
from ansible.module_utils.slipway.model.quantisation import Quantisation

DENSE = {"model_type": "llama", "num_hidden_layers": 2, "hidden_size": 128, "num_attention_heads": 4}


def test_kimi_has_its_numbers_in_the_text_part(shared_data: Path) -> None:
    model = config.read(shared_data / "field/kimi-k2.5")
    assert (model.type, model.architecture) == ("kimi_k25", "KimiK25ForConditionalGeneration")
    assert (model.images, model.dtype, model.code["AutoConfig"]) == (
        True,
        "bfloat16",
        "configuration_kimi_k25.KimiK25Config",
    )
    assert model.shape == config.Shape(
        layers=61,
        hidden=7168,
        intermediate=18432,
        vocabulary=163840,
        heads=64,
        kv_heads=64,
        head_dim=112,
        v_head_dim=128,
        experts=384,
        expert_intermediate=2048,
        kv_lora_rank=512,
        rope_dim=64,
        context=262144,
    )
    assert model.shape.attention == "mla"
    assert model.quantisation == Quantisation("compressed-tensors", "compressed-tensors", 4, 32)


@pytest.mark.parametrize(
    ("told", "attention", "kv_heads", "head_dim"),
    [
        ({}, "mha", 4, 32),
        ({"num_key_value_heads": 2}, "gqa", 2, 32),
        ({"num_key_value_heads": None}, "mha", 4, 32),
        ({"head_dim": 64}, "mha", 4, 64),
        ({"kv_lora_rank": 512, "qk_rope_head_dim": 64}, "mla", 4, 32),
        ({"kv_lora_rank": 512, "index_head_dim": 128, "index_topk": 2048}, "dsa", 4, 32),
        ({"kv_lora_rank": 512, "index_head_dim": 128}, "mla", 4, 32),
        ({"kv_lora_rank": None}, "mha", 4, 32),
    ],
)
def test_attention(told: dict[str, t.Any], attention: str, kv_heads: int, head_dim: int) -> None:
    shape = config.of({**DENSE, **told}).shape
    assert (shape.attention, shape.kv_heads, shape.head_dim) == (attention, kv_heads, head_dim)


@pytest.mark.parametrize("name", ["n_routed_experts", "num_experts", "num_local_experts"])
def test_experts_by_any_of_their_names(name: str) -> None:
    told = {**DENSE, name: 8, "intermediate_size": 256}
    assert (config.of(told).shape.experts, config.of(told).shape.expert_intermediate) == (8, 256)
    assert config.of({**told, "moe_intermediate_size": 64}).shape.expert_intermediate == 64


@pytest.mark.parametrize("content", [[], {}, {"model_type": 3}, "text", None])
def test_what_is_no_configuration(content: t.Any) -> None:
    with pytest.raises(ValueError, match=r"config\.json has no model_type"):
        config.of(content)


def test_what_is_no_json(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(ValueError, match=r"config\.json is no JSON"):
        config.read(tmp_path)
    (tmp_path / "config.json").write_text(json.dumps(DENSE))
    assert config.read(tmp_path).quantisation is None
    (tmp_path / "hf_quant_config.json").write_text("{")
    with pytest.raises(ValueError, match=r"hf_quant_config\.json is no JSON"):
        config.read(tmp_path)


MODELOPT = {
    "producer": {"name": "modelopt"},
    "quantization": {"quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8", "group_size": 16},
}


@pytest.mark.parametrize(
    ("told", "beside", "form", "words"),
    [
        (
            None,
            MODELOPT,
            Quantisation("nvfp4", "modelopt", 4, 16, kv="FP8", source="hf_quant_config.json"),
            "nvfp4 (modelopt, groups of 16)",
        ),
        (
            {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": {"num_bits": 8, "type": "float"}},
            MODELOPT,
            Quantisation("nvfp4", "modelopt", 4, 16, kv="FP8"),
            "nvfp4 (modelopt, groups of 16)",
        ),
        ({"quant_algo": "FP8"}, None, Quantisation("modelopt-fp8", "modelopt", 8), "modelopt-fp8 (modelopt)"),
        (
            {"quant_method": "fp8", "weight_block_size": [128, 128]},
            None,
            Quantisation("fp8", "fp8", 8, block=(128, 128)),
            "fp8 (blocks of 128 x 128)",
        ),
        (
            {"quant_method": "awq", "bits": 4, "group_size": 128},
            None,
            Quantisation("awq", "awq", 4, 128),
            "awq (groups of 128)",
        ),
        ({"quant_method": "gptq", "bits": 4, "group_size": -1}, None, Quantisation("gptq", "gptq", 4), "gptq"),
        (
            {"quant_method": "compressed_tensors"},
            None,
            Quantisation("compressed-tensors", "compressed-tensors"),
            "compressed-tensors",
        ),
        ({"quant_method": "bitnet"}, None, Quantisation("bitnet", "bitnet"), "bitnet"),
        ({"bits": 4}, None, Quantisation("unknown", "unknown", 4), "unknown"),
        ({}, None, None, ""),
        (None, {"quantization": "none"}, None, ""),
        ("text", None, None, ""),
    ],
)
def test_forms_of_quantisation(told: t.Any, beside: t.Any, form: Quantisation | None, words: str) -> None:
    given = DENSE if told is None else {**DENSE, "quantization_config": told}
    found = quantisation.of(given, beside)
    assert found == form
    assert (found.words if found else "") == words
