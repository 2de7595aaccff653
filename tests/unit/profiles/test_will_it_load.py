# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of engines and GPUs, held against every shipped profile for GPUs. Environments are looked at elsewhere."""

from __future__ import annotations

import typing as t
from pathlib import Path

import model_headers
import pytest
import yaml
from ansible.module_utils.slipway.model import config, divide, fit, kv, rules, server, share, verdicts

PROFILES = Path(__file__).parents[3] / "profiles"
SM, MEMORY_MIB, GPUS = 120, 97887, 8
# Its profile calls it not expected to serve: no release of its engine had sparse attention for this GPU yet.
KNOWN = {"glm-5-gguf-vllm": ["ATTENTION_BACKEND_NONE"]}
NAMES = sorted(
    path.parent.name for path in PROFILES.glob("*/profile.yml") if "engine: llamacpp" not in path.read_text()
)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("glm-5")])
def test_glm_5(name: str) -> None:
    profile: dict[str, t.Any] = yaml.safe_load((PROFILES / name / "profile.yml").read_text())
    model = config.of(model_headers.GLM_5)
    asked = server.of(profile["engine"], profile["engine_version"], profile["server"])
    found = verdicts.identity(model, profile["model"]["type"], profile["model"]["architecture"], name)
    found += divide.findings(model, asked, GPUS, name)
    found += rules.findings(model, asked, kv.stored(model, asked, SM), SM, name)
    held = share.share(model_headers.latent(model_headers.GLM_5), model, asked)
    found += fit.findings(fit.on_gpus(model, asked, held, kv.cache(model, asked, SM), MEMORY_MIB), name)
    assert [one.id for one in found] == KNOWN.get(name, [])
