# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a model fits into the memory that there is, as a table: weights, what is kept free, what is left for keys and values. Pure.

An estimate from files and arguments, before anything is loaded. Engines were seen to hold more than the files have: SGLang 4 % more of
an NVFP4 model and 1 % of an INT4 one, for copies in another layout (field logs of Kimi-K2 and K2.5). So what fits by less than
``MARGIN`` of its weights is ``tight``, and only what fails even without what is merely estimated is ``short``.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from ..findings import Finding, finding
from .config import Model
from .kv import Cache
from .server import MIB, Server, memory
from .share import Share

MARGIN = 0.05
# What a CUDA context and NCCL take of a GPU before weights come: 97887 MiB in all, 94.1 GiB free when SGLang begins to load (field logs).
CONTEXT_MIB = 1500
# An estimate too: what is short by less may fit all the same.
CONTEXT_DOUBT_MIB = 1000
# vLLM measures a forward pass at its largest batch and keeps that free: so many bytes for each token and each of the hidden size, seen
# with GLM-5.1 at 8192 tokens (field log: 0.865 of 94.97 GiB less 55.67 of weights, 19.55 of keys and values, and the context).
PEAK_BYTES = 117
# Tokens of that batch where max-num-batched-tokens is not given: on GPUs of 70 GiB and more, and on others (0.19.1, engine/arg_utils.py).
BATCH = {True: 8192, False: 2048}
ASSUMED = "Weights as they lie in the files; engines were seen to hold up to 5 % more."


@dataclass(frozen=True)
class Row:
    """A line of the table. ``mib`` of one GPU."""

    name: str
    what: str
    mib: int
    how: str = ""

    def as_dict(self) -> dict[str, t.Any]:
        return {"name": self.name, "what": self.what, "mib": self.mib, "how": self.how}


@dataclass(frozen=True)
class Fit:
    """The table and what follows from it. ``memory_mib`` and ``kv_tokens`` are ``None`` where they are not known.

    ``needed_tokens`` must fit at least: one request of the declared context, or all that an engine sets aside for. ``doubt_mib`` is
    what of the table is estimated.
    """

    device: str
    ranks: int
    memory_mib: int | None
    rows: tuple[Row, ...]
    cache: Cache | None
    kv_tokens: int | None
    context_length: int
    model_context_length: int
    needed_tokens: int
    assumptions: tuple[str, ...] = ()
    doubt_mib: int = 0

    @property
    def weights_mib(self) -> int:
        return sum(row.mib for row in self.rows if row.name.startswith("weights"))

    @property
    def left_mib(self) -> int | None:
        return next((row.mib for row in self.rows if row.name == "left"), None)

    @property
    def requests(self) -> float | None:
        """How many requests of the declared context length fit at once."""
        if self.kv_tokens is None or not self.context_length:
            return None
        return round(self.kv_tokens / self.context_length, 1)

    @property
    def verdict(self) -> str:
        """``fits``, ``tight``, ``short`` or ``unknown``."""
        left = self.left_mib
        if left is None or self.cache is None:
            return "unknown"
        needed = max(self.needed_tokens, 1) * self.cache.bytes_per_token / MIB
        if left + self.doubt_mib < needed:
            return "short"
        return "tight" if left - self.weights_mib * MARGIN < needed else "fits"

    def as_dict(self) -> dict[str, t.Any]:
        """The module's ``fit``."""
        return {
            "device": self.device,
            "ranks": self.ranks,
            "memory_mib": self.memory_mib,
            "rows": [row.as_dict() for row in self.rows],
            "weights_mib": self.weights_mib,
            "kv": self.cache.as_dict() if self.cache else {},
            "kv_tokens": self.kv_tokens,
            "context_length": self.context_length,
            "model_context_length": self.model_context_length or None,
            "requests_at_context": self.requests,
            "verdict": self.verdict,
            "assumptions": list(self.assumptions),
        }


def on_gpus(model: Model, server: Server, weights: Share, kv: Cache | None, memory_mib: int | None) -> Fit:
    """The fit on GPUs of which the smallest has ``memory_mib``; without that, the table has the weights alone."""
    assumptions = [ASSUMED]
    if model.shape.full_layers:
        assumptions.append(
            f"Keys and values of the {model.shape.full_layers} layers that attend to everything; others keep a fixed size."
        )
    if weights.left_out:
        layers = ", ".join(map(str, weights.left_out_layers))
        assumptions.append(
            f"Layer {layers} predicts further tokens and is left out ({weights.left_out // MIB} MiB): no speculation is declared."
        )
    rows = _weights(weights, server)
    tokens, doubt = None, 0
    if memory_mib:
        fraction, how, note = memory(server, memory_mib, model.images)
        assumptions += [note] if note else []
        doubt = CONTEXT_DOUBT_MIB
        if server.engine == "vllm":
            peak = _peak_mib(model, server, memory_mib)
            reserve = memory_mib * (1 - fraction) + peak
            how += f", and {peak} MiB for the largest batch, estimated"
            doubt += peak
        else:
            reserve = (memory_mib - CONTEXT_MIB) * (1 - fraction)
        rows.append(Row("driver", "Driver and CUDA context", CONTEXT_MIB, "as seen on such GPUs"))
        rows.append(Row("reserve", "Kept for activations and graphs", round(max(reserve, 0)), how))
        left = memory_mib - sum(row.mib for row in rows)
        rows.append(Row("left", "Left for keys and values", left))
        if kv:
            tokens = max(int(left * MIB // kv.bytes_per_token), 0)
    return Fit(
        "gpu",
        server.gpus,
        memory_mib,
        tuple(rows),
        kv,
        tokens,
        server.context_length,
        model.shape.context,
        server.context_length,
        tuple(assumptions),
        doubt,
    )


def _peak_mib(model: Model, server: Server, memory_mib: int) -> int:
    given = str(server.arguments.get("max-num-batched-tokens") or "")
    # vLLM takes 16k as well, for which its own default stands here: it is an estimate of an estimate.
    tokens = int(given) if given.isdecimal() else BATCH[memory_mib >= 70 * 1024]
    return round(tokens * model.shape.hidden * PEAK_BYTES / MIB)


def _weights(weights: Share, server: Server) -> list[Row]:
    def divided(ranks: int) -> str:
        return f"divided by {ranks}" if ranks > 1 else "on one GPU"

    rows = [
        Row("weights_experts", "Weights of the experts", round(weights.experts / MIB), divided(server.expert_ranks)),
        Row("weights_split", "Other weights that are divided", round(weights.split / MIB), divided(server.tensor)),
        Row("weights_whole", "Weights that each GPU has whole", round(weights.whole / MIB), "on each"),
    ]
    return [row for row in rows if row.mib or row.name == "weights_split"]


def on_cpu(
    weights_bytes: int,
    kv: Cache | None,
    memory_mib: int | None,
    context_length: int,
    model_context: int,
    parallel: int = 1,
) -> Fit:
    """The fit in the machine's memory, for an engine that sets aside so many times the context."""
    rows = [Row("weights_whole", "Weights", round(weights_bytes / MIB))]
    tokens = None
    if memory_mib:
        rows.append(Row("left", "Left for keys and values", memory_mib - rows[0].mib))
        if kv:
            tokens = max(int(rows[1].mib * MIB // kv.bytes_per_token), 0)
    notes = (
        (f"{parallel} x {context_length} tokens are set aside, whether they are used or not.",) if parallel > 1 else ()
    )
    needed = context_length * parallel
    return Fit("cpu", 1, memory_mib, tuple(rows), kv, tokens, context_length, model_context, needed, notes)


def findings(fit: Fit, subject: str) -> list[Finding]:
    """What does not fit, of a model that is called ``subject``."""
    if fit.verdict == "unknown":
        lacks = (
            "the memory is not known" if fit.memory_mib is None else "its keys and values have a form that is not known"
        )
        return [finding("MEMORY_TOO_SMALL", subject, f"not told: {lacks}", "unknown")]
    if fit.verdict == "fits":
        return []
    place = "GPU" if fit.device == "gpu" else "machine"
    left = fit.left_mib or 0
    rest = (
        f"{left} MiB are left, room for {fit.kv_tokens} tokens"
        if left > 0
        else f"{-left} MiB are missing before a single token"
    )
    detail = f"weights take {fit.weights_mib} of the {fit.memory_mib} MiB of a {place}, {rest}, and {fit.needed_tokens} are needed at least"
    if fit.verdict == "tight":
        return [
            finding(
                "MEMORY_TOO_SMALL", subject, f"{detail}; engines were seen to take up to 5 % more for weights", "warn"
            )
        ]
    return [finding("MEMORY_TOO_SMALL", subject, detail)]
