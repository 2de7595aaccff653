# SPDX-License-Identifier: GPL-3.0-or-later
"""What one token takes in the cache of keys and values, on one GPU. Pure.

Latent attention (MLA) keeps one vector of ``kv_lora_rank + qk_rope_head_dim`` numbers a layer, and since no head has a part of it of
its own, each GPU of the tensor parallel group has it whole. Other attention keeps keys and values of the heads that a GPU has.
Sparse attention (DSA) keeps the indexer's keys beside it, in FP8 with four bytes of scale for each 128.
Sources: SGLang 0.5.9 model_runner_kv_cache_mixin.py (get_cell_size_per_token); vLLM's fp8_ds_mla is 656 bytes
(vllm-project/vllm, docs of FlashMLA sparse), and 78 layers x (656 + 132) bytes are what the log of GLM-5.1 on vLLM adds up to.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from .config import Model
from .server import Server

BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0, "fp8": 1.0, "fp4": 0.5, "int8": 1.0}
NAMES = {
    "bfloat16": "bf16",
    "float16": "fp16",
    "half": "fp16",
    "float32": "fp32",
    "fp8_e4m3": "fp8",
    "fp8_e5m2": "fp8",
    "fp8_inc": "fp8",
    "fp4_e2m1": "fp4",
}
DS_MLA_BYTES = 656
INDEXER_GROUP = 128


@dataclass(frozen=True)
class Cache:
    """The form of the cache: number format, bytes a token takes on one GPU, and the same in words."""

    form: str
    dtype: str
    bytes_per_token: float
    how: str

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "form": self.form,
            "dtype": self.dtype,
            "bytes_per_token": round(self.bytes_per_token),
            "how": self.how,
        }


def stored(model: Model, server: Server, sm: int) -> str:
    """The number format that keys and values are kept in, one of ``BYTES`` or ``fp8_ds_mla``; what is unknown stays as it is written.

    ``auto`` is the model's own, but for SGLang with sparse attention, which takes FP8 from SM100 on (0.5.9 and later, server_args.py),
    and for a checkpoint with scales of FP8 keys and values (SGLang 0.5.9 ``configure_kv_cache_dtype``; vLLM since 0.11).
    """
    given = server.kv_cache_dtype
    if given != "auto":
        name = NAMES.get(given, given)
        if name == "fp8" and server.engine == "vllm" and model.shape.attention == "dsa":
            return "fp8_ds_mla"
        return name
    if model.shape.attention == "dsa" and server.engine == "sglang" and sm >= 100:
        return "fp8"
    if model.quantisation and model.quantisation.kv == "FP8":
        return "fp8"
    return "bf16" if model.dtype in ("bfloat16", "") else "fp16"


def cache(model: Model, server: Server, sm: int) -> Cache | None:
    """The cache of this model; ``None`` where the configuration or the number format does not tell what it takes."""
    shape, dtype = model.shape, stored(model, server, sm)
    size = BYTES.get(dtype)
    if not shape.layers or (size is None and dtype != "fp8_ds_mla"):
        return None
    layers = -(-(shape.full_layers or shape.layers) // server.pipeline)
    if shape.kv_lora_rank:
        return _latent(model, server, layers, dtype, size)
    if not shape.kv_heads or not shape.head_dim or size is None:
        return None
    heads = max(shape.kv_heads // server.attention, 1)
    per_token = layers * heads * (shape.head_dim + shape.v_head_dim) * size / server.context_ranks
    how = f"{layers} layers x {heads} heads x ({shape.head_dim} + {shape.v_head_dim}) x {size:g} bytes"
    if server.context_ranks > 1:
        how += f", spread over {server.context_ranks} GPUs"
    return Cache(shape.attention, dtype, per_token, how)


def _latent(model: Model, server: Server, layers: int, dtype: str, size: float | None) -> Cache:
    shape = model.shape
    if size is None:
        layer, how = float(DS_MLA_BYTES), f"{DS_MLA_BYTES} bytes of fp8_ds_mla"
    else:
        layer = (shape.kv_lora_rank + shape.rope_dim) * size
        how = f"({shape.kv_lora_rank} + {shape.rope_dim}) x {size:g} bytes"
    how = f"{layers} layers x {how}"
    if shape.index_head_dim:
        indexer = shape.index_head_dim + shape.index_head_dim // INDEXER_GROUP * 4
        layer, how = layer + indexer, f"{how}, and {indexer} for the indexer"
    spread = server.context_ranks
    how += f", spread over {spread} GPUs" if spread > 1 else ", whole on each GPU"
    return Cache(shape.attention, dtype, layers * layer / spread, how)
