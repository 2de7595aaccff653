# SPDX-License-Identifier: GPL-3.0-or-later
"""Interpreters that are there, and a stand-in for uv that installs one, since the real one fetches from the network."""

from __future__ import annotations

import sys
import typing as t
from pathlib import Path

import pytest
from ansible.modules import python_interpreter

VERSION = f"{sys.version_info[0]}.{sys.version_info[1]}"
UV = """#!/bin/sh
[ "$*" = "python install --no-bin --install-dir {folder} {version}" ] || exit 3
[ "$UV_PYTHON_DOWNLOADS" = manual ] || exit 4
[ "$UV_PYTHON_INSTALL_MIRROR" = file:///srv/python ] || {{ echo 'error: Failed to fetch: `https://x.example/3.12`' >&2; exit 2; }}
mkdir -p {folder}/cpython-{version}.9-linux/bin {folder}/cpython-{version}.16-linux/bin
for patch in 9 16; do ln -s {python} {folder}/cpython-{version}.$patch-linux/bin/python{version}; done
ln -s cpython-{version}.16-linux {folder}/cpython-{version}-linux
"""


@pytest.fixture
def find(tmp_path: Path, run_module: t.Any) -> t.Callable[..., dict[str, t.Any]]:
    """Run the module; its uv installs two releases of this test's own Python, and nothing else has its name."""
    folder, uv = tmp_path / "python", tmp_path / "uv"
    uv.write_text(UV.format(folder=folder, version=VERSION, python=sys.executable))
    uv.chmod(0o755)

    def run(check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        given = {"names": [f"/nonexistent/python{VERSION}"], "directory": str(folder), "uv": str(uv)}
        return run_module(python_interpreter, {**given, "mirror": "file:///srv/python", **arguments}, check)

    return run


def test_one_that_is_there_is_taken(find: t.Callable[..., dict[str, t.Any]]) -> None:
    found = find(names=["/bin/false", sys.executable])
    assert (found["rc"], found["changed"], found["path"], found["version"]) == (0, False, sys.executable, VERSION)


def test_one_that_is_not_there_is_installed_once(find: t.Callable[..., dict[str, t.Any]], tmp_path: Path) -> None:
    planned = find(check=True)
    assert (planned["changed"], planned["path"], planned["version"]) == (True, "", VERSION)
    assert not (tmp_path / "python").exists()
    newest = str(tmp_path / f"python/cpython-{VERSION}.16-linux/bin/python{VERSION}")
    assert [(one["changed"], one["path"]) for one in (find(), find(uv="/nonexistent"))] == [
        (True, newest),
        (False, newest),
    ]


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ({"install": False}, "runs here. Install one"),
        ({"names": ["/nonexistent/python3"]}, "none of /nonexistent/python3 runs here"),
        ({"mirror": ""}, "uv could not install Python"),
        ({"uv": "/nonexistent/uv"}, "uv does not run"),
    ],
)
def test_none_is_told(find: t.Callable[..., dict[str, t.Any]], arguments: dict[str, t.Any], part: str) -> None:
    failed = find(**arguments)
    assert failed["rc"] == 1
    assert failed["msg"].startswith("Cannot find interpreter")
    assert part in failed["msg"]
    assert [one["id"] for one in failed["findings"]] == ["PYTHON_MISSING"]
