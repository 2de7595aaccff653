# SPDX-License-Identifier: GPL-3.0-or-later
"""What the processes of a unit are at, from a folder that stands for /proc and the control groups."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.slipway.engines import unit


def process(root: Path, pid: int, name: str, state: str, wchan: str = "0") -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir(parents=True)
    (folder / "stat").write_text(f"{pid} ({name}) {state} 1 1 1 0 -1\n")
    (folder / "wchan").write_text(wchan)


def test_who_waits_without_being_interruptible(tmp_path: Path) -> None:
    group = tmp_path / "sys/fs/cgroup/system.slice/serve.service"
    (group / "below").mkdir(parents=True)
    (group / "cgroup.procs").write_text("10\n11\n13\n")
    (group / "below/cgroup.procs").write_text("12\n")
    process(tmp_path, 10, "python3", "S")
    process(tmp_path, 11, "sglang::(TP0) x", "D", "nfs_wait_bit_killable")
    process(tmp_path, 12, "nvcc", "R")  # and 13 has ended since
    assert unit.processes("/system.slice/serve.service", str(tmp_path)) == (
        "of its 3 processes 1 are running and 1 in uninterruptible sleep (D): "
        "sglang::(TP0) x (pid 11) in nfs_wait_bit_killable"
    )


def test_no_group(tmp_path: Path) -> None:
    assert unit.processes("", str(tmp_path)) == ""
    assert unit.processes("/system.slice/gone.service", str(tmp_path)) == ""
