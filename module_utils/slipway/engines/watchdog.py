# SPDX-License-Identifier: GPL-3.0-or-later
"""How long each phase of a start may take, and what is said of one that takes longer. Pure."""

from __future__ import annotations

import typing as t

from ..errors import SlipwayError
from ..findings import Finding, finding
from .startup import ALLOCATING, CAPTURING, COMPILING, CONNECTING, LOADING, READY, STARTING, WARMING, Progress


class Limit(t.NamedTuple):
    """Seconds without a sign of progress, and seconds of the phase in total. ``why`` is where the figures come from."""

    quiet_seconds: int
    total_seconds: int
    why: str


# Of engines on GPUs. What is measured is of eight GPUs with models of 400 to 600 GB; a limit is well above it, since a start that is cut off
# costs more than a minute of waiting.
_GPU = {
    STARTING: Limit(300, 900, "importing torch and the engine takes 10 to 20 s, from a cold network disk minutes; it says nothing meanwhile"),
    CONNECTING: Limit(180, 300, "eight ranks meet within 5 s; what hangs here is NCCL, which does not come back by itself"),
    LOADING: Limit(900, 7200, "a shard takes seconds; one of 50 GB from a disk with 100 MB/s takes 9 minutes, and some loaders say nothing"),
    ALLOCATING: Limit(300, 600, "it takes seconds; with profiling runs, a minute"),
    COMPILING: Limit(1800, 3600, "kernels that are compiled on the target for the first time take up to half an hour, in silence"),
    CAPTURING: Limit(600, 2400, "33 to 208 s for all graphs, up to 20 s for the first; a hang of 36 minutes was reported (sglang#29580)"),
    WARMING: Limit(660, 900, "a first request compiles kernels; SGLang gives its own warm-up 600 s"),
    READY: Limit(300, 300, "its log says that it serves; a request through its API takes seconds"),
}  # fmt: skip
# llama.cpp on the CPU.
_CPU = {
    STARTING: Limit(60, 120, "its command starts within a second"),
    LOADING: Limit(600, 3600, "it maps its file and then reads all of it, without a word"),
    ALLOCATING: Limit(120, 300, "it takes less than a second"),
    WARMING: Limit(300, 600, "one empty run, which reads the weights"),
    READY: Limit(120, 120, "its log says that it serves"),
}
LIMITS = {"sglang": _GPU, "vllm": _GPU, "llamacpp": {**_GPU, **_CPU}}


def limits(engine: str, changes: t.Mapping[str, t.Mapping[str, t.Any]]) -> dict[str, Limit]:
    """The engine's limits with ``changes`` by phase (``quiet_seconds``, ``total_seconds``).

    Raises ``SlipwayError`` whose message is the cause for a phase or a key that there is not, and for what is no number of seconds.
    """
    made = dict(LIMITS[engine])
    for phase, change in changes.items():
        if phase not in made:
            raise SlipwayError(f"there is no phase '{phase}', only {', '.join(made)}")
        for name, value in change.items():
            if name not in ("quiet_seconds", "total_seconds"):
                raise SlipwayError(f"a phase has quiet_seconds and total_seconds, and no {name}")
            if isinstance(value, bool) or not str(value).isdecimal() or int(value) < 1:
                raise SlipwayError(f"{name} of phase {phase} is '{value}', and no whole number of at least 1")
            made[phase] = made[phase]._replace(**{name: int(value)}, why="as declared")
    return made


def judge(unit: str, engine: str, progress: Progress, limit: Limit, processes: str) -> Finding | None:
    """``SERVER_HUNG``, or ``NCCL_HUNG`` where ranks never met, once a phase is over its limit. ``processes``: what they are at, in words."""
    if progress.quiet_seconds > limit.quiet_seconds:
        how = f"no sign of progress for {progress.quiet_seconds:.0f} s (limit {limit.quiet_seconds} s)"
    elif progress.phase_seconds > limit.total_seconds:
        how = f"it takes {progress.phase_seconds:.0f} s by now (limit {limit.total_seconds} s)"
    else:
        return None
    ranks = progress.phase == CONNECTING and engine != "llamacpp"
    parts = [f"{progress.words}: {how}"]
    if progress.behind:
        parts.append(f"not come so far: {', '.join(progress.behind)}")
    if progress.last:
        parts.append(f"its last word: {progress.last[-300:]}")
    if processes:
        parts.append(processes)
    return finding("NCCL_HUNG" if ranks else "SERVER_HUNG", unit, "; ".join(parts))
