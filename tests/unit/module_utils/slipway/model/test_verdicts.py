# SPDX-License-Identifier: GPL-3.0-or-later
"""Quantisation and identity, by tables; what the environment says is in the tests of the module."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.model import config, server, verdicts

METHODS = {"fp8": 80, "modelopt_fp4": 100, "modelopt": 89, "awq": 75, "awq_marlin": 80, "compressed-tensors": 70}
NVFP4 = {"quant_method": "modelopt", "quant_algo": "NVFP4"}
AWQ = {"quant_method": "awq", "bits": 4}


@pytest.mark.parametrize(
    ("told", "declared", "sm", "words"),
    [
        (None, "", 120, ""),
        (NVFP4, "", 120, ""),
        (NVFP4, "modelopt_fp4", 120, ""),
        (NVFP4, "modelopt_fp4", 0, ""),
        (NVFP4, "modelopt_fp4", 90, "'modelopt_fp4' of sglang 0.5.9 needs compute capability 100, and the GPU has 90"),
        (NVFP4, "", 90, "'modelopt_fp4' of sglang 0.5.9 needs compute capability 100"),
        (
            NVFP4,
            "fp8",
            120,
            "the weights are nvfp4 (modelopt, groups of 16), and server.arguments.quantization is 'fp8'",
        ),
        (AWQ, "awq_marlin", 120, ""),
        ({"quant_method": "bitnet"}, "", 120, "the weights are bitnet, and sglang 0.5.9 has none of bitnet"),
        (None, "fp8", 120, ""),
        (None, "modelopt_fp4", 120, "the weights are not quantised (bfloat16), and 'modelopt_fp4' needs ones"),
        (None, "nf4", 120, "sglang 0.5.9 has no method 'nf4'; it has awq, awq_marlin, compressed-tensors"),
    ],
)
def test_quantisation(told: dict[str, t.Any] | None, declared: str, sm: int, words: str) -> None:
    given: dict[str, t.Any] = {"model_type": "llama", "dtype": "bfloat16"}
    if told:
        given["quantization_config"] = told
    asked = server.of("sglang", "0.5.9", {"arguments": {"quantization": declared}})
    found = verdicts.quantised(config.of(given), asked, METHODS, sm, "m")
    assert [(one.id, one.severity) for one in found] == ([("QUANTISATION_UNSUPPORTED", "fail")] if words else [])
    assert not words or words in found[0].detail


def test_a_table_that_cannot_be_read_is_unknown() -> None:
    model = config.of({"model_type": "llama", "quantization_config": AWQ})
    found = verdicts.quantised(model, server.of("sglang", "9.9", {}), {}, 120, "m")
    assert [one.severity for one in found] == ["unknown"]


@pytest.mark.parametrize(
    ("expected", "words"),
    [
        (("", ""), ""),
        (("glm_moe_dsa", "GlmMoeDsaForCausalLM"), ""),
        (("kimi_k25", ""), "model_type is 'glm_moe_dsa' and the profile says 'kimi_k25'"),
        (("", "Other"), "the architecture is 'GlmMoeDsaForCausalLM' and the profile says 'Other'"),
    ],
)
def test_it_is_the_model_that_is_meant(expected: tuple[str, str], words: str) -> None:
    model = config.of({"model_type": "glm_moe_dsa", "architectures": ["GlmMoeDsaForCausalLM"]})
    found = verdicts.identity(model, *expected, "m")
    assert [one.detail for one in found] == ([words] if words else [])
