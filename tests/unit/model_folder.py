# SPDX-License-Identifier: GPL-3.0-or-later
"""Models as folders: configuration, tokenizer, and weights of any size that are files without content (holes), whose headers are true."""

from __future__ import annotations

import json
import struct
import typing as t
from pathlib import Path

from ansible.module_utils.slipway.model.safetensors import Tensor

TINY_LLAMA: dict[str, t.Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "dtype": "bfloat16",
    "hidden_size": 128,
    "intermediate_size": 256,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 339,
    "max_position_embeddings": 1024,
}
LLAMA_TENSORS = {
    "model.embed_tokens.weight": (339, 128),
    "model.layers.0.self_attn.q_proj.weight": (128, 128),
    "model.layers.0.self_attn.k_proj.weight": (64, 128),
    "model.layers.0.input_layernorm.weight": (128,),
    "lm_head.weight": (339, 128),
}


def write_shard(path: Path, tensors: t.Mapping[str, Tensor]) -> None:
    """A safetensors file with these tensors, one after the other; its bytes are a hole."""
    header, at = {}, 0
    for name, tensor in tensors.items():
        end = at + tensor.size_bytes
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape), "data_offsets": [at, end]}
        at = end
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + at)


def write_model(
    folder: Path, config: t.Mapping[str, t.Any], tensors: t.Mapping[str, Tensor] | None = None, shards: int = 1
) -> Path:
    """A model's folder, whole and sound."""
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text("{}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    given = dict(tensors or {name: Tensor("BF16", shape, (0, _bytes(shape))) for name, shape in LLAMA_TENSORS.items()})
    if shards == 1:
        write_shard(folder / "model.safetensors", given)
        return folder
    names, table = list(given), {}
    size = -(-len(names) // shards)
    for number in range(shards):
        file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
        part = {name: given[name] for name in names[number * size : (number + 1) * size]}
        write_shard(folder / file, part)
        table |= dict.fromkeys(part, file)
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": table}))
    return folder


def _bytes(shape: tuple[int, ...]) -> int:
    total = 2
    for side in shape:
        total *= side
    return total
