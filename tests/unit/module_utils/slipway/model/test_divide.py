# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be divided over so many GPUs, and what cannot."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.model import config, divide, server

DENSE = {
    "model_type": "llama",
    "num_hidden_layers": 4,
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 32768,
}
MOE = {**DENSE, "n_routed_experts": 256, "moe_intermediate_size": 2048}
LATENT = {**MOE, "kv_lora_rank": 512, "num_key_value_heads": 1}
NVFP4 = {"quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16}}
FP8 = {"quantization_config": {"quant_method": "fp8", "weight_block_size": [128, 128]}}


def misfits(told: dict[str, t.Any], gpus: int | None = 8, engine: str = "sglang", **declared: t.Any) -> list[str]:
    return divide.misfits(config.of(told), server.of(engine, "0.5.9", declared), gpus)


@pytest.mark.parametrize(
    ("told", "declared", "expected"),
    [
        (DENSE, {"tensor_parallel": 8}, []),
        (DENSE, {"tensor_parallel": 4}, []),
        (LATENT, {"tensor_parallel": 8}, []),
        (DENSE, {"tensor_parallel": 16}, ["the server is spread over 16 GPUs, and there are 8"]),
        (
            DENSE,
            {"tensor_parallel": 4, "arguments": {"pp-size": 4}},
            ["the server is spread over 16 GPUs, and there are 8"],
        ),
        (
            DENSE,
            {"tensor_parallel": 3},
            [
                "32 attention heads are not divisible by 3 GPUs",
                "8 heads of keys and values do not divide over 3 GPUs",
                "the feed-forward width 14336 is not divisible by 3 GPUs",
            ],
        ),
        (
            {**DENSE, "num_key_value_heads": 6},
            {"tensor_parallel": 4},
            ["6 heads of keys and values do not divide over 4 GPUs"],
        ),
        ({**DENSE, "num_key_value_heads": 2}, {"tensor_parallel": 8}, []),
        (
            {**MOE, "moe_intermediate_size": 1004},
            {"tensor_parallel": 8},
            ["the experts' width 1004 is not divisible by 8 GPUs"],
        ),
        ({**MOE, "moe_intermediate_size": 1004}, {"tensor_parallel": 8, "arguments": {"ep-size": 8}}, []),
        (
            {**MOE, "n_routed_experts": 250},
            {"tensor_parallel": 8, "arguments": {"ep-size": 8}},
            ["250 experts are not divisible by an expert parallel size of 8"],
        ),
        (DENSE, {"arguments": {"pipeline-parallel-size": 8}}, ["4 layers do not make 8 pipeline stages"]),
        (
            DENSE,
            {"tensor_parallel": 8, "arguments": {"enable-dp-attention": True, "dp-size": 3}},
            ["tensor parallel size 8 is no multiple of the data parallel size 3 of its attention"],
        ),
    ],
)
def test_parallel_sizes(told: dict[str, t.Any], declared: dict[str, t.Any], expected: list[str]) -> None:
    assert misfits(told, **declared) == expected


def test_copies_take_gpus_of_vllm_and_none_of_sglang() -> None:
    declared = {"tensor_parallel": 8, "arguments": {"data-parallel-size": 2}}
    assert misfits(DENSE, engine="vllm", **declared) == ["the server is spread over 16 GPUs, and there are 8"]
    assert misfits(DENSE, **declared) == []
    assert misfits(DENSE, gpus=None, engine="vllm", **declared) == [], "how many there are is not known"


@pytest.mark.parametrize(
    ("told", "ranks", "expected"),
    [
        ({**MOE, **NVFP4}, 8, []),
        (
            {**MOE, **NVFP4, "moe_intermediate_size": 1152},
            8,
            [("144 on each, and NVFP4's kernels take 32 at once", False)],
        ),
        ({**MOE, **NVFP4, "moe_intermediate_size": 1088}, 8, [("136 on each, and scales are for 16", True)]),
        ({**MOE, **FP8}, 8, []),
        ({**MOE, **FP8, "moe_intermediate_size": 768}, 8, [("96 on each, and scales are for 128", True)]),
        ({**DENSE, **FP8}, 8, []),
        ({**DENSE, **FP8, "intermediate_size": 13824}, 8, [("1728 on each, and scales are for 128", True)]),
        (MOE, 8, []),
    ],
)
def test_blocks_of_scales(told: dict[str, t.Any], ranks: int, expected: list[tuple[str, bool]]) -> None:
    found = divide.unaligned(config.of(told), server.of("vllm", "0.25.1", {"tensor_parallel": ranks}))
    assert [(words[words.index(" is ") + 4 :], refused) for words, refused in found] == expected


def test_a_misaligned_part_that_loads_is_a_warning() -> None:
    told = {**MOE, **NVFP4, "moe_intermediate_size": 1152}
    found = divide.findings(config.of(told), server.of("vllm", "0.25.1", {"tensor_parallel": 8}), 8, "m")
    assert [(one.id, one.severity) for one in found] == [("PARALLEL_SIZE_MISFIT", "warn")]


@pytest.mark.parametrize(
    ("asked", "made_for", "arguments", "expected"),
    [
        (32768, 32768, {}, []),
        (32769, 32768, {}, ["fail"]),
        (32769, 32768, {"hf-overrides": '{"rope_parameters": {}}'}, ["warn"]),
        (32769, 0, {}, []),
    ],
)
def test_context(asked: int, made_for: int, arguments: dict[str, t.Any], expected: list[str]) -> None:
    assert [one.severity for one in divide.context(asked, made_for, arguments, "m")] == expected
