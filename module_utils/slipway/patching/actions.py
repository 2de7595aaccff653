# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing an environment's files to the patches that it should have: look, plan, change, tell."""

from __future__ import annotations

import time
import typing as t
from dataclasses import dataclass, replace
from pathlib import Path

from ..errors import SlipwayError, cannot, here
from ..findings import Finding, finding
from ..python.lock import normalise
from ..python.wheel import alone
from . import decide, folders, journal, manifest, record, result, transaction, tree, users, wheels
from .manifest import ABSENT
from .plan import Brought, Plan, Situation
from .transaction import Place, Write

DOING = {
    "applied": ("apply", "patches of environment"),
    "reverted": ("revert", "patches of environment"),
    "restored": ("restore", "files of environment"),
}


@dataclass(frozen=True)
class Look:
    """An environment as it was found, a change in it that was cut off, and what is to be done."""

    place: Place
    now: Situation
    recovery: journal.Recovery | None
    plan: Plan

    @property
    def changes(self) -> bool:
        return bool(self.recovery or self.plan.result or self.plan.record != self.now.record)


def ensure(params: dict[str, t.Any], check_mode: bool) -> dict[str, t.Any]:
    """Bring the files to the state that is asked for; the module's result. Raises ``SlipwayError``."""
    venv = Path(params["venv"])
    try:
        patches = manifest.read_all(folders.declared(params["patches"]))
        look = _look(venv, patches, params)
        if look.changes and not check_mode:
            look = _change(venv, patches, params, look.place)
        units = [params["unit"]] if params["unit"] else users.units(venv)
    except SlipwayError as error:
        raise _fail(params, error) from None
    except OSError as error:
        raise _fail(params, SlipwayError(str(error))) from None
    return result.of(venv, look.plan, look.now.held, look.recovery, look.changes, units)


def _change(venv: Path, patches: list[manifest.Patch], params: dict[str, t.Any], place: Place) -> Look:
    """Look again while nobody else changes the environment, complete what was cut off, and make the change."""
    place.where.mkdir(parents=True, exist_ok=True)
    with alone(place.where / "lock"):
        first = _look(venv, patches, params)
        told: list[Finding] = []
        if first.recovery:
            told = [transaction.recover(place, first.recovery)]
            second = _look(venv, patches, params)
            second.plan.findings[:0] = told
            look = replace(second, recovery=first.recovery)
        else:
            look = first
        if look.plan.result or look.plan.record != look.now.record:
            versions = {one.package: one.version for one in look.plan.patches if one.package in look.now.versions}
            text = record.text(look.plan.record, venv)
            transaction.change(place, _writes(look), look.plan.originals, text, versions)
    return look


def _look(venv: Path, patches: list[manifest.Patch], params: dict[str, t.Any]) -> Look:
    """What is there and what is to be done. Raises ``SlipwayError`` (the cause) and ``OSError``."""
    try:
        site = tree.site_packages(venv)
    except FileNotFoundError as error:
        raise SlipwayError(str(error), [finding("VENV_FOREIGN", str(venv), str(error))]) from None
    place = Place(site, record.folder(venv, Path(params["record_directory"])))
    installed = tree.installed(site)
    versions = {name: found[0] for name, found in installed.items() if len(found) == 1}
    known = record.read(place.where)
    wanted = {normalise(name) for name in params["packages"]} | {patch.package for patch in patches}
    if params["exclusive"]:
        wanted |= {one.package for one in known.patches}
    touched = {one.path for patch in patches for one in patch.files}
    touched |= {file.path for one in known.patches for file in one.files}
    recovery = _recovery(place, versions, wanted if params["state"] == "restored" else set(), touched)
    brought = _from_wheels(params, wanted, versions, site)
    held = {path: _held(site, path) for path in sorted(touched | set(brought.differing))}
    if recovery and recovery.way != "discard":
        # As it will be when that change is completed or undone, which this run does first.
        for path, content in recovery.contents.items():
            held[path] = replace(held.get(path, tree.Held(None)), content=content)
        if recovery.way == "complete":
            known = record.parse(recovery.journal.record)
    owned = {
        path for package in {*wanted, *(one.package for one in known.patches)} for path in tree.recorded(site, package)
    }
    now = Situation(
        known,
        held,
        versions,
        frozenset(installed) - frozenset(versions),
        frozenset(owned),
        lambda digest: record.original(place.where, digest),
    )
    at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    if params["state"] == "applied":
        plan = decide.applied(now, patches, params["exclusive"], at)
    elif params["state"] == "reverted":
        plan = decide.reverted(now, patches, params["exclusive"])
    else:
        plan = decide.restored(now, patches, wanted, brought)
    return Look(place, now, recovery, plan)


def _recovery(
    place: Place, versions: dict[str, str], restoring: set[str], paths: t.Iterable[str]
) -> journal.Recovery | None:
    """What a change that was cut off needs. Where its packages are restored anyhow, what is left of it is only taken away.

    ``paths`` are those that patches touch, where a journal that is torn does not say which it was about.
    """
    try:
        return journal.look(place.where, place.site, versions)
    except SlipwayError:
        try:
            cut_off = journal.read(place.where)
        except SlipwayError:
            # What it was about is not known. What it left is found by hash, and is what restoring is for.
            waiting = tuple(journal.Step(path, ABSENT, ABSENT, transaction.waiting(path)) for path in paths)
            cut_off = journal.Journal("preparing", {}, waiting, (), "")
        if cut_off and restoring and set(cut_off.versions) <= restoring:
            return journal.Recovery(cut_off, "discard", {})
        raise


def _from_wheels(params: dict[str, t.Any], packages: set[str], versions: dict[str, str], site: Path) -> Brought:
    """What the wheels of the packages bring; for ``restored`` alone. Only what differs is kept: packages can have gigabytes."""
    brought = Brought()
    if params["state"] != "restored":
        return brought
    lock_text = params["lock_content"] or _lock_of(Path(params["venv"]))
    for package in sorted(packages):
        if package not in versions:
            cause = f"{package} is not installed there once, so there is no wheel to take its files from"
            raise SlipwayError(cause, [finding("PATCH_PACKAGE_MISSING", package, cause)])
        folder = Path(params["wheels"] or "/nonexistent")
        for path, content, program in wheels.contents(folder, package, versions[package], lock_text, site):
            brought.paths.add(path)
            if _held(site, path).content != content:
                brought.differing[path] = content
                brought.programs |= {path} if program else set()
    return brought


def _lock_of(venv: Path) -> str:
    """The lock that Slipway built the environment from; empty where it did not."""
    try:
        return (venv / "slipway.lock").read_text(encoding="utf-8")
    except OSError:
        return ""


def _held(site: Path, path: str) -> tree.Held:
    try:
        return tree.read(site, path)
    except tree.Unsafe as error:
        cause = f"{site / path} {error}"
        raise SlipwayError(cause, [finding("PATCH_PATH_UNSAFE", path, cause)]) from None


def _writes(look: Look) -> list[Write]:
    """The files that change, with the mode and owner that they have or had, or that their folder's owner gives them."""
    writes = []
    gone = {file.path: file for one in look.now.record.patches for file in one.files if file.mode is not None}
    for path, content in look.plan.result.items():
        held = look.now.held[path]
        if held.content is None:
            held = look.now.held.get(look.plan.origins.get(path, ""), held)
        before = look.now.held[path].content
        if held.content is not None:
            mode, uid, gid = held.mode, held.uid, held.gid
        elif path in gone:
            mode, uid, gid = gone[path].mode or 0o644, t.cast(int, gone[path].uid), t.cast(int, gone[path].gid)
        else:
            owner = look.place.site.stat()
            mode, uid, gid = 0o755 if path in look.plan.executables else 0o644, owner.st_uid, owner.st_gid
        writes.append(Write(path, content, before, mode, uid, gid))
    return writes


def _fail(params: dict[str, t.Any], error: SlipwayError) -> SlipwayError:
    """The house's sentence around a cause; the remedy is that of its first finding that fails."""
    failing = [one for one in error.findings if one.severity == "fail"]
    remedy = failing[0].remedy if failing else "Mend that, and run again; what was begun is completed or undone then"
    verb, kind = DOING[params["state"]]
    return cannot(verb, f"{kind} '{params['venv']}'", here(), str(error), remedy, error.findings)
