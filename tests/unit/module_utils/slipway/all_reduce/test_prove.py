# SPDX-License-Identifier: GPL-3.0-or-later
"""What ranks are started with, and as whom. What comes of them is tested with the module."""

from __future__ import annotations

import os
import pwd
import tempfile
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.all_reduce import plan, prove, record, thresholds
from nccl_recordings import Stack, good

GPUS = ("0000:03:00.0", "0000:04:00.0")


def options(venv: Path, **changes: t.Any) -> prove.Options:
    given: dict[str, t.Any] = {
        "venv": str(venv),
        "devices": (),
        "environment": {},
        "buffer_mib": 2,
        "iterations": 1,
        "thresholds": thresholds.Thresholds(),
        "required": True,
        "timeout_seconds": 60.0,
        "step_timeout_seconds": 30.0,
        "user": None,
        "allow_busy": False,
        "place": "guest",
    }
    return prove.Options(**{**given, **changes})


def test_the_environment_is_the_services(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LD_PRELOAD", "of the module")
    own = {"LANG": "de_DE.UTF-8", "NCCL_DEBUG": "WARN", "NCCL_DEBUG_FILE": "/x", "CUDA_DEVICE_ORDER": "FASTEST_FIRST"}
    made = prove.environment(options(Path("/opt/env"), environment=own), GPUS, GPUS)
    assert made == {
        "PATH": "/opt/env/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
        "HOME": pwd.getpwuid(os.geteuid()).pw_dir,
        "USER": pwd.getpwuid(os.geteuid()).pw_name,
        "LOGNAME": pwd.getpwuid(os.geteuid()).pw_name,
        "LANG": "de_DE.UTF-8",
        "VIRTUAL_ENV": "/opt/env",
        "NCCL_DEBUG": "INFO",
        "NCCL_DEBUG_SUBSYS": "INIT,ENV",
        "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
    }


@pytest.mark.parametrize(("gpus", "visible"), [(["b", "d"], "1,3"), (["a"], "0"), (["a", "b", "c", "d"], None)])
def test_ranks_see_the_gpus_that_are_named(gpus: list[str], visible: str | None) -> None:
    made = prove.environment(options(Path("/opt/env")), "abcd", gpus)
    assert made.get("CUDA_VISIBLE_DEVICES") == visible


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become somebody else")
@pytest.mark.skipif(not os.access("/usr/bin/python3", os.X_OK), reason="no interpreter that everybody can run")
def test_ranks_are_the_servers_user() -> None:
    nobody = pwd.getpwnam("nobody")
    # Nobody must get to it, which the folder of a test does not allow.
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        stack = Stack(Path(folder) / "venv", "/usr/bin/python3")
        stack.plays(good())
        os.chown(stack.venv, nobody.pw_uid, nobody.pw_gid)
        planned = plan.make(GPUS, 2, 1)
        outcome = prove.launch(planned, GPUS, options(stack.venv, user="nobody"))
        assert outcome.ended == "done", outcome
        assert [row["ended"] for row in record.fold(planned, outcome, 30).ranks] == ["done", "done"]
        assert (stack.venv / "rank.0").stat().st_uid == nobody.pw_uid
        noted = stack.noted(1)
        assert noted["environment"]["USER"] == "nobody"
        assert not Path(noted["given"]["store"]).parent.exists()
