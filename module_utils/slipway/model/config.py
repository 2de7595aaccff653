# SPDX-License-Identifier: GPL-3.0-or-later
"""What a model is, from its config.json: dense, mixture of experts, latent or sparse attention, with images or without. Pure but for ``read``.

The keys are those of Hugging Face's configurations; where several names are in use for one thing, they stand side by side below.
A model with images keeps what belongs to text in ``text_config`` (Kimi-K2.5), and what stands there wins over what stands outside.
"""

from __future__ import annotations

import json
import typing as t
from dataclasses import dataclass
from pathlib import Path

from . import quantisation

EXPERTS = ("n_routed_experts", "num_experts", "num_local_experts")
FULL = ("full_attention", "attention")
TEXT = ("text_config", "llm_config", "language_config")


@dataclass(frozen=True)
class Shape:
    """The numbers of a model that decide what it takes. 0 is what its configuration does not tell.

    ``kv_lora_rank`` is of latent attention (MLA), ``index_head_dim`` of the indexer of sparse attention (DSA), ``context`` the longest
    sequence it was made for, ``predictors`` the layers behind the last that predict further tokens (MTP), ``full_layers`` those that keep
    keys and values of the whole sequence (0: all), where others have a window or a state of a fixed size.
    """

    layers: int
    hidden: int
    intermediate: int
    vocabulary: int
    heads: int
    kv_heads: int
    head_dim: int
    v_head_dim: int
    experts: int = 0
    expert_intermediate: int = 0
    kv_lora_rank: int = 0
    rope_dim: int = 0
    index_head_dim: int = 0
    context: int = 0
    predictors: int = 0
    full_layers: int = 0

    @property
    def attention(self) -> str:
        """``dsa``, ``mla``, ``gqa`` or ``mha``."""
        if self.kv_lora_rank:
            return "dsa" if self.index_head_dim else "mla"
        return "gqa" if self.kv_heads < self.heads else "mha"


@dataclass(frozen=True)
class Model:
    """A model as its configuration tells it. ``code`` are the entries of ``auto_map``: files of its own repository."""

    type: str
    architecture: str
    dtype: str
    shape: Shape
    quantisation: quantisation.Quantisation | None
    code: t.Mapping[str, str]
    images: bool

    def as_dict(self) -> dict[str, t.Any]:
        """The part of the module's result that comes from the configuration."""
        shape = self.shape
        return {
            "type": self.type,
            "architecture": self.architecture,
            "dtype": self.dtype,
            "attention": shape.attention,
            "layers": shape.layers,
            "heads": shape.heads,
            "kv_heads": shape.kv_heads,
            "experts": shape.experts,
            "context_length": shape.context or None,
            "quantisation": self.quantisation.as_dict() if self.quantisation else {},
            "images": self.images,
        }


def read(folder: Path) -> Model:
    """The model of a folder. Raises ``OSError`` where there is no config.json, and ``ValueError`` where it is no configuration."""
    text = (folder / "config.json").read_text(encoding="utf-8")
    try:
        config = json.loads(text)
    except ValueError as error:
        raise ValueError(f"config.json is no JSON ({error})") from None
    beside: dict[str, t.Any] = {}
    try:
        beside = json.loads((folder / "hf_quant_config.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        pass
    except ValueError as error:
        raise ValueError(f"hf_quant_config.json is no JSON ({error})") from None
    return of(config, beside)


def of(config: t.Any, beside: t.Any = None) -> Model:
    """The model of a configuration. Raises ``ValueError`` for what is none."""
    if not isinstance(config, dict) or not isinstance(config.get("model_type"), str):
        raise ValueError("config.json has no model_type")
    inner: dict[str, t.Any] = next((config[name] for name in TEXT if isinstance(config.get(name), dict)), {})
    text = {**config, **{key: value for key, value in inner.items() if value is not None}}
    architectures = config.get("architectures")
    first = architectures[0] if isinstance(architectures, list) and architectures else ""
    code = config.get("auto_map")
    return Model(
        type=config["model_type"],
        architecture=first if isinstance(first, str) else "",
        dtype=str(text.get("dtype") or text.get("torch_dtype") or "").removeprefix("torch."),
        shape=_shape(text),
        quantisation=quantisation.of(config, beside if isinstance(beside, dict) else {}),
        code={key: str(value) for key, value in code.items()} if isinstance(code, dict) else {},
        images=isinstance(config.get("vision_config"), dict),
    )


def _full_layers(kinds: t.Any) -> int:
    """How many of ``layer_types`` attend to everything; 0 where all do, or nothing is told."""
    if not isinstance(kinds, list):
        return 0
    full = sum(kind in FULL for kind in kinds)
    return 0 if full == len(kinds) else full


def _shape(text: t.Mapping[str, t.Any]) -> Shape:
    def number(*names: str) -> int:
        return next((text[name] for name in names if isinstance(text.get(name), int)), 0)

    heads, hidden = number("num_attention_heads", "n_head"), number("hidden_size", "n_embd")
    head_dim = number("head_dim") or (hidden // heads if heads else 0)
    latent = number("kv_lora_rank")
    return Shape(
        layers=number("num_hidden_layers", "n_layer"),
        hidden=hidden,
        intermediate=number("intermediate_size", "n_inner"),
        vocabulary=number("vocab_size"),
        heads=heads,
        kv_heads=number("num_key_value_heads") or heads,
        head_dim=head_dim,
        v_head_dim=number("v_head_dim") or head_dim,
        experts=number(*EXPERTS),
        expert_intermediate=number("moe_intermediate_size") or (number("intermediate_size") if number(*EXPERTS) else 0),
        kv_lora_rank=latent,
        rope_dim=number("qk_rope_head_dim") if latent else 0,
        index_head_dim=number("index_head_dim") if latent and number("index_topk") else 0,
        context=number("max_position_embeddings", "n_positions", "max_sequence_length"),
        predictors=number("num_nextn_predict_layers"),
        full_layers=_full_layers(text.get("layer_types")),
    )
