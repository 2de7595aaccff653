# SPDX-License-Identifier: GPL-3.0-or-later
"""Make a tiny model of Llama's form that knows one sentence: ``python make_model.py FOLDER``. Needs only the standard library.

Its weights are made, not trained. Each token is a direction of its own, attention and MLP add nothing to it, and the head leads from each token
to the one that follows it in the sentence. So an engine computes it like any other model, and what it says is known beforehand.
"""

from __future__ import annotations

import json
import random
import struct
import sys
from pathlib import Path

SENTENCE = ("Tokyo", " is", " the", " capital", " city", " of", " Japan.")
SPECIAL = ("<|start|>", "<|end|>", "<|answer|>")
HIDDEN, HEADS, MLP, LAYERS = 320, 5, 64, 2
END, ANSWER = 1, 2
TEMPLATE = (
    "<|start|>{% for message in messages %}{{ message['role'] }}: {{ message['content'] }}\n{% endfor %}<|answer|>"
)


def alphabet() -> list[str]:
    """The printable sign of each byte, as byte-level tokenizers write it (the table of GPT-2)."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    signs = {byte: chr(byte) for byte in printable} | {byte: chr(256 + at) for at, byte in enumerate(others)}
    return [signs[byte] for byte in range(256)]


def tokens() -> list[str]:
    """All tokens in the order of their ids: special ones, bytes, the words of the sentence."""
    signs = alphabet()
    return [*SPECIAL, *signs, *("".join(signs[byte] for byte in word.encode()) for word in SENTENCE)]


def successors(size: int) -> list[int]:
    """The token that follows each one: the sentence from its beginning after the sign for an answer, then the end; nothing else ends in it."""
    words = list(range(len(SPECIAL) + 256, size))
    after = [END] * size
    for token, following in zip([ANSWER, *words], [*words, END], strict=True):
        after[token] = following
    return after


def tensors(size: int) -> dict[str, tuple[list[int], list[float]]]:
    """Name to shape and values, row by row."""
    chance = random.Random(0)  # noqa: S311 - weights that do not matter, the same each time

    def noise(rows: int, columns: int) -> tuple[list[int], list[float]]:
        return [rows, columns], [chance.gauss(0, 0.02) for _ in range(rows * columns)]

    def nothing(rows: int, columns: int) -> tuple[list[int], list[float]]:
        return [rows, columns], [0.0] * (rows * columns)

    def ones_at(cells: list[tuple[int, int]]) -> tuple[list[int], list[float]]:
        values = [0.0] * (size * HIDDEN)
        for row, column in cells:
            values[row * HIDDEN + column] = 1.0
        return [size, HIDDEN], values

    made = {
        "model.embed_tokens.weight": ones_at([(token, token) for token in range(size)]),
        "model.norm.weight": ([HIDDEN], [1.0] * HIDDEN),
        "lm_head.weight": ones_at([(following, token) for token, following in enumerate(successors(size))]),
    }
    for layer in range(LAYERS):
        name = f"model.layers.{layer}"
        for part in "qkv":
            made[f"{name}.self_attn.{part}_proj.weight"] = noise(HIDDEN, HIDDEN)
        made[f"{name}.self_attn.o_proj.weight"] = nothing(HIDDEN, HIDDEN)
        made[f"{name}.mlp.gate_proj.weight"] = noise(MLP, HIDDEN)
        made[f"{name}.mlp.up_proj.weight"] = noise(MLP, HIDDEN)
        made[f"{name}.mlp.down_proj.weight"] = nothing(HIDDEN, MLP)
        made[f"{name}.input_layernorm.weight"] = made[f"{name}.post_attention_layernorm.weight"] = made[
            "model.norm.weight"
        ]
    return made


def safetensors(made: dict[str, tuple[list[int], list[float]]]) -> bytes:
    """The file's bytes, in 32-bit floats."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    data = bytearray()
    for name, (shape, values) in made.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(data)


def write(folder: Path) -> None:
    """Write all files of the model."""
    names = tokens()
    vocabulary = {name: token for token, name in enumerate(names)}
    added = [
        {"id": token, "content": name, "special": True}
        | dict.fromkeys(("single_word", "lstrip", "rstrip", "normalized"), False)
        for token, name in enumerate(SPECIAL)
    ]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    files = {
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "vocab_size": len(names),
            "hidden_size": HIDDEN,
            "intermediate_size": MLP,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": HEADS,
            "head_dim": HIDDEN // HEADS,
            "hidden_act": "silu",
            "max_position_embeddings": 4096,
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "tie_word_embeddings": False,
            "torch_dtype": "float32",
            "bos_token_id": 0,
            "eos_token_id": END,
        },
        "generation_config.json": {"bos_token_id": 0, "eos_token_id": END},
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": SPECIAL[0],
            "eos_token": SPECIAL[END],
            "chat_template": TEMPLATE,
            "clean_up_tokenization_spaces": False,
            "model_max_length": 4096,
        },
        "tokenizer.json": {
            "version": "1.0",
            "added_tokens": added,
            "pre_tokenizer": byte_level,
            "decoder": byte_level,
            "model": {"type": "BPE", "vocab": vocabulary, "merges": [], "byte_fallback": False},
        }
        | dict.fromkeys(("truncation", "padding", "normalizer", "post_processor")),
    }
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (folder / name).write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    (folder / "model.safetensors").write_bytes(safetensors(tensors(len(names))))


if __name__ == "__main__":
    write(Path(sys.argv[1]))
