# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tensors are divided over the GPUs, and which each has whole."""

from __future__ import annotations

import math
import typing as t

import pytest
from ansible.module_utils.slipway.model import config, server, share
from ansible.module_utils.slipway.model.safetensors import BITS, Tensor

LAYER = "model.layers.1.self_attn"
CONFIG = {
    "model_type": "glm_moe_dsa",
    "num_hidden_layers": 4,
    "hidden_size": 64,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
}


def shared(
    name: str, shape: tuple[int, ...], dtype: str = "BF16", engine: str = "sglang", **declared: t.Any
) -> share.Share:
    size = math.prod(shape) * BITS[dtype] // 8
    asked = server.of(engine, "0.5.9", {"tensor_parallel": 8, **declared})
    return share.share({name: Tensor(dtype, shape, (0, size))}, config.of(CONFIG), asked)


@pytest.mark.parametrize(
    ("name", "part"),
    [
        (f"{LAYER}.q_proj.weight", 8),
        (f"{LAYER}.k_proj.weight", 4),  # four heads of keys on eight GPUs: each is on two
        (f"{LAYER}.v_proj.weight", 4),
        (f"{LAYER}.o_proj.weight", 8),
        (f"{LAYER}.q_b_proj.weight", 8),
        (f"{LAYER}.kv_b_proj.weight", 8),
        (f"{LAYER}.q_a_proj.weight", 1),
        (f"{LAYER}.kv_a_proj_with_mqa.weight", 1),
        (f"{LAYER}.indexer.wq_b.weight", 1),
        ("model.layers.1.mlp.gate.weight", 1),
        ("model.layers.1.mlp.gate_proj.weight", 8),
        ("model.layers.1.mlp.shared_experts.down_proj.weight", 8),
        ("model.layers.1.mlp.experts.7.down_proj.weight", 8),
        ("language_model.model.layers.1.mlp.experts.7.up_proj.weight_packed", 8),
        ("model.embed_tokens.weight", 8),
        ("lm_head.weight", 8),
        ("vision_tower.encoder.blocks.9.mlp.fc0.weight", 1),
        ("mm_projector.proj.0.weight", 1),
    ],
)
def test_matrices(name: str, part: int) -> None:
    assert shared(name, (64, 64)).total == 64 * 64 * 2 / part


@pytest.mark.parametrize(
    "name", ["model.norm.weight", f"{LAYER}.q_proj.bias", "model.layers.1.mlp.gate.e_score_correction_bias"]
)
def test_vectors_are_whole(name: str) -> None:
    assert shared(name, (64,)).whole == 128


def test_experts_are_told_apart() -> None:
    found = shared("model.layers.1.mlp.experts.7.down_proj.weight", (64, 64))
    assert (found.experts, found.split, found.whole) == (1024, 0, 0)
    assert shared("model.layers.1.mlp.experts.7.down_proj.input_scale", (), "F32").experts == 4, "one number is not cut"
    declared = {"arguments": {"data-parallel-size": 2, "enable-expert-parallel": True}}
    assert shared("model.layers.1.mlp.experts.7.w1.weight", (64, 64), engine="vllm", **declared).experts == 512


def test_layers_behind_the_last_are_left_out() -> None:
    name = "model.layers.4.mlp.up_proj.weight"
    found = shared(name, (64, 64))
    assert (found.total, found.left_out, found.left_out_layers) == (0, 8192, (4,))
    found = shared(name, (64, 64), arguments={"speculative-algorithm": "NEXTN"})
    assert (found.total, found.left_out) == (1024, 0)


def test_stages_share_the_layers_and_one_has_the_embeddings() -> None:
    declared = {"arguments": {"pipeline-parallel-size": 2}}
    assert shared(f"{LAYER}.o_proj.weight", (64, 64), **declared).total == 512
    assert shared("model.embed_tokens.weight", (64, 64), **declared).total == 1024


def test_copies_of_the_attention() -> None:
    declared = {"arguments": {"enable-dp-attention": True, "dp-size": 4}}
    assert shared(f"{LAYER}.o_proj.weight", (64, 64), **declared).total == 4096
    assert shared("model.layers.1.mlp.up_proj.weight", (64, 64), **declared).total == 1024


def test_matrices_of_32_bits_are_kept_in_16() -> None:
    assert shared("lm_head.weight", (64, 64), "F32").total == 1024
    assert shared("model.norm.weight", (64,), "F32").total == 256
