# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the driver that is installed came from: NVIDIA's installer, packages, or both. Read from dpkg's files; runs nothing."""

from __future__ import annotations

import re
import typing as t

from .tree import Tree

RUNFILE, PACKAGES = "runfile", "packages"
STATUS = "/var/lib/dpkg/status"
# The installer always leaves it behind, also after --no-kernel-modules; no package has it.
UNINSTALLER = "/usr/bin/nvidia-uninstall"
_FAMILY = re.compile(r"nvidia|^libcuda|^libnvcuvid|^libnvoptix")
# A driver's version has a branch of three digits; the container toolkit and the like are numbered from 1.
_VERSION = re.compile(r"^(?:\d+:)?(\d{3}\.\d+(?:\.\d+)?)-")
# Tools that are used with either kind of driver: alone they are no driver.
_TOOLS = {"nvidia-modprobe", "nvidia-persistenced", "nvidia-settings", "nvidia-xconfig"}
_GONE = ("not-installed", "config-files")


def driver_version(package: str, version: str) -> str | None:
    """The driver that a package belongs to, ``580.105.08`` for ``580.105.08-1``; ``None`` if it is no part of one."""
    found = _VERSION.match(version)
    return found[1] if found and _FAMILY.search(package) else None


def driver_packages(status: str) -> dict[str, str]:
    """Packages of an NVIDIA driver in dpkg's status file, name to version: also those that are only half installed."""
    found = {}
    for stanza in status.split("\n\n"):
        fields = dict(re.findall(r"^(Package|Status|Version): (.*)$", stanza, re.MULTILINE))
        name, version, state = (fields.get(key, "") for key in ("Package", "Version", "Status"))
        if driver_version(name, version) and state.split()[-1:] != [] and state.split()[-1] not in _GONE:
            found[name] = version
    return found


def look(tree: Tree) -> dict[str, t.Any]:
    """``packages`` (name to version) and ``installed_by``: what put a driver here, in no case, one, or both ways."""
    packages = driver_packages(tree.text(STATUS) or "")
    ways = [RUNFILE] if tree.exists(UNINSTALLER) else []
    if set(packages) - _TOOLS:
        ways.append(PACKAGES)
    return {"packages": packages, "installed_by": ways}
