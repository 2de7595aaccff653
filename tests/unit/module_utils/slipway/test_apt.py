# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.module_utils.slipway import apt

# As apt 3.0 of Debian 13 prints it.
POLICY = """\
nvidia-open:
  Installed: (none)
  Candidate: 595.58.03-1
  Version table:
     595.58.03-1 500
        500 file:/srv/p ./ Packages
     580.105.08-1 500
        500 file:/srv/p ./ Packages
libcuda1:
  Installed: 580.105.08-1
  Candidate: 580.105.08-1
  Version table:
     595.58.03-1 500
        500 file:/srv/p ./ Packages
 *** 580.105.08-1 1001
        500 file:/srv/p ./ Packages
        100 /var/lib/dpkg/status
gone:
  Installed: (none)
  Candidate: (none)
  Version table:
"""
KNOWN = apt.policy(POLICY)
SIMULATED = """\
Reading package lists...
Inst libcuda1 [580.105.08-1] (595.58.03-1 localhost [amd64])
Inst nvidia-driver-cuda (595.58.03-1 localhost [amd64]) []
Remv proxmox-ve [9.0.0]
Conf libcuda1 (595.58.03-1 localhost [amd64])
"""
UNMET = """\
The following packages have unmet dependencies:
 nvidia-open : Depends: nvidia-driver-cuda (= 580.105.08-1) but 595.58.03-1 is to be installed
               Depends: nvidia-kernel-open-dkms (= 580.105.08-1) but 595.58.03-1 is to be installed
"""


@pytest.mark.parametrize(
    ("declared", "parts"),
    [("libcuda1=580.105.08-1", ("libcuda1", "580.105.08-1")), ("gcc", ("gcc", None)), ("a+b=1:2~3", ("a+b", "1:2~3"))],
)
def test_a_declaration(declared: str, parts: tuple[str, str | None]) -> None:
    assert apt.split(declared) == parts


@pytest.mark.parametrize("declared", ["", "libcuda1=", "libcuda1 = 1", "libcuda1=1=2", "-y", "lib*"])
def test_what_is_no_declaration(declared: str) -> None:
    with pytest.raises(ValueError, match="is neither a package's name nor name=version"):
        apt.split(declared)


def test_policy() -> None:
    assert KNOWN["nvidia-open"] == apt.Known(None, "595.58.03-1", ("595.58.03-1", "580.105.08-1"))
    assert KNOWN["libcuda1"].installed == "580.105.08-1"
    assert KNOWN["gone"] == apt.Known(None, None, ())
    assert "unheard-of" not in KNOWN


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ("nvidia-open=580.105.08-1", []),
        ("nvidia-open", []),
        (
            "nvidia-open=570.1.2-1",
            ["570.1.2-1 is declared, there is 595.58.03-1, 580.105.08-1"],
        ),
        ("gone", ["any version is declared, apt knows no such package"]),
        ("unheard-of=1", ["1 is declared, apt knows no such package"]),
    ],
)
def test_a_version_that_no_source_has(declared: str, told: list[str]) -> None:
    findings = apt.availability([declared], KNOWN, (), certain=True)
    assert [found.detail for found in findings] == told
    assert {found.severity for found in findings} <= {"fail"}


def test_what_old_lists_do_not_have_is_a_warning() -> None:
    (found,) = apt.availability(["unheard-of=1"], KNOWN, (), certain=False)
    assert (found.id, found.severity) == ("APT_VERSION_UNAVAILABLE", "warn")


def test_a_package_that_somebody_holds_in_another_version() -> None:
    (found,) = apt.availability(["libcuda1=595.58.03-1"], KNOWN, ["libcuda1"], certain=True)
    assert (found.id, found.detail) == ("APT_PACKAGE_HELD", "580.105.08-1 is held, 595.58.03-1 is declared")
    assert apt.availability(["libcuda1=580.105.08-1", "libcuda1"], KNOWN, ["libcuda1"], certain=True) == []


def test_what_comes_and_goes() -> None:
    simulated = apt.simulation(0, SIMULATED, "")
    assert simulated == apt.Simulation(
        {"libcuda1": "595.58.03-1", "nvidia-driver-cuda": "595.58.03-1"}, ("proxmox-ve",), ""
    )
    findings = apt.consequences(simulated, ["*driver*"], may_go=lambda name: name == "other")
    assert [(found.id, found.subject) for found in findings] == [
        ("APT_UNWANTED_PACKAGE", "nvidia-driver-cuda"),
        ("APT_WOULD_REMOVE", "proxmox-ve"),
    ]
    assert apt.consequences(simulated, [], may_go=lambda name: True) == []


@pytest.mark.parametrize(
    ("output", "errors", "detail"),
    [
        (
            UNMET,
            "E: Unable to correct problems",
            "nvidia-open : Depends: nvidia-driver-cuda (= 580.105.08-1) but 595.58.03-1 is to be installed; "
            "Depends: nvidia-kernel-open-dkms (= 580.105.08-1) but 595.58.03-1 is to be installed",
        ),
        ("", "E: Unable to locate package foo\n", "Unable to locate package foo"),
        ("", "", "apt-get ends with status 100"),
    ],
)
def test_what_cannot_be_installed(output: str, errors: str, detail: str) -> None:
    (found,) = apt.consequences(apt.simulation(100, output, errors), [])
    assert (found.id, found.detail) == ("APT_CONFLICT", detail)
