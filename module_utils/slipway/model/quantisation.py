# SPDX-License-Identifier: GPL-3.0-or-later
"""How the weights of a model are quantised, from its config.json and the files beside it. Pure.

The same thing is told in several forms: modelopt's ``quantization_config`` or its older ``hf_quant_config.json``, compressed-tensors'
groups, and the flat forms of fp8, awq and gptq. The engines' names for what can load it are here as well.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

# What engines call the method that loads each form. The first is what they choose themselves.
# Source: SGLang 0.5.9 configs/model_config.py (compatible_quantization_methods), vLLM 0.16.0 config/model.py (overrides).
NAMES = {
    "nvfp4": ("modelopt_fp4", "modelopt", "modelopt_mixed"),
    "modelopt-fp8": ("modelopt", "modelopt_fp8"),
    "compressed-tensors": ("compressed-tensors", "w8a8_int8", "w8a8_fp8"),
    "fp8": ("fp8", "mxfp8", "w4afp8"),
    "awq": ("awq", "awq_marlin", "moe_wna16"),
    "gptq": ("gptq", "gptq_marlin", "gptq_marlin_24", "moe_wna16", "auto-round"),
    "gguf": ("gguf",),
}
# These need weights that were made for them; others (fp8, bitsandbytes) also quantise while they load.
MADE_FOR = frozenset({"modelopt_fp4", "compressed-tensors", "awq", "awq_marlin", "gptq", "gptq_marlin", "gguf"})


@dataclass(frozen=True)
class Quantisation:
    """``form`` is one of ``NAMES``, or the config's own word for one that is not known here; ``method`` is that word as it stands there.

    ``bits`` are of a quantised weight, ``group`` how many share one scale (0: not told, or a whole row), ``block`` the sides of FP8's
    blocks, ``kv`` the algorithm that the checkpoint has scales of keys and values for (``FP8``), ``source`` the file that says it.
    """

    form: str
    method: str
    bits: int = 0
    group: int = 0
    block: tuple[int, int] = (0, 0)
    kv: str = ""
    source: str = "config.json"

    @property
    def names(self) -> tuple[str, ...]:
        """What an engine may call the method that loads it, the first being its own choice."""
        return NAMES.get(self.form, (self.method,))

    @property
    def words(self) -> str:
        """The form in words, as in ``nvfp4 (modelopt, groups of 16)``."""
        inside = [self.method] if self.method != self.form else []
        inside += [f"groups of {self.group}"] if self.group else []
        inside += [f"blocks of {self.block[0]} x {self.block[1]}"] if self.block[0] else []
        return f"{self.form} ({', '.join(inside)})" if inside else self.form

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "form": self.form,
            "method": self.method,
            "bits": self.bits,
            "group": self.group,
            "block": list(self.block) if self.block[0] else [],
            "kv": self.kv,
            "source": self.source,
        }


def of(config: t.Mapping[str, t.Any], beside: t.Mapping[str, t.Any] | None = None) -> Quantisation | None:
    """The quantisation of a configuration, of its text part where that has it; ``None`` for plain weights.

    ``beside`` is what ``hf_quant_config.json`` holds, which counts where ``config.json`` says nothing.
    """
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        told = part.get("quantization_config") or part.get("compression_config")
        if isinstance(told, dict):
            return _of_config(told)
    told = (beside or {}).get("quantization")
    if isinstance(told, dict):
        return _modelopt(told, "hf_quant_config.json")
    return None


def _of_config(told: dict[str, t.Any]) -> Quantisation:
    method = str(told.get("quant_method") or "").lower().replace("_", "-")
    if method.startswith("modelopt") or (not method and "quant_algo" in told):
        return _modelopt(told, "config.json")
    if method == "compressed-tensors" or "config_groups" in told:
        return _compressed(told)
    if method == "fp8":
        block = told.get("weight_block_size")
        sides = (_number(block[0]), _number(block[1])) if isinstance(block, list) and len(block) == 2 else (0, 0)
        return Quantisation("fp8", "fp8", 8, block=sides)
    if method in ("awq", "gptq"):
        return Quantisation(method, method, _number(told.get("bits")), max(_number(told.get("group_size")), 0))
    return Quantisation(method or "unknown", method or "unknown", _number(told.get("bits")))


def _modelopt(told: dict[str, t.Any], source: str) -> Quantisation:
    """modelopt's own file has these keys at its top, its block in ``config.json`` has ``kv_cache_scheme`` in the place of the algorithm."""
    algorithm = str(told.get("quant_algo") or "").upper()
    group = max(_number(told.get("group_size")), 0)
    scheme = told.get("kv_cache_scheme")
    kv = str(told.get("kv_cache_quant_algo") or ("FP8" if isinstance(scheme, dict) and scheme else "")).upper()
    if "FP4" in algorithm:
        return Quantisation("nvfp4", "modelopt", 4, group or 16, kv=kv, source=source)
    if algorithm.startswith("FP8"):
        return Quantisation("modelopt-fp8", "modelopt", 8, kv=kv, source=source)
    return Quantisation(f"modelopt {algorithm}".strip(), "modelopt", 0, group, kv=kv, source=source)


def _compressed(told: dict[str, t.Any]) -> Quantisation:
    groups = told.get("config_groups")
    weights: dict[str, t.Any] = next(
        (
            one["weights"]
            for one in (groups.values() if isinstance(groups, dict) else ())
            if isinstance(one, dict) and isinstance(one.get("weights"), dict)
        ),
        {},
    )
    kv = "FP8" if told.get("kv_cache_scheme") else ""
    group = max(_number(weights.get("group_size")), 0)
    return Quantisation("compressed-tensors", "compressed-tensors", _number(weights.get("num_bits")), group, kv=kv)


def _number(value: t.Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0
