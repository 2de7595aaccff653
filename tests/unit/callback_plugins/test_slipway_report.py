# SPDX-License-Identifier: GPL-3.0-or-later
"""Reports by runs of ansible-playbook itself, with the plays' own way of handing over; guests and nodes are this machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import typing as t
from pathlib import Path

import pytest

INVENTORY: dict[str, t.Any] = {
    "all": {
        "vars": {"ansible_connection": "local", "ansible_python_interpreter": sys.executable},
        "hosts": {
            "node1": {},
            "infer1": {
                "gpu_container_node": "node1",
                "gpu_container_vmid": 101,
                "profile": "rig-smollm2",
                "x_allow_y": True,
            },
            "infer2": {"gpu_container_node": "node1", "gpu_container_vmid": 102},
            "gone": {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1},
        },
        "children": {"guests": {"hosts": {"infer1": {}, "infer2": {}, "gone": {}}}},
    }
}
# As deploy.yml does it: everyone looks first, then the nodes, then the guests.
PLAYS: list[dict[str, t.Any]] = [
    {
        "hosts": "all",
        "any_errors_fatal": True,
        "tasks": [
            {"include_role": {"name": "report", "tasks_from": "asked"}, "when": "'guests' in group_names"},
            {
                "block": [{"ping": None}, {"fail": {"msg": "Cannot begin on infer1: it is so. Mend it."}, "when": "stage == 'foreseen' and inventory_hostname == 'infer1'"}],
                "always": [{"include_role": {"name": "report"}, "when": "'guests' in group_names"}],
            },
        ],
    },
    {
        "hosts": "node1",
        "tasks": [
            {"name": "Install the driver", "command": "true"},
            {"fail": {"msg": "Cannot install it on node1: it is so. Mend it."}, "when": "stage == 'node'"},
        ],
    },
    {
        "hosts": "guests",
        "tasks": [
            {
                "block": [
                    {"include_role": {"name": "work"}},
                    {"fail": {"msg": "Cannot serve on infer2: it is so. Mend it."}, "when": "stage == 'guest' and inventory_hostname == 'infer2'"},
                ],
                "always": [{"include_role": {"name": "report"}}],
            }
        ],
    },
]  # fmt: skip
WORK = [
    {"name": "Work | Several", "command": "true", "loop": [1, 2]},
    {"name": "Work | On the node", "command": "true", "delegate_to": "node1"},
    {"name": "Work | As it was", "command": "true", "changed_when": False},
    {"include_role": {"name": "slipway", "tasks_from": "shared"}},
]
SHARED = [{"name": "Shared | Step", "command": "true"}]


class Fleet:
    """Runs the plays in a folder of their own; ``stage`` says where they fail."""

    def __init__(self, folder: Path, root: Path) -> None:
        self.folder, self.root = folder, root
        for role, name, tasks in (("work", "main", WORK), ("slipway", "shared", SHARED)):
            (folder / "roles" / role / "tasks").mkdir(parents=True)
            (folder / "roles" / role / "tasks" / f"{name}.yml").write_text(json.dumps(tasks))
        (folder / "roles/report").symlink_to(root / "roles/report")
        (folder / "hosts.yml").write_text(json.dumps(INVENTORY))
        (folder / "deploy.yml").write_text(json.dumps([{"gather_facts": False, **play} for play in PLAYS]))
        (folder / "ansible.cfg").touch()

    def run(self, stage: str, *options: str, limit: str = "all:!gone") -> tuple[int, str]:
        """Exit code and output."""
        environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")},
            "ANSIBLE_CONFIG": str(self.folder / "ansible.cfg"),
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_REMOTE_TMP": str(self.folder / "remote"),
            "ANSIBLE_CALLBACK_PLUGINS": str(self.root / "callback_plugins"),
            "ANSIBLE_STDOUT_CALLBACK": "slipway",
        }
        program = str(Path(sys.executable).parent / "ansible-playbook")
        command = [program, "-i", "hosts.yml", "deploy.yml", "--limit", limit, "-e", f"stage={stage}", *options]
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=300,
        )
        return done.returncode, done.stdout + done.stderr

    def report(self, host: str) -> dict[str, t.Any]:
        return json.loads((self.folder / "reports" / host / "latest/report.json").read_text())


@pytest.fixture
def fleet(tmp_path: Path, root: Path) -> Fleet:
    return Fleet(tmp_path, root)


def test_each_guest_has_a_report_with_what_was_changed_by_whom(fleet: Fleet) -> None:
    code, shown = fleet.run("none")
    assert code == 0
    report = fleet.report("infer1")
    assert [(row["role"], row["task"], row["count"], row["on"]) for row in report["changed"]] == [
        ("", "Install the driver", 1, "node1"),
        ("work", "Work | Several", 2, "infer1"),
        ("work", "Work | On the node", 1, "node1"),
        ("work", "Shared | Step", 1, "infer1"),
    ]
    assert (report["run"]["playbook"], report["node"], report["vmid"], report["consents"]) == (
        "deploy.yml",
        "node1",
        101,
        ["x_allow_y"],
    )
    assert (report["failures"], report["gathering"]) == ([], "")
    assert {row["what"]: row["by"] for row in report["asked"]} == {
        "Profile": "the inventory",
        "Node": "the inventory",
        "Guest": "the inventory",
    }
    assert f"The report is {fleet.folder}/reports/infer1/" in shown
    assert shown.index("infer1 is NOT fit") < shown.index("infer2 is NOT fit")
    assert f"All hosts: {fleet.folder}/reports/index.html" in shown
    # A report is no change, and a node has none of its own.
    assert {one.name for one in (fleet.folder / "reports").iterdir()} == {"index.html", "infer1", "infer2"}
    assert fleet.folder.joinpath("reports/index.html").read_text().count("/latest/report.html") == 2


def test_what_was_foreseen_is_in_the_report_and_nothing_is_begun(fleet: Fleet) -> None:
    code, shown = fleet.run("foreseen")
    assert code == 2
    assert shown.rstrip().splitlines()[-1] == "infer1: Cannot begin on infer1: it is so. Mend it."
    report, other = fleet.report("infer1"), fleet.report("infer2")
    assert report["failures"] == [{"host": "infer1", "text": "Cannot begin on infer1: it is so. Mend it."}]
    assert (report["verdict"], other["verdict"], report["changed"], other["changed"]) == (
        "not fit",
        "not looked at",
        [],
        [],
    )


def test_a_node_that_fails_is_told_in_the_reports_of_its_guests(fleet: Fleet) -> None:
    code, _shown = fleet.run("node")
    assert code == 2
    for host in ("infer1", "infer2"):
        report = fleet.report(host)
        assert report["failures"] == [{"host": "node1", "text": "Cannot install it on node1: it is so. Mend it."}]
        assert [row["task"] for row in report["changed"]] == ["Install the driver"]


def test_a_guest_that_fails_has_what_was_changed_before(fleet: Fleet) -> None:
    code, shown = fleet.run("guest")
    assert code == 2
    assert "failed=1" in shown and "rescued=0" in shown and "rescued=1" not in shown
    report = fleet.report("infer2")
    assert report["next"][0] == "Cannot serve on infer2: it is so. Mend it."
    assert len(report["changed"]) == 4
    assert fleet.report("infer1")["failures"] == []


def test_a_guest_that_cannot_be_reached_has_a_report(fleet: Fleet) -> None:
    code, _shown = fleet.run("none", limit="gone")
    assert code != 0
    assert fleet.report("gone")["failures"][0]["text"].startswith("Cannot reach gone: ")


def test_check_mode_writes_none(fleet: Fleet) -> None:
    fleet.run("none", "--check")
    assert not (fleet.folder / "reports").exists()


def test_a_report_that_cannot_be_written_fails_no_run_and_hides_no_failure(fleet: Fleet) -> None:
    (fleet.folder / "reports").touch()
    code, shown = fleet.run("guest")
    assert code == 2
    assert "Cannot write the report in " in shown and "set report_directory" in shown
    assert "\nWHAT FAILED ***" in shown and "\ninfer2: Cannot serve on infer2: it is so. Mend it.\n" in shown


def test_what_a_role_left_unreadable_hides_nothing(fleet: Fleet) -> None:
    code, _shown = fleet.run("none", "-e", json.dumps({"acceptance_result": {"findings": 1}}), limit="infer1,node1")
    assert code == 0
    report = fleet.report("infer1")
    assert report["gathering"]
    assert (report["vmid"], report["verdict"]) == (101, "not fit")
