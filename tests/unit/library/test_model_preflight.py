# SPDX-License-Identifier: GPL-3.0-or-later
"""The module over models as folders and environments that run. The Kimi-K2.5 configuration is the published one."""

from __future__ import annotations

import json
import os
import struct
import typing as t
from pathlib import Path

import model_headers
import pytest
from ansible.modules import model_preflight
from model_environment import Environment
from model_folder import TINY_LLAMA, write_model

Run = t.Callable[..., dict[str, t.Any]]
GPUS = [{"bus_id": f"0000:0{n}:00.0", "memory_mib": 97887, "sm": 120} for n in range(8)]
SHARDS = 4
QUANTISATION = "vllm/model_executor/layers/quantization/__init__.py"
KIMI_SERVER = {
    "tensor_parallel": 8,
    "context_length": 65536,
    "kv_cache_dtype": "auto",
    "arguments": {"attention-backend": "TRITON_MLA", "gpu-memory-utilization": 0.93, "trust-remote-code": True},
}


class Preflight:
    """Runs the module on one model in one environment; ``server`` and ``expected`` are what a test changes."""

    def __init__(self, folder: Path, run_module: Run) -> None:
        self.environment = Environment(folder / "venv")
        self.model = folder / "model"
        self.run_module = run_module
        self.server: dict[str, t.Any] = {"context_length": 1024}
        self.options: dict[str, t.Any] = {"engine": "sglang", "gpus": GPUS}

    def __call__(self, check: bool = False, **options: t.Any) -> dict[str, t.Any]:
        given = {
            "venv": str(self.environment.venv),
            "model_path": str(self.model),
            "server": self.server,
            **self.options,
        }
        return self.run_module(model_preflight, {**given, **options}, check)

    def config(self, **changes: t.Any) -> None:
        """Change the configuration, where it has a key in its text part, there."""
        path = self.model / "config.json"
        told = json.loads(path.read_text())
        for key, value in changes.items():
            (told["text_config"] if key in told.get("text_config", {}) else told)[key] = value
        path.write_text(json.dumps(told))


def found(result: dict[str, t.Any]) -> list[tuple[str, str]]:
    assert result["rc"] == 0, result["msg"]
    return [(one["id"], one["severity"]) for one in result["findings"]]


@pytest.fixture
def llama(tmp_path: Path, run_module: Run) -> Preflight:
    """A small model that SGLang loads."""
    made = Preflight(tmp_path, run_module)
    made.environment.sglang()
    made.environment.transformers("4.57.1", "llama")
    write_model(made.model, TINY_LLAMA)
    return made


@pytest.fixture
def kimi(tmp_path: Path, run_module: Run, shared_data: Path) -> Preflight:
    """Kimi-K2.5 in INT4 as it is published, for vLLM 0.16.0."""
    config = json.loads((shared_data / "field/kimi-k2.5/config.json").read_text())
    made = Preflight(tmp_path, run_module)
    made.environment.vllm()
    made.environment.transformers("4.57.6", "llama")
    tensors = model_headers.latent(config["text_config"], "language_model.model.", "language_model.lm_head")
    write_model(made.model, config, tensors, shards=SHARDS)
    (made.model / "configuration_kimi_k25.py").write_text("from transformers import AutoConfig\n")
    made.server, made.options["engine"] = json.loads(json.dumps(KIMI_SERVER)), "vllm"
    made.options |= {"expected_type": "kimi_k25", "expected_architecture": "KimiK25ForConditionalGeneration"}
    return made


@pytest.mark.parametrize("check", [False, True])
def test_a_model_that_loads(llama: Preflight, check: bool) -> None:
    before = sorted(llama.model.parent.rglob("*"))
    done = llama(check)
    assert (found(done), done["changed"]) == ([], False)
    assert done["model"]["asked"]["config"] == {"class": "LlamaConfig"}
    assert done["model"]["asked"]["tokenizer"] == {
        "class": "AutoTokenizer",
        "tokens": 11,
        "text": "Slipway 123",
    }
    assert (done["model"]["engine"], done["model"]["attention"], done["fit"]["verdict"]) == (
        "sglang 0.5.9",
        "gqa",
        "fits",
    )
    assert sorted(llama.model.parent.rglob("*")) == before, "it writes nothing"


def test_kimi_as_it_is_published(kimi: Preflight) -> None:
    done = kimi()
    assert found(done) == []
    assert done["model"]["quantisation"]["form"] == "compressed-tensors"
    assert done["fit"]["kv"] == {
        "form": "mla",
        "dtype": "bf16",
        "bytes_per_token": 70272,
        "how": "61 layers x (512 + 64) x 2 bytes, whole on each GPU",
    }
    assert sum(row["mib"] for row in done["fit"]["rows"]) == 97887


@pytest.mark.parametrize(
    ("change", "finding", "words"),
    [
        ({"num_attention_heads": 60}, "PARALLEL_SIZE_MISFIT", "60 attention heads are not divisible by 8 GPUs"),
        ({"moe_intermediate_size": 2047}, "PARALLEL_SIZE_MISFIT", "the experts' width 2047 is not divisible by 8 GPUs"),
        ({"moe_intermediate_size": 384}, "PARALLEL_SIZE_MISFIT", "is 48 on each, and scales are for 32"),
        (
            {"max_position_embeddings": 32768},
            "CONTEXT_TOO_LONG",
            "65536 tokens are declared, and the model was made for 32768",
        ),
        ({"architectures": ["KimiK3ForCausalLM"]}, "MODEL_UNEXPECTED", "the architecture is 'KimiK3ForCausalLM'"),
    ],
)
def test_variants_of_kimi(kimi: Preflight, change: dict[str, t.Any], finding: str, words: str) -> None:
    if "architectures" in change:
        path = kimi.model / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    else:
        kimi.config(**change)
    told = [one["detail"] for one in kimi()["findings"] if one["id"] == finding and one["severity"] == "fail"]
    assert len(told) == 1
    assert words in told[0]


def test_kimi_of_an_unknown_type(kimi: Preflight) -> None:
    path = kimi.model / "config.json"
    told = {**json.loads(path.read_text()), "model_type": "kimi_k3"}
    path.write_text(json.dumps(told))
    kimi.options["expected_type"] = ""
    assert ("MODEL_TYPE_UNKNOWN", "fail") not in found(kimi()), "its own code knows the type, and is allowed"
    kimi.server["arguments"]["trust-remote-code"] = False
    assert ("MODEL_CODE_NOT_ALLOWED", "fail") in found(kimi())
    del told["auto_map"]
    path.write_text(json.dumps(told))
    done = kimi()
    assert ("MODEL_TYPE_UNKNOWN", "fail") in found(done)
    detail = next(one["detail"] for one in done["findings"] if one["id"] == "MODEL_TYPE_UNKNOWN")
    assert detail == (
        "asked CONFIG_MAPPING of transformers 4.57.6 in the environment, and the table of vllm 0.16.0; neither knows it"
    )


def test_kimi_with_fp8_keys_and_values(kimi: Preflight) -> None:
    kimi.server["kv_cache_dtype"] = "fp8"
    done = kimi()
    assert ("FP8_KV_UNSUPPORTED", "fail") in found(done)
    assert done["fit"]["kv"]["bytes_per_token"] == 35136
    kimi.environment.vllm("0.18.1")
    assert ("FP8_KV_UNSUPPORTED", "fail") not in found(kimi())


def test_weights_with_scales_of_keys_and_values_choose_fp8_by_themselves(kimi: Preflight) -> None:
    path = kimi.model / "config.json"
    told = json.loads(path.read_text())
    del told["text_config"]["quantization_config"]
    scheme = {"dynamic": False, "num_bits": 8, "type": "float"}
    told["quantization_config"] = {"quant_method": "modelopt", "quant_algo": "NVFP4", "kv_cache_scheme": scheme}
    path.write_text(json.dumps(told))
    kimi.server["arguments"]["quantization"] = "modelopt_fp4"
    detail = next(one["detail"] for one in kimi()["findings"] if one["id"] == "FP8_KV_UNSUPPORTED")
    assert "kv_cache_dtype auto, and the weights bring scales for it" in detail
    # vllm-project/vllm#42587: the word for 16 bits does not work yet in that release, so nothing but a newer one does.
    kimi.server["kv_cache_dtype"] = "bfloat16"
    assert [one for one in found(kimi()) if one[1] == "fail"] == [("KV_DTYPE_REFUSED", "fail")]
    kimi.environment.vllm("0.19.1")
    assert [one for one in found(kimi()) if one[1] == "fail"] == []
    kimi.server["kv_cache_dtype"] = "auto"
    assert [one for one in found(kimi()) if one[1] == "fail"] == []


def test_kimi_one_shard_short(kimi: Preflight) -> None:
    (kimi.model / "model-00003-of-00004.safetensors").unlink()
    done = kimi()
    told = [(one["id"], one["subject"]) for one in done["findings"] if one["severity"] == "fail"]
    assert told == [("MODEL_FILE_MISSING", "model-00003-of-00004.safetensors")]
    assert done["fit"] == {}, "a table of what is there would be a table of something else"
    (kimi.model / "model.safetensors.index.json").unlink()
    told = [(one["id"], one["subject"]) for one in kimi()["findings"] if one["severity"] == "fail"]
    assert told == [("MODEL_FILE_MISSING", "model-00003-of-00004.safetensors")], "its number is missing as well"


def test_kimi_one_shard_torn(kimi: Preflight) -> None:
    path = kimi.model / "model-00002-of-00004.safetensors"
    os.truncate(path, path.stat().st_size - 1)
    done = kimi()
    told = [(one["id"], one["subject"]) for one in done["findings"] if one["severity"] == "fail"]
    assert told == [("MODEL_FILE_DAMAGED", path.name)]
    assert "it is torn" in next(one["detail"] for one in done["findings"] if one["subject"] == path.name)
    assert done["fit"] == {}


def test_a_model_that_transformers_does_not_know_yet(llama: Preflight) -> None:
    glm = {**TINY_LLAMA, "model_type": "glm_moe_dsa", "architectures": ["GlmMoeDsaForCausalLM"]}
    (llama.model / "config.json").write_text(json.dumps(glm))
    done = llama()
    assert found(done) == [("MODEL_TYPE_UNKNOWN", "fail")]
    assert done["findings"][0]["detail"].endswith("neither knows it; transformers has it from 5.2.0 on")
    llama.environment.transformers("5.2.0", "llama", "glm_moe_dsa")
    assert found(llama()) == []
    path = "sglang/srt/models/glm4_moe.py"
    llama.environment.write(path, "from transformers import GlmConfig\nEntryClass = [GlmMoeDsaForCausalLM]\n")
    done = llama()
    assert found(done) == [("MODEL_ARCHITECTURE_UNKNOWN", "fail")]
    assert done["findings"][0]["detail"] == (
        f"{path} has it and does not import beside transformers 5.2.0 (line 1, transformers: cannot import name GlmConfig),"
        " and sglang leaves it out"
    )


def test_an_architecture_that_the_engine_does_not_have(llama: Preflight) -> None:
    llama.config(architectures=["NewForCausalLM"])
    assert found(llama()) == [("MODEL_ARCHITECTURE_UNKNOWN", "fail")]
    (llama.environment.site / "sglang/srt/models/llama.py").write_text("")
    llama.config(architectures=["LlamaForCausalLM"])
    assert found(llama()) == [("MODEL_ARCHITECTURE_UNKNOWN", "warn")], "transformers' own model would run"


def test_an_engine_whose_tables_have_another_form(llama: Preflight) -> None:
    for path in (llama.environment.site / "sglang/srt/models").glob("*.py"):
        path.write_text("")
    assert found(llama()) == [("MODEL_ARCHITECTURE_UNKNOWN", "unknown")]
    llama.config(model_type="new")
    assert found(llama()) == [("MODEL_TYPE_UNKNOWN", "unknown"), ("MODEL_ARCHITECTURE_UNKNOWN", "unknown")]


def test_a_configuration_that_is_refused(llama: Preflight) -> None:
    llama.config(refused=True)
    done = llama()
    assert found(done) == [("MODEL_CONFIG_REFUSED", "fail")]
    assert "num_attention_heads is no number" in done["findings"][0]["detail"]


def test_tokenizers(llama: Preflight) -> None:
    config = llama.model / "tokenizer_config.json"
    config.write_text(json.dumps({"tokenizer_class": "TokenizersBackend"}))
    done = llama()
    assert found(done) == [("TOKENIZER_BROKEN", "fail")]
    assert "Tokenizer class TokenizersBackend does not exist" in done["findings"][0]["detail"]
    (llama.model / "tokenizer.json").rename(llama.model / "tekken.json")
    assert found(llama()) == [], "engines read this one themselves"
    (llama.model / "tekken.json").unlink()
    assert found(llama()) == [("TOKENIZER_MISSING", "fail")]
    llama.server["arguments"] = {"tokenizer-path": "/srv/models/other"}
    assert found(llama()) == [], "it comes from elsewhere"
    llama.server["arguments"] = {}
    (llama.model / "tiktoken.model").write_text("x")
    config.write_text(json.dumps({"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}}))
    assert found(llama()) == [("MODEL_CODE_NOT_ALLOWED", "fail")]


def test_a_tokenizer_that_was_written_for_an_older_transformers(llama: Preflight) -> None:
    """huggingface/transformers#43726: Kimi's imports a function that version 5 moved."""
    llama.server["arguments"] = {"trust-remote-code": True}
    (llama.model / "tiktoken.model").write_text("x")
    told = {"auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]}}
    (llama.model / "tokenizer_config.json").write_text(json.dumps(told))
    code = "import os\nfrom .tool_declaration_ts import encode\nfrom transformers.models.gpt2.tokenization_gpt2 import bytes_to_unicode\n"
    (llama.model / "tokenization_kimi.py").write_text(code)
    (llama.model / "tool_declaration_ts.py").write_text("import nowhere_to_be_found\n")
    llama.environment.write("transformers/models/gpt2/__init__.py", "")
    llama.environment.write("transformers/models/gpt2/tokenization_gpt2.py", "")
    done = llama()
    assert found(done) == [("TOKENIZER_IMPORT", "fail"), ("TOKENIZER_IMPORT", "fail")]
    assert [one["detail"] for one in done["findings"]] == [
        "tokenization_kimi.py, line 3: from transformers.models.gpt2.tokenization_gpt2: cannot import name bytes_to_unicode"
        " (transformers 4.57.1)",
        "tool_declaration_ts.py, line 1: from nowhere_to_be_found: no module named nowhere_to_be_found (transformers 4.57.1)",
    ]
    llama.environment.write("transformers/models/gpt2/tokenization_gpt2.py", "def bytes_to_unicode(): pass\n")
    (llama.model / "tool_declaration_ts.py").write_text("import json\n")
    assert found(llama()) == []


def test_no_template_for_conversations(llama: Preflight) -> None:
    (llama.model / "chat_template.jinja").unlink()
    assert found(llama()) == [("CHAT_TEMPLATE_MISSING", "warn")]
    llama.server["arguments"] = {"chat-template": "/etc/slipway/chat.jinja"}
    assert found(llama()) == []


def test_code_of_the_repository_is_never_run(llama: Preflight, tmp_path: Path) -> None:
    llama.config(model_type="own", auto_map={"AutoConfig": "configuration_own.OwnConfig"})
    trap = tmp_path / "ran"
    (llama.model / "configuration_own.py").write_text(f"import os\nopen({str(trap)!r}, 'w')\n")
    llama.server["arguments"] = {"trust-remote-code": True}
    assert found(llama()) == []
    assert not trap.exists()
    (llama.model / "configuration_own.py").unlink()
    done = llama()
    assert [(one["id"], one["detail"]) for one in done["findings"]] == [
        ("MODEL_CODE_BROKEN", "configuration_own.py is not there (transformers 4.57.1)")
    ]


def test_without_gpus_the_memory_is_not_known(llama: Preflight) -> None:
    done = llama(gpus=[])
    assert found(done) == [("MEMORY_TOO_SMALL", "unknown")]
    assert found(llama(gpus=[], required=False)) == [("MEMORY_TOO_SMALL", "warn")]
    assert (done["fit"]["memory_mib"], done["fit"]["kv_tokens"], done["fit"]["verdict"]) == (None, None, "unknown")


def test_gguf_for_vllm(kimi: Preflight) -> None:
    """vLLM's loader knows the types that it translates, and those that the package gguf calls the same."""
    for path in kimi.model.glob("*.safetensors*"):
        path.unlink()
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0) + struct.pack("<Q", 1) + b"a" + struct.pack("<IQIQ", 1, 64, 0, 0)
    (kimi.model / "kimi-00001-of-00001.gguf").write_bytes(head + bytes(-len(head) % 32) + bytes(256))
    kimi.environment.write("vllm/model_executor/model_loader/gguf_loader.py", 'if model_type == "cohere": pass\n')
    kimi.environment.write("gguf/constants.py", 'MODEL_ARCH_NAMES: dict = {MODEL_ARCH.LLAMA: "llama"}\n')
    kimi.environment.write(QUANTISATION, 'METHODS = {"gguf": GGUFConfig}\n')
    done = kimi()
    assert found(done) == [("MODEL_ARCHITECTURE_UNKNOWN", "fail")]
    assert done["model"]["quantisation"]["form"] == "gguf"
    assert "'Unknown gguf model_type'" in done["findings"][0]["detail"]
    assert done["fit"]["kv"]["bytes_per_token"] == 70272
    kimi.environment.write("gguf/constants.py", 'MODEL_ARCH_NAMES: dict = {MODEL_ARCH.KIMI: "kimi_k25"}\n')
    assert found(kimi()) == []
    (kimi.environment.site / "gguf/constants.py").unlink()
    assert found(kimi()) == [("MODEL_ARCHITECTURE_UNKNOWN", "unknown")]
    (kimi.model / "kimi-00001-of-00001.gguf").write_bytes(head)
    assert ("MODEL_FILE_DAMAGED", "fail") in found(kimi())


def test_on_the_cpu_it_is_the_memory_of_the_machine_that_counts(llama: Preflight) -> None:
    llama.server["arguments"] = {"device": "cpu"}
    done = llama(memory_mib=4096)
    assert found(done) == []
    assert (done["fit"]["device"], done["fit"]["memory_mib"], done["fit"]["verdict"]) == ("cpu", 4096, "fits")
    assert llama()["fit"]["memory_mib"] > 0, "of this machine, where nobody says how much"


def test_a_python_that_does_not_answer(llama: Preflight) -> None:
    llama.environment.write("transformers/__init__.py", "import time\ntime.sleep(600)\n")
    done = llama(timeout_seconds=1)
    assert ("MODEL_TYPE_UNKNOWN", "unknown") in found(done)
    assert "did not answer within 1 seconds" in done["findings"][0]["detail"]
    llama.environment.write("transformers/__init__.py", "import os\nos._exit(3)\n")
    assert "ended with 3" in llama()["findings"][0]["detail"]
    llama.environment.write("transformers/__init__.py", "import torch_that_is_not_there\n")
    assert ("IMPORT_FAILED", "fail") in found(llama())


@pytest.mark.parametrize("content", ["", "{", "[]", '{"architectures": []}'])
def test_a_configuration_that_is_none(llama: Preflight, content: str) -> None:
    (llama.model / "config.json").write_text(content)
    done = llama()
    assert [(one["id"], one["subject"]) for one in done["findings"]] == [("MODEL_FILE_DAMAGED", "config.json")]
    assert (done["model"], done["fit"]) == ({}, {})


def test_an_index_that_tells_less_than_there_is_leaves_the_table(kimi: Preflight) -> None:
    path = kimi.model / "model.safetensors.index.json"
    told = json.loads(path.read_text())
    path.write_text(json.dumps({**told, "metadata": {"total_size": 1}}))
    done = kimi()
    assert (found(done), done["fit"]["verdict"]) == ([], "fits")


def test_a_folder_without_anything(llama: Preflight) -> None:
    for path in list(llama.model.iterdir()):
        path.unlink()
    done = llama()
    assert [(one["id"], one["subject"]) for one in done["findings"]] == [("MODEL_FILE_MISSING", "config.json")]
    (llama.model / "config.json").write_text(json.dumps(TINY_LLAMA))
    told = [(one["id"], one["subject"]) for one in llama()["findings"]]
    assert ("MODEL_FILE_MISSING", "model.safetensors") in told


def test_what_is_not_there_is_an_error(llama: Preflight) -> None:
    failed = llama(model_path="/nowhere")
    assert failed["rc"] == 1
    assert failed["msg"].startswith("Cannot look at model '/nowhere' on ")
    failed = llama(engine="vllm")
    assert "it has no package vllm" in failed["msg"]
    failed = llama(venv="/nowhere")
    assert "it has no site-packages" in failed["msg"]
    failed = llama(server={"arguments": {"pipeline-parallel-size": "two"}})
    assert "server argument pipeline-parallel-size is 'two'" in failed["msg"]
    assert "server.arguments is 'fast'" in llama(server={"arguments": "fast"})["msg"]


def test_images_on_sglang_want_a_newer_cudnn(kimi: Preflight) -> None:
    kimi.environment.sglang()
    for name, version in (("torch", "2.9.1+cu128"), ("nvidia-cudnn-cu12", "9.10.2.21")):
        kimi.environment.package(name, version)
    kimi.server["arguments"]["attention-backend"] = "flashinfer"
    kimi.options["engine"] = "sglang"
    assert ("CUDNN_TOO_OLD", "fail") in found(kimi())
    kimi.server["environment"] = {"SGLANG_DISABLE_CUDNN_CHECK": "1"}
    assert ("CUDNN_TOO_OLD", "fail") not in found(kimi())
    kimi.server["environment"] = {}
    kimi.environment.package("nvidia-cudnn-cu12", "9.16.0.29")
    assert ("CUDNN_TOO_OLD", "fail") not in found(kimi())
