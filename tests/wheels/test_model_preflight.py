# SPDX-License-Identifier: GPL-3.0-or-later
"""model_preflight over real releases of transformers and SGLang: the model type that older ones do not know.

It fetches some 25 MB from the package index that this machine is set up for: no torch, which none of this needs. ``make test-full`` runs
it (SLIPWAY_WHEELS=1), ``make unit`` does not.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest
from ansible.modules import model_preflight

Run = t.Callable[..., dict[str, t.Any]]
pytestmark = pytest.mark.skipif(
    not os.environ.get("SLIPWAY_WHEELS"), reason="real wheels: SLIPWAY_WHEELS=1, with a network"
)
UV = Path(sys.executable).parent / "uv"
GPUS = [{"memory_mib": 97887, "sm": 120}]
# As transformers 5.2.0 writes it for a model of three layers.
TINY_GLM = {
    "architectures": ["GlmMoeDsaForCausalLM"],
    "model_type": "glm_moe_dsa",
    "dtype": "bfloat16",
    "hidden_size": 64,
    "intermediate_size": 128,
    "moe_intermediate_size": 32,
    "n_routed_experts": 8,
    "num_experts_per_tok": 2,
    "num_hidden_layers": 3,
    "mlp_layer_types": ["dense", "sparse", "sparse"],
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "q_lora_rank": 32,
    "kv_lora_rank": 16,
    "qk_nope_head_dim": 24,
    "qk_rope_head_dim": 8,
    "v_head_dim": 32,
    "index_head_dim": 32,
    "index_n_heads": 4,
    "index_topk": 64,
    "max_position_embeddings": 1024,
    "vocab_size": 64,
}
# Makes a tokenizer with the environment's own library, as a repository has it.
TOKENIZER = """
import sys
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
tokenizer = Tokenizer(models.BPE({letter: number for number, letter in enumerate(alphabet)}, []))
tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
tokenizer.decoder = decoders.ByteLevel()
tokenizer.save(sys.argv[1])
"""
# The old tokenizer of Kimi-K2.5, as far as it matters (huggingface/transformers#43726).
KIMI = "from transformers.models.gpt2.tokenization_gpt2 import bytes_to_unicode\n"


def uv(*arguments: str) -> None:
    subprocess.run([UV, "--quiet", *arguments], check=True)


@pytest.fixture(scope="module", params=["4.57.1", "5.2.0"])
def environment(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The real SGLang 0.5.9, without what it depends on, beside one release of transformers."""
    version = str(request.param)
    venv = tmp_path_factory.mktemp("environment") / "venv"
    python = str(venv / "bin" / "python")
    uv("venv", "--no-project", "--python", sys.executable, str(venv))
    uv("pip", "install", "--python", python, f"transformers=={version}")
    uv("pip", "install", "--python", python, "--no-deps", "sglang==0.5.9")
    return version, venv


@pytest.fixture
def model(environment: tuple[str, Path], tmp_path: Path) -> Path:
    folder = tmp_path / "tiny-glm"
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps(TINY_GLM))
    (folder / "chat_template.jinja").write_text("{{ messages[0].content }}")
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PreTrainedTokenizerFast"}))
    subprocess.run([environment[1] / "bin/python", "-c", TOKENIZER, folder / "tokenizer.json"], check=True)
    header = json.dumps({"lm_head.weight": {"dtype": "BF16", "shape": [64, 64], "data_offsets": [0, 8192]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + bytes(8192))
    return folder


@pytest.fixture
def preflight(environment: tuple[str, Path], model: Path, run_module: Run) -> t.Callable[[], dict[str, t.Any]]:
    arguments = {"attention-backend": "flashinfer", "trust-remote-code": True}
    server = {"context_length": 1024, "kv_cache_dtype": "bf16", "arguments": arguments}
    options = {
        "venv": str(environment[1]),
        "model_path": str(model),
        "engine": "sglang",
        "server": server,
        "gpus": GPUS,
    }

    def run() -> dict[str, t.Any]:
        done = run_module(model_preflight, options)
        assert done["rc"] == 0, done["msg"]
        return done

    return run


def test_the_type_that_older_releases_do_not_know(
    environment: tuple[str, Path], preflight: t.Callable[[], dict[str, t.Any]]
) -> None:
    done = preflight()
    told = [(one["id"], one["severity"]) for one in done["findings"]]
    assert done["model"]["asked"]["transformers"] == environment[0]
    assert done["model"]["asked"]["tokenizer"] == {
        "class": done["model"]["asked"]["tokenizer"].get("class"),
        "tokens": 11,
        "text": "Slipway 123",
    }
    if environment[0] == "5.2.0":
        assert told == []
        assert done["model"]["asked"]["config"] == {"class": "GlmMoeDsaConfig"}
    else:
        assert told == [("MODEL_TYPE_UNKNOWN", "fail")]
        assert "does not recognize this architecture" in done["model"]["asked"]["config"]["error"]


def test_the_tokenizer_that_newer_releases_broke(
    environment: tuple[str, Path], model: Path, preflight: t.Callable[[], dict[str, t.Any]]
) -> None:
    (model / "tokenization_kimi.py").write_text(KIMI)
    told = {"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}}
    (model / "tokenizer_config.json").write_text(json.dumps(told))
    broken = [one["detail"] for one in preflight()["findings"] if one["id"] == "TOKENIZER_IMPORT"]
    if environment[0] == "5.2.0":
        assert len(broken) == 1
        assert (
            "line 1: from transformers.models.gpt2.tokenization_gpt2: cannot import name bytes_to_unicode" in broken[0]
        )
    else:
        assert broken == []
