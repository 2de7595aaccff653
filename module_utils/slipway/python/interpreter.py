# SPDX-License-Identifier: GPL-3.0-or-later
"""The interpreter of a stack: one that is there, or one that uv installs in a folder of Slipway's own. Acts on the target."""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from ..errors import SlipwayError, cannot, here
from ..findings import finding
from . import build, source


def ensure(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Find one of the interpreters, or install the first that has a version in its name; the module's result.

    In check mode one that would be installed has no path yet. Raises ``SlipwayError``.
    """
    names, folder = params["names"], Path(params["directory"])
    found = _find(names, folder)
    if found:
        return _result(found.path, found.version, changed=False)
    version = next(iter(_versions(names)), "")
    cause = f"none of {', '.join(names)} runs here"
    if not version or not params["install"]:
        raise _fail(names, cause)
    if check_mode:
        return _result("", version, changed=True)
    try:
        _install(params, folder, version)
    except (OSError, SlipwayError) as error:
        raise _fail(names, f"{cause}, and uv could not install Python {version}: {error}") from None
    found = _find(names, folder)
    if not found:
        raise _fail(names, f"{cause}, and the one that uv installed in {folder} does not run either")
    return _result(found.path, found.version, changed=True)


def _find(names: list[str], folder: Path) -> build.Interpreter | None:
    # The newest of a version first, by the numbers in the name of its folder.
    ours = [
        str(path)
        for version in _versions(names)
        for path in sorted(folder.glob(f"*/bin/python{version}"), key=_numbers, reverse=True)
        if not path.parent.parent.is_symlink()
    ]
    return next(build.find_interpreters([*names, *ours]), None)


def _versions(names: list[str]) -> list[str]:
    return [match[1] for name in names if (match := re.fullmatch(r"(?:.*/)?python(\d+\.\d+)", name))]


def _numbers(path: Path) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", path.parent.parent.name)]


def _install(params: dict[str, t.Any], folder: Path, version: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    environment = {"UV_PYTHON_DOWNLOADS": "manual"}
    if params["mirror"]:
        environment["UV_PYTHON_INSTALL_MIRROR"] = params["mirror"]
    command = ["python", "install", "--no-bin", "--install-dir", str(folder), version]
    build.run_uv(params["uv"], command, params["timeout_seconds"], source.from_params(params), environment)


def _result(path: str, version: str, changed: bool) -> dict[str, t.Any]:
    return {"changed": changed, "path": path, "version": version, "findings": []}


def _fail(names: list[str], cause: str) -> SlipwayError:
    found = finding("PYTHON_MISSING", ", ".join(names), cause)
    return cannot("find", f"interpreter '{names[0]}'", here(), cause, found.remedy, [found])
