# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuned settings of the fused-MoE kernel: files that SGLang and vLLM find by their names, judged before a GPU sees them. Pure.

Names are as ``get_config_file_name`` of SGLang 0.5.9 and vLLM 0.16.0 makes them: ``E=257,N=256,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128, 128].json``, in which
vLLM has no space. A file that is named otherwise is never found, and nobody says so.
"""

from __future__ import annotations

import json
import re
import typing as t
from dataclasses import dataclass

from ..findings import Finding, finding

# Shared memory of one block, bytes, by compute capability (CUDA programming guide, technical specifications, what a block may ask for).
SHARED_MEMORY = {80: 166912, 86: 101376, 89: 101376, 90: 232448, 100: 232448, 120: 101376}
# Bytes of an element of activations and of weights, by what the name says; without a dtype both are bfloat16.
ELEMENT_BYTES = {
    "": (2.0, 2.0),
    "fp8_w8a8": (1.0, 1.0),
    "int8_w8a8": (1.0, 1.0),
    "int8_w8a16": (2.0, 1.0),
    "int4_w4a16": (2.0, 0.5),
    "int4_w4afp8": (1.0, 0.5),
    "mxfp4_w4a16": (2.0, 0.5),
}
_NEEDED = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
_NAME = re.compile(
    r"E=(?P<experts>[1-9]\d*),N=(?P<size>[1-9]\d*),device_name=(?P<device>[^,\s]+)(?:,dtype=(?P<dtype>[a-z0-9_]+))?"
    r"(?:,block_shape=\[(?P<rows>\d+),(?P<space> ?)(?P<columns>\d+)\])?(?P<channel>,per_channel_quant=True)?(?P<down>_down)?\.json"
)
# Of torch: NVIDIA's name with underscores. vLLM calls each GPU of this family alike.
_FAMILY = "H200"


@dataclass(frozen=True)
class Name:
    """What the name of a file says. ``block_shape`` is empty without one."""

    experts: int
    size: int
    device: str
    dtype: str = ""
    block_shape: tuple[int, ...] = ()
    per_channel: bool = False
    down: bool = False

    def of(self, engine: str) -> str:
        """The file's name as the engine looks for it. vLLM knows neither ``per_channel`` nor ``down``."""
        rows = f"[{(',' if engine == 'vllm' else ', ').join(map(str, self.block_shape))}]"
        parts = [f"E={self.experts},N={self.size},device_name={self.device}"]
        parts += [f"dtype={self.dtype}"] if self.dtype else []
        parts += [f"block_shape={rows}"] if self.block_shape else []
        parts += ["per_channel_quant=True"] if self.per_channel else []
        return ",".join(parts) + ("_down" if self.down else "") + ".json"


def read_name(text: str) -> Name:
    """What a file's name says. Raises ``ValueError`` for a name that no engine looks for."""
    match = _NAME.fullmatch(text)
    if not match:
        raise ValueError("no engine looks for a file of this name; E, N, device_name, dtype and block_shape make it")
    shape = (int(match["rows"]), int(match["columns"])) if match["rows"] else ()
    return Name(
        experts=int(match["experts"]),
        size=int(match["size"]),
        device=match["device"],
        dtype=match["dtype"] or "",
        block_shape=shape,
        per_channel=bool(match["channel"]),
        down=bool(match["down"]),
    )


def device_name(name: str, engine: str) -> str:
    """The GPU's name in a file's name, from what the driver calls it."""
    text = name.replace(" ", "_")
    return f"NVIDIA_{_FAMILY}" if engine == "vllm" and _FAMILY in text.split("_") else text


def shared_memory(setting: t.Mapping[str, int], dtype: str) -> int:
    """Bytes of shared memory that a block will ask for: each stage but one holds a tile of activations and one of weights.

    By this Triton's own figure was met where it told one (147456 bytes for 128, 256, 128 in four stages of FP8: sgl-project/sglang#28038). It is an estimate.
    """
    activations, weights = ELEMENT_BYTES.get(dtype, (2.0, 2.0))
    tile = setting["BLOCK_SIZE_M"] * activations + setting["BLOCK_SIZE_N"] * weights
    return int(max(setting["num_stages"] - 1, 1) * tile * setting["BLOCK_SIZE_K"])


def check(file: str, content: str, engine: str, sm: int | None, devices: t.Collection[str]) -> list[Finding]:
    """Findings about one file. ``devices`` are the driver's names of the GPUs, empty where they are not known."""
    try:
        name = read_name(file)
        settings = _settings(content)
    except ValueError as error:
        return [finding("MOE_CONFIG_INVALID", file, str(error))]
    found = []
    if name.of(engine) != file:
        found.append(finding("MOE_CONFIG_INVALID", file, f"{engine} would look for {name.of(engine)}"))
    known = {device_name(one, engine) for one in devices}
    if known and name.device not in known:
        told = f"it is for {name.device}, and here is {', '.join(sorted(known))}"
        found.append(finding("MOE_CONFIG_OTHER_GPU", file, told))
    limit = SHARED_MEMORY.get(sm or 0)
    sizes = {batch: shared_memory(setting, name.dtype) for batch, setting in settings.items()}
    over = {batch: size for batch, size in sizes.items() if limit and size > limit}
    if over:
        worst = max(over, key=over.__getitem__)
        told = (
            f"for {len(over)} of {len(sizes)} batch sizes; the worst, {worst}, asks for {over[worst]} bytes of {limit}"
        )
        found.append(finding("MOE_CONFIG_TOO_LARGE", file, told))
    return found


def _settings(content: str) -> dict[int, dict[str, int]]:
    """The settings by batch size. Raises ``ValueError`` for what is none."""
    try:
        table = json.loads(content)
    except ValueError as error:
        raise ValueError(f"it is no JSON: {error}") from None
    if not isinstance(table, dict):
        raise ValueError("it holds no mapping")
    table.pop("triton_version", None)  # vLLM's tuner writes it
    if not table:
        raise ValueError("it holds no batch size")
    settings = {}
    for batch, setting in table.items():
        if not re.fullmatch(r"[1-9]\d*", batch) or not isinstance(setting, dict):
            raise ValueError(f"{batch!r} is no batch size with settings")
        bad = [
            key
            for key in _NEEDED
            if isinstance(setting.get(key), bool) or not isinstance(setting.get(key), int) or setting[key] < 1
        ]
        if bad:
            raise ValueError(f"batch size {batch} has no whole number of at least 1 as {', '.join(bad)}")
        uneven = [key for key in _NEEDED[:3] if setting[key] & (setting[key] - 1)]
        if uneven:
            raise ValueError(f"batch size {batch} has a {uneven[0]} that is no power of two, which Triton refuses")
        settings[int(batch)] = setting
    return settings


def place(engine: str, file: str, triton: str) -> str:
    """Where a file lies below the folder that the engine is told of. SGLang has a folder a release of Triton."""
    return f"configs/triton_{triton.replace('.', '_')}/{file}" if engine == "sglang" else file


# The variable that names the folder. It takes the place of SGLang's own folder, and stands before vLLM's.
VARIABLES = {"sglang": "SGLANG_MOE_CONFIG_DIR", "vllm": "VLLM_TUNED_CONFIG_FOLDER"}
