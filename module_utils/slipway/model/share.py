# SPDX-License-Identifier: GPL-3.0-or-later
"""What of a model's weights lies on one GPU: which tensors are divided, which each GPU has whole. Pure.

Told from the tensors' names, as Hugging Face's repositories have them. Engines divide the matrices of attention, feed-forward and
vocabulary; the norms, the router, the latent projections of MLA, the indexer of DSA and most image towers are whole on each GPU.
Sources: SGLang 0.5.9 models/deepseek_v2.py and vLLM 0.16.0 models/deepseek_v2.py (ReplicatedLinear), and `mm-encoder-tp-mode`.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from .config import Model
from .safetensors import Tensor
from .server import Server

WHOLE = re.compile(
    r"norm|\.q_a_proj|\.kv_a_proj|fused_qkv_a_proj|\.indexer\.|\.(?:gate|router)\.(?:weight|e_score)|e_score_correction"
    r"|vision|visual|mm_projector|multi_modal_projector|\.eh_proj|bias$"
)
EXPERT = re.compile(r"\.experts\.")
KEY_OR_VALUE = re.compile(r"\.[kv]_proj\.")
LAYER = re.compile(r"(?:^|\.)layers\.(\d+)\.")
IMAGE = re.compile(r"vision|visual|mm_projector|multi_modal_projector")
ATTENTION = re.compile(r"\.(?:self_attn|attention)\.")


@dataclass(frozen=True)
class Share:
    """Bytes on one GPU: of the experts, of what else is divided, of what each GPU has whole; and what is left out, over all files."""

    experts: float
    split: float
    whole: float
    left_out: int
    left_out_layers: tuple[int, ...]

    @property
    def total(self) -> float:
        return self.experts + self.split + self.whole


def share(tensors: t.Mapping[str, Tensor], model: Model, server: Server) -> Share:
    """The share of the fullest GPU. With pipeline parallelism that is one with as many layers as any, and the embeddings."""
    shape = model.shape
    experts = split = whole = 0.0
    left_out, layers = 0, set()
    stage = -(-shape.layers // server.pipeline) / shape.layers if shape.layers else 1.0
    for name, tensor in tensors.items():
        size = float(held_bytes(name, tensor))
        if (found := LAYER.search(name)) and not IMAGE.search(name):
            if shape.layers and int(found[1]) >= shape.layers and not server.speculative:
                left_out += int(size)
                layers.add(int(found[1]))
                continue
            size *= stage
        if EXPERT.search(name):
            # A scale of a whole expert is one number, which each GPU that has a part of the expert has.
            experts += size / server.expert_ranks if len(tensor.shape) else size
        elif WHOLE.search(name) or len(tensor.shape) < 2:
            whole += size
        else:
            split += size / _ranks(name, model, server)
    return Share(experts, split, whole, left_out, tuple(sorted(layers)))


def of_gguf(size: int, server: Server) -> Share:
    """The share of GGUF files, whose tensors have names of their own: all of it divided, which is a little less than the truth."""
    return Share(0, size / (server.tensor * server.pipeline), 0, 0, ())


def held_bytes(name: str, tensor: Tensor) -> int:
    """What a tensor takes in memory: as in the file, but that engines keep matrices of 32 bits in 16 (their ``dtype: auto``)."""
    wide = tensor.dtype == "F32" and len(tensor.shape) >= 2 and name.endswith(".weight")
    return tensor.size_bytes // 2 if wide else tensor.size_bytes


def _ranks(name: str, model: Model, server: Server) -> int:
    """Over how many GPUs a divided matrix lies. No more than there are heads of keys and values, where it makes these."""
    if ATTENTION.search(name):
        if KEY_OR_VALUE.search(name) and model.shape.kv_heads:
            return min(server.attention, model.shape.kv_heads)
        return server.attention
    return server.tensor
