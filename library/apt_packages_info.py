#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Whether apt can install packages in exact versions, and what would come of it."""

from __future__ import annotations

DOCUMENTATION = r"""
---
module: apt_packages_info
short_description: Whether apt can install packages in exact versions, and what would come of it
version_added: "0.1.0"
description:
  - Asks C(apt-cache policy) which versions of packages there are and, where all are there, C(apt-get --simulate) what installing them
    would bring and take. Without recommended packages.
  - Changes nothing and reaches no network. What apt knows is as old as its lists.
author:
  - Slipway contributors
options:
  packages:
    description: Packages as C(name=version), or a bare name where any version will do.
    type: list
    elements: str
    required: true
  preferences:
    description: Text of apt_preferences(5) that will be in force when they are installed, beside what is there.
    type: str
    default: ""
  unwanted:
    description: Patterns (C(*), C(?)) of packages that must not come along.
    type: list
    elements: str
    default: []
  removable:
    description: Patterns of packages that may be removed for them.
    type: list
    elements: str
    default: []
  lists_valid_seconds:
    description:
      - Lists of apt that are older than this will be renewed before the installation, so that a version that is missing now is a
        warning. V(0) where a source has yet to be written.
    type: int
    default: 3600
attributes:
  check_mode:
    description: Can run in check mode and tell what it would without it.
    support: full
  diff_mode:
    description: There is nothing to differ; the module never changes anything.
    support: none
"""

EXAMPLES = r"""
- name: See whether the user part of a driver can be installed, and nothing for the kernel with it
  apt_packages_info:
    packages: [libcuda1=580.105.08-1, nvidia-driver-cuda=580.105.08-1]
    unwanted: ["*dkms*", "nvidia-kernel-*"]
  register: apt
"""

RETURN = r"""
packages:
  description: One entry for each declared package.
  returned: success
  type: list
  elements: dict
  contains:
    name: {description: Its name., type: str}
    wanted: {description: The version that is declared, none where any will do., type: str}
    installed: {description: The version that is installed, none if it is not., type: str}
    versions: {description: The versions that there are., type: list, elements: str}
    fulfilled: {description: Whether it is installed as declared., type: bool}
installs:
  description: Packages that would be installed or change, by name with their new version. None where it was not asked.
  returned: success
  type: dict
findings:
  description: What stands in the way, each with C(id severity subject summary detail remedy reference).
  returned: always
  type: list
  elements: dict
"""

import fnmatch
import os
import subprocess
import tempfile
import time
import typing as t

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway import apt
from ..module_utils.slipway.errors import SlipwayError, cannot, here

ARGUMENT_SPEC: dict[str, t.Any] = {
    "packages": {"type": "list", "elements": "str", "required": True},
    "preferences": {"type": "str", "default": ""},
    "unwanted": {"type": "list", "elements": "str", "default": []},
    "removable": {"type": "list", "elements": "str", "default": []},
    "lists_valid_seconds": {"type": "int", "default": 3600},
}
LISTS = "/var/lib/apt/lists"
PREFERENCES = "/etc/apt/preferences"


def ask(*line: str) -> tuple[int, str, str]:
    """Run a program in the C locale: status, output, errors."""
    environment = {**os.environ, "LC_ALL": "C", "LANGUAGE": "C"}
    done = subprocess.run(line, capture_output=True, text=True, env=environment, check=False)
    return done.returncode, done.stdout, done.stderr


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Ask apt. ``check_mode`` makes no difference: nothing is changed. Raises ``SlipwayError``."""
    try:
        declared = [apt.split(entry) for entry in params["packages"]]
        status, output, errors = ask("apt-cache", "policy", *(name for name, _version in declared))
        _status, held, _errors = ask("apt-mark", "showhold")
    except ValueError as error:
        raise cannot("read", "option 'packages'", here(), str(error), "Write it as name=version") from error
    except OSError as error:
        raise cannot(
            "ask", "apt", here(), str(error), "Debian and Ubuntu have it; use a .run file elsewhere"
        ) from error
    if status:
        raise cannot("ask", "apt", here(), errors, "Run 'apt-cache policy' there and mend what it says")
    known = apt.policy(output)
    findings = apt.availability(params["packages"], known, held.split(), _lists_age() <= params["lists_valid_seconds"])
    packages = []
    for name, version in declared:
        package = known.get(name, apt.Known(None, None, ()))
        fulfilled = package.installed is not None and version in (None, package.installed)
        told = {"name": name, "wanted": version, "installed": package.installed, "versions": list(package.versions)}
        packages.append({**told, "fulfilled": fulfilled})
    installs = None
    if not findings and not all(package["fulfilled"] for package in packages):
        simulated = _simulate(params["packages"], params["preferences"])
        installs = simulated.installs

        def may_go(name: str) -> bool:
            return any(fnmatch.fnmatchcase(name, pattern) for pattern in params["removable"])

        findings = apt.consequences(simulated, params["unwanted"], may_go)
    return {
        "changed": False,
        "packages": packages,
        "installs": installs,
        "findings": [found.as_dict() for found in findings],
    }


def _lists_age() -> float:
    """Seconds since apt's lists were renewed; without any they are as old as can be."""
    try:
        times = [entry.stat().st_mtime for entry in os.scandir(LISTS) if entry.is_file() and entry.name != "lock"]
        # apt does not touch a list that has not changed: the folder's own time is that of the last update.
        return time.time() - os.stat(LISTS).st_mtime if times else float("inf")
    except OSError:
        return float("inf")


def _simulate(packages: list[str], preferences: str) -> apt.Simulation:
    with tempfile.NamedTemporaryFile("w", suffix=".pref") as file:
        # apt reads one such file beside its folder of them: what is there goes before.
        if os.path.exists(PREFERENCES):
            with open(PREFERENCES, encoding="utf-8") as present:
                file.write(present.read() + "\n\n")
        file.write(preferences)
        file.flush()
        os.chmod(file.name, 0o644)
        options = ["--simulate", "--no-install-recommends", "--allow-downgrades"]
        line = ["apt-get", *options, "-o", f"Dir::Etc::Preferences={file.name}", "--yes", "install", *packages]
        return apt.simulation(*ask(*line))


def main() -> None:
    """Build the module, run, exit."""
    module = AnsibleModule(argument_spec=ARGUMENT_SPEC, supports_check_mode=True)
    try:
        result = run(module.params, module.check_mode)
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[found.as_dict() for found in error.findings])
    module.exit_json(**result)


if __name__ == "__main__":
    main()
