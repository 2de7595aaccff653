# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of vLLM's options and variables on RTX PRO 6000 Blackwell (SM120), each with its source."""

from __future__ import annotations

from .rules import Rule
from .rules_shared import SHARED

_SM120 = "@sm=12"
# Models with dense multi-head latent attention.
_MLA = "@model=kimi_k25|kimi_k2|deepseek_v3|deepseek_v2"
_BACKENDS = "attention backends in vllm/v1/attention of the wheel 0.18.1"

RULES: tuple[Rule, ...] = (
    # --- Names ---
    Rule(
        "FLAG_WITHOUT_EFFECT",
        "VLLM_ATTENTION_BACKEND",
        ("VLLM_ATTENTION_BACKEND",),
        "no file of vllm 0.16.0 reads it; it is the argument attention-backend",
        "the wheel 0.16.0",
        since="0.16.0",
    ),
    # --- Attention and keys and values ---
    Rule(
        "FLAG_DANGEROUS",
        "--attention-backend",
        (_MLA, _SM120, "attention-backend!=TRITON_MLA|unset"),
        "of the dense MLA backends only TRITON_MLA has a kernel for SM120. Set attention-backend: TRITON_MLA",
        _BACKENDS,
    ),
    Rule(
        "FLAG_DANGEROUS",
        "--attention-backend",
        (_MLA, _SM120, "!attention-backend"),
        "left to itself vllm tries each backend; only TRITON_MLA has a kernel for SM120. Set attention-backend: TRITON_MLA",
        _BACKENDS,
        severity="warn",
    ),
    *(
        Rule(
            "FP8_KV_UNSUPPORTED",
            "kv_cache_dtype",
            (*condition, "kv-cache-dtype~^fp8"),
            "TRITON_MLA refuses FP8 keys and values before vllm 0.18.1 (NotImplementedError). Set kv_cache_dtype: auto",
            "vllm-project/vllm#35577",
            before="0.18.1",
        )
        for condition in (
            ("attention-backend=TRITON_MLA",),
            (_MLA, _SM120, "attention-backend!=TRITON_MLA"),
        )
    ),
    # --- FP4 ---
    Rule(
        "FLAG_DANGEROUS",
        "VLLM_USE_FLASHINFER_MOE_FP4",
        ("VLLM_USE_FLASHINFER_MOE_FP4", _SM120),
        "grouped FP4 kernels give garbage or crash on SM120; Marlin is what was reported to answer well",
        "flashinfer-ai/flashinfer#2723, NVIDIA/cutlass#3096",
        severity="warn",
    ),
    # --- Memory ---
    Rule(
        "FLAG_DANGEROUS",
        "--gpu-memory-utilization",
        ("gpu-memory-utilization>0.93", "NCCL_GRAPH_FILE"),
        "NCCL with a graph of its own allocates beside it and fails (Failed to CUDA calloc). Leave it at 0.93 or less",
        "rtx6kpro, troubleshooting/common-issues",
    ),
    Rule(
        "FLAG_DANGEROUS",
        "--gpu-memory-utilization",
        ("gpu-memory-utilization>0.93", "!NCCL_GRAPH_FILE"),
        "little is left for NCCL and CUDA graphs; 0.93 was reported to work",
        "rtx6kpro, models/kimi-k25",
        severity="warn",
    ),
    # --- Together ---
    Rule(
        "FLAGS_CONTRADICT",
        "--enable-auto-tool-choice",
        ("enable-auto-tool-choice", "!tool-call-parser"),
        "vllm refuses it without a tool-call-parser",
        "validate_parsed_serve_args of the wheel 0.16.0",
    ),
    *SHARED,
)
