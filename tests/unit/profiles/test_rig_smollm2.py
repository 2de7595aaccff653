# SPDX-License-Identifier: GPL-3.0-or-later
"""The shipped profile fits the modules that read it."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

import pytest
import yaml
from ansible.module_utils.slipway.python import lock
from ansible.modules import server_plan


@pytest.fixture
def folder(root: Path) -> Path:
    return root / "profiles/rig-smollm2"


@pytest.fixture
def profile(folder: Path) -> dict[str, t.Any]:
    return yaml.safe_load((folder / "profile.yml").read_text())


def test_the_locks_hold_what_the_profile_says(folder: Path, profile: dict[str, t.Any]) -> None:
    stack = lock.parse((folder / profile["stack"]["lock"]).read_text())
    assert [(one.name, one.version) for one in stack] == [("xllamacpp", profile["engine_version"])]
    wheel = profile["model"]["source"]["wheel"]
    [model] = lock.parse((folder / wheel["lock"]).read_text())
    assert f"{model.name}=={model.version}" == wheel["requirement"]
    assert model.hashes == (f"sha256:{wheel['sha256']}",)
    assert not re.search(r"https?:", "".join(path.read_text() for path in folder.rglob("requirements*")))


def test_the_server_is_planned_without_a_finding(profile: dict[str, t.Any], run_module: t.Any) -> None:
    result = run_module(
        server_plan,
        {
            "engine": profile["engine"],
            "venv": "/opt/env",
            "model_path": f"/srv/{profile['model']['file']}",
            "model_name": profile["model"]["name"],
            "server": profile["server"],
            "gpus": [{"device": "/dev/nvidia0"}],
            "launcher": "/opt/serve",
        },
    )
    assert (result["rc"], result["findings"]) == (0, [])
    assert result["unit"]["OpenFile"] == ["/dev/nvidia0"]
