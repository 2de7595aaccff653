# SPDX-License-Identifier: GPL-3.0-or-later
"""What is installed, and what must happen."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.slipway.python import environment
from ansible.module_utils.slipway.python.environment import Plan

LOCKED = {"torch": "2.9.1", "numpy": "2.4.0"}
TORCH_CHANGED = [{"name": "torch", "before": "2.10.0", "after": "2.9.1"}]
AUDIO = [{"name": "torchaudio", "version": "2.9.1"}]


@pytest.mark.parametrize(
    ("installed", "same_lock", "plan"),
    [
        ({"torch": ["2.9.1"], "numpy": ["2.4"]}, True, Plan()),
        ({"torch": ["2.9.1"]}, True, Plan(added=[{"name": "numpy", "version": "2.4.0"}], build=True)),
        ({"torch": ["2.10.0"], "numpy": ["2.4.0"]}, True, Plan(changed=TORCH_CHANGED, build=True)),
        # A person's package stays and is told, unless something must be built anyway.
        ({"torch": ["2.9.1"], "numpy": ["2.4.0"], "torchaudio": ["2.9.1"]}, True, Plan(extra=AUDIO)),
        (
            {"torch": ["2.10.0"], "numpy": ["2.4.0"], "torchaudio": ["2.9.1"]},
            True,
            Plan(changed=TORCH_CHANGED, removed=AUDIO, build=True),
        ),
        (
            {"torch": ["2.9.1"], "numpy": ["2.4.0"], "torchaudio": ["2.9.1"]},
            False,
            Plan(removed=AUDIO, build=True),
        ),
        # Two copies of one distribution: which one is imported is chance.
        (
            {"torch": ["2.10.0", "2.9.1"], "numpy": ["2.4.0"]},
            True,
            Plan(changed=[{"name": "torch", "before": "2.10.0, 2.9.1", "after": "2.9.1"}], build=True),
        ),
    ],
)
def test_plan(installed: dict[str, list[str]], same_lock: bool, plan: Plan) -> None:
    assert environment.plan(LOCKED, installed, same_lock) == plan


@pytest.mark.parametrize(
    ("installed", "said"),
    [
        ({"torch": ["2.9.1"], "numpy": ["2.4"]}, ""),
        ({"torch": ["2.9.1"], "numpy": ["2.4"], "torchaudio": ["2.9.1"]}, ""),
        ({"torch": ["2.10.0"]}, "torch is 2.10.0 in the place of 2.9.1; numpy 2.4.0 is gone"),
        (
            {"torch": ["2.10.0", "2.9.1"], "numpy": ["2.4"]},
            "torch is 2.10.0, 2.9.1 in the place of 2.9.1",
        ),
    ],
)
def test_drift_in_words(installed: dict[str, list[str]], said: str) -> None:
    assert environment.drift(environment.plan(LOCKED, installed, same_lock=True)) == said


def test_an_environment_made_anew_adds_everything() -> None:
    added = [{"name": "numpy", "version": "2.4.0"}, {"name": "torch", "version": "2.9.1"}]
    assert environment.plan(LOCKED, {}, same_lock=True, whole=True) == Plan(added=added, build=True)


def test_reads_installed(tmp_path: Path) -> None:
    for folder, metadata in {
        "Slip_One-1.0.dist-info": "Metadata-Version: 2.1\nName: Slip.One\nVersion: 1.0\n\nVersion: 9\n",
        "slip_two-2.0.dist-info": None,
    }.items():
        (tmp_path / folder).mkdir()
        if metadata:
            (tmp_path / folder / "METADATA").write_text(metadata)
    assert environment.read_installed(tmp_path) == {"slip-one": ["1.0"], "slip-two": ["?"]}
    assert environment.read_installed(tmp_path / "absent") == {}


def test_reads_settings(tmp_path: Path) -> None:
    (tmp_path / "pyvenv.cfg").write_text("home = /usr/bin\nVersion_Info = 3.13.0\nuv = 0.13.9\n\n")
    assert environment.read_settings(tmp_path) == {"home": "/usr/bin", "version_info": "3.13.0", "uv": "0.13.9"}
    assert environment.read_settings(tmp_path / "absent") == {}
