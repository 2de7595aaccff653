# SPDX-License-Identifier: GPL-3.0-or-later
"""What separates an environment from the patches that it should have. Pure: what was found in, what is to be done out."""

from __future__ import annotations

import typing as t
from dataclasses import replace

from ..findings import finding
from .manifest import sha256
from .record import Applied, Record
from .work import Work, shared

if t.TYPE_CHECKING:
    from collections.abc import Sequence

    from .manifest import Patch
    from .plan import Brought, Plan, Situation


def applied(now: Situation, patches: Sequence[Patch], exclusive: bool, at: str) -> Plan:
    """Have these patches applied, in this order; with ``exclusive``, no other. ``at`` is the time for the record.

    Raises ``SlipwayError`` whose message is the causes, where one of them cannot be.
    """
    work = Work(now, patches)
    declared = {patch.id: patch for patch in patches}
    leaving = [
        one
        for one in work.recorded
        if (one.id in declared and one.digest != declared[one.id].digest) or (exclusive and one.id not in declared)
    ]
    _undo(work, leaving, allowed=None if exclusive else set(declared))
    for patch in patches:
        work.apply(patch, at)
    return work.plan()


def reverted(now: Situation, patches: Sequence[Patch], exclusive: bool) -> Plan:
    """Have these patches taken back; with ``exclusive``, every one that is in the record. Raises ``SlipwayError`` as ``applied``."""
    work = Work(now, patches)
    wanted = {patch.id for patch in patches}
    leaving = [one for one in work.recorded if one.id in wanted or exclusive]
    known = {one.id for one in work.recorded}
    for patch in reversed(patches):
        if patch.id not in known:
            work.undo_unrecorded(patch)
    _undo(work, leaving, allowed=wanted)
    return work.plan()


def _undo(work: Work, leaving: Sequence[Applied], allowed: set[str] | None) -> None:
    """Take these back with all that lies on them, the topmost first. What lies on them and is not ``allowed`` to go is refused."""
    going = work.with_covering(leaving)
    kept = [one for one in going if allowed is not None and one.id not in allowed and one not in leaving]
    for one in kept:
        # It may lie on one that lies on one that leaves.
        under = next(other for other in [*leaving, *going] if other is not one and shared(one, other))
        work.refuse("PATCH_COVERED", under.id, f"{one.id} lies on it, in {', '.join(sorted(shared(one, under)))}")
    for one in [] if kept else going:
        work.undo(one)


def restored(now: Situation, patches: Sequence[Patch], packages: set[str], brought: Brought) -> Plan:
    """Have the files of these packages as their wheels have them, whatever was done to them, and no record of their patches."""
    plan = Work(now, patches).plan_of_states()
    ours = [one for one in now.record.patches if one.package in packages]
    layers: list[Applied | Patch] = [*ours, *(patch for patch in patches if patch.package in packages)]
    made = {
        file.path: file.after
        for layer in layers
        for file in layer.files
        if file.path not in brought.paths and file.path not in now.owned
    }
    result: dict[str, bytes | None] = dict(brought.differing)
    for path, after in made.items():
        found = now.held[path].content
        if found is not None and sha256(found) == after:
            result[path] = None
        elif found is not None:
            told = f"{path} is in no wheel, and is not what a patch made of it; it is left there"
            plan.findings.append(finding("PATCH_FOREIGN", path, told, severity="warn"))
    held = {path: replace(one, content=result.get(path, one.content)) for path, one in now.held.items()}
    record = Record(tuple(one for one in now.record.patches if one not in ours))
    after_it = Work(replace(now, held=held, record=record), patches).plan_of_states()
    states_after = {one.id: one.state for one in after_it.patches}
    plan.patches = [replace(one, state=states_after.get(one.id, "pristine")) for one in plan.patches]
    plan.result, plan.record, plan.executables = result, record, brought.programs
    return plan
