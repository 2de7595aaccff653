# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of SGLang's options and variables on RTX PRO 6000 Blackwell (SM120), each with its source."""

from __future__ import annotations

from .rules import Rule
from .rules_shared import SHARED

_GLM5, _SM120 = "@model=glm_moe_dsa", "@sm=12"
_WHEELS = "argument parsers of the wheels 0.5.9 and 0.5.10.post1"
_DENSE = "attention-backend!=flashinfer|triton"

RULES: tuple[Rule, ...] = (
    # --- Names ---
    Rule(
        "FLAG_RENAMED",
        "--fp4-gemm-runner-backend",
        ("fp4-gemm-runner-backend",),
        "sglang: it is --fp4-gemm-backend",
        _WHEELS,
    ),
    *(
        Rule(
            "FLAG_RENAMED",
            f"--nsa-{phase}-backend",
            (f"nsa-{phase}-backend",),
            f"sglang: from 0.5.17 on it is --dsa-{phase}-backend",
            "sgl-project/sglang#26928",
            since="0.5.17",
        )
        for phase in ("prefill", "decode")
    ),
    *(
        Rule(
            "FLAG_RENAMED",
            f"--dsa-{phase}-backend",
            (f"dsa-{phase}-backend",),
            f"sglang: before 0.5.17 it is --nsa-{phase}-backend",
            "sgl-project/sglang#26928",
            before="0.5.17",
        )
        for phase in ("prefill", "decode")
    ),
    *(
        Rule(
            "FLAG_UNKNOWN",
            f"--{name}",
            (name,),
            "sglang speaks no TLS before 0.5.10: let it listen on 127.0.0.1 behind a proxy that does",
            _WHEELS,
            before="0.5.10",
        )
        for name in ("ssl-certfile", "ssl-keyfile")
    ),
    # --- Without effect ---
    Rule(
        "FLAG_WITHOUT_EFFECT",
        "--enable-flashinfer-allreduce-fusion",
        ("enable-flashinfer-allreduce-fusion", _SM120),
        "sglang fuses on SM90 and SM100 only",
        "rtx6kpro, optimization/nccl-tuning",
    ),
    # --- Attention and keys and values ---
    Rule(
        "FLAG_DANGEROUS",
        "--attention-backend",
        (_GLM5, _SM120, _DENSE),
        "this model's sparse attention, which sglang takes unless it is told flashinfer, has no kernel for SM120 before 0.5.17: the server dies with "
        "'Unsupported architecture'. Set attention-backend: flashinfer",
        "sgl-project/sglang#26087",
        before="0.5.17",
    ),
    *(
        Rule(
            "FLAG_DANGEROUS",
            f"--{phase}-attention-backend",
            (_GLM5, _SM120, f"{phase}-attention-backend!=flashinfer|triton|unset"),
            "it stands before --attention-backend, and has no kernel for this model on SM120 before 0.5.17",
            "sgl-project/sglang#26087",
            before="0.5.17",
        )
        for phase in ("prefill", "decode")
    ),
    Rule(
        "FP8_KV_UNSUPPORTED",
        "kv_cache_dtype",
        (_GLM5, _SM120, "kv-cache-dtype!=bf16|bfloat16"),
        "FP8 keys and values are read back wrong for this model before sglang 0.5.17, and 'auto' chooses them on SM120. Set kv_cache_dtype: bf16",
        "sgl-project/sglang#18904",
        before="0.5.17",
    ),
    Rule(
        "FLAG_DANGEROUS",
        "kv_cache_dtype",
        (_GLM5, _SM120, "kv-cache-dtype=auto|fp8_e4m3", "!disable-cuda-graph"),
        "with FP8 keys and values it takes flashinfer_sparse_mla, whose CUDA graphs were reported to hang while they are captured",
        "sgl-project/sglang#29580",
        since="0.5.17",
        severity="warn",
    ),
    # --- FP4 ---
    Rule(
        "FLAG_DANGEROUS",
        "--fp4-gemm-backend",
        ("fp4-gemm-backend=flashinfer_cutlass", _SM120),
        "its kernels have a race on SM120 and give NaN under load. Set fp4-gemm-backend: flashinfer_cudnn",
        "sgl-project/sglang#20043, flashinfer-ai/flashinfer#2708",
    ),
    Rule(
        "FLAG_DANGEROUS",
        "--fp4-gemm-backend",
        ("quantization=modelopt_fp4|modelopt", "!fp4-gemm-backend", _SM120),
        "by itself sglang before 0.5.10 takes flashinfer_cutlass, which gives NaN on SM120. Set fp4-gemm-backend: flashinfer_cudnn",
        "sgl-project/sglang#20043, flashinfer-ai/flashinfer#2708",
        before="0.5.10",
    ),
    Rule(
        "FLAG_DANGEROUS",
        "SGLANG_FLASHINFER_FP4_GEMM_BACKEND",
        ("SGLANG_FLASHINFER_FP4_GEMM_BACKEND=cutlass|flashinfer_cutlass", "fp4-gemm-backend=auto|unset", _SM120),
        "its kernels have a race on SM120 and give NaN under load",
        "sgl-project/sglang#20043, flashinfer-ai/flashinfer#2708",
    ),
    Rule(
        "FLAG_DANGEROUS",
        "--disable-shared-experts-fusion",
        (_GLM5, r"@path~[Gg][Ll][Mm]-5[.-][12]", "quantization=modelopt_fp4", "!disable-shared-experts-fusion"),
        "the shared experts of GLM-5.1 and 5.2 are not in FP4, and fused with the others they fail to load (3072 against 6144). Set "
        "disable-shared-experts-fusion: true",
        "sgl-project/sglang#29562",
    ),
    Rule(
        "FLAG_DANGEROUS",
        "SGLANG_ENABLE_JIT_DEEPGEMM",
        (_GLM5, _SM120, "SGLANG_ENABLE_JIT_DEEPGEMM=1|true|True"),
        "DeepGEMM has kernels for SM90 and SM100 only, and scales are made for it. Set it to 0",
        "sgl-project/sglang#19948",
    ),
    # --- All-reduce ---
    Rule(
        "FLAG_DANGEROUS",
        "--disable-custom-all-reduce",
        (_SM120, "@tp>1", "!disable-custom-all-reduce"),
        "these cards have PCIe only, on which sglang's own all-reduce gave one token and then nothing. Set disable-custom-all-reduce: true",
        "rtx6kpro, models/glm5",
    ),
    # --- Speculation ---
    Rule(
        "FLAGS_CONTRADICT",
        "--speculative-algorithm",
        ("speculative-algorithm=NEXTN|EAGLE|EAGLE3", _GLM5, "!SGLANG_ENABLE_SPEC_V2"),
        "without SGLANG_ENABLE_SPEC_V2=1 in server.environment the model is loaded twice, which runs out of memory",
        "rtx6kpro, models/glm5",
    ),
    # --- Memory ---
    Rule(
        "FLAG_DANGEROUS",
        "--mem-fraction-static",
        ("mem-fraction-static>0.93", "NCCL_GRAPH_FILE"),
        "NCCL with a graph of its own allocates beside it and fails (Failed to CUDA calloc). Leave it at 0.93 or less",
        "rtx6kpro, troubleshooting/common-issues",
    ),
    Rule(
        "FLAG_DANGEROUS",
        "--mem-fraction-static",
        ("mem-fraction-static>0.93", "!NCCL_GRAPH_FILE"),
        "little is left for NCCL and CUDA graphs; 0.85 to 0.93 were reported to work",
        "rtx6kpro, models/glm5",
        severity="warn",
    ),
    # --- Access, and checks that are turned off ---
    Rule(
        "FLAGS_CONTRADICT",
        "--tokenizer-worker-num",
        ("tokenizer-worker-num>1", "@key"),
        "sglang refuses an API key beside several tokenizer workers, after it has started",
        "assertion in sglang/srt/entrypoints/http_server.py of the wheels",
    ),
    Rule(
        "FLAG_DANGEROUS",
        "SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK",
        ("SGLANG_SKIP_SGL_KERNEL_VERSION_CHECK",),
        "kernels that do not fit are met in a request in place of the start; the profile's lock has those that fit",
        "sglang/srt/entrypoints/engine.py of the wheels",
        severity="warn",
    ),
    Rule(
        "FLAG_DANGEROUS",
        "SGLANG_DISABLE_CUDNN_CHECK",
        ("SGLANG_DISABLE_CUDNN_CHECK",),
        "torch 2.9.1 is wrong with cuDNN before 9.15; lock nvidia-cudnn-cu12 9.16.0.29 by an override",
        "pytorch/pytorch#168167",
        severity="warn",
    ),
    *SHARED,
)
