# SPDX-License-Identifier: GPL-3.0-or-later
"""Code that runs at each start, and what a unit's process is started with."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from ansible.module_utils.slipway.python import startup

SYSTEMCTL = """#!/bin/sh
cat <<END
LoadState={state}
MainPID={pid}
Environment=PYTHONPATH=/declared API_KEY=geheim
END
"""


def systemctl(folder: Path, monkeypatch: pytest.MonkeyPatch, state: str, pid: int) -> None:
    (folder / "systemctl").write_text(SYSTEMCTL.format(state=state, pid=pid))
    (folder / "systemctl").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")


def test_hooks_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a.pth").write_text("# a comment\n\nimport this\n../elsewhere\n")
    (tmp_path / "usercustomize").mkdir()
    (tmp_path / "usercustomize" / "__init__.py").write_text("")
    (tmp_path / "other.py").write_text("")
    found = startup.hooks(tmp_path)
    assert [(Path(one.path).name, one.says) for one in found] == [
        ("a.pth", "runs import this and adds ../elsewhere to where modules are looked for"),
        ("__init__.py", "runs its code, since Python imports usercustomize at each start"),
    ]


def test_a_unit_as_it_is_declared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl(tmp_path, monkeypatch, "loaded", 0)
    assert startup.of_unit("x.service") == {"PYTHONPATH": "/declared"}


def test_a_unit_as_its_process_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl(tmp_path, monkeypatch, "loaded", os.getpid())
    # The environment that this process was started with: whatever is in it, and nothing of what is declared.
    assert startup.of_unit("x.service").get("PYTHONPATH") != "/declared"


def test_a_unit_that_is_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    systemctl(tmp_path, monkeypatch, "not-found", 0)
    with pytest.raises(OSError, match="systemd does not know it"):
        startup.of_unit("x.service")
