# SPDX-License-Identifier: GPL-3.0-or-later
"""Tuned kernel settings: their names, what they ask for, and what is wrong with them."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.slipway.engines import moe_config

SERVER = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
DEVICE = SERVER.replace(" ", "_")
FILE = f"E=257,N=256,device_name={DEVICE},dtype=fp8_w8a8.json"
SETTING = {"BLOCK_SIZE_M": 64, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 1, "num_warps": 4}
GOOD = {**SETTING, "num_stages": 3}
# The default of SGLang for FP8, which sglang issue 28019 is about.
TOO_LARGE = {**SETTING, "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 256, "num_stages": 4}


def check(file: str = FILE, engine: str = "sglang", sm: int | None = 120, **settings: t.Any) -> list[tuple[str, str]]:
    content = json.dumps({key.lstrip("b"): value for key, value in (settings or {"b1": GOOD}).items()})
    return [(one.id, one.detail) for one in moe_config.check(file, content, engine, sm, [SERVER])]


@pytest.mark.parametrize(
    ("name", "sglang", "vllm"),
    [
        (moe_config.Name(257, 256, "X"), "E=257,N=256,device_name=X.json", "E=257,N=256,device_name=X.json"),
        (
            moe_config.Name(256, 256, "X", "fp8_w8a8", (128, 128)),
            "E=256,N=256,device_name=X,dtype=fp8_w8a8,block_shape=[128, 128].json",
            "E=256,N=256,device_name=X,dtype=fp8_w8a8,block_shape=[128,128].json",
        ),
    ],
)
def test_names(name: moe_config.Name, sglang: str, vllm: str) -> None:
    assert (name.of("sglang"), name.of("vllm")) == (sglang, vllm)
    assert moe_config.read_name(sglang) == moe_config.read_name(vllm) == name


def test_names_that_sglang_alone_has() -> None:
    text = "E=8,N=64,device_name=X,dtype=fp8_w8a8,per_channel_quant=True_down.json"
    name = moe_config.read_name(text)
    assert (name.per_channel, name.down, name.of("sglang")) == (True, True, text)


def test_devices_are_named_as_torch_does() -> None:
    assert moe_config.device_name(SERVER, "sglang") == "NVIDIA_RTX_PRO_6000_Blackwell_Server_Edition"
    assert moe_config.device_name("NVIDIA H200 NVL", "vllm") == "NVIDIA_H200"
    assert moe_config.device_name("NVIDIA H200 NVL", "sglang") == "NVIDIA_H200_NVL"


def test_the_estimate_is_what_triton_told() -> None:
    assert moe_config.shared_memory(TOO_LARGE, "fp8_w8a8") == 147456


@pytest.mark.parametrize(
    ("dtype", "stages", "size"), [("", 3, 98304), ("fp8_w8a8", 3, 49152), ("int4_w4a16", 3, 49152), ("", 1, 49152)]
)
def test_what_a_setting_asks_for(dtype: str, stages: int, size: int) -> None:
    assert moe_config.shared_memory({**SETTING, "num_stages": stages}, dtype) == size


def test_a_good_file() -> None:
    assert check(b1=GOOD, b64=GOOD) == []


def test_one_that_does_not_fit() -> None:
    told = "for 1 of 2 batch sizes; the worst, 4096, asks for 147456 bytes of 101376"
    assert check(b1=GOOD, b4096=TOO_LARGE) == [("MOE_CONFIG_TOO_LARGE", told)]
    assert check(b1=GOOD, b4096=TOO_LARGE, sm=90) == []
    assert check(b1=GOOD, b4096=TOO_LARGE, sm=None) == []


def test_one_of_another_gpu() -> None:
    other = FILE.replace("Server", "Max-Q_Workstation")
    ((identity, detail),) = check(other)
    assert identity == "MOE_CONFIG_OTHER_GPU"
    assert detail.endswith(f"_Max-Q_Workstation_Edition, and here is {DEVICE}")


@pytest.mark.parametrize(
    ("file", "engine"),
    [("moe.json", "sglang"), (FILE.replace("_", " "), "sglang"), (FILE[:-5] + ",block_shape=[128, 128].json", "vllm")],
)
def test_a_name_that_the_engine_does_not_look_for(file: str, engine: str) -> None:
    ((identity, detail),) = check(file, engine)
    assert identity == "MOE_CONFIG_INVALID"
    assert "look" in detail


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        ("{", "it is no JSON"),
        ("[]", "it holds no mapping"),
        ('{"triton_version": "3.5.1"}', "it holds no batch size"),
        ('{"many": {}}', "'many' is no batch size"),
        (json.dumps({"1": SETTING}), "batch size 1 has no whole number of at least 1 as num_stages"),
        (json.dumps({"1": {**GOOD, "num_warps": True}}), "as num_warps"),
        (json.dumps({"1": {**GOOD, "BLOCK_SIZE_N": 96}}), "BLOCK_SIZE_N that is no power of two"),
    ],
)
def test_content_that_is_none(content: str, cause: str) -> None:
    (found,) = moe_config.check(FILE, content, "sglang", 120, [])
    assert found.id == "MOE_CONFIG_INVALID"
    assert cause in found.detail


def test_places() -> None:
    assert moe_config.place("sglang", "a.json", "3.5.1") == "configs/triton_3_5_1/a.json"
    assert moe_config.place("vllm", "a.json", "3.5.1") == "a.json"
