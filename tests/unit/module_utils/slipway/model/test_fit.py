# SPDX-License-Identifier: GPL-3.0-or-later
"""The memory table against what engines said of real models on RTX PRO 6000 (field logs and reports, in GiB a GPU and tokens)."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import model_headers
import pytest
from ansible.module_utils.slipway.model import config, fit, kv, server, share
from ansible.module_utils.slipway.model.fit import CONTEXT_MIB
from ansible.module_utils.slipway.model.server import MIB

MEMORY_MIB = 97887
WEIGHTS_WITHIN = 0.05  # engines keep copies in another layout; see fit.py
TOKENS_WITHIN = 0.08


def made(told: dict[str, t.Any], tensors: dict[str, t.Any], engine: str, declared: dict[str, t.Any]) -> fit.Fit:
    model, asked = config.of(told), server.of(engine, "0.5.9", {"tensor_parallel": 8, **declared})
    return fit.on_gpus(model, asked, share.share(tensors, model, asked), kv.cache(model, asked, 120), MEMORY_MIB)


def test_glm_5_on_sglang() -> None:
    """57.06 GB of weights a GPU and 314,304 tokens at 0.92 (rtx6kpro, models/glm5)."""
    declared = {"context_length": 65536, "kv_cache_dtype": "bf16", "arguments": {"mem-fraction-static": 0.92}}
    table = made(model_headers.GLM_5, model_headers.latent(model_headers.GLM_5), "sglang", declared)
    assert table.weights_mib / 1024 == pytest.approx(57.06, rel=WEIGHTS_WITHIN)
    assert table.kv_tokens == pytest.approx(314_304, rel=TOKENS_WITHIN)
    assert table.verdict == "fits"
    assert table.requests == pytest.approx(314_304 / 65536, rel=TOKENS_WITHIN)


def test_glm_5_1_on_vllm() -> None:
    """55.67 GiB of weights, 19.55 GiB for 341,504 tokens at 0.865 (field log of GLM-5.1, keys and values in fp8_ds_mla)."""
    declared = {"context_length": 202752, "kv_cache_dtype": "fp8", "arguments": {"gpu-memory-utilization": 0.865}}
    table = made(model_headers.GLM_5, model_headers.latent(model_headers.GLM_5), "vllm", declared)
    assert table.weights_mib / 1024 == pytest.approx(55.67, rel=0.02)
    assert table.kv_tokens == pytest.approx(341_504, rel=TOKENS_WITHIN)
    assert table.cache is not None
    # A block is 64 tokens, so the log's figure may be short of one block.
    assert 19.55 * 1024 * MIB / table.cache.bytes_per_token == pytest.approx(341_504, abs=256)


def test_kimi_k2_5_in_int4_on_sglang(shared_data: Path) -> None:
    """72.33 GB of weights, of which an image tower of about 0.9 is not in these tensors; 4,578 tokens (field log)."""
    told = json.loads((shared_data / "field/kimi-k2.5/config.json").read_text())
    tensors = model_headers.latent(told["text_config"], "language_model.model.", "language_model.lm_head")
    declared = {"context_length": 65536, "arguments": {"mem-fraction-static": 0.77145}}
    table = made(told, tensors, "sglang", declared)
    assert table.weights_mib / 1024 == pytest.approx(72.33 - 0.9, rel=0.02)
    assert (table.verdict, table.left_mib is not None and table.left_mib < 2048) == ("short", True)


@pytest.mark.parametrize(
    ("free_before", "free_after", "fraction", "bytes_per_token", "tokens"),
    [
        (94.08, 20.21, 0.848, 61 * 576, 180_191),  # Kimi-K2-Thinking, NVFP4, keys and values in FP8
        (94.14, 21.82, 0.7714564, 61 * 576 * 2, 4_578),  # Kimi-K2.5, INT4, in 16 bits
    ],
)
def test_the_rule_of_sglang_on_its_own_figures(
    free_before: float, free_after: float, fraction: float, bytes_per_token: int, tokens: int
) -> None:
    """What the table does, with the log's weights in the place of an estimate: free memory is told in hundredths of a GiB."""
    memory_mib = round(free_before * 1024) + CONTEXT_MIB
    weights = share.Share(0, (free_before - free_after) * 1024 * MIB, 0, 0, ())
    asked = server.of("sglang", "0.5.8", {"tensor_parallel": 8, "arguments": {"mem-fraction-static": fraction}})
    cache = kv.Cache("mla", "", bytes_per_token, "")
    table = fit.on_gpus(config.of({"model_type": "kimi_k2"}), asked, weights, cache, memory_mib)
    assert table.kv_tokens == pytest.approx(tokens, abs=0.02 * 1024 * MIB / bytes_per_token)


@pytest.mark.parametrize(
    ("context", "verdict", "findings"),
    [
        (1050, "fits", []),
        (1051, "tight", [("MEMORY_TOO_SMALL", "warn")]),
        (1100, "tight", [("MEMORY_TOO_SMALL", "warn")]),
        (1101, "short", [("MEMORY_TOO_SMALL", "fail")]),
    ],
)
def test_verdicts(context: int, verdict: str, findings: list[tuple[str, str]]) -> None:
    """1100 MiB are left beside weights of 1000 MiB, which may be 50 more, and a token takes one."""
    rows = (fit.Row("weights_split", "", 1000), fit.Row("left", "", 1100))
    table = fit.Fit("gpu", 1, 2100, rows, kv.Cache("mha", "bf16", MIB, ""), 1100, context, 0, context)
    assert table.verdict == verdict
    assert [(one.id, one.severity) for one in fit.findings(table, "m")] == findings


def test_what_is_estimated_does_not_refuse() -> None:
    rows = (fit.Row("weights_split", "", 1000), fit.Row("left", "", 900))
    cache = kv.Cache("mha", "bf16", MIB, "")
    assert fit.Fit("gpu", 1, 2100, rows, cache, 900, 1000, 0, 1000, doubt_mib=100).verdict == "tight"
    assert fit.Fit("gpu", 1, 2100, rows, cache, 900, 1001, 0, 1001, doubt_mib=100).verdict == "short"


@pytest.mark.parametrize(("memory_mib", "verdict"), [(24576, "tight"), (49152, "fits"), (16384, "short")])
def test_a_model_of_8b_on_one_gpu(memory_mib: int, verdict: str) -> None:
    """15.3 GiB of weights and 8192 tokens of a GiB: it runs on 24 GiB, whatever is estimated for its largest batch."""
    told = {
        "model_type": "llama",
        "dtype": "bfloat16",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
    }
    model, asked = config.of(told), server.of("vllm", "0.16.0", {"context_length": 32768})
    weights = share.Share(0, 15.3 * 1024 * MIB, 0, 0, ())
    assert fit.on_gpus(model, asked, weights, kv.cache(model, asked, 89), memory_mib).verdict == verdict


@pytest.mark.parametrize(
    ("given", "memory_mib", "reserve"),
    [
        # A tenth of the memory, and 117 bytes for each of so many tokens and 4096, in MiB.
        (2000, 97887, 9789 + 914),
        (None, 97887, 9789 + 3744),
        ("2k", 97887, 9789 + 3744),
        (None, 24576, 2458 + 936),
    ],
)
def test_the_largest_batch_of_vllm(given: t.Any, memory_mib: int, reserve: int) -> None:
    model = config.of({"model_type": "llama", "hidden_size": 4096})
    asked = server.of("vllm", "0.16.0", {"arguments": {"max-num-batched-tokens": given}})
    table = fit.on_gpus(model, asked, share.Share(0, 0, 0, 0, ()), None, memory_mib)
    assert next(row.mib for row in table.rows if row.name == "reserve") == reserve


def test_what_does_not_fit_says_by_how_much() -> None:
    rows = (fit.Row("weights_split", "", 3000), fit.Row("left", "", -900))
    table = fit.Fit("gpu", 8, 2100, rows, kv.Cache("mha", "bf16", MIB, ""), 0, 4096, 0, 4096)
    assert fit.findings(table, "m")[0].detail == (
        "weights take 3000 of the 2100 MiB of a GPU, 900 MiB are missing before a single token, and 4096 are needed at least"
    )


def test_a_form_of_keys_and_values_that_is_not_known() -> None:
    told = {"model_type": "odd", "num_hidden_layers": 2}
    table = made(told, {}, "vllm", {"kv_cache_dtype": "turbo3"})
    assert (table.verdict, table.kv_tokens) == ("unknown", None)
    found = fit.findings(table, "odd")[0]
    assert (found.severity, found.detail) == ("unknown", "not told: its keys and values have a form that is not known")


def test_rows_add_up() -> None:
    table = made(model_headers.GLM_5, model_headers.latent(model_headers.GLM_5), "sglang", {"context_length": 4096})
    assert sum(row.mib for row in table.rows) == MEMORY_MIB
    assert [row.name for row in table.rows] == [
        "weights_experts",
        "weights_split",
        "weights_whole",
        "driver",
        "reserve",
        "left",
    ]


def test_on_the_cpu_all_slots_have_their_context() -> None:
    cache = kv.Cache("gqa", "f16", MIB, "")
    table = fit.on_cpu(100 * MIB, cache, 1000, 400, 8192, 2)
    assert (table.needed_tokens, table.context_length, table.kv_tokens, table.verdict) == (800, 400, 900, "fits")
    assert fit.on_cpu(100 * MIB, cache, 1000, 500, 8192, 2).verdict == "short"
    assert fit.on_cpu(100 * MIB, cache, None, 500, 8192, 2).verdict == "unknown"
