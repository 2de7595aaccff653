# SPDX-License-Identifier: GPL-3.0-or-later
"""Every rule is made to fire, and does not fire for what is right."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.engines import rules, rules_sglang, rules_vllm, server
from ansible.module_utils.slipway.engines.plan import ENGINES

GLM = {
    "kv_cache_dtype": "bf16",
    "arguments": {
        "quantization": "modelopt_fp4",
        "attention-backend": "flashinfer",
        "fp4-gemm-backend": "flashinfer_cudnn",
        "disable-custom-all-reduce": True,
        "mem-fraction-static": 0.85,
    },
    "environment": {"SGLANG_ENABLE_JIT_DEEPGEMM": "0", "NCCL_P2P_LEVEL": "SYS"},
}
KIMI = {
    "kv_cache_dtype": "auto",
    "arguments": {"attention-backend": "TRITON_MLA", "gpu-memory-utilization": 0.93},
    "environment": {"NCCL_P2P_LEVEL": "SYS"},
}


def found(
    engine: str, version: str, sm: int | None = 120, model: str = "", **changes: t.Any
) -> list[tuple[str, str, str]]:
    """Findings of a profile that is right but for the changes; an argument that is ``None`` is taken out."""
    right: dict[str, t.Any] = GLM if engine == "sglang" else KIMI
    merged = {**right, **{key: value for key, value in changes.items() if not isinstance(value, dict)}}
    for part in ("arguments", "environment"):
        both = {**right[part], **changes.get(part, {})}
        merged[part] = {name: value for name, value in both.items() if value is not None}
    request = server.Request(
        **{
            **{
                "engine": engine,
                "engine_version": version,
                "venv": "/e",
                "model_path": "/srv/glm-5",
                "model_name": "m",
            },
            **{"host": "127.0.0.1", "port": 1, "tensor_parallel": 8, "sm": sm, "launcher": "/l"},
            "model_type": model or {"sglang": "glm_moe_dsa", "vllm": "kimi_k25"}[engine],
            **merged,
        }
    )
    return [(one.id, one.severity, one.subject) for one in ENGINES[engine](request).findings]


@pytest.mark.parametrize("release", [("sglang", "0.5.9"), ("sglang", "0.5.10.post1"), ("vllm", "0.16.0")])
def test_nothing_is_said_of_what_is_right(release: tuple[str, str]) -> None:
    assert found(*release) == []


DANGEROUS, CONTRADICT = ("FLAG_DANGEROUS", "fail"), ("FLAGS_CONTRADICT", "fail")
SGLANG = [
    ({"arguments": {"fp4-gemm-runner-backend": "auto"}}, ("FLAG_RENAMED", "fail", "--fp4-gemm-runner-backend")),
    ({"arguments": {"dsa-prefill-backend": "x"}}, ("FLAG_RENAMED", "fail", "--dsa-prefill-backend")),
    ({"arguments": {"dsa-decode-backend": "x"}}, ("FLAG_RENAMED", "fail", "--dsa-decode-backend")),
    ({"arguments": {"ssl-certfile": "/c"}}, ("FLAG_UNKNOWN", "fail", "--ssl-certfile")),
    (
        {"arguments": {"enable-flashinfer-allreduce-fusion": True}},
        ("FLAG_WITHOUT_EFFECT", "warn", "--enable-flashinfer-allreduce-fusion"),
    ),
    ({"arguments": {"attention-backend": None}}, (*DANGEROUS, "--attention-backend")),
    ({"arguments": {"attention-backend": "nsa"}}, (*DANGEROUS, "--attention-backend")),
    ({"arguments": {"prefill-attention-backend": "nsa"}}, (*DANGEROUS, "--prefill-attention-backend")),
    ({"arguments": {"decode-attention-backend": "trtllm_mla"}}, (*DANGEROUS, "--decode-attention-backend")),
    ({"kv_cache_dtype": "auto"}, ("FP8_KV_UNSUPPORTED", "fail", "kv_cache_dtype")),
    ({"kv_cache_dtype": "fp8_e4m3"}, ("FP8_KV_UNSUPPORTED", "fail", "kv_cache_dtype")),
    ({"arguments": {"fp4-gemm-backend": None}}, (*DANGEROUS, "--fp4-gemm-backend")),
    ({"arguments": {"fp4-gemm-backend": "flashinfer_cutlass"}}, (*DANGEROUS, "--fp4-gemm-backend")),
    (
        {
            "arguments": {"fp4-gemm-backend": "auto"},
            "environment": {"SGLANG_FLASHINFER_FP4_GEMM_BACKEND": "cutlass"},
        },
        (*DANGEROUS, "SGLANG_FLASHINFER_FP4_GEMM_BACKEND"),
    ),
    ({"model_path": "/srv/GLM-5.1-NVFP4"}, (*DANGEROUS, "--disable-shared-experts-fusion")),
    ({"environment": {"SGLANG_ENABLE_JIT_DEEPGEMM": "1"}}, (*DANGEROUS, "SGLANG_ENABLE_JIT_DEEPGEMM")),
    ({"arguments": {"disable-custom-all-reduce": None}}, (*DANGEROUS, "--disable-custom-all-reduce")),
    ({"arguments": {"disable-custom-all-reduce": False}}, (*DANGEROUS, "--disable-custom-all-reduce")),
    ({"arguments": {"speculative-algorithm": "NEXTN"}}, (*CONTRADICT, "--speculative-algorithm")),
    ({"arguments": {"mem-fraction-static": 0.95}}, ("FLAG_DANGEROUS", "warn", "--mem-fraction-static")),
    (
        {"arguments": {"mem-fraction-static": "0.95"}, "environment": {"NCCL_GRAPH_FILE": "/g"}},
        (*DANGEROUS, "--mem-fraction-static"),
    ),
    ({"arguments": {"tokenizer-worker-num": 2}, "api_key_file": "/k"}, (*CONTRADICT, "--tokenizer-worker-num")),
    (
        {"environment": {"SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK": "1"}},
        ("FLAG_DANGEROUS", "warn", "SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK"),
    ),
    ({"environment": {"SGLANG_DISABLE_CUDNN_CHECK": "1"}}, ("FLAG_DANGEROUS", "warn", "SGLANG_DISABLE_CUDNN_CHECK")),
    (
        {"environment": {"FLASHINFER_DISABLE_VERSION_CHECK": "1"}},
        ("FLAG_DANGEROUS", "warn", "FLASHINFER_DISABLE_VERSION_CHECK"),
    ),
    ({"environment": {"NCCL_P2P_DISABLE": "1"}}, ("FLAGS_CONTRADICT", "warn", "NCCL_P2P_LEVEL")),
]


@pytest.mark.parametrize(("changes", "expected"), SGLANG, ids=lambda value: str(value)[:60])
def test_sglang(changes: dict[str, t.Any], expected: tuple[str, str, str]) -> None:
    assert found("sglang", "0.5.9", **changes) == [expected]


VLLM = [
    (
        {"environment": {"VLLM_ATTENTION_BACKEND": "TRITON_MLA"}},
        ("FLAG_WITHOUT_EFFECT", "warn", "VLLM_ATTENTION_BACKEND"),
    ),
    ({"arguments": {"attention-backend": "FLASHMLA"}}, (*DANGEROUS, "--attention-backend")),
    ({"arguments": {"attention-backend": None}}, ("FLAG_DANGEROUS", "warn", "--attention-backend")),
    ({"kv_cache_dtype": "fp8"}, ("FP8_KV_UNSUPPORTED", "fail", "kv_cache_dtype")),
    (
        {"environment": {"VLLM_USE_FLASHINFER_MOE_FP4": "1"}},
        ("FLAG_DANGEROUS", "warn", "VLLM_USE_FLASHINFER_MOE_FP4"),
    ),
    ({"arguments": {"gpu-memory-utilization": 0.95}}, ("FLAG_DANGEROUS", "warn", "--gpu-memory-utilization")),
    (
        {"arguments": {"gpu-memory-utilization": 0.95}, "environment": {"NCCL_GRAPH_FILE": "/g"}},
        (*DANGEROUS, "--gpu-memory-utilization"),
    ),
    ({"arguments": {"enable-auto-tool-choice": True}}, (*CONTRADICT, "--enable-auto-tool-choice")),
]


@pytest.mark.parametrize(("changes", "expected"), VLLM, ids=lambda value: str(value)[:60])
def test_vllm(changes: dict[str, t.Any], expected: tuple[str, str, str]) -> None:
    assert found("vllm", "0.16.0", **changes) == [expected]


def test_fp8_without_the_backend_being_named_is_both() -> None:
    told = found("vllm", "0.16.0", kv_cache_dtype="fp8", arguments={"attention-backend": None})
    assert ("FP8_KV_UNSUPPORTED", "fail", "kv_cache_dtype") in told


@pytest.mark.parametrize(
    ("release", "changes"),
    [
        (("vllm", "0.18.1"), {"kv_cache_dtype": "fp8"}),
        (("sglang", "0.5.17"), {"arguments": {"attention-backend": None, "disable-cuda-graph": True}}),
        (("sglang", "0.5.17"), {"kv_cache_dtype": "fp8_e4m3", "arguments": {"disable-cuda-graph": True}}),
        (("sglang", "0.5.10.post1"), {"arguments": {"fp4-gemm-backend": None}}),
    ],
)
def test_what_a_later_release_has_mended(release: tuple[str, str], changes: dict[str, t.Any]) -> None:
    assert [one for one in found(*release, **changes) if one[0] != "FLAGS_UNCHECKED"] == []


def test_what_a_later_release_has_renamed() -> None:
    told = found("sglang", "0.5.17", arguments={"nsa-prefill-backend": "x", "nsa-decode-backend": "x"})
    assert [one[2] for one in told if one[0] == "FLAG_RENAMED"] == ["--nsa-prefill-backend", "--nsa-decode-backend"]


def test_a_later_release_may_hang_in_its_graphs() -> None:
    assert ("FLAG_DANGEROUS", "warn", "kv_cache_dtype") in found("sglang", "0.5.17", kv_cache_dtype="fp8_e4m3")


def test_oneshot_all_reduce_and_expandable_segments() -> None:
    told = found(
        "sglang",
        "0.5.12",
        arguments={"enable-pcie-oneshot-allreduce": True},
        environment={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
    )
    assert (*CONTRADICT, "--enable-pcie-oneshot-allreduce") in told


@pytest.mark.parametrize(("sm", "model"), [(90, "glm_moe_dsa"), (None, "glm_moe_dsa"), (120, "llama")])
def test_other_gpus_and_other_models_are_left_alone(sm: int | None, model: str) -> None:
    assert (
        found("sglang", "0.5.9", sm=sm, model=model, kv_cache_dtype="auto", arguments={"attention-backend": None}) == []
    )


def test_each_rule_names_its_source_and_can_be_read() -> None:
    for rule in (*rules_sglang.RULES, *rules_vllm.RULES):
        assert rule.source and rule.detail, rule
        for condition in rule.when:
            rules._holds(condition, {})


def test_each_rule_fires_in_these_tests() -> None:
    cases = [("sglang", "0.5.9", changes) for changes, _expected in SGLANG]
    cases += [("vllm", "0.16.0", changes) for changes, _expected in VLLM]
    subjects = {one[2] for engine, version, changes in cases for one in found(engine, version, **changes)}
    elsewhere = {"--nsa-prefill-backend", "--nsa-decode-backend", "--enable-pcie-oneshot-allreduce", "--ssl-keyfile"}
    assert {rule.subject for rule in (*rules_sglang.RULES, *rules_vllm.RULES)} <= subjects | elsewhere
