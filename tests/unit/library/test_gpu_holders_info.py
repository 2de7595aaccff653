# SPDX-License-Identifier: GPL-3.0-or-later
"""Who has the GPUs, from a folder that stands for /proc; and the module itself, on this machine."""

from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible.modules import gpu_holders_info

UNIT = "serve.service"


class Machine:
    """``process`` adds one with open files."""

    def __init__(self, root: Path) -> None:
        self.root = root
        (root / "proc").mkdir()

    def process(self, pid: int, group: str, *files: str, name: str = "python3", uid: int = 0, state: str = "S") -> None:
        folder = self.root / f"proc/{pid}"
        (folder / "fd").mkdir(parents=True)
        for number, file in enumerate(files):
            (folder / "fd" / str(number)).symlink_to(file)
        (folder / "comm").write_text(name + "\n")
        (folder / "cmdline").write_text(f"{name}\0-m\0work\0")
        (folder / "cgroup").write_text(f"0::{group}\n")
        (folder / "stat").write_text(f"{pid} ({name}) {state} 1\n")
        (folder / "status").write_text(f"Name:\t{name}\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\n")

    def look(self, **options: t.Any) -> dict[str, t.Any]:
        params = {"devices": [], "unit": UNIT, "running": False, "user": "", "timeout_seconds": 0, **options}
        return gpu_holders_info.run(params, True, root=str(self.root))


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)


def told(result: dict[str, t.Any]) -> list[tuple[str, str, str, str]]:
    return [(one["id"], one["severity"], one["subject"], one["detail"]) for one in result["findings"]]


def test_somebody_elses_work_is_named(machine: Machine) -> None:
    machine.process(7, "/user.slice/user-0.slice/session-3.scope", "/dev/nvidia1", "/dev/nvidia-uvm", "/dev/nvidiactl")
    machine.process(8, "/system.slice/ssh.service", "/dev/null")
    result = machine.look()
    detail = "pid 7 (python3 -m work) of unit session-3.scope, user root, state S"
    assert told(result) == [("GPU_IN_USE", "fail", "/dev/nvidia1", detail)]
    assert [(one["pid"], one["computes"]) for one in result["holders"]] == [(7, True)]


def test_who_only_watches_warns_and_the_persistence_daemon_is_left_out(machine: Machine) -> None:
    machine.process(7, "/system.slice/exporter.service", "/dev/nvidia0", "/dev/nvidiactl", name="exporter")
    machine.process(9, "/system.slice/nvidia-persistenced.service", "/dev/nvidia0", name="nvidia-persiste")
    assert [one[:2] for one in told(machine.look())] == [("GPU_IN_USE", "warn")]


def test_what_a_server_left_behind(machine: Machine) -> None:
    machine.process(7, f"/system.slice/{UNIT}", "/dev/nvidia0", state="D")
    machine.process(8, "/system.slice/cron.service", "/dev/nvidia0", uid=61234)
    found = told(machine.look(user="61234"))
    assert [one[0] for one in found] == ["GPU_LEFT_IN_USE"] * 2
    assert "unit serve.service, user root, state D" in found[0][3]


def test_a_server_that_runs_has_its_own(machine: Machine) -> None:
    machine.process(7, f"/system.slice/{UNIT}", "/dev/nvidia0")
    assert machine.look(running=True)["holders"] == []


def test_what_is_left_of_its_control_group(machine: Machine) -> None:
    group = machine.root / f"sys/fs/cgroup/system.slice/{UNIT}/worker"
    group.mkdir(parents=True)
    (group.parent / "cgroup.procs").write_text("")
    (group / "cgroup.procs").write_text("7\n8\n")
    machine.process(7, f"/system.slice/{UNIT}/worker", "/dev/nvidia0", state="D")
    machine.process(8, f"/system.slice/{UNIT}/worker", "/dev/null", state="D")
    found = told(machine.look())
    assert [(one[0], one[2]) for one in found] == [("SERVER_LEFT_RUNNING", UNIT), ("GPU_LEFT_IN_USE", "/dev/nvidia0")]
    assert found[0][3] == "pid 8 (python3 -m work), state D"
    assert machine.look(running=True)["findings"] == []


def test_other_devices_do_not_matter(machine: Machine) -> None:
    machine.process(7, "/a.scope", "/dev/nvidia5", "/dev/nvidia-uvm")
    machine.process(8, "/b.scope", "/dev/nvidiactl", "/dev/nvidia-uvm")
    assert machine.look(devices=["/dev/nvidia0"])["findings"] == []
    assert [one["pid"] for one in machine.look()["holders"]] == [7]


def test_what_cannot_be_read_is_not_free(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ansible.module_utils.slipway.gpu.processes.look", lambda _tree: None)
    result = machine.look()
    assert (result["holders"], [one[:2] for one in told(result)]) == (None, [("FACT_UNREADABLE", "unknown")])


def test_it_waits_for_who_is_ending(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    machine.process(7, "/a.scope", "/dev/nvidia0")
    monkeypatch.setattr("time.sleep", lambda _seconds: (machine.root / "proc/7/fd/0").unlink(missing_ok=True))
    assert machine.look(timeout_seconds=20)["holders"] == []


def test_the_module(run_module: t.Callable[..., dict[str, t.Any]]) -> None:
    result = run_module(gpu_holders_info, {"unit": UNIT, "devices": ["/dev/nvidia99"]}, False)
    assert (result["rc"], result["changed"]) == (0, False)
    # Whoever is not root may not see all of them.
    assert [one["id"] for one in result["findings"]] == ([] if result["holders"] == [] else ["FACT_UNREADABLE"])
