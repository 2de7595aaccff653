# SPDX-License-Identifier: GPL-3.0-or-later
"""Settings that follow from what was measured, and those that do not."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.engines import server, sglang, vllm

CUMEM = ("NCCL_CUMEM_HOST_ENABLE", "0")


def gpus(*nodes: int | None) -> tuple[dict[str, t.Any], ...]:
    return tuple({"bus_id": f"0000:{9 - at}1:00.0", "numa_node": node} for at, node in enumerate(nodes))


def links(*classes: str, verdict: str = "ok", **changed: t.Any) -> dict[str, t.Any]:
    row = {"can_access": True, "integrity": "intact"}
    return {"verdict": verdict, "pairs": [{**row, "path_class": one, **changed} for one in classes]}


def derived(engine: str = "vllm", **changes: t.Any) -> list[tuple[str, str]]:
    version = {"sglang": "0.5.9", "vllm": "0.16.0"}[engine]
    base: dict[str, t.Any] = {"engine": engine, "engine_version": version, "venv": "/e", "model_path": "/m"}
    base |= {"model_name": "m", "host": "::1", "port": 1, "tensor_parallel": 2}
    made = {"sglang": sglang, "vllm": vllm}[engine].plan(server.Request(**{**base, **changes}))
    for one in made.derived:
        assert one.why
        if one.setting.isupper():
            assert made.environment[one.setting] == one.value
        else:
            assert made.argv[-len(one.value.split()) - 1 :] == [one.setting, *one.value.split()]
    return [(one.setting, one.value) for one in made.derived]


@pytest.mark.parametrize(
    ("classes", "settings"),
    [
        (("PIX",), [("NCCL_P2P_LEVEL", "PIX")]),
        (("PIX", "PXB"), [("NCCL_P2P_LEVEL", "PXB")]),
        (("PIX", "NODE"), [("NCCL_P2P_LEVEL", "PHB"), ("NCCL_MIN_NCHANNELS", "8")]),
        (("NODE", "SYS"), [("NCCL_P2P_LEVEL", "SYS"), ("NCCL_MIN_NCHANNELS", "8")]),
    ],
)
def test_proven_links(classes: tuple[str, ...], settings: list[tuple[str, str]]) -> None:
    assert derived(links=links(*classes)) == [CUMEM, *settings]


@pytest.mark.parametrize("verdict", ["corrupt", "hung"])
def test_links_that_lose_data_are_not_used(verdict: str) -> None:
    assert derived(links=links("SYS", verdict=verdict)) == [CUMEM, ("NCCL_P2P_DISABLE", "1")]


def test_a_pair_that_lost_data_counts_whatever_the_verdict() -> None:
    assert derived(links=links("SYS", integrity="faulty")) == [CUMEM, ("NCCL_P2P_DISABLE", "1")]


@pytest.mark.parametrize(
    "measured",
    [{}, links("SYS", can_access=False), links("SYS", integrity="unknown"), {"verdict": "ok", "pairs": [{}]}],
)
def test_nothing_follows_from_what_was_not_proven(measured: dict[str, t.Any]) -> None:
    assert derived(links=measured) == [CUMEM]


def test_what_the_profile_says_stands() -> None:
    own = {"NCCL_P2P_LEVEL": "PXB", "NCCL_CUMEM_HOST_ENABLE": "1"}
    assert derived(links=links("SYS"), environment=own) == [("NCCL_MIN_NCHANNELS", "8")]
    assert derived(links=links("SYS", verdict="corrupt"), environment={**own, "NCCL_MIN_NCHANNELS": "4"}) == []


def test_one_gpu_needs_none_of_it() -> None:
    assert derived(tensor_parallel=1, links=links("SYS"), gpus=gpus(0)) == []


def test_ranks_of_sglang_are_near_their_gpus() -> None:
    numa = [("--numa-node", "1 0"), ("CUDA_DEVICE_ORDER", "PCI_BUS_ID"), ("SGLANG_NUMA_BIND_V2", "0")]
    assert derived("sglang", gpus=gpus(0, 1)) == [CUMEM, *numa], "in the order of the addresses"
    assert derived("sglang", gpus=gpus(0, 1), environment={"SGLANG_NUMA_BIND_V2": "1"}) == [CUMEM, *numa[:2]]


@pytest.mark.parametrize(
    "changes",
    [
        {"gpus": gpus(0, 0)},
        {"gpus": gpus(0, None)},
        {"gpus": gpus(0, -1)},
        {"gpus": gpus(0, 1, 1)},
        {"gpus": gpus(0, 1), "arguments": {"numa_node": [0, 1]}},
        {"gpus": gpus(0, 1), "environment": {"CUDA_DEVICE_ORDER": "FASTEST_FIRST"}},
        {"gpus": gpus(0, 1), "environment": {"CUDA_VISIBLE_DEVICES": "1,0"}},
    ],
)
def test_ranks_are_left_where_it_is_not_known_or_said(changes: dict[str, t.Any]) -> None:
    assert derived("sglang", **changes) == [CUMEM]
