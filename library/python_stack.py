#!/usr/bin/python
# SPDX-License-Identifier: GPL-3.0-or-later
# Copyright: (c) 2026, Slipway contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)

from __future__ import annotations

DOCUMENTATION = r"""
---
module: python_stack
short_description: A Python environment that equals a lock
version_added: "0.1.0"
description:
  - Keeps a virtual environment equal to a lock in which every package has one version and its hashes.
  - Owns which packages and versions are there, not what their files say.
  - An environment is made by C(uv), from wheels only, with copies of its own and no hard links into a cache.
  - A run that was killed is completed by the next one.
  - Packages that a person added are reported, and go when the environment is built the next time, for another lock or as a repair.
author: [Slipway contributors]
options:
  venv:
    description: Folder of the environment. It is made where it will stay.
    type: path
    required: true
  lock:
    description:
      - Requirements file on the target, with hashes and without options or addresses.
      - Exactly one of O(lock) and O(lock_content) is needed.
    type: path
  lock_content:
    description: The lock itself, for a check mode that comes before the file is on the target.
    type: str
  python:
    description:
      - Names or paths of interpreters; the first that runs is used for a new environment.
      - An environment for a Python version that is none of these is made anew. Not given, it is left as it is, and C(python3) makes a new one.
    type: list
    elements: str
  uv:
    description: Path or name of the C(uv) program on the target. It is needed only where something is to be done.
    type: str
    default: uv
  imports:
    description: Modules that must import in the environment, each tried in a process of its own at every run.
    type: list
    elements: str
    default: []
  import_timeout_seconds:
    description: How long one import may take.
    type: int
    default: 120
  link:
    description: Symbolic link that is switched to the environment, in one step, when all imports work.
    type: path
  timeout_seconds:
    description: How long one call of C(uv) may take.
    type: int
    default: 1800
notes:
  - Proxies, certificates and package mirrors are set by the task's C(environment), with the variables of C(uv).
  - The environment keeps its lock as C(slipway.lock) in its folder.
attributes:
  check_mode:
    description: Says the plan without C(uv) and without the network, tries the imports if nothing is to be done, writes nothing.
    support: full
  diff_mode:
    description: Shows the packages, and where the link points.
    support: full
"""

EXAMPLES = r"""
- name: Environment of the inference engine
  python_stack:
    venv: /opt/slipway/envs/kimi-k2.5-nvfp4-vllm-3f0c9a
    lock: /opt/slipway/locks/kimi-k2.5-nvfp4-vllm.lock
    python: [python3.12]
    uv: /opt/slipway/bin/uv
    imports: [torch, vllm]
    link: /opt/slipway/envs/current
  environment:
    UV_INDEX_URL: https://mirror.example/simple
"""

RETURN = r"""
added:
  description: Packages that were missing.
  returned: always
  type: list
  elements: dict
  sample: [{name: torch, version: 2.9.1}]
removed:
  description: Packages that are not in the lock and went.
  returned: always
  type: list
  elements: dict
  sample: [{name: torchaudio, version: 2.9.1}]
changed_packages:
  description: Packages that had another version.
  returned: always
  type: list
  elements: dict
  sample: [{name: torch, before: 2.10.0, after: 2.9.1}]
packages:
  description: Every package of the environment as it is, or in check mode as it would be, version by name.
  returned: always
  type: dict
  sample: {torch: 2.9.1}
venv:
  description: The environment's folder.
  returned: always
  type: str
python:
  description: The environment's Python version.
  returned: always
  type: str
  sample: "3.12"
lock_digest:
  description: SHA-256 of the lock.
  returned: always
  type: str
findings:
  description: What was found, such as V(IMPORT_FAILED), V(PACKAGE_EXTRA), V(PYTHON_MISSING), V(LOCK_UNHASHED), V(HASH_MISMATCH).
  returned: always
  type: list
  elements: dict
"""

import platform
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ansible.module_utils.basic import AnsibleModule

from ..module_utils.slipway.errors import SlipwayError, cannot
from ..module_utils.slipway.findings import Finding, finding
from ..module_utils.slipway.python import build, environment, lock

ARGUMENTS = {
    "venv": {"type": "path", "required": True},
    "lock": {"type": "path"},
    "lock_content": {"type": "str"},
    "python": {"type": "list", "elements": "str"},
    "uv": {"type": "str", "default": "uv"},
    "imports": {"type": "list", "elements": "str", "default": []},
    "import_timeout_seconds": {"type": "int", "default": 120},
    "link": {"type": "path"},
    "timeout_seconds": {"type": "int", "default": 1800},
}


def fail(verb: str, venv: Path, error: SlipwayError) -> SlipwayError:
    """The house's sentence around a cause; the remedy is that of its first finding."""
    remedy = (
        error.findings[0].remedy
        if error.findings
        else "Run again with -vvv; the next run goes on where this one stopped"
    )
    return cannot(verb, f"environment '{venv}'", platform.node(), str(error), remedy, error.findings)


def read_lock(params: dict[str, t.Any]) -> str:
    """The lock's text, from wherever it was given."""
    if params["lock_content"] is not None:
        return params["lock_content"]
    try:
        return Path(params["lock"]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SlipwayError(
            f"the lock can not be read: {error}", [finding("LOCK_INVALID", params["lock"], str(error))]
        ) from None


def current_interpreter(venv: Path, candidates: list[str] | None) -> build.Interpreter | None:
    """The interpreter of an environment that can stay; ``None`` where one must be made.

    Raises ``SlipwayError`` where something lies in the way that Slipway did not make.
    """
    settings = environment.read_settings(venv)
    ours = bool(build.read_note(venv) or build.read_record(venv))
    if not settings:
        if not ours and venv.exists() and (not venv.is_dir() or any(venv.iterdir())):
            raise SlipwayError("it exists and is no virtual environment", [finding("VENV_FOREIGN", str(venv))])
        return None
    if build.read_note(venv) == "creating":
        return None
    found = build.ask_interpreter(str(venv / "bin" / "python"))
    wanted = found and (
        candidates is None or any(one.version == found.version for one in build.find_interpreters(candidates))
    )
    if not wanted and not ours:
        has = (
            f"for Python {found.version}, which is none of {', '.join(candidates or [])}"
            if found
            else "and its Python does not run"
        )
        raise SlipwayError(f"it was not made by Slipway {has}", [finding("VENV_FOREIGN", str(venv), has)])
    return found if wanted else None


def new_interpreter(candidates: list[str] | None) -> build.Interpreter:
    """The interpreter for an environment that must be made."""
    names = candidates or ["python3"]
    found = next(build.find_interpreters(names), None)
    if not found:
        cause = f"none of {', '.join(names)} runs here"
        raise SlipwayError(cause, [finding("PYTHON_MISSING", ", ".join(names), cause)])
    return found


def installed_packages(venv: Path, version: str, locked: dict[str, str]) -> dict[str, list[str]]:
    """What is installed, without the seed packages of an environment that uv did not make: uv leaves them there."""
    found = environment.read_installed(environment.site_packages(venv, version))
    settings = environment.read_settings(venv)
    if "uv" in settings and settings.get("seed") != "true":
        return found
    return {
        name: versions
        for name, versions in found.items()
        if name in locked or name not in ("pip", "setuptools", "wheel", "uv")
    }


@dataclass(frozen=True)
class Situation:
    """What was found, and what must be done about it; nothing is decided after it."""

    venv: Path
    link: Path | None
    link_before: str
    text: str
    locked: dict[str, str]
    interpreter: build.Interpreter
    present: bool
    installed: dict[str, list[str]]
    plan: environment.Plan
    building: bool

    @property
    def switching(self) -> bool:
        return self.link is not None and self.link_before != str(self.venv)


def look(params: dict[str, t.Any]) -> Situation:
    """Read lock, link and environment, and plan. Raises ``SlipwayError`` whose message is the cause."""
    venv = Path(params["venv"])
    link = Path(params["link"]) if params["link"] else None
    text = read_lock(params)
    requirements = lock.parse(text)
    link_before = build.read_link(link) if link else ""
    present = current_interpreter(venv, params["python"])
    interpreter = present or new_interpreter(params["python"])
    locked = lock.wanted(requirements, interpreter.environment)
    installed = installed_packages(venv, interpreter.version, locked) if present else {}
    record = build.read_record(venv)
    same_lock = not record or lock.digest(record) == lock.digest(text)
    plan = environment.plan(locked, installed, same_lock, whole=present is None)
    # A note says that a run was killed; another lock is written down even where it means the same packages.
    building = plan.build or bool(build.read_note(venv)) or not same_lock
    return Situation(venv, link, link_before, text, locked, interpreter, present is not None, installed, plan, building)


def make(now: Situation, params: dict[str, t.Any]) -> None:
    """Build, prove that the packages are the lock's, and write that down. Raises ``SlipwayError`` with the cause."""
    interpreter = None if now.present else now.interpreter
    try:
        build.build(params["uv"], now.venv, now.text, interpreter, params["timeout_seconds"])
        installed = installed_packages(now.venv, now.interpreter.version, now.locked)
        left = environment.plan(now.locked, installed, same_lock=False)
        if left.build:
            names = ", ".join(package["name"] for package in left.added + left.changed + left.removed)
            raise SlipwayError(f"uv ended well and these packages still differ from the lock: {names}")
        build.finish(now.venv, now.text)
    except OSError as error:
        raise SlipwayError(str(error)) from None


def check(now: Situation, params: dict[str, t.Any], check_mode: bool) -> list[Finding]:
    """Findings about packages beyond the lock and about imports, as far as there is an environment to look at."""
    findings = [
        finding("PACKAGE_EXTRA", package["name"], f"version {package['version']} in {now.venv}")
        for package in now.plan.extra
    ]
    if not (now.building and check_mode):
        python = str(now.venv / "bin" / "python")
        findings += build.try_imports(python, params["imports"], params["import_timeout_seconds"], not check_mode)
    return findings


def run(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Bring the environment to the lock, try the imports, switch the link. Raises ``SlipwayError``."""
    venv = Path(params["venv"])
    try:
        now = look(params)
    except SlipwayError as error:
        raise fail("plan", venv, error) from None
    if now.building and not check_mode:
        try:
            make(now, params)
        except SlipwayError as error:
            raise fail("build", venv, error) from None
    findings = check(now, params, check_mode)
    failed = [one for one in findings if one.severity == "fail"]
    if failed and not check_mode:
        causes = "; ".join(f"{one.subject} does not import: {one.detail}" for one in failed)
        raise fail("use", venv, SlipwayError(causes, findings=failed))
    if now.link and now.switching and not check_mode:
        try:
            build.switch_link(now.link, venv)
        except OSError as error:
            raise fail("switch to", venv, SlipwayError(str(error))) from None
    return result(now, findings)


def result(now: Situation, findings: list[Finding]) -> dict[str, t.Any]:
    """What the module returns."""
    header = {"before_header": str(now.venv), "after_header": str(now.venv)}
    before = environment.listing(now.installed)
    diff = [{**header, "before": before, "after": environment.listing(now.locked) if now.building else before}]
    if now.switching:
        header = {"before_header": str(now.link), "after_header": str(now.link)}
        diff.append({**header, "before": f"{now.link_before or 'absent'}\n", "after": f"{now.venv}\n"})
    as_it_is = {name: ", ".join(versions) for name, versions in now.installed.items()}
    return {
        "changed": now.building or now.switching,
        "added": now.plan.added,
        "removed": now.plan.removed,
        "changed_packages": now.plan.changed,
        "packages": now.locked if now.building else as_it_is,
        "venv": str(now.venv),
        "python": now.interpreter.version,
        "lock_digest": lock.digest(now.text),
        "findings": [one.as_dict() for one in findings],
        "diff": diff,
    }


def main() -> None:
    """Entry point of the module."""
    module = AnsibleModule(
        argument_spec=ARGUMENTS,
        supports_check_mode=True,
        required_one_of=[("lock", "lock_content")],
        mutually_exclusive=[("lock", "lock_content")],
    )
    try:
        module.exit_json(**run(module.params, module.check_mode))
    except SlipwayError as error:
        module.fail_json(msg=str(error), findings=[one.as_dict() for one in error.findings])


if __name__ == "__main__":
    main()
