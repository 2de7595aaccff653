# SPDX-License-Identifier: GPL-3.0-or-later
"""Who runs from an environment, by what /proc says of processes."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.slipway.patching import users


def process(proc: Path, number: int, command: list[str], group: str) -> None:
    folder = proc / str(number)
    folder.mkdir(parents=True)
    (folder / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in command))
    (folder / "cgroup").write_text(f"0::{group}\n")


def test_services_and_processes_are_found_through_links(tmp_path: Path) -> None:
    venv, proc = tmp_path / "envs" / "one", tmp_path / "proc"
    (venv / "bin").mkdir(parents=True)
    (tmp_path / "envs" / "current").symlink_to(venv)
    current = f"{tmp_path}/envs/current/bin/python"
    process(proc, 7, [current, "-m", "server"], "/system.slice/slipway-inference.service")
    process(proc, 8, [current, "worker"], "/system.slice/slipway-inference.service/workers")
    process(proc, 9, ["/bin/sh", f"{venv}/bin/tool"], "/user.slice/user-0.slice/session-1.scope")
    process(proc, 10, ["/usr/bin/python3", "-m", "other"], "/system.slice/other.service")
    process(proc, 11, [f"{tmp_path}/envs/two/bin/python"], "/system.slice/two.service")
    (proc / "self").mkdir()
    (proc / "12").mkdir()  # it has just ended
    assert users.units(venv, proc) == ["process 9", "slipway-inference.service"]
    assert users.units(tmp_path / "envs" / "two", tmp_path / "proc") == ["two.service"]
