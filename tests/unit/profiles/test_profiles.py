# SPDX-License-Identifier: GPL-3.0-or-later
"""Every shipped profile fits what reads it: its lock, its cases, its figures; and says what has not been proven."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.slipway.p2p import thresholds
from ansible.module_utils.slipway.probe import case_files, cases, throughput
from ansible.module_utils.slipway.python import lock

FOLDERS = sorted(path.parent for path in (Path(__file__).parents[3] / "profiles").glob("*/profile.yml"))
PYTHON_3_12 = {"python_version": "3.12", "python_full_version": "3.12.0", "sys_platform": "linux"}
# What belongs together, by profile: torch decides, everything that is compiled against it follows.
PINS = {
    "glm-5-nvfp4-sglang": {
        "sglang": "0.5.9",
        "torch": "2.9.1",
        "torchvision": "0.24.1",
        "flashinfer-python": "0.6.3",
        "flashinfer-cubin": "0.6.3",
        "sgl-kernel": "0.3.21",
        "transformers": "5.2.0",
        "triton": "3.5.1",
    },
    "glm-5-nvfp4-sglang-0.5.10": {
        "sglang": "0.5.10.post1",
        "torch": "2.9.1",
        "torchvision": "0.24.1",
        "sglang-kernel": "0.4.1",
        "transformers": "5.3.0",
    },
    "kimi-k2.5-nvfp4-vllm": {
        "vllm": "0.16.0",
        "torch": "2.9.1",
        "torchvision": "0.24.1",
        "flashinfer-python": "0.6.3",
        "transformers": "4.57.6",
    },
    "kimi-k2.5-nvfp4-sglang": {
        "sglang": "0.5.9",
        "torch": "2.9.1",
        "torchvision": "0.24.1",
        "nvidia-cudnn-cu12": "9.16.0.29",
        "transformers": "4.57.1",
    },
    "glm-5-gguf-vllm": {"vllm": "0.19.1", "torch": "2.10.0", "torchvision": "0.25.0"},
}


def read(folder: Path) -> dict[str, t.Any]:
    return yaml.safe_load((folder / "profile.yml").read_text())


def locked(folder: Path) -> dict[str, str]:
    text = (folder / read(folder)["stack"]["lock"]).read_text()
    return lock.wanted(lock.parse(text), PYTHON_3_12)


def test_those_of_the_design_are_shipped() -> None:
    assert {folder.name for folder in FOLDERS} == {"rig-smollm2", *PINS}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_profile_has_what_roles_read(folder: Path) -> None:
    profile = read(folder)
    assert profile["name"] == folder.name
    assert set(profile) >= {
        *("summary", "engine", "engine_version", "python", "packages", "stack", "model", "server", "patches"),
        *("start_timeout_seconds", "thresholds", "coherence", "demo", "evidence"),
    }
    needed = {"lock", "target", "imports", "disk_mib"}
    assert needed <= set(profile["stack"]) <= {*needed, "accepted", "cudnn_minimum"}
    assert set(profile["server"]) >= {"port", "tensor_parallel", "context_length", "kv_cache_dtype", "arguments"}
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name) for name in profile["server"]["arguments"])
    assert all(isinstance(value, str) for value in profile["server"]["environment"].values())
    assert set(profile["thresholds"]) <= {
        *throughput.JUDGED,
        "by_concurrency",
        "baseline_warn_ratio",
        "baseline_fail_ratio",
    }
    assert set(profile["throughput"]) == {"concurrency", "prompt_tokens", "output_tokens"}
    assert throughput.not_measured(profile["thresholds"], profile["throughput"]["concurrency"]) == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_its_cases_can_be_asked(folder: Path) -> None:
    profile = read(folder)
    found, _files = case_files.gather(profile["coherence"]["cases"], [])
    asked = cases.read(found)
    assert {case.kind for case in asked} == set(cases.KINDS)
    assert all(turn.expect for case in asked for turn in case.turns if case.kind != "creative")
    longest = max(case.tokens for case in asked)
    # Shared memory ran out from 512 tokens on. What an answer and a tokenizer of other thrift take must fit beside it.
    assert 512 < longest < 0.9 * profile["server"]["context_length"]
    if folder.name in PINS:
        assert longest > 0.8 * profile["server"]["context_length"]


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_was_shown_and_what_was_not_is_said(folder: Path) -> None:
    evidence = read(folder)["evidence"]
    assert evidence
    for entry in evidence:
        assert set(entry) == {"what", "where", "by", "when"}
        assert re.fullmatch(r"20\d\d-\d\d-\d\d", entry["when"])
    if folder.name != "rig-smollm2":
        assert any("Nothing of this profile has run on a GPU" in entry["what"] for entry in evidence)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_its_stack_holds_no_address(folder: Path) -> None:
    for path in (folder / "stack").iterdir():
        assert not re.search(r"https?:|--index|--find-links|--extra-index", path.read_text()), path


@pytest.mark.parametrize("name", PINS)
def test_a_lock_holds_what_belongs_together(root: Path, name: str) -> None:
    folder = root / "profiles" / name
    versions = locked(folder)
    assert {key: versions.get(key) for key in PINS[name]} == PINS[name]
    assert versions[read(folder)["engine"]] == read(folder)["engine_version"]
    assert not {"sglang", "vllm"} <= set(versions), "two engines in one environment"


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_what_is_asked_for_exactly_is_what_is_locked(folder: Path) -> None:
    versions = locked(folder)
    for name in ("requirements.in", "overrides.txt"):
        path = folder / "stack" / name
        for line in path.read_text().splitlines() if path.exists() else []:
            asked = re.fullmatch(r"([A-Za-z0-9._-]+)==(\S+)", line.partition("#")[0].strip())
            if asked:
                assert lock.same_version(versions[lock.normalise(asked[1])], asked[2]), line


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_complaint_is_expected_exactly_where_something_is_overridden(folder: Path) -> None:
    stack = folder / "stack"
    assert (stack / "expected-complaints.txt").exists() == (stack / "overrides.txt").exists()


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_its_patches_are_for_what_is_locked(root: Path, folder: Path) -> None:
    for identity in read(folder)["patches"]:
        patch = yaml.safe_load((root / "patches" / identity / "patch.yml").read_text())
        assert locked(folder)[patch["package"]] in patch["versions"], identity


@pytest.mark.parametrize("name", PINS)
def test_its_figures_for_links_can_be_used(root: Path, name: str) -> None:
    reference = thresholds.read(read(root / "profiles" / name)["links"]["thresholds"])
    assert reference.reference("SYS") < reference.reference("PIX")


@pytest.mark.parametrize(
    ("name", "known"),
    [
        ("glm-5-nvfp4-sglang", "glm-5-sglang-0.5.9.cp312-linux-x86_64.lock"),
        ("kimi-k2.5-nvfp4-vllm", "kimi-k2.5-vllm-0.16.0.cp312-linux-x86_64.lock"),
    ],
)
def test_a_lock_is_the_one_that_was_known_good(root: Path, shared_data: Path, name: str, known: str) -> None:
    good = lock.wanted(lock.parse((shared_data / "stacks" / known).read_text()), PYTHON_3_12)
    assert locked(root / "profiles" / name) == good
