# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments that run, with a small stand-in for transformers and the tables of an engine. Real ones are in ``tests/wheels``."""

from __future__ import annotations

import sys
from pathlib import Path

VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
# What of transformers is asked: a table of types, and two loaders that read a folder.
TRANSFORMERS = """
import json, pathlib
__version__ = "{version}"

class AutoConfig:
    @classmethod
    def from_pretrained(cls, path, **options):
        from .models.auto.configuration_auto import CONFIG_MAPPING_NAMES
        told = json.loads((pathlib.Path(path) / "config.json").read_text())
        if told["model_type"] not in CONFIG_MAPPING_NAMES:
            raise ValueError(f"the checkpoint has model type `{{told['model_type']}}`, which is not recognized")
        if told.get("refused"):
            raise ValueError("num_attention_heads is no number")
        return type(CONFIG_MAPPING_NAMES[told["model_type"]], (), {{}})()

class AutoTokenizer:
    @classmethod
    def from_pretrained(cls, path, **options):
        print("a greeting on standard output, which is nobody's answer")
        told = json.loads((pathlib.Path(path) / "tokenizer_config.json").read_text())
        if told["tokenizer_class"] != "PreTrainedTokenizerFast":
            raise ValueError(f"Tokenizer class {{told['tokenizer_class']}} does not exist or is not currently imported.")
        return cls()

    def encode(self, text, **options):
        return list(text)

    def decode(self, tokens):
        return "".join(tokens)

class LlamaForCausalLM: pass
"""
SGLANG_CONFIGS = """
from sglang.srt.configs import KimiK25Config
_CONFIG_REGISTRY = [KimiK25Config]
_CONFIG_REGISTRY = {config_cls.model_type: config_cls for config_cls in _CONFIG_REGISTRY}
"""
SGLANG_QUANTISATION = """
BASE_QUANTIZATION_METHODS = {"fp8": Fp8Config, "modelopt_fp4": ModelOptFp4Config, "compressed-tensors": CompressedTensorsConfig}
"""
MODELOPT = """
class ModelOptFp4Config:
    @classmethod
    def get_min_capability(cls) -> int:
        return 100
"""
VLLM_MODELS = """
_TEXT_GENERATION_MODELS = {
    "LlamaForCausalLM": ("llama", "LlamaForCausalLM"),
    "GlmMoeDsaForCausalLM": ("deepseek_v2", "GlmMoeDsaForCausalLM"),
}
_MULTIMODAL_MODELS = {"KimiK25ForConditionalGeneration": ("kimi_k25", "KimiK25ForConditionalGeneration")}
_VLLM_MODELS = {**_TEXT_GENERATION_MODELS, **_MULTIMODAL_MODELS}
_PREVIOUSLY_SUPPORTED_MODELS = {"MotifForCausalLM": "0.10.2"}
"""
VLLM_CONFIGS = """
_CONFIG_REGISTRY: dict[str, type[PretrainedConfig]] = LazyConfigDict(chatglm="ChatGLMConfig", kimi_k25="KimiK25Config")
"""
VLLM_QUANTISATION = """
def get_quantization_config(quantization):
    method_to_config = {"fp8": Fp8Config, "modelopt_fp4": ModelOptFp4Config, "compressed-tensors": CompressedTensorsConfig}
    return method_to_config[quantization]
"""


class Environment:
    """A virtual environment of this Python, with what is written into it."""

    def __init__(self, venv: Path) -> None:
        self.venv = venv
        self.site = venv / "lib" / f"python{VERSION}" / "site-packages"
        self.site.mkdir(parents=True)
        (venv / "bin").mkdir()
        base = Path(sys.base_prefix) / "bin" / f"python{VERSION}"
        (venv / "bin" / "python").symlink_to(base)
        (venv / "pyvenv.cfg").write_text(f"home = {base.parent}\ninclude-system-site-packages = false\n")

    def write(self, path: str, content: str) -> None:
        target = self.site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)

    def package(self, name: str, version: str) -> None:
        """A package as far as its metadata says; another version of it goes."""
        for old in self.site.glob(f"{name.replace('-', '_')}-*.dist-info"):
            for left in old.iterdir():
                left.unlink()
            old.rmdir()
        self.write(f"{name.replace('-', '_')}-{version}.dist-info/RECORD", "")

    def transformers(self, version: str, *types: str) -> None:
        """A transformers that knows these types, by the names of their configurations' classes."""
        self.package("transformers", version)
        self.write("transformers/__init__.py", TRANSFORMERS.format(version=version))
        self.write("transformers/models/__init__.py", "")
        self.write("transformers/models/auto/__init__.py", "")
        names = {name: f"{name.title().replace('_', '')}Config" for name in types}
        self.write("transformers/models/auto/configuration_auto.py", f"CONFIG_MAPPING_NAMES = {names!r}\n")

    def sglang(self, version: str = "0.5.9") -> None:
        self.package("sglang", version)
        self.write("sglang/srt/models/llama.py", "class LlamaForCausalLM: pass\n\nEntryClass = [LlamaForCausalLM]\n")
        self.write("sglang/srt/models/kimi_k25.py", "EntryClass = KimiK25ForConditionalGeneration\n")
        self.write("sglang/srt/models/glm4_moe.py", "EntryClass = [Glm4MoeForCausalLM, GlmMoeDsaForCausalLM]\n")
        self.write("sglang/srt/configs/kimi_k25.py", 'class KimiK25Config:\n    model_type = "kimi_k25"\n')
        self.write("sglang/srt/utils/hf_transformers_utils.py", SGLANG_CONFIGS)
        self.write("sglang/srt/layers/quantization/__init__.py", SGLANG_QUANTISATION)
        self.write("sglang/srt/layers/quantization/modelopt_quant.py", MODELOPT)

    def vllm(self, version: str = "0.16.0") -> None:
        self.package("vllm", version)
        self.write("vllm/model_executor/models/registry.py", VLLM_MODELS)
        self.write("vllm/transformers_utils/config.py", VLLM_CONFIGS)
        self.write("vllm/model_executor/layers/quantization/__init__.py", VLLM_QUANTISATION)
        self.write("vllm/model_executor/layers/quantization/modelopt.py", MODELOPT.replace("100", "75"))
