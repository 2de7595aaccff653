# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a model can be divided over the GPUs as the server's parallel sizes want it, and whether its context is long enough. Pure.

Engines check this when they have loaded half of it. Vocabularies are not among it: engines pad them.
"""

from __future__ import annotations

import typing as t

from ..findings import Finding, finding
from .config import Model
from .server import Server

# Kernels for NVFP4 on SM120 take a rank's part of a matrix in steps of so many columns; else the answers are garbage, without an error.
NVFP4_STEP = 32  # vllm-project/vllm#48898
# Arguments that change what the model's own configuration says of its context.
OVERRIDES = ("json-model-override-args", "hf-overrides", "rope-scaling")


def misfits(model: Model, server: Server, gpus: int | None) -> list[str]:
    """What cannot be divided, a sentence each. ``gpus`` is how many there are, ``None`` where that is not known."""
    shape, told = model.shape, []
    if gpus is not None and server.gpus > gpus:
        told.append(f"the server is spread over {server.gpus} GPUs, and there are {gpus}")
    if server.tensor % server.data and server.attention != server.tensor:
        told.append(
            f"tensor parallel size {server.tensor} is no multiple of the data parallel size {server.data} of its attention"
        )
    if shape.heads % server.attention:
        told.append(f"{shape.heads} attention heads are not divisible by {server.attention} GPUs")
    if not shape.kv_lora_rank and shape.kv_heads:
        few, many = sorted((shape.kv_heads, server.attention))
        if many % few:
            told.append(f"{shape.kv_heads} heads of keys and values do not divide over {server.attention} GPUs")
    if server.pipeline > 1 and shape.layers and shape.layers < server.pipeline:
        told.append(f"{shape.layers} layers do not make {server.pipeline} pipeline stages")
    told += _experts(model, server)
    return told


def _experts(model: Model, server: Server) -> list[str]:
    shape, told = model.shape, []
    if shape.intermediate and shape.intermediate % server.tensor:
        told.append(f"the feed-forward width {shape.intermediate} is not divisible by {server.tensor} GPUs")
    if not shape.experts:
        return told
    # vLLM deals experts out unevenly where it must.
    if server.engine == "sglang" and shape.experts % server.experts:
        told.append(f"{shape.experts} experts are not divisible by an expert parallel size of {server.experts}")
    cut = max(server.tensor // server.experts, 1)
    if shape.expert_intermediate and shape.expert_intermediate % cut:
        told.append(f"the experts' width {shape.expert_intermediate} is not divisible by {cut} GPUs")
    return told


def unaligned(model: Model, server: Server) -> list[tuple[str, bool]]:
    """Parts of quantised matrices that end within a block of scales, each with whether the engine refuses it.

    NVFP4 that an engine loads may still be computed wrong, which is the second kind.
    """
    form = model.quantisation
    if not form:
        return []
    shape, told = model.shape, []
    if shape.experts:
        width, cut, what = shape.expert_intermediate, max(server.tensor // server.experts, 1), "the experts' width"
    else:
        width, cut, what = shape.intermediate, server.tensor, "the feed-forward width"
    if not width or width % cut:
        return []  # told by what cannot be divided at all
    part = width // cut
    blocks = [form.block[0], form.block[1], form.group]
    step = max(blocks)
    if step and part % step:
        told.append((f"{what} {width} over {cut} GPUs is {part} on each, and scales are for {step}", True))
    elif form.form == "nvfp4" and part % NVFP4_STEP:
        told.append(
            (f"{what} {width} over {cut} GPUs is {part} on each, and NVFP4's kernels take {NVFP4_STEP} at once", False)
        )
    return told


def findings(model: Model, server: Server, gpus: int | None, subject: str) -> list[Finding]:
    """All of it as findings about a model that is called ``subject``."""
    found = [finding("PARALLEL_SIZE_MISFIT", subject, detail) for detail in misfits(model, server, gpus)]
    for detail, refused in unaligned(model, server):
        found.append(finding("PARALLEL_SIZE_MISFIT", subject, detail, None if refused else "warn"))
    return found + context(server.context_length, model.shape.context, server.arguments, subject)


def context(asked: int, made_for: int, arguments: t.Mapping[str, t.Any], subject: str) -> list[Finding]:
    """Whether the declared context is longer than the model was made for; an argument that changes the latter makes it a warning."""
    if not made_for or asked <= made_for:
        return []
    override = next((name for name in OVERRIDES if arguments.get(name)), "")
    detail = f"{asked} tokens are declared, and the model was made for {made_for}"
    if override:
        return [finding("CONTEXT_TOO_LONG", subject, f"{detail}; {override} may change that", "warn")]
    return [finding("CONTEXT_TOO_LONG", subject, detail)]
