# SPDX-License-Identifier: GPL-3.0-or-later
"""The tensors of large models with latent attention, as their repositories name and shape them: headers without a byte of weights.

The experts of a layer are one tensor each of gate, up and down, where repositories have one for each expert: the same bytes in a
hundredth of the header.
"""

from __future__ import annotations

import math
import typing as t

from ansible.module_utils.slipway.model.safetensors import BITS, Tensor

# GLM-5 as its maker published it; what its NVFP4 build quantises are the experts.
GLM_5: dict[str, t.Any] = {
    "architectures": ["GlmMoeDsaForCausalLM"],
    "model_type": "glm_moe_dsa",
    "dtype": "bfloat16",
    "num_hidden_layers": 78,
    "first_k_dense_replace": 3,
    "hidden_size": 6144,
    "intermediate_size": 12288,
    "moe_intermediate_size": 2048,
    "n_routed_experts": 256,
    "n_shared_experts": 1,
    "num_attention_heads": 64,
    "num_key_value_heads": 64,
    "q_lora_rank": 2048,
    "kv_lora_rank": 512,
    "qk_nope_head_dim": 192,
    "qk_rope_head_dim": 64,
    "v_head_dim": 256,
    "index_n_heads": 32,
    "index_head_dim": 128,
    "index_topk": 2048,
    "vocab_size": 154880,
    "max_position_embeddings": 202752,
    "quantization_config": {"quant_method": "modelopt", "quant_algo": "NVFP4", "group_size": 16},
}


class Headers:
    """Collects tensors; ``found`` has them as safetensors headers do."""

    def __init__(self) -> None:
        self.found: dict[str, Tensor] = {}

    def add(self, name: str, dtype: str, *shape: int) -> None:
        self.found[name] = Tensor(dtype, shape, (0, math.prod(shape) * BITS[dtype] // 8))

    def int4(self, name: str, experts: int, rows: int, columns: int) -> None:
        """compressed-tensors' packed INT4: eight in 32 bits, a scale for 32."""
        self.add(f"{name}.weight_packed", "I32", experts, rows, columns // 8)
        self.add(f"{name}.weight_scale", "BF16", experts, rows, columns // 32)

    def nvfp4(self, name: str, experts: int, rows: int, columns: int) -> None:
        """modelopt's NVFP4: two in a byte, a scale of FP8 for 16, two of the whole."""
        self.add(f"{name}.weight", "U8", experts, rows, columns // 2)
        self.add(f"{name}.weight_scale", "F8_E4M3", experts, rows, columns // 16)
        self.add(f"{name}.weight_scale_2", "F32", experts)
        self.add(f"{name}.input_scale", "F32", experts)


def latent(config: dict[str, t.Any], prefix: str = "model.", head: str = "lm_head") -> dict[str, Tensor]:
    """The tensors of a model with latent attention and experts, from the text part of its configuration."""
    made = Headers()
    quantised = made.nvfp4 if "modelopt" in str(config.get("quantization_config")) else made.int4
    hidden, heads = config["hidden_size"], config["num_attention_heads"]
    head_width = config["qk_nope_head_dim"] + config["qk_rope_head_dim"]
    made.add(f"{prefix}embed_tokens.weight", "BF16", config["vocab_size"], hidden)
    made.add(f"{head}.weight", "BF16", config["vocab_size"], hidden)
    made.add(f"{prefix}norm.weight", "BF16", hidden)
    for layer in range(config["num_hidden_layers"]):
        at, mlp = f"{prefix}layers.{layer}.self_attn", f"{prefix}layers.{layer}.mlp"
        made.add(f"{at}.q_a_proj.weight", "BF16", config["q_lora_rank"], hidden)
        made.add(f"{at}.q_b_proj.weight", "BF16", heads * head_width, config["q_lora_rank"])
        latent_width = config["kv_lora_rank"] + config["qk_rope_head_dim"]
        made.add(f"{at}.kv_a_proj_with_mqa.weight", "BF16", latent_width, hidden)
        out = config["qk_nope_head_dim"] + config["v_head_dim"]
        made.add(f"{at}.kv_b_proj.weight", "BF16", heads * out, config["kv_lora_rank"])
        made.add(f"{at}.o_proj.weight", "BF16", hidden, heads * config["v_head_dim"])
        if "index_head_dim" in config:
            index = config["index_head_dim"]
            made.add(f"{at}.indexer.wq_b.weight", "BF16", config["index_n_heads"] * index, config["q_lora_rank"])
            made.add(f"{at}.indexer.wk.weight", "BF16", index, hidden)
        if layer < config["first_k_dense_replace"]:
            _feed_forward(made, mlp, hidden, config["intermediate_size"])
            continue
        made.add(f"{mlp}.gate.weight", "BF16", config["n_routed_experts"], hidden)
        _feed_forward(made, f"{mlp}.shared_experts", hidden, config["moe_intermediate_size"])
        experts, width = config["n_routed_experts"], config["moe_intermediate_size"]
        for name in ("gate_proj", "up_proj"):
            quantised(f"{mlp}.experts.{name}", experts, width, hidden)
        quantised(f"{mlp}.experts.down_proj", experts, hidden, width)
    return made.found


def _feed_forward(made: Headers, name: str, hidden: int, width: int) -> None:
    for part in ("gate_proj", "up_proj"):
        made.add(f"{name}.{part}.weight", "BF16", width, hidden)
    made.add(f"{name}.down_proj.weight", "BF16", hidden, width)
