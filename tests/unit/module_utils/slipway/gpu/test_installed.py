# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.gpu import installed

GpuMachine = t.Any  # tests/unit/conftest.py


def stanza(package: str, version: str, state: str = "install ok installed") -> str:
    return f"Package: {package}\nStatus: {state}\nPriority: optional\nVersion: {version}\nDescription: x\n more\n\n"


@pytest.mark.parametrize(
    ("package", "version", "driver"),
    [
        ("libcuda1", "580.105.08-1", "580.105.08"),
        ("libnvidia-compute-580", "580.95.05-0ubuntu0.24.04.2", "580.95.05"),
        ("nvidia-open", "590.48-1", "590.48"),
        ("nvidia-container-toolkit", "1.17.8-1", None),
        ("nvidia-kernel-common", "20240109+1", None),
        ("linux-image-amd64", "612.1.2-1", None),
        ("libnvidia-container1", "1.17.8-1", None),
    ],
)
def test_a_package_of_a_driver(package: str, version: str, driver: str | None) -> None:
    assert installed.driver_version(package, version) == driver


def test_what_dpkg_has() -> None:
    status = (
        stanza("bash", "5.2-1")
        + stanza("libcuda1", "580.105.08-1")
        + stanza("nvidia-open", "580.105.08-1", "hold ok half-configured")
        + stanza("nvidia-driver-cuda", "570.1.2-1", "deinstall ok config-files")
    )
    assert installed.driver_packages(status) == {"libcuda1": "580.105.08-1", "nvidia-open": "580.105.08-1"}
    assert installed.driver_packages("") == {}


@pytest.mark.parametrize(
    ("uninstaller", "packages", "ways"),
    [
        (False, "", []),
        (True, "", ["runfile"]),
        (False, stanza("libcuda1", "580.105.08-1"), ["packages"]),
        (True, stanza("libcuda1", "580.105.08-1"), ["runfile", "packages"]),
        # A tool that is used with the installer's driver too.
        (True, stanza("nvidia-modprobe", "570.1.2-1"), ["runfile"]),
    ],
)
def test_where_it_came_from(
    uninstaller: bool, packages: str, ways: list[str], gpu_machine: GpuMachine, look: t.Callable[..., dict[str, t.Any]]
) -> None:
    if uninstaller:
        gpu_machine.file("usr/bin/nvidia-uninstall", "")
    gpu_machine.file("var/lib/dpkg/status", packages)
    assert look()["driver"]["installed_by"] == ways
