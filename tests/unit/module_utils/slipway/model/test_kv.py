# SPDX-License-Identifier: GPL-3.0-or-later
"""What a token takes on one GPU, by form of attention, number format and parallel sizes."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.model import config, kv, server

DENSE = {
    "model_type": "llama",
    "dtype": "bfloat16",
    "num_hidden_layers": 80,
    "hidden_size": 8192,
    "num_attention_heads": 64,
    "num_key_value_heads": 8,
    "head_dim": 128,
}
LATENT = {**DENSE, "num_hidden_layers": 61, "num_key_value_heads": 64, "kv_lora_rank": 512, "qk_rope_head_dim": 64}
SPARSE = {**LATENT, "num_hidden_layers": 78, "index_head_dim": 128, "index_topk": 2048}
FP8_SCALES = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_quant_algo": "FP8"}}


def of(told: dict[str, t.Any], engine: str = "vllm", sm: int = 120, **declared: t.Any) -> kv.Cache | None:
    return kv.cache(config.of(told), server.of(engine, "0.5.9", declared), sm)


@pytest.mark.parametrize(
    ("told", "declared", "expected"),
    [
        # 80 layers x heads x (128 + 128) x 2
        (DENSE, {}, 80 * 8 * 256 * 2),
        (DENSE, {"tensor_parallel": 8}, 80 * 1 * 256 * 2),
        (DENSE, {"tensor_parallel": 16}, 80 * 1 * 256 * 2),  # with more GPUs than heads, several have the same one
        (DENSE, {"tensor_parallel": 2, "arguments": {"pipeline-parallel-size": 4}}, 20 * 4 * 256 * 2),
        (DENSE, {"kv_cache_dtype": "fp8"}, 80 * 8 * 256),
        # Other layers have a window or a state of a fixed size.
        ({**DENSE, "layer_types": ["linear_attention"] * 60 + ["full_attention"] * 20}, {}, 20 * 8 * 256 * 2),
        ({**DENSE, "layer_types": ["full_attention"] * 80}, {}, 80 * 8 * 256 * 2),
        # Latent attention is whole on each GPU, whatever the parallel size.
        (LATENT, {}, 61 * 576 * 2),
        (LATENT, {"tensor_parallel": 8}, 61 * 576 * 2),
        (LATENT, {"tensor_parallel": 8, "kv_cache_dtype": "fp8_e4m3"}, 61 * 576),
        # ... but where vLLM spreads each sequence over the GPUs.
        (LATENT, {"tensor_parallel": 8, "arguments": {"decode-context-parallel-size": 8}}, 61 * 576 * 2 / 8),
        (SPARSE, {"tensor_parallel": 8, "kv_cache_dtype": "bfloat16"}, 78 * (576 * 2 + 132)),
        (SPARSE, {"tensor_parallel": 8, "kv_cache_dtype": "fp8"}, 78 * (656 + 132)),
    ],
)
def test_bytes_of_a_token(told: dict[str, t.Any], declared: dict[str, t.Any], expected: float) -> None:
    found = of(told, **declared)
    assert found is not None
    assert found.bytes_per_token == expected


@pytest.mark.parametrize(
    ("told", "engine", "sm", "declared", "expected"),
    [
        (LATENT, "vllm", 120, "auto", "bf16"),
        ({**LATENT, "dtype": "float16"}, "vllm", 120, "auto", "fp16"),
        ({**LATENT, "dtype": "float32"}, "sglang", 120, "auto", "fp16"),
        ({**LATENT, **FP8_SCALES}, "vllm", 120, "auto", "fp8"),
        ({**LATENT, **FP8_SCALES}, "sglang", 120, "auto", "fp8"),
        ({**LATENT, **FP8_SCALES}, "sglang", 120, "bf16", "bf16"),
        (SPARSE, "sglang", 120, "auto", "fp8"),
        (SPARSE, "sglang", 90, "auto", "bf16"),
        (SPARSE, "vllm", 120, "fp8_e4m3", "fp8_ds_mla"),
        (DENSE, "vllm", 120, "turbo3", "turbo3"),
    ],
)
def test_number_formats(told: dict[str, t.Any], engine: str, sm: int, declared: str, expected: str) -> None:
    assert kv.stored(config.of(told), server.of(engine, "0.5.9", {"kv_cache_dtype": declared}), sm) == expected


def test_what_is_not_known_is_not_told() -> None:
    assert of(DENSE, kv_cache_dtype="turbo3") is None
    assert of({"model_type": "mamba", "num_hidden_layers": 24}) is None
