# SPDX-License-Identifier: GPL-3.0-or-later
"""What the server's arguments mean for a model: over how many GPUs it is spread, how much of them it may take. Pure.

Arguments are those of the profile, without dashes in front. The engines' own names and defaults stand here once.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

# What the engine may take of a GPU's memory: the argument, and what holds where it is not given.
# Sources: vLLM 0.16.0 config/cache.py; SGLang 0.5.9 server_args.py, whose default is `_sglang_fraction` below.
FRACTION = {"sglang": "mem-fraction-static", "vllm": "gpu-memory-utilization"}
VLLM_FRACTION = 0.9
SPECULATIVE = {"sglang": "speculative-algorithm", "vllm": "speculative-config"}
MIB = 1024 * 1024


@dataclass(frozen=True)
class Server:
    """The server's numbers.

    ``tensor`` and ``pipeline`` are parallel sizes of one copy, ``data`` copies of what the experts are not part of, ``attention`` over how
    many GPUs a copy's attention is divided, ``context_ranks`` over how many each sequence's keys and values are (vLLM's decode context
    parallelism), ``experts`` over how many GPUs whole experts are dealt out (1: each is cut). ``quantisation`` is as declared, empty where
    it is not.
    """

    engine: str
    version: str
    tensor: int = 1
    pipeline: int = 1
    data: int = 1
    attention: int = 1
    context_ranks: int = 1
    experts: int = 1
    context_length: int = 0
    kv_cache_dtype: str = "auto"
    quantisation: str = ""
    attention_backend: str = ""
    trust_remote_code: bool = False
    speculative: bool = False
    arguments: t.Mapping[str, t.Any] = field(default_factory=dict)

    @property
    def on_cpu(self) -> bool:
        """Whether it is told to leave GPUs alone, as tests of an engine do."""
        return self.engine == "llamacpp" or self.arguments.get("device") == "cpu"

    @property
    def gpus(self) -> int:
        """How many GPUs the server takes."""
        spread = (
            self.data if self.engine == "vllm" else 1
        )  # SGLang's copies of the attention lie within the tensor parallel group
        return self.tensor * self.pipeline * spread

    @property
    def expert_ranks(self) -> int:
        """Over how many GPUs the experts of a layer are divided, whether each is cut or they are dealt out."""
        return max(self.tensor, self.experts)


def of(engine: str, version: str, server: t.Mapping[str, t.Any]) -> Server:
    """The server of a profile's ``server``. Raises ``ValueError`` for a size that is no whole number of at least one."""
    given = server.get("arguments") or {}
    if not isinstance(given, dict):
        raise ValueError(f"server.arguments is '{given}', and no table of names and values")
    arguments = {str(key).replace("_", "-"): value for key, value in given.items()}

    def size(names: tuple[str, ...], default: int = 1) -> int:
        value = next((arguments[name] for name in names if arguments.get(name) is not None), default)
        try:
            number = int(value)
        except (TypeError, ValueError):
            number = 0
        if number < 1:
            raise ValueError(f"server argument {names[0]} is '{value}', which is no whole number of at least 1")
        return number

    tensor = int(server.get("tensor_parallel") or 1)
    data = size(("data-parallel-size", "dp-size", "dp"))
    dealt = size(("expert-parallel-size", "ep-size", "ep"))
    if engine == "vllm" and arguments.get("enable-expert-parallel"):
        dealt = tensor * data
    split_attention = bool(arguments.get("enable-dp-attention")) and engine == "sglang"
    return Server(
        engine=engine,
        version=version,
        tensor=tensor,
        pipeline=size(("pipeline-parallel-size", "pp-size")),
        data=data,
        attention=max(tensor // data, 1) if split_attention else tensor,
        context_ranks=size(("decode-context-parallel-size", "dcp-size")) if engine == "vllm" else 1,
        experts=dealt,
        context_length=int(server.get("context_length") or 0),
        kv_cache_dtype=str(server.get("kv_cache_dtype") or "auto"),
        quantisation=str(arguments.get("quantization") or "").lower(),
        attention_backend=str(arguments.get("attention-backend") or ""),
        trust_remote_code=arguments.get("trust-remote-code") is True,
        speculative=bool(arguments.get(SPECULATIVE.get(engine, ""))),
        arguments=arguments,
    )


def memory(server: Server, memory_mib: int, images: bool) -> tuple[float, str, str]:
    """The part of a GPU's memory that weights, keys and values may take together; its argument in words; what is assumed, if anything.

    SGLang counts from what is free before it loads, vLLM from the whole.
    """
    name = FRACTION[server.engine]
    given = server.arguments.get(name)
    if given is not None:
        return float(given), f"{name} {given}", ""
    if server.engine == "vllm":
        return VLLM_FRACTION, f"{name} {VLLM_FRACTION}, its default", f"{name} is not given; vLLM's default is taken."
    fraction = _sglang_fraction(server, memory_mib)
    if images:
        fraction = round(
            fraction * 0.95, 3
        )  # adjust_mem_fraction_for_vlm of the same file: 0.95, and less for large image towers
    return fraction, f"{name} {fraction}, its default", f"{name} is not given; what SGLang 0.5.9 would choose is taken."


def _sglang_fraction(server: Server, memory_mib: int) -> float:
    """SGLang's own choice for large GPUs (0.5.9, server_args.py, ``_handle_gpu_memory_settings``); the size of a prefill decides."""
    chunk = float(server.arguments.get("chunked-prefill-size") or (8192 if memory_mib < 160 * 1024 else 16384))
    graphs = float(server.arguments.get("cuda-graph-max-bs") or (512 if server.tensor >= 4 else 256))
    kept = 512 + max(chunk, 2048) * 1.5 + graphs * 2 + server.tensor * server.pipeline / 8 * 1024
    if memory_mib > 60 * 1024:
        kept = max(kept, 10 * 1024)
    return max(round((memory_mib - kept) / memory_mib, 3), 0.0)
