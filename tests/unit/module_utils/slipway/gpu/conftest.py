# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import select
import types
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.gpu import child


@pytest.fixture
def hanging(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that a child makes when it begins to hang: then its time is up, however slow this machine is."""
    marker = tmp_path / "hanging"

    def wait(readers: list[int], writers: t.Any, others: t.Any, left: float) -> tuple[t.Any, t.Any, t.Any]:
        while True:
            hangs = marker.exists()  # looked at first: what was said before it is in the pipe by now
            ready = select.select(readers, [], [], 0.01)
            if ready[0] or hangs:
                return ready

    monkeypatch.setattr(child, "select", types.SimpleNamespace(select=wait))
    return marker
