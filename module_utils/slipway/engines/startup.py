# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a server is in its start, read from the lines of its engine's log. Pure.

Lines are as in logs of SGLang 0.5.8 and vLLM 0.20 from machines with eight GPUs, in the sources of SGLang 0.5.9, and as Slipway's launcher and
llama.cpp (xllamacpp 2026.10) write them. Progress bars come as one line a step because the unit says so (TQDM_BAR_FORMAT); a bar that was written over itself
is read by its last step.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

STARTING, CONNECTING, LOADING, ALLOCATING = "starting", "connecting", "loading", "allocating"
COMPILING, CAPTURING, WARMING, READY = "compiling", "capturing", "warming", "ready"

# In the words of the field: without a count, and with one (the number of what is being done, from 1).
WORDS = {
    STARTING: ("starting", ""),
    CONNECTING: ("connecting the GPUs", ""),
    LOADING: ("loading weights", "loading shard {number} of {total}"),
    ALLOCATING: ("allocating KV cache", ""),
    COMPILING: ("compiling kernels", "compiling kernels {number} of {total}"),
    CAPTURING: ("capturing CUDA graphs", "capturing CUDA graphs {number} of {total}"),
    WARMING: ("warming up", ""),
    READY: ("ready", ""),
}

# What says that a phase has begun or goes on; the first that fits counts.
_SGLANG = {
    # It repeats its arguments, which hold words of every phase.
    r"server_args=ServerArgs": STARTING,
    r"The server is fired up": READY,
    r"max_total_num_tokens=|Started server process|Application startup complete|Uvicorn running": WARMING,
    r"Capture .*graph (?:begin|end)|Capturing (?:batches|num tokens)": CAPTURING,
    r"[Aa]utotun|DeepGEMM (?:JIT|warmup)|Init attention backend|JIT ops|\[\d+/\d+\] (?:\S*nvcc|c\+\+|g\+\+)": COMPILING,
    r"Load weight end|Loading weights took|KV [Cc]ache|Memory pool end": ALLOCATING,
    r"Init torch distributed ends|Load weight begin|Beginning to load weights|[Ll]oading .*(?:shards|checkpoint|base model)": LOADING,
    r"Init torch distributed begin|using nccl==|\[Gloo\] Rank": CONNECTING,
}
_VLLM = {
    r"non-default args|Initializing a V1 LLM engine": STARTING,
    r"Application startup complete": READY,
    r"Graph capturing finished|init engine \(|Starting vLLM|Started server process|Waiting for application startup": WARMING,
    r"Capturing (?:CUDA|cuda) graph": CAPTURING,
    r"Available KV cache memory|GPU KV cache size|Maximum concurrency for": ALLOCATING,
    r"Model loading took|torch\.compile|Dynamo bytecode|[Cc]ompil(?:e|ing) (?:a|the) graph|compile range|AOT compiled|[Pp]rofiling"
    r"|[Pp]re-?warm|[Aa]utotun|\[\d+/\d+\] (?:\S*nvcc|c\+\+|g\+\+)": COMPILING,
    r"Starting to load model|[Ll]oading .*(?:safetensor|shards|checkpoint)|Loading weights took": LOADING,
    r"world_size=\d+ rank=|using nccl==|\[Gloo\] Rank": CONNECTING,
}
_LLAMACPP = {
    r"llamacpp-server: serving|listening on http": READY,
    r"warming up the model|model loaded": WARMING,
    r"llama_kv_cache|llama_context:|threadpool init|initializing, n_slots": ALLOCATING,
    r"llamacpp-server: loading|loading model|load_tensors:": LOADING,
}
_SIGNS = {
    engine: [(re.compile(pattern), phase) for pattern, phase in table.items()]
    for engine, table in {"sglang": _SGLANG, "vllm": _VLLM, "llamacpp": _LLAMACPP}.items()
}
ENGINES = tuple(_SIGNS)

# "  8% Completed | 5/64 [00:01<00:16,  3.57it/s]", "1/35 [00:00<00:19,  1.78it/s]"
_COUNT = re.compile(r"\b(\d+)/(\d+) \[\d+:\d\d")
# "[2026-01-29 01:13:12 TP5] ", "(Worker_TP0 pid=350) INFO 05-15 03:31:21 [cuda.py:313] "
_PREFIX = re.compile(
    r"^(?:\[\d{4}-\d\d-\d\d [\d:]+((?: \w+)*)\] |((?:\([\w ]+ ?(?:pid=\d+)?\) )+))?"
    r"(?:(?:DEBUG|INFO|WARNING|ERROR) \d\d-\d\d [\d:]+ \[[\w.]+:\d+\] )?"
)
_RANK = re.compile(r"(?:TP|PP|DP|EP)\d+")
# Says nothing about the start: requests (the probe's own among them), and vLLM's word that a worker keeps it waiting.
_NOISE = re.compile(
    r'"(?:GET|POST|HEAD|OPTIONS) /\S* HTTP/1|No available shared memory broadcast block|[Hh]ealth check|^\s*$'
)


@dataclass(frozen=True)
class Line:
    """One line of a log. ``seconds`` is of any clock, the same for all of them."""

    seconds: float
    text: str


@dataclass(frozen=True)
class Progress:
    """Where a start is. ``done`` of ``total`` are finished. ``quiet_seconds``: since the last sign of progress; ``last`` is the last line that was one.

    ``behind`` are ranks that have not said that they came to this phase, where others did.
    """

    phase: str
    done: int | None
    total: int | None
    phase_seconds: float
    quiet_seconds: float
    last: str
    behind: tuple[str, ...] = ()

    @property
    def words(self) -> str:
        """The phase in the field's words, with its count where it has one."""
        plain, counted = WORDS[self.phase]
        if not counted or self.done is None or not self.total:
            return plain
        return counted.format(number=min(self.done + 1, self.total), total=self.total)


def split(text: str) -> tuple[str, str]:
    """The rank that a line is of (empty where it does not say) and what it says, without time and place."""
    found = _PREFIX.match(text)
    head = found[0] if found else ""
    return " ".join(_RANK.findall(head)), text[len(head) :]


def first(rank: str) -> bool:
    """Whether it is the first of all ranks, or none."""
    return not re.search("[1-9]", rank)


def sign(engine: str, text: str) -> tuple[str, int | None, int | None] | None:
    """The phase that a line tells of, with how much of it is done of how much; ``None`` where it tells of none."""
    phase = next((phase for pattern, phase in _SIGNS[engine] if pattern.search(text)), None)
    if phase is None:
        return None
    counts = _COUNT.findall(text) if WORDS[phase][1] else []
    return (phase, int(counts[-1][0]), int(counts[-1][1])) if counts else (phase, None, None)


def read(engine: str, lines: t.Iterable[Line], started: float, now: float) -> Progress:
    """Where the start is at ``now``, by the lines since it was ``started``, the oldest first.

    The first rank (or who names none) tells the phase; what the others say shows only that they live. A line that says again what one of the
    same phase and rank said, with other numbers, is no progress: programs repeat themselves while they wait.
    """
    phase, done, total = STARTING, None, None
    since = lived = started
    last = ""
    said: set[tuple[str, str]] = set()
    ranks: dict[str, set[str]] = {}
    for line in lines:
        if _NOISE.search(line.text):
            continue
        rank, rest = split(line.text)
        told = sign(engine, rest)
        if rank:
            ranks.setdefault(rank, set()).update(told[:1] if told else ())
        if told and first(rank):
            if told[0] != phase:
                phase, done, total, since = told[0], None, None, line.seconds
                said.clear()
            if told[2] is not None and (done, total) != told[1:]:
                done, total = told[1:]
                lived, last = line.seconds, line.text
        key = (rank, re.sub(r"[\d.]+", "#", rest))
        if key not in said:
            said.add(key)
            lived, last = line.seconds, line.text
    came = [rank for rank, phases in ranks.items() if phase in phases]
    # Some phases only the first rank tells of.
    behind = sorted(set(ranks) - set(came)) if len(came) > 1 else []
    return Progress(phase, done, total, now - since, now - lived, last.strip(), tuple(behind))
