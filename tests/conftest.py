# SPDX-License-Identifier: GPL-3.0-or-later
"""Lets tests import the project's modules under the names that Ansible gives them, and drive main() for real."""

from __future__ import annotations

import json
import typing as t
from pathlib import Path

import ansible.module_utils
import ansible.modules
import pytest
from ansible.module_utils.testing import patch_module_args

ROOT = Path(__file__).resolve().parent.parent
(ROOT / "build").mkdir(exist_ok=True)  # for --basetemp, where pytest is called by hand
ansible.modules.__path__.append(str(ROOT / "library"))
ansible.module_utils.__path__.append(str(ROOT / "module_utils"))


@pytest.fixture
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture
def shared_data(root: Path) -> Path:
    """Reference data that is not part of the project; tests that need it are skipped where it does not exist."""
    data = root.parent / "shared" / "data"
    if not data.is_dir():
        pytest.skip("reference data is not here")
    return data


@pytest.fixture
def run_module(capsys: pytest.CaptureFixture[str]) -> t.Callable[..., dict[str, t.Any]]:
    """Run a module's main() with these arguments and return what it printed, with ``rc`` added (0, or 1 if it failed)."""

    def run(module: t.Any, args: dict[str, t.Any], check: bool = False, diff: bool = True) -> dict[str, t.Any]:
        args = {**args, "_ansible_check_mode": check, "_ansible_diff": diff}
        with patch_module_args(args), pytest.raises(SystemExit) as done:
            module.main()
        result = json.loads(capsys.readouterr().out)
        result["rc"] = done.value.code
        return result

    return run
