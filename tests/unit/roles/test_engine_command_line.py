# SPDX-License-Identifier: GPL-3.0-or-later
"""The role's plan of a server: held against the engine's own parser where there is an environment, and its tuned kernels put in place."""

from __future__ import annotations

import os
import typing as t
from pathlib import Path

import engine_environment
import pytest
from role_part import Part

GIVEN = {
    "profile": "glm-5-nvfp4-sglang",
    "inference_server_api_key": "x",
    "inference_server_endpoint": "http://x/v1",
    "__inference_server_model": "/srv/model",
}


@pytest.fixture
def part(tmp_path: Path, root: Path) -> Part:
    return Part(tmp_path, root)


def test_without_an_environment_it_is_said(part: Part) -> None:
    code, said = part("inference_server", "plan", "--check", inference_server_venv=str(part.folder / "none"), **GIVEN)
    assert code == 0, said
    assert "not held against sglang's own parser: its environment is not there yet." in said.replace("\n", " ")


def test_what_the_engine_refuses_ends_the_run(part: Part) -> None:
    venv = engine_environment.sglang(part.folder / "env")
    code, said = part("inference_server", "plan", inference_server_venv=str(venv), **GIVEN)
    assert code == 2, said
    assert "COMMAND_LINE_REFUSED, sglang" in said and "unrecognized arguments: --served-model-name glm-5" in said


def test_tuned_kernels_are_written_and_others_removed(part: Part) -> None:
    folder = part.folder / "kernels"
    (folder / "configs").mkdir(parents=True)
    (folder / "configs" / "old.json").write_text("{}")
    name = "E=8,N=64,device_name=X,dtype=fp8_w8a8,block_shape=[128, 128].json"
    path = folder / "configs/triton_3_5_1" / name
    variables: dict[str, t.Any] = {
        "__inference_server_kernels_directory": str(folder),
        "inference_server_plan": {"kernels": [{"path": str(path), "content": '{"1": {}}'}]},
        **GIVEN,
    }
    if os.getuid():
        pytest.skip("files of root")
    code, said = part("inference_server", "kernels", **variables)
    assert code == 0, said
    assert [one.relative_to(folder).name for one in folder.rglob("*.json")] == [name]
    assert path.read_text() == '{"1": {}}'
    code, said = part("inference_server", "kernels", **variables)
    assert (code, "changed=0" in said) == (0, True), said


def test_the_profiles_tuned_kernels_are_judged(part: Part, root: Path) -> None:
    folder = part.folder / "catalog" / "tuned"
    (folder / "kernels").mkdir(parents=True)
    shipped = (root / "profiles/glm-5-nvfp4-sglang/profile.yml").read_text()
    (folder / "profile.yml").write_text(f"{shipped}\nkernels: {{folder: kernels, triton: 3.5.1}}\n")
    (folder / "kernels" / "E=8,N=64,device_name=X,block_shape=[128, 128].json").write_text("{}")
    given = {**GIVEN, "profile": "tuned", "slipway_catalog": [str(part.folder / "catalog")]}
    code, said = part("inference_server", "plan", inference_server_venv="/none", **given)
    assert code == 2, said
    assert "MOE_CONFIG_INVALID, E=8,N=64,device_name=X,block_shape=[128, 128].json" in said.replace("\n", " ")
    assert "it holds no batch size" in said.replace("\n", " ")


def test_nothing_is_tuned_without_the_tuner(part: Part) -> None:
    code, said = part("inference_server", "tune", inference_server_venv="/none", **GIVEN)
    assert code == 2, said
    assert "is no checkout of sglang with benchmark/kernels/fused_moe_triton." in said.replace("\n", " ")
    assert "Set it to one of release 0.5.9 on the controller." in said.replace("\n", " ")
