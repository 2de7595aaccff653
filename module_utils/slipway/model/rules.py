# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of engines, attention and GPUs and stands in no table of an engine's own: rules as data, each with its source. Pure.

A rule holds for versions of an engine, forms of attention, number formats of keys and values, attention backends and compute
capabilities; what it leaves empty does not matter to it.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..findings import Finding, finding
from ..patching import versions
from .config import Model
from .server import Server

SM120 = (120, 129)
# Backends with code for Hopper or data-centre Blackwell alone.
SGLANG_ELSEWHERE = (
    "fa3",
    "flashmla",
    "flashmla_sparse",
    "cutlass_mla",
    "trtllm_mla",
    "trtllm_mha",
    "fa4",
    "nsa",
    "dsa",
)
VLLM_ELSEWHERE = (
    "FLASHMLA",
    "FLASHMLA_SPARSE",
    "FLASH_ATTN_MLA",
    "CUTLASS_MLA",
    "FLASHINFER_MLA",
    "FLASHINFER_MLA_SPARSE",
)


@dataclass(frozen=True)
class Rule:
    """``before`` is the first version for which it no longer holds, empty where none is known.

    ``kv`` is as keys and values are stored, ``declared`` the word for it in the profile. ``backends`` are those that it holds for; with ``others`` it holds for all but those, and for none that is declared.
    """

    fault: str
    engine: str
    detail: str
    source: str
    before: str = ""
    attention: tuple[str, ...] = ()
    kv: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    backends: tuple[str, ...] = ()
    others: bool = False
    sm: tuple[int, int] | None = None

    def holds(self, model: Model, server: Server, kv: str, sm: int) -> bool:
        """Whether it is about this model on this server; ``kv`` as keys and values are stored, ``sm`` 0 where it is not known."""
        backend = server.attention_backend.lower()
        named = backend in [one.lower() for one in self.backends]
        return (
            server.engine == self.engine
            and (not self.before or _before(server.version, self.before))
            and (not self.attention or model.shape.attention in self.attention)
            and (not self.kv or kv in self.kv)
            and (not self.declared or server.kv_cache_dtype in self.declared)
            and (not self.backends or named is not self.others)
            and (self.sm is None or self.sm[0] <= sm <= self.sm[1])
        )


RULES: tuple[Rule, ...] = (
    Rule(
        "FP8_KV_UNSUPPORTED",
        "vllm",
        "TRITON_MLA keeps keys and values in 16 bits before 0.18.1",
        "vllm-project/vllm#35577, vllm-project/vllm#34597",
        before="0.18.1",
        attention=("mla",),
        kv=("fp8",),
        backends=("TRITON_MLA",),
    ),
    Rule(
        "FP8_KV_UNSUPPORTED",
        "vllm",
        "the one dense MLA for this GPU is TRITON_MLA, which keeps keys and values in 16 bits before 0.18.1",
        "vllm-project/vllm#35577, vllm-project/vllm#34597",
        before="0.18.1",
        attention=("mla",),
        kv=("fp8",),
        backends=("",),
        sm=SM120,
    ),
    # Its kernels know "auto" and the kinds of FP8 by name: the library of the wheel 0.16.0 has no other, that of 0.19.1 has.
    Rule(
        "KV_DTYPE_REFUSED",
        "vllm",
        "before 0.19.1 the kernel that writes keys and values does not know this word ('Unsupported data type of kv cache')",
        "vllm-project/vllm#42587, vllm-project/vllm#38922",
        before="0.19.1",
        attention=("mha", "gqa", "mla"),
        declared=("bfloat16", "float16"),
    ),
    Rule(
        "FP8_KV_UNSUPPORTED",
        "sglang",
        "with sparse attention FP8 keys and values give garbled answers on this GPU before 0.5.17",
        "sgl-project/sglang#18904, sgl-project/sglang#26928",
        before="0.5.17",
        attention=("dsa",),
        kv=("fp8",),
        sm=SM120,
    ),
    Rule(
        "ATTENTION_BACKEND_NONE",
        "vllm",
        "sparse attention has no backend for this GPU up to 0.22.1 ('No valid attention backend found')",
        "vllm-project/vllm#45317, vllm-project/vllm#43477",
        before="0.22.2",
        attention=("dsa",),
        backends=("B12X_MLA_SPARSE",),  # of a fork that has one
        others=True,
        sm=SM120,
    ),
    Rule(
        "ATTENTION_UNSUPPORTED",
        "vllm",
        "this backend has code for SM90 and SM100 alone; dense MLA on SM120 is TRITON_MLA",
        "vllm-project/vllm 0.18.1, v1/attention/backends/mla (supports_compute_capability)",
        attention=("mla",),
        backends=VLLM_ELSEWHERE,
        sm=SM120,
    ),
    Rule(
        "ATTENTION_UNSUPPORTED",
        "sglang",
        "before 0.5.17 sparse attention has no code for SM120 ('Unsupported architecture'): flashinfer or triton must be declared",
        "sgl-project/sglang#26087",
        before="0.5.17",
        attention=("dsa",),
        backends=("flashinfer", "triton", "torch_native"),
        others=True,
        sm=SM120,
    ),
    Rule(
        "ATTENTION_UNSUPPORTED",
        "sglang",
        "this backend has code for SM90 or SM100 alone",
        "sgl-kernel 0.3.21: flash_ops has sm 80 to 90, flashmla_ops 90 and 100",
        attention=("mha", "gqa", "mla"),
        backends=SGLANG_ELSEWHERE,
        sm=SM120,
    ),
)


def findings(model: Model, server: Server, kv: str, sm: int, subject: str) -> list[Finding]:
    """The rules that hold, about a model that is called ``subject``."""
    found = []
    for rule in RULES:
        if rule.holds(model, server, kv, sm):
            declared = server.attention_backend or "none"
            stored = f"keys and values in {kv} ({_why(model, server)}), " if rule.kv or rule.declared else ""
            detail = f"{server.engine} {server.version}, attention backend {declared}, {stored}sm {sm}: {rule.detail}"
            found.append(finding(rule.fault, subject, f"{detail} ({rule.source})"))
    return found


def _why(model: Model, server: Server) -> str:
    """Where the number format of keys and values comes from."""
    if server.kv_cache_dtype != "auto":
        return f"kv_cache_dtype {server.kv_cache_dtype}"
    if model.quantisation and model.quantisation.kv:
        return "kv_cache_dtype auto, and the weights bring scales for it"
    return "kv_cache_dtype auto, which is this here"


def _before(version: str, first: str) -> bool:
    """Whether a version is older; one that is no version is not, since nothing is known against it."""
    try:
        return not versions.reached(version, first)
    except ValueError:
        return False


CUDNN_LEAST = "9.15"
CUDNN_TORCH = "2.9.1"
CUDNN_SKIP = "SGLANG_DISABLE_CUDNN_CHECK"


def cudnn(
    model: Model, server: Server, installed: t.Mapping[str, str], environment: t.Mapping[str, t.Any]
) -> list[Finding]:
    """SGLang from 0.5.9 on does not start a model with images on torch 2.9.1 with a cuDNN before 9.15 (pytorch/pytorch#168167).

    ``installed`` are versions by package. The engine's own variable against the check is honoured.
    """
    torch = installed.get("torch", "").partition("+")[0]
    has = next((version for name, version in installed.items() if name.startswith("nvidia-cudnn-cu")), "")
    if (
        server.engine != "sglang"
        or not model.images
        or torch != CUDNN_TORCH
        or not has
        or _before(server.version, "0.5.9")
    ):
        return []
    if not _before(has, CUDNN_LEAST) or str(environment.get(CUDNN_SKIP, "")).lower() in ("1", "true"):
        return []
    detail = f"cuDNN {has} beside torch {torch}: {server.engine} {server.version} does not start a model with images below {CUDNN_LEAST}"
    return [finding("CUDNN_TOO_OLD", "cudnn", detail)]
