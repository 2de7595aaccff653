# SPDX-License-Identifier: GPL-3.0-or-later
"""All that ``site_audit`` looks at, in one result: files, lock, patches, and what a process is started with."""

from __future__ import annotations

import os
import subprocess
import typing as t
from collections import Counter
from pathlib import Path

from ..errors import SlipwayError, cannot, here
from ..findings import Finding, finding
from ..patching import folders, manifest, record
from . import audit, build, drift, environment, judgement, lock, patched, startup, states, traces
from .audit import Audit, Options


def look(params: dict[str, t.Any]) -> dict[str, t.Any]:
    """Audit an environment; the module's result. Raises ``SlipwayError``."""
    venv = Path(params["venv"])
    grounds = audit.look(venv)
    said = _declared(params)
    declared, ids = said or ([], set())
    versions: dict[str, list[str]] = {}
    for _folder, distributions in grounds:
        for one in distributions:
            versions.setdefault(one.name, []).append(one.version)
    kept = record.folder(venv, Path(params["record_directory"]))
    options = Options(
        venv=venv,
        packages=frozenset(lock.normalise(name) for name in params["packages"]),
        depth=params["depth"],
        originals=tuple(params["originals"]),
        kept=kept / "originals",
        expected=patched.contents(record.read(kept), declared, versions),
    )
    audits = audit.run(grounds, options)
    found = [one for each in audits for one in judgement.findings(each)]
    if said is not None:
        asked = [one for one in declared if not options.packages or one.package in options.packages]
        found += patched.findings([file for each in audits for file in each.files], asked, ids, versions)
    found += _lock(params, venv, audits)
    found += _variables(params, audits)
    found += _settings(venv)
    totals = sum((Counter(each.counts[number]) for each in audits for number in each.counts), Counter())
    told = {
        "changed": False,
        "venv": str(venv.resolve()),
        "site_packages": [each.folder for each in audits],
        "packages": [one for each in audits for one in audit.packages(each)],
        "totals": {state: totals[state] for state in (*states.STATES, states.UNREAD)},
        "files": [file.as_dict() for each in audits for file in each.files],
        "debug_code": [one for each in audits for one in judgement.debug_code(each)],
        "bytecode": [
            {"path": each.shown(path), "fault": fault}
            for each in audits
            for path, fault in sorted(each.bytecode.items())
        ],
        "startup": [{**hook.as_dict(), "path": each.shown(hook.path)} for each in audits for hook in each.hooks],
        "findings": [one.as_dict() for one in found],
    }
    return t.cast("dict[str, t.Any]", _shown(told))


def _shown(told: t.Any) -> t.Any:
    """The same with each byte of a file's name that is no UTF-8 written out: Ansible takes a result with one for none."""
    if isinstance(told, dict):
        return {_shown(key): _shown(value) for key, value in told.items()}
    if isinstance(told, (list, tuple)):
        return [_shown(one) for one in told]
    if isinstance(told, str) and not told.isascii():
        return told.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return told


def _declared(params: dict[str, t.Any]) -> tuple[list[manifest.Patch], set[str]] | None:
    """The patches that were given, and the ids of those of which only that was given; ``None`` where nothing was said.

    Raises ``SlipwayError``.
    """
    if params["patches"] is None:
        return None
    ids = {one for one in params["patches"] if isinstance(one, str) and "/" not in one}
    try:
        whole = [one for one in params["patches"] if not (isinstance(one, str) and one in ids)]
        return manifest.read_all(folders.declared(whole)), ids
    except SlipwayError as error:
        raise cannot("read", "option 'patches'", here(), str(error), error.findings[0].remedy, error.findings) from None


def _lock(params: dict[str, t.Any], venv: Path, audits: list[Audit]) -> list[Finding]:
    """Findings against the lock that was given, or the one that the environment was made from; none where there is neither."""
    text = params["lock_content"]
    try:
        if text is None and params["lock"]:
            text = Path(params["lock"]).read_text(encoding="utf-8")
        text = text or build.read_record(venv)
        if not text:
            return []
        requirements = lock.parse(text)
        interpreter = build.ask_interpreter(str(venv / "bin" / "python"))
        if any(one.marker for one in requirements) and not interpreter:
            return [
                finding(
                    "LOCK_DRIFT",
                    str(venv),
                    "its Python does not run, so that markers of the lock say nothing",
                    "unknown",
                )
            ]
        locked = lock.wanted(requirements, interpreter.environment if interpreter else {})
    except (OSError, UnicodeDecodeError) as error:
        raise cannot("read", f"lock '{params['lock']}'", here(), str(error), "Correct the path of the lock") from None
    except SlipwayError as error:
        remedy = error.findings[0].remedy if error.findings else "Make the lock anew"
        raise cannot("read", f"lock of '{venv}'", here(), str(error), remedy, error.findings) from None
    if params["packages"]:
        asked = {lock.normalise(name) for name in params["packages"]}
        locked = {name: version for name, version in locked.items() if name in asked}
        audits = [_only(each, asked) for each in audits]
    return drift.findings(requirements, locked, [one for each in audits for one in each.distributions])


def _only(each: Audit, asked: set[str]) -> Audit:
    return Audit(each.folder, [one for one in each.distributions if one.name in asked])


def _variables(params: dict[str, t.Any], audits: list[Audit]) -> list[Finding]:
    """What the process that uses the environment is started with."""
    variables = {name: str(value) for name, value in params["environment"].items() if name in startup.WATCHED}
    if params["unit"]:
        try:
            variables |= startup.of_unit(params["unit"])
        except (OSError, subprocess.SubprocessError) as error:
            return [finding("SITE_PYTHONPATH", params["unit"], f"its environment cannot be read: {error}", "unknown")]
    names = {name for each in audits for name in each.names}
    found = []
    for folder in filter(None, variables.get("PYTHONPATH", "").split(os.pathsep)):
        hidden = startup.shadowed(folder, names)
        says = (
            f"it hides {', '.join(hidden[:10])} of the environment"
            if hidden
            else "it hides nothing of the environment yet"
        )
        found.append(finding("SITE_PYTHONPATH", folder, says, None if hidden else "warn"))
    if variables.get("PYTHONHOME"):
        found.append(
            finding("SITE_PYTHONPATH", variables["PYTHONHOME"], "PYTHONHOME takes Python's own library from there")
        )
    for name, kind in traces.VARIABLES.items():
        if variables.get(name, "0") not in ("", "0"):
            found.append(finding("SITE_DEBUG_CODE", name, f"{kind.replace('_', ' ')}: it is set to {variables[name]}"))
    return found


def _settings(venv: Path) -> list[Finding]:
    """What ``pyvenv.cfg`` lets in."""
    if environment.read_settings(venv).get("include-system-site-packages", "").lower() == "true":
        says = "include-system-site-packages is true, so that what the environment lacks comes from the system"
        return [finding("SITE_PYTHONPATH", str(venv / "pyvenv.cfg"), says, "warn")]
    return []
