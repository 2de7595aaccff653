# SPDX-License-Identifier: GPL-3.0-or-later
"""Environment markers."""

from __future__ import annotations

import pytest
from ansible.module_utils.slipway.python import markers

LINUX = {
    "python_version": "3.9",
    "python_full_version": "3.9.18",
    "sys_platform": "linux",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
}


@pytest.mark.parametrize(
    ("marker", "holds"),
    [
        # As text "3.10" would come before "3.9".
        ("python_version < '3.10'", True),
        ("python_version >= '3.10'", False),
        ("'3.8' <= python_version", True),
        ("python_full_version >= '3.9.20'", False),
        ("python_full_version == '3.9.*'", True),
        ("python_full_version != '3.9.*'", False),
        ("python_full_version ~= '3.8'", True),
        ("python_full_version ~= '3.9.19'", False),
        ("sys_platform == 'win32'", False),
        ("platform_machine in 'x86_64 aarch64'", True),
        ("platform_machine not in 'arm64'", True),
        ("sys_platform == 'win32' or sys_platform == 'linux' and platform_machine == 'arm64'", False),
        ("(sys_platform == 'win32' or sys_platform == 'linux') and platform_machine == \"x86_64\"", True),
    ],
)
def test_holds(marker: str, holds: bool) -> None:
    assert markers.evaluate(marker, LINUX) is holds


@pytest.mark.parametrize(
    "marker",
    [
        "",
        "python_version",
        "python_version <",
        "extra == 'gpu'",
        "sys_platform == 'linux' sys_platform",
        "sys_platform == 'linux' or",
        "(sys_platform == 'linux'",
        "sys_platform not 'linux'",
        "sys_platform ~= 'linux'",
        "sys_platform == linux$",
    ],
)
def test_refuses(marker: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        markers.evaluate(marker, LINUX)
