# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import shutil
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway import errors
from ansible.modules import apt_packages_info

RunModule = t.Callable[..., dict[str, t.Any]]

POLICY = """\
libcuda1:
  Installed: {installed}
  Candidate: 595.58.03-1
  Version table:
     595.58.03-1 500
        500 http://there ./ Packages
     580.105.08-1 500
        500 http://there ./ Packages
"""


class Apt:
    """In the place of apt's programs: ``installed`` and ``simulated`` are what they answer, ``asked`` what they were asked."""

    def __init__(self) -> None:
        self.installed, self.held, self.simulated = "(none)", "", "Inst libcuda1 (580.105.08-1 there [amd64])\n"
        self.asked: list[tuple[str, ...]] = []
        self.preferences = ""

    def ask(self, *line: str) -> tuple[int, str, str]:
        self.asked.append(line)
        if line[0] == "apt-get":
            (option,) = [word for word in line if word.startswith("Dir::Etc::Preferences=")]
            self.preferences = Path(option.partition("=")[2]).read_text()
            return 0, self.simulated, ""
        return (0, self.held, "") if line[0] == "apt-mark" else (0, POLICY.format(installed=self.installed), "")


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Apt:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/there_Packages").touch()
    there = Apt()
    monkeypatch.setattr(apt_packages_info, "ask", there.ask)
    monkeypatch.setattr(apt_packages_info, "LISTS", str(tmp_path / "lists"))
    monkeypatch.setattr(apt_packages_info, "PREFERENCES", str(tmp_path / "preferences"))
    return there


@pytest.mark.parametrize("check", [False, True])
def test_a_version_that_there_is(run_module: RunModule, fake: Apt, check: bool) -> None:
    result = run_module(apt_packages_info, {"packages": ["libcuda1=580.105.08-1"], "preferences": "Pin"}, check=check)
    assert (result["rc"], result["changed"], result["findings"]) == (0, False, [])
    assert result["installs"] == {"libcuda1": "580.105.08-1"}
    assert result["packages"] == [
        {
            "name": "libcuda1",
            "wanted": "580.105.08-1",
            "installed": None,
            "versions": ["595.58.03-1", "580.105.08-1"],
            "fulfilled": False,
        }
    ]
    assert fake.preferences == "Pin"
    assert "--simulate" in fake.asked[-1]


def test_what_is_installed_as_declared_needs_no_simulation(run_module: RunModule, fake: Apt) -> None:
    fake.installed = "580.105.08-1"
    result = run_module(apt_packages_info, {"packages": ["libcuda1=580.105.08-1"]})
    assert (result["packages"][0]["fulfilled"], result["installs"]) == (True, None)
    assert [line[0] for line in fake.asked] == ["apt-cache", "apt-mark"]


def test_preferences_that_are_there_stay_in_force(run_module: RunModule, fake: Apt, tmp_path: Path) -> None:
    (tmp_path / "preferences").write_text("Package: a")
    run_module(apt_packages_info, {"packages": ["libcuda1=580.105.08-1"], "preferences": "Package: b"})
    assert fake.preferences == "Package: a\n\nPackage: b"


@pytest.mark.parametrize(("valid", "severity"), [(3600, "fail"), (0, "warn")])
def test_a_version_that_there_is_not(run_module: RunModule, fake: Apt, valid: int, severity: str) -> None:
    (found,) = run_module(apt_packages_info, {"packages": ["libcuda1=570.1.2-1"], "lists_valid_seconds": valid})[
        "findings"
    ]
    assert (found["id"], found["severity"]) == ("APT_VERSION_UNAVAILABLE", severity)
    assert "there is 595.58.03-1, 580.105.08-1" in found["detail"]


def test_without_lists_nothing_is_certain(run_module: RunModule, fake: Apt, tmp_path: Path) -> None:
    (tmp_path / "lists/there_Packages").unlink()
    (found,) = run_module(apt_packages_info, {"packages": ["libcuda1=570.1.2-1"]})["findings"]
    assert found["severity"] == "warn"


def test_what_must_not_come_along(run_module: RunModule, fake: Apt) -> None:
    fake.simulated += "Inst nvidia-kernel-open-dkms (580.105.08-1 there [amd64])\nRemv nvidia-open\nRemv proxmox-ve\n"
    options = {"packages": ["libcuda1=580.105.08-1"], "unwanted": ["*dkms*"], "removable": ["*nvidia*"]}
    found = run_module(apt_packages_info, options)["findings"]
    assert [(one["id"], one["subject"]) for one in found] == [
        ("APT_UNWANTED_PACKAGE", "nvidia-kernel-open-dkms"),
        ("APT_WOULD_REMOVE", "proxmox-ve"),
    ]


def test_what_is_no_package(run_module: RunModule, fake: Apt, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors.platform, "node", lambda: "node1")
    result = run_module(apt_packages_info, {"packages": ["lib cuda"]})
    assert (result["rc"], result["msg"]) == (
        1,
        "Cannot read option 'packages' on node1: 'lib cuda' is neither a package's name nor name=version. "
        "Write it as name=version.",
    )


def test_a_machine_without_apt(run_module: RunModule, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    result = run_module(apt_packages_info, {"packages": ["bash"]})
    assert result["rc"] == 1
    assert "Cannot ask apt on" in result["msg"]


def test_this_machine(run_module: RunModule) -> None:
    if not shutil.which("apt-cache"):
        pytest.skip("no apt here")
    result = run_module(apt_packages_info, {"packages": ["dpkg"]})
    assert (result["packages"][0]["fulfilled"], result["findings"]) == (True, [])
