# SPDX-License-Identifier: GPL-3.0-or-later
"""SGLang and vLLM: from a request to a command line, what is refused, and what is told of it."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.engines import options, server
from ansible.module_utils.slipway.engines.plan import ENGINES
from ansible.module_utils.slipway.errors import SlipwayError

BASE: dict[str, t.Any] = {
    "venv": "/opt/env",
    "model_path": "/srv/models/m",
    "model_name": "m",
    "host": "127.0.0.1",
    "port": 8000,
    "launcher": "/opt/bin/serve",
}
SGLANG = {**BASE, "engine": "sglang", "engine_version": "0.5.9"}
VLLM = {**BASE, "engine": "vllm", "engine_version": "0.16.0"}


def plan(base: dict[str, t.Any], **changes: t.Any) -> server.ServerPlan:
    request = server.Request(**{**base, **changes})
    server.check_request(request)
    return ENGINES[request.engine](request)


def test_command_lines() -> None:
    listen = ["--host", "127.0.0.1", "--port", "8000"]
    sglang = plan(SGLANG, tensor_parallel=2, context_length=512, kv_cache_dtype="bf16")
    assert sglang.argv == [
        *("/opt/env/bin/python", "-m", "sglang.launch_server", "--model-path", "/srv/models/m"),
        *("--served-model-name", "m", *listen, "--tensor-parallel-size", "2", "--context-length", "512"),
        *("--kv-cache-dtype", "bf16"),
    ]
    vllm = plan(VLLM, context_length=512, arguments={"enable_prefix_caching": False, "attention-backend": "TRITON_MLA"})
    assert vllm.argv == [
        *("/opt/env/bin/python", "-m", "vllm.entrypoints.openai.api_server", "--model", "/srv/models/m"),
        *("--served-model-name", "m", *listen, "--tensor-parallel-size", "1", "--max-model-len", "512"),
        *("--kv-cache-dtype", "auto", "--attention-backend", "TRITON_MLA", "--no-enable-prefix-caching"),
    ]
    assert (sglang.launcher, vllm.launcher) == (None, None)


@pytest.mark.parametrize(("base", "launcher"), [(SGLANG, "sglang_server.py"), (VLLM, "vllm_server.py")])
def test_with_a_key_it_is_run_by_the_launcher_which_reads_it(base: dict[str, t.Any], launcher: str) -> None:
    done = plan(base, api_key_file="/etc/key")
    assert done.argv[:5] == ["/opt/env/bin/python", "/opt/bin/serve", "--api-key-file", "/etc/key", "--"]
    assert done.argv[5].startswith("--model")
    assert done.launcher == launcher
    with pytest.raises(SlipwayError, match=f"launcher is not given: the path on the guest of {launcher}"):
        plan(base, api_key_file="/etc/key", launcher=None)


def test_the_environment_has_what_compiles_at_run_time() -> None:
    environment = plan(VLLM, environment={"HF_HUB_OFFLINE": "0"}).environment
    assert environment["PATH"].split(":")[:2] == ["/opt/env/bin", "/usr/local/cuda/bin"]
    assert (environment["HF_HUB_OFFLINE"], environment["VLLM_NO_USAGE_STATS"]) == ("0", "1")


@pytest.mark.parametrize(
    ("base", "arguments", "cause"),
    [
        (
            SGLANG,
            {"moe-runner-backend": "flashinfer_cutlas"},
            "argument --moe-runner-backend cannot be 'flashinfer_cutlas': it is one of auto, cutlass, deep_gemm, flashinfer_cutedsl, flashinfer_cutlass, "
            "flashinfer_mxfp4, flashinfer_trtllm, triton, triton_kernel; the nearest is flashinfer_cutlass",
        ),
        (SGLANG, {"mem-fraction-static": "much"}, "argument --mem-fraction-static must be a number, not 'much'"),
        (SGLANG, {"max-running-requests": 1.5}, "argument --max-running-requests must be a whole number, not '1.5'"),
        (SGLANG, {"trust-remote-code": 1}, "argument --trust-remote-code must be true or false, not '1'"),
        (SGLANG, {"tp-size": 8}, "argument --tp-size is set by server.tensor_parallel and cannot be given beside it"),
        (SGLANG, {"model": "/x"}, "argument --model is set by model_path and cannot be given beside it"),
        (
            VLLM,
            {"max-model-len": 5},
            "argument --max-model-len is set by server.context_length and cannot be given beside it",
        ),
        (
            VLLM,
            {"compilation-config": "{a"},
            "argument --compilation-config must be JSON, or a mapping or list, not '{a'",
        ),
    ],
)
def test_refuses(base: dict[str, t.Any], arguments: dict[str, t.Any], cause: str) -> None:
    with pytest.raises(SlipwayError) as caught:
        plan(base, arguments=arguments)
    assert str(caught.value) == cause


def test_one_option_by_two_of_its_names_is_refused() -> None:
    with pytest.raises(SlipwayError, match="argument --ep-size is given twice, as --ep too"):
        plan(SGLANG, arguments={"ep": 8, "ep-size": 8})


def test_a_format_of_keys_and_values_that_the_engine_does_not_have_is_refused() -> None:
    with pytest.raises(SlipwayError, match="--kv-cache-dtype cannot be 'bf16': it is one of auto, bfloat16, fp8"):
        plan(VLLM, kv_cache_dtype="bf16")


def test_mappings_and_lists_are_written_as_the_engine_takes_them() -> None:
    argv = plan(SGLANG, arguments={"model-loader-extra-config": {"num_threads": 16}, "cuda-graph-bs": [1, 2]}).argv
    assert argv[-5:] == ["--cuda-graph-bs", "1", "2", "--model-loader-extra-config", '{"num_threads": 16}']


def test_an_option_that_the_engine_takes_and_ignores_is_told() -> None:
    (found,) = plan(SGLANG, arguments={"hybrid-kvcache-ratio": True}).findings
    assert (found.id, found.severity, found.subject) == ("FLAG_WITHOUT_EFFECT", "warn", "--hybrid-kvcache-ratio")


def test_an_unknown_name_comes_with_the_nearest() -> None:
    (found,) = plan(VLLM, arguments={"gpu-memory-utilisation": 0.9}).findings
    assert (found.id, found.detail) == ("FLAG_UNKNOWN", "vllm: the nearest that it has is --gpu-memory-utilization")


def test_a_release_without_a_table_is_told_and_planned() -> None:
    done = plan(SGLANG, engine_version="0.5.12", arguments={"new-flag": True, "new-list": [1, 2], "new-text": "a"})
    assert done.argv[-6:] == ["--new-flag", "--new-list", "1", "2", "--new-text", "a"]
    (found,) = done.findings
    assert (found.id, found.severity) == ("FLAGS_UNCHECKED", "warn")
    assert found.detail == "Slipway has the options of 0.5.9, 0.5.10.post1, not of 0.5.12"


def test_a_version_that_is_none_is_refused() -> None:
    with pytest.raises(SlipwayError, match="engine_version 'newest' is no version"):
        plan(SGLANG, engine_version="newest")


@pytest.mark.parametrize("release", options.RELEASES)
def test_a_table_is_read_as_it_is_written(release: tuple[str, str]) -> None:
    text = options._TABLES[release].strip()
    table = options.read(text)
    assert options.write(table) == text
    assert {one.kind for one in table} <= {"flag", "switch", "deprecated", "whole", "size", "number", "json", "text"}
    assert len(table) > 200


def test_what_the_tables_say() -> None:
    sglang, vllm = options.known("sglang", "0.5.9"), options.known("vllm", "0.16.0")
    assert sglang and vllm
    assert sglang["model"].names == ("model-path", "model")
    assert sglang["nsa-prefill-backend"].choices == (
        *("aiter", "fa3", "flashmla_auto", "flashmla_kv", "flashmla_sparse", "tilelang", "trtllm"),
    )
    assert "cutlass" not in sglang["fp4-gemm-backend"].choices
    later = options.known("sglang", "0.5.10.post1")
    assert later and "cutlass" in later["fp4-gemm-backend"].choices
    assert ("ssl-certfile" in sglang, "ssl-certfile" in later) == (False, True)
    assert (vllm["enable-prefix-caching"].kind, vllm["max-num-seqs"].kind) == ("switch", "whole")
    assert options.known("vllm", "0.17.0") is None
