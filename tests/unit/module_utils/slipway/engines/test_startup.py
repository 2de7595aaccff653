# SPDX-License-Identifier: GPL-3.0-or-later
"""Where a start is, by lines as the engines write them; the real logs are read where they are at hand."""

from __future__ import annotations

import re
import typing as t
from datetime import datetime
from pathlib import Path

import pytest
from ansible.module_utils.slipway.engines import log_faults, startup

TP0 = "[2026-01-29 00:50:31 TP0] "
WORKER = "(Worker_TP0 pid=350) INFO 05-15 03:31:21 [gpu_model_runner.py:5333] "


def read(engine: str, *texts: str, now: float = 100.0) -> startup.Progress:
    """The lines come a second apart, the first at 1."""
    lines = [startup.Line(float(number), text) for number, text in enumerate(texts, 1)]
    return startup.read(engine, lines, 0.0, now)


@pytest.mark.parametrize(
    ("engine", "text", "words"),
    [
        ("sglang", "[2026-01-29 00:30:05] server_args=ServerArgs(autotune=1, kv_cache_dtype='auto')", "starting"),
        ("sglang", TP0 + "Init torch distributed begin.", "connecting the GPUs"),
        ("sglang", TP0 + "Load weight begin. avail mem=94.08 GB", "loading weights"),
        ("sglang", "Loading safetensors checkpoint shards:   8% Completed | 5/64 [00:01<00:16,  3.57it/s]", "loading shard 6 of 64"),
        ("sglang", "Multi-thread loading shards: 100% Completed | 47/47 [00:36<00:00,  1.3it/s]", "loading shard 47 of 47"),
        ("sglang", TP0 + "Load weight end. elapsed=85.78 s, type=X, avail mem=21.82 GB", "allocating KV cache"),
        ("sglang", TP0 + "KV Cache is allocated. #tokens: 4578, KV size: 0.30 GB", "allocating KV cache"),
        ("sglang", TP0 + "Running FlashInfer autotune...", "compiling kernels"),
        ("sglang", "DeepGEMM warmup:  10%|| 819/8192 [00:10<01:30, 81.2it/s]", "compiling kernels 820 of 8192"),
        ("sglang", TP0 + "Capture cuda graph begin. This can take up to several minutes.", "capturing CUDA graphs"),
        ("sglang", "Capturing batches (bs=16 avail_mem=9.1 GB):  20%|| 7/35 [00:02<00:08,  3.1it/s]", "capturing CUDA graphs 8 of 35"),
        ("sglang", "[2026-01-29 00:50:32] INFO:     Application startup complete.", "warming up"),
        ("sglang", "[2026-01-29 01:15:03] The server is fired up and ready to roll!", "ready"),
        ("vllm", "(EngineCore pid=310) INFO 05-15 03:31:06 [core.py:109] Initializing a V1 LLM engine (v0.16.0) with config: compile", "starting"),
        ("vllm", "(Worker pid=350) INFO 05-15 03:31:17 [parallel_state.py:1427] world_size=8 rank=0 local_rank=0", "connecting the GPUs"),
        ("vllm", WORKER + "Starting to load model lukealonso/GLM-5.1-NVFP4-MTP...", "loading weights"),
        ("vllm", "(Worker_TP0 pid=350) Loading safetensors using Fastsafetensor loader:  18% Completed | 2/11 [00:08<00:37,  4.14s/it]", "loading shard 3 of 11"),
        ("vllm", WORKER + "Model loading took 55.67 GiB memory and 44.557197 seconds", "compiling kernels"),
        ("vllm", WORKER + "torch.compile took 40.64 s in total", "compiling kernels"),
        ("vllm", WORKER + "Available KV cache memory: 19.55 GiB", "allocating KV cache"),
        ("vllm", WORKER + "Graph capturing finished in 33 secs, took 1.22 GiB", "warming up"),
        ("vllm", "(APIServer pid=1) INFO:     Application startup complete.", "ready"),
        ("llamacpp", "llamacpp-server: loading /srv/models/m.gguf", "loading weights"),
        ("llamacpp", "0.00.006.640 I srv    load_model: loading model '/srv/models/m.gguf'", "loading weights"),
        ("llamacpp", "0.01.439.621 I srv    load_model: initializing, n_slots = 1, n_ctx_slot = 2048, kv_unified = 'false'", "allocating KV cache"),
        ("llamacpp", "0.01.444.243 I srv          init: model loaded", "warming up"),
        ("llamacpp", "0.01.444.962 I srv          init: listening on http://127.0.0.1:18443", "ready"),
        ("llamacpp", "llamacpp-server: serving m at http://0.0.0.0:8000 with an API key", "ready"),
        ("llamacpp", "something else", "starting"),
    ],
)  # fmt: skip
def test_words(engine: str, text: str, words: str) -> None:
    assert read(engine, text).words == words


def test_a_bar_that_was_written_over_itself_is_read_by_its_last_step() -> None:
    step = "Capturing CUDA graphs (decode, FULL):  {}%|█| {}/11 [00:17<02:58, 17.82s/it]"
    text = "(Worker_TP0 pid=350) " + "\r".join(step.format(9 * done, done) for done in range(4))
    assert read("vllm", text).words == "capturing CUDA graphs 4 of 11"


def test_only_the_first_rank_tells_the_phase_and_all_show_that_they_live() -> None:
    found = read(
        "sglang", TP0 + "Load weight end. elapsed=8 s", "[2026-01-29 00:50:31 TP5] Load weight begin.", now=10.0
    )
    assert (found.words, found.phase_seconds, found.quiet_seconds) == ("allocating KV cache", 9.0, 8.0)
    assert read("vllm", "(Worker_TP3 pid=353) INFO 05-15 03:31:21 [x.py:1] torch.compile took 4 s").phase == "starting"


def test_who_is_behind() -> None:
    begin = [f"[2026-01-29 00:50:31 DP0 TP{rank}] Load weight begin." for rank in range(4)]
    end = [f"[2026-01-29 00:50:39 DP0 TP{rank}] Load weight end. elapsed=8 s" for rank in (0, 1, 3)]
    assert read("sglang", *begin, *end).behind == ("DP0 TP2",)
    # One alone proves nothing: of some phases only the first rank tells.
    assert read("sglang", *begin, end[0]).behind == ()


def test_a_draft_model_is_loaded_after_the_first_was_captured() -> None:
    begin = TP0 + "Capture cuda graph begin."
    assert read("sglang", begin, TP0 + "Load weight begin. avail mem=20 GB").words == "loading weights"


@pytest.mark.parametrize(
    "text",
    [
        '[2026-01-29 00:50:33] INFO:     127.0.0.1:59942 - "GET /health HTTP/1.1" 503 Service Unavailable',
        "(EngineCore pid=310) INFO 05-15 03:34:19 [shm_broadcast.py:698] No available shared memory broadcast block found in 60 seconds.",
        "",
        TP0 + "waiting for 9 tensors, 40 s",
    ],
)
def test_what_is_no_progress(text: str) -> None:
    found = read("sglang", TP0 + "Load weight begin.", TP0 + "waiting for 7 tensors, 30 s", text, text, now=50.0)
    assert (found.quiet_seconds, found.last) == (48.0, TP0 + "waiting for 7 tensors, 30 s")


def test_the_same_words_with_another_count_are_progress() -> None:
    shards = [
        f"Loading safetensors checkpoint shards: 5% Completed | {done}/64 [00:0{done}<00:16]" for done in (3, 4, 4)
    ]
    found = read("sglang", *shards, now=50.0)
    assert (found.done, found.quiet_seconds, found.phase_seconds) == (4, 48.0, 49.0)


def test_a_log_without_a_line_counts_from_the_start() -> None:
    assert (read("vllm").words, read("vllm").quiet_seconds, read("vllm").last) == ("starting", 100.0, "")


@pytest.fixture
def logs(shared_data: Path) -> Path:
    return shared_data / "field/server-logs"


class Log(t.NamedTuple):
    """A real log: its lines, the phases that whoever looks each second would see first, and how long each was quiet at most."""

    texts: list[str]
    phases: list[str]
    longest: dict[str, float]


def real(engine: str, path: Path) -> Log:
    lines: list[startup.Line] = []
    first, seconds = None, 0.0
    phases: list[str] = []
    longest: dict[str, float] = {}
    for text in path.read_bytes().decode("utf-8").split("\n"):
        told = re.search(r"(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)", text)
        if told:
            at = datetime(2026, *(int(part) for part in told.groups())).timestamp()  # type: ignore[arg-type]
            first = at if first is None else first
            if at - first > seconds and len(lines) < 420:  # the start; what follows are requests, or a traceback
                before = startup.read(engine, lines, 0.0, at - first)
                longest[before.phase] = max(longest.get(before.phase, 0.0), before.quiet_seconds)
                phases.append(before.phase)
            seconds = at - first
        lines.append(startup.Line(seconds, text))
    phases.append(startup.read(engine, lines, 0.0, seconds).phase)
    return Log([line.text for line in lines], list(dict.fromkeys(phases)), longest)


def test_a_real_log_of_sglang_that_crashed(logs: Path) -> None:
    log = real("sglang", logs / "sglang-kimi-k2-nvfp4.log")
    # Its own warm-up was short enough to pass.
    assert log.phases == ["starting", "connecting", "loading", "allocating", "compiling", "ready"]
    assert log.longest["loading"] == 812.0  # it fetched its weights, without a word
    (found,) = log_faults.find("serve.service", "sglang", log.texts)
    assert (found.id, found.detail[:56]) == (
        "KERNEL_SHARED_MEMORY",
        "106496 bytes are asked for, the GPU has 101376; attentio",
    )


def test_a_real_log_of_sglang_that_serves(logs: Path) -> None:
    log = real("sglang", logs / "sglang-kimi-k2.5-int4.log")
    assert log.phases == ["starting", "connecting", "loading", "allocating", "warming", "ready"]
    assert log_faults.find("serve.service", "sglang", log.texts) == []


def test_a_real_log_of_vllm_that_serves(logs: Path) -> None:
    log = real("vllm", logs / "vllm-glm-5.1.log")
    assert log.phases == ["starting", "connecting", "loading", "compiling", "capturing", "warming", "ready"]
    assert log.longest["compiling"] == 42.0  # a forward pass over its largest batch, for the first time
    assert log_faults.find("serve.service", "vllm", log.texts) == []
