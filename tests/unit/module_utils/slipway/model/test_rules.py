# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules by version, attention, number format and GPU: each fires, and ends where it no longer holds."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.model import config, rules, server

DENSE = {"model_type": "llama", "num_attention_heads": 4, "num_key_value_heads": 2}
LATENT = {"model_type": "deepseek_v3", "num_attention_heads": 4, "kv_lora_rank": 512}
SPARSE = {
    "model_type": "glm_moe_dsa",
    "num_attention_heads": 4,
    "kv_lora_rank": 512,
    "index_head_dim": 128,
    "index_topk": 2048,
}
FP8, ATTENTION, NONE = "FP8_KV_UNSUPPORTED", "ATTENTION_UNSUPPORTED", "ATTENTION_BACKEND_NONE"


@pytest.mark.parametrize(
    ("told", "engine", "version", "backend", "kv", "sm", "expected"),
    [
        (LATENT, "vllm", "0.17.1", "TRITON_MLA", "fp8", 120, [FP8]),
        (LATENT, "vllm", "0.17.1", "TRITON_MLA", "fp8", 90, [FP8]),
        (LATENT, "vllm", "0.17.1", "", "fp8", 120, [FP8]),
        (LATENT, "vllm", "0.17.1", "", "fp8", 90, []),
        (LATENT, "vllm", "0.17.1", "TRITON_MLA", "bf16", 120, []),
        (LATENT, "vllm", "0.18.1", "TRITON_MLA", "fp8", 120, []),
        (DENSE, "vllm", "0.17.1", "", "fp8", 120, []),
        (LATENT, "vllm", "0.16.0", "FLASHMLA", "bf16", 120, [ATTENTION]),
        (LATENT, "vllm", "0.16.0", "FLASHMLA", "bf16", 90, []),
        (SPARSE, "vllm", "0.19.1", "", "bf16", 120, [NONE]),
        (SPARSE, "vllm", "0.22.1", "FLASHMLA_SPARSE", "bf16", 120, [NONE]),
        (SPARSE, "vllm", "0.22.1", "B12X_MLA_SPARSE", "fp8_ds_mla", 120, []),
        (SPARSE, "vllm", "0.33.0", "", "bf16", 120, []),
        (SPARSE, "vllm", "0.19.1", "", "bf16", 100, []),
        (SPARSE, "sglang", "0.5.9", "flashinfer", "bf16", 120, []),
        (SPARSE, "sglang", "0.5.9", "", "bf16", 120, [ATTENTION]),
        (SPARSE, "sglang", "0.5.9", "nsa", "bf16", 120, [ATTENTION]),
        (SPARSE, "sglang", "0.5.9", "flashinfer", "fp8", 120, [FP8]),
        (SPARSE, "sglang", "0.5.9", "", "fp8", 100, []),
        (SPARSE, "sglang", "0.5.17", "", "fp8", 120, []),
        (LATENT, "sglang", "0.5.9", "flashmla", "bf16", 120, [ATTENTION]),
        (DENSE, "sglang", "0.5.9", "fa3", "bf16", 120, [ATTENTION]),
        (DENSE, "sglang", "0.5.9", "fa3", "bf16", 90, []),
        (LATENT, "sglang", "0.5.9", "triton", "bf16", 120, []),
        # A build of one's own that calls itself nothing in particular: nothing is known against it.
        (LATENT, "vllm", "unknown", "TRITON_MLA", "fp8", 120, []),
        (SPARSE, "vllm", "0.19.1", "", "bf16", 0, []),
    ],
)
def test_rules(
    told: dict[str, t.Any], engine: str, version: str, backend: str, kv: str, sm: int, expected: list[str]
) -> None:
    asked = server.of(engine, version, {"arguments": {"attention-backend": backend}})
    found = rules.findings(config.of(told), asked, kv, sm, "m")
    assert [one.id for one in found] == expected
    assert all(one.severity == "fail" and version in one.detail for one in found)


@pytest.mark.parametrize(
    ("told", "engine", "version", "declared", "expected"),
    [
        (LATENT, "vllm", "0.16.0", "bfloat16", ["KV_DTYPE_REFUSED"]),
        (DENSE, "vllm", "0.16.0", "bfloat16", ["KV_DTYPE_REFUSED"]),
        (DENSE, "vllm", "0.16.0", "auto", []),
        (DENSE, "vllm", "0.19.1", "bfloat16", []),
        (SPARSE, "vllm", "0.16.0", "bfloat16", []),  # it makes "auto" of it for this kind
        (DENSE, "sglang", "0.5.9", "bf16", []),
    ],
)
def test_words_for_16_bits(
    told: dict[str, t.Any], engine: str, version: str, declared: str, expected: list[str]
) -> None:
    asked = server.of(engine, version, {"kv_cache_dtype": declared})
    assert [one.id for one in rules.findings(config.of(told), asked, "bf16", 90, "m")] == expected


def test_every_rule_has_a_source() -> None:
    assert all(rule.source for rule in rules.RULES)


@pytest.mark.parametrize(
    ("engine", "version", "torch", "cudnn", "images", "expected"),
    [
        ("sglang", "0.5.9", "2.9.1+cu128", "9.10.2.21", True, 1),
        ("sglang", "0.5.9", "2.9.1", "9.16.0.29", True, 0),
        ("sglang", "0.5.9", "2.9.1", "9.10.2.21", False, 0),
        ("sglang", "0.5.9", "2.11.0", "9.10.2.21", True, 0),
        ("sglang", "0.5.8", "2.9.1", "9.10.2.21", True, 0),
        ("vllm", "0.16.0", "2.9.1", "9.10.2.21", True, 0),
        ("sglang", "0.5.9", "2.9.1", "", True, 0),
    ],
)
def test_cudnn(engine: str, version: str, torch: str, cudnn: str, images: bool, expected: int) -> None:
    model = config.of({"model_type": "kimi_k25", **({"vision_config": {}} if images else {})})
    installed = {"torch": torch, **({"nvidia-cudnn-cu12": cudnn} if cudnn else {})}
    assert len(rules.cudnn(model, server.of(engine, version, {}), installed, {})) == expected
    assert rules.cudnn(model, server.of(engine, version, {}), installed, {"SGLANG_DISABLE_CUDNN_CHECK": 1}) == []
