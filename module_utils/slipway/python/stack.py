# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing an environment to its lock: look, plan, build, prove, switch the link."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import SlipwayError, cannot, here
from ..findings import Finding, finding
from . import build, complaints, constraints, environment, lock, source


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
    # Versions are the lock's and something does not import: a file was lost or torn.
    mending: bool = False
    # It was whole and made from this lock: what differs now was changed by somebody.
    settled: bool = False
    constraints: tuple[constraints.File, ...] = ()

    @property
    def switching(self) -> bool:
        return self.link is not None and self.link_before != str(self.venv)

    @property
    def actions(self) -> list[str]:
        constraining = any(one.differs for one in self.constraints)
        doing = {"build": self.building, "mend": self.mending, "switch": self.switching, "constrain": constraining}
        return [name for name, done in doing.items() if done]


def ensure(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Bring the environment to the lock, try the imports, switch the link; the module's result. Raises ``SlipwayError``."""
    venv = Path(params["venv"])
    try:
        now = _look(params)
    except SlipwayError as error:
        raise _fail("plan", venv, error) from None
    if now.building and not check_mode:
        try:
            _make(now, params)
        except SlipwayError as error:
            raise _fail("build", venv, error) from None
    findings = _check(now, params, check_mode)
    failed = [one for one in findings if one.id == "IMPORT_FAILED"]
    if failed and not now.building:
        now = replace(now, mending=True)
        if not check_mode:
            findings = _mend(now, params, failed)
            failed = [one for one in findings if one.id == "IMPORT_FAILED"]
    if failed and not check_mode:
        causes = "; ".join(f"{one.subject} does not import: {one.detail}" for one in failed)
        raise _fail("use", venv, SlipwayError(causes, findings=failed))
    if now.link and now.switching and not check_mode:
        try:
            build.switch_link(now.link, venv)
        except OSError as error:
            raise _fail("switch to", venv, SlipwayError(str(error))) from None
    if not check_mode:
        try:
            # Last, since one of them is about the environment in use. The folder may have been made anew meanwhile.
            constraints.write(_constraints(params, now.locked))
        except (OSError, SlipwayError) as error:
            raise _fail("keep", venv, SlipwayError(str(error))) from None
    return _result(now, findings)


def _look(params: dict[str, t.Any]) -> Situation:
    """Read lock, link and environment, and plan. Raises ``SlipwayError`` whose message is the cause."""
    venv = Path(params["venv"])
    link = Path(params["link"]) if params["link"] else None
    text = _read_lock(params)
    requirements = lock.parse(text)
    link_before = build.read_link(link) if link else ""
    present = _current_interpreter(venv, params["python"])
    interpreter = present or build.first_interpreter(params["python"] or ["python3"])
    locked = lock.wanted(requirements, interpreter.environment)
    installed = _installed_packages(venv, interpreter.version, locked) if present else {}
    record = build.read_record(venv)
    same_lock = not record or lock.digest(record) == lock.digest(text)
    plan = environment.plan(locked, installed, same_lock, whole=present is None)
    # A note says that a run was killed; another lock is written down even where it means the same packages.
    note = build.read_note(venv)
    kept = _constraints(params, locked)
    # An environment that Slipway did not make has no record; its constraints say that it once was the lock's.
    settled = bool(present and not note and ((record and same_lock) or not kept[0].differs))
    return Situation(
        venv,
        link,
        link_before,
        text,
        locked,
        interpreter,
        present is not None,
        installed,
        plan,
        building=plan.build or bool(note) or not same_lock,
        settled=settled,
        constraints=tuple(kept),
    )


def _constraints(params: dict[str, t.Any], locked: dict[str, str]) -> list[constraints.File]:
    """The files that keep to the lock whoever calls uv or pip, as they are and have to be. Raises ``SlipwayError``."""
    try:
        of_machine = [constraints.of_machine(Path(params["uv_config"]), locked)] if params["uv_config"] else []
        return [*constraints.of_environment(Path(params["venv"]), locked), *of_machine]
    except OSError as error:
        raise SlipwayError(str(error)) from None


def _read_lock(params: dict[str, t.Any]) -> str:
    """The lock's text, from wherever it was given."""
    if params["lock_content"] is not None:
        return params["lock_content"]
    try:
        return Path(params["lock"]).read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SlipwayError(
            f"the lock cannot be read: {error}", [finding("LOCK_INVALID", params["lock"], str(error))]
        ) from None


def _current_interpreter(venv: Path, candidates: list[str] | None) -> build.Interpreter | None:
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


def _installed_packages(venv: Path, version: str, locked: dict[str, str]) -> dict[str, list[str]]:
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


def _make(now: Situation, params: dict[str, t.Any]) -> None:
    """Build, prove that the packages are the lock's, and write that down. Raises ``SlipwayError`` with the cause."""
    interpreter = None if now.present else now.interpreter
    try:
        fetched_from = source.from_params(params)
        build.build(params["uv"], now.venv, now.text, interpreter, params["timeout_seconds"], fetched_from)
        installed = _installed_packages(now.venv, now.interpreter.version, now.locked)
        left = environment.plan(now.locked, installed, same_lock=False)
        if left.build:
            names = ", ".join(package["name"] for package in left.added + left.changed + left.removed)
            raise SlipwayError(f"uv ended well and these packages still differ from the lock: {names}")
        _check_dependencies(now, params)
        build.finish(now.venv, now.text)
    except OSError as error:
        raise SlipwayError(str(error)) from None


def _check_dependencies(now: Situation, params: dict[str, t.Any]) -> None:
    """Refuse a stack whose packages do not want each other, but for what is expected. Raises ``SlipwayError``."""
    if params["complaints"] is None:
        return
    said = build.check_dependencies(params["uv"], now.venv, params["timeout_seconds"])
    surprising = complaints.unexpected(said, complaints.read(params["complaints"]))
    if surprising:
        found = [finding("DEPENDENCY_BROKEN", line.partition(" ")[0], line) for line in surprising]
        raise SlipwayError(f"a dependency check says what is not expected: {'; '.join(surprising)}", found)


def _mend(now: Situation, params: dict[str, t.Any], failed: list[Finding]) -> list[Finding]:
    """Put the packages there again, once, since these imports failed; and look again. Raises ``SlipwayError``."""
    try:
        build.put_again(params["uv"], now.venv, now.text, params["timeout_seconds"], source.from_params(params))
        build.finish(now.venv, now.text)
    except (OSError, SlipwayError) as error:
        found = error.findings if isinstance(error, SlipwayError) else []
        names = ", ".join(one.subject for one in failed)
        cause = f"{names} does not import, and what the lock names could not be put there again: {error}"
        raise _fail("mend", now.venv, SlipwayError(cause, [*found, *failed])) from None
    return _check(now, params, check_mode=False)


def _check(now: Situation, params: dict[str, t.Any], check_mode: bool) -> list[Finding]:
    """Findings about packages beyond the lock and about imports, as far as there is an environment to look at."""
    findings = [
        finding("PACKAGE_EXTRA", package["name"], f"version {package['version']} in {now.venv}")
        for package in now.plan.extra
    ]
    if now.settled and (moved := environment.drift(now.plan)):
        # In check mode it stands; otherwise it was put right just now, and somebody should know.
        findings.append(finding("STACK_DRIFT", str(now.venv), moved, None if check_mode else "warn"))
    findings += [one for file in now.constraints for one in file.findings]
    if not (now.building and check_mode):
        python = str(now.venv / "bin" / "python")
        findings += build.try_imports(python, params["imports"], params["import_timeout_seconds"], not check_mode)
    return findings


def _result(now: Situation, findings: list[Finding]) -> dict[str, t.Any]:
    """What the module returns."""
    header = {"before_header": str(now.venv), "after_header": str(now.venv)}
    before = environment.listing(now.installed)
    diff = [{**header, "before": before, "after": environment.listing(now.locked) if now.building else before}]
    if now.switching:
        header = {"before_header": str(now.link), "after_header": str(now.link)}
        diff.append({**header, "before": f"{now.link_before or 'absent'}\n", "after": f"{now.venv}\n"})
    for file in now.constraints:
        if file.differs:
            header = {"before_header": str(file.path), "after_header": str(file.path)}
            diff.append({**header, "before": file.before, "after": file.after})
    as_it_is = {name: ", ".join(versions) for name, versions in now.installed.items()}
    return {
        "changed": bool(now.actions),
        "actions": now.actions,
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


def _fail(verb: str, venv: Path, error: SlipwayError) -> SlipwayError:
    """The house's sentence around a cause; the remedy is that of its first finding."""
    remedy = (
        error.findings[0].remedy
        if error.findings
        else "Run again with -vvv; the next run goes on where this one stopped"
    )
    return cannot(verb, f"environment '{venv}'", here(), str(error), remedy, error.findings)
