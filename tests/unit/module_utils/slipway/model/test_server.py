# SPDX-License-Identifier: GPL-3.0-or-later
"""What a profile's server means in numbers."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.model import server


def test_a_server_that_says_nothing() -> None:
    found = server.of("vllm", "0.16.0", {})
    assert (found.gpus, found.expert_ranks, found.attention, found.context_length, found.kv_cache_dtype) == (
        1,
        1,
        1,
        0,
        "auto",
    )


def test_arguments_with_underscores_are_the_same() -> None:
    found = server.of("sglang", "0.5.9", {"arguments": {"trust_remote_code": True, "attention_backend": "triton"}})
    assert (found.trust_remote_code, found.attention_backend) == (True, "triton")


@pytest.mark.parametrize("value", [0, -1, "two", 1.5e-3, [2]])
def test_sizes_that_are_none(value: t.Any) -> None:
    with pytest.raises(ValueError, match="server argument data-parallel-size is"):
        server.of("vllm", "0.16.0", {"arguments": {"dp-size": value}})


@pytest.mark.parametrize(
    ("engine", "arguments", "images", "fraction"),
    [
        ("vllm", {}, False, 0.9),
        ("vllm", {"gpu-memory-utilization": 0.93}, False, 0.93),
        ("sglang", {"mem-fraction-static": 0.85}, True, 0.85),
        # 13,204 MiB for prefill and graphs of 97,887 (SGLang 0.5.9, on eight GPUs): 512 + 8192 x 1.5 + 512 x 2 + 1024
        ("sglang", {}, False, 0.848),
        ("sglang", {}, True, 0.806),
        # It keeps ten GiB at least.
        ("sglang", {"chunked-prefill-size": 2048, "cuda-graph-max-bs": 8}, False, 0.895),
    ],
)
def test_how_much_it_may_take(engine: str, arguments: dict[str, t.Any], images: bool, fraction: float) -> None:
    asked = server.of(engine, "0.5.9", {"tensor_parallel": 8, "arguments": arguments})
    found, words, note = server.memory(asked, 97887, images)
    assert found == fraction
    assert str(fraction) in words
    assert bool(note) is not bool({"gpu-memory-utilization", "mem-fraction-static"} & set(arguments))
