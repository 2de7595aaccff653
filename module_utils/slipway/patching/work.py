# SPDX-License-Identifier: GPL-3.0-or-later
"""The contents of an environment's files as patches are taken back and applied, step by step, in memory. Pure.

What leaves is taken back from the top down, what is declared is applied from the bottom up. If one step cannot be made, none is.
"""

from __future__ import annotations

import typing as t
from contextlib import suppress

from ..errors import SlipwayError
from ..findings import finding
from ..python.lock import same_version
from . import difference, hunks, states
from .manifest import ABSENT, Patch, sha256
from .plan import PatchState, Plan, Situation
from .record import Applied, Record, RecordedFile

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def shared(one: Applied, other: Applied) -> set[str]:
    """The paths that both touch."""
    return {file.path for file in one.files} & {file.path for file in other.files}


class Work:
    """The contents as they become, step by step."""

    def __init__(self, now: Situation, patches: Sequence[Patch]) -> None:
        self.now = now
        self.contents = {path: held.content for path, held in now.held.items()}
        self.done = Plan()
        self.faults: list[str] = []
        self.undone: set[str] = set()
        self.declared = list(patches)
        self.recorded = [one for one in now.record.patches if not self._forgotten(one)]
        self.states = self._look(self.recorded)
        self.recorded = [one for one in self.recorded if self.states[one.id] != states.PRISTINE]
        self.found = self._look(self.recorded)

    # --- What is there ---

    def hash(self, path: str) -> str:
        return sha256(self.contents.get(path))

    def _look(self, recorded: Sequence[Applied]) -> dict[str, str]:
        """The state of each patch, of the record and declared, by id; a declared one that the record has otherwise is ``outdated``."""
        digests = {one.id: one.digest for one in recorded}
        fresh = [patch for patch in self.declared if patch.id not in digests]
        layers = [states.recorded(one) for one in recorded] + [states.declared(patch) for patch in fresh]
        hashes = {path: self.hash(path) for layer in layers for path in layer.sides}
        self.files = {layer.id: files for layer, files in zip(layers, states.of_files(layers, hashes))}
        found = {name: states.of_patch(files) for name, files in self.files.items()}
        for patch in self.declared:
            if digests.get(patch.id, patch.digest) != patch.digest and found[patch.id] == states.APPLIED:
                found[patch.id] = "outdated"
        return found

    def _forgotten(self, one: Applied) -> bool:
        """Whether the record's entry is of another version than the installed one. What it had made and nobody else has, goes."""
        version = self.now.versions.get(one.package)
        if one.package in self.now.ambiguous or (version is not None and same_version(version, one.version)):
            return False
        left = [
            file.path
            for file in one.files
            if file.before == ABSENT and self.hash(file.path) == file.after and file.path not in self.now.owned
        ]
        for path in left:
            self.contents[path] = None
            self.done.ids.setdefault(path, []).append(one.id)
        told = f"it was applied to {one.package} {one.version}, and {version or 'no version'} is installed"
        if left:
            told += f"; {', '.join(left)} was left of it and goes"
        self.done.findings.append(finding("PATCH_STALE", one.id, told))
        return True

    def with_covering(self, leaving: Sequence[Applied]) -> list[Applied]:
        """These and all that lie on them, the topmost first."""
        chosen: list[Applied] = []
        for one in self.recorded:
            if one in leaving or any(shared(one, other) for other in chosen):
                chosen.append(one)
        return chosen[::-1]

    # --- Steps ---

    def refuse(self, fault: str, subject: str, detail: str) -> None:
        self.done.findings.append(finding(fault, subject, detail))
        self.faults.append(f"{subject}: {detail}")

    def undo(self, one: Applied) -> None:
        """Bring back what a recorded patch replaced."""
        if not self._judge(one.id, self._hashes(states.recorded(one))):
            return
        patch = next((patch for patch in self.declared if (patch.id, patch.digest) == (one.id, one.digest)), None)
        backwards = self._backwards(patch) if patch else {}
        for file in one.files:
            kept = None if file.before == ABSENT else self.now.original(file.before)
            content = backwards.get(file.path) if kept is None else kept
            if sha256(content) != file.before:
                self.refuse("PATCH_ORIGINAL_LOST", one.id, f"what {file.path} was before is kept nowhere")
                return
            self._put(file.path, content, one.id)
        self.recorded.remove(one)
        self.undone.add(one.id)

    def undo_unrecorded(self, patch: Patch) -> None:
        """Take back a patch that no record knows, where it is exactly what is declared."""
        found = self.found[patch.id]
        version = self.now.versions.get(patch.package)
        if found in (states.PRISTINE, states.UPSTREAM, states.EQUIVALENT) or version is None:
            return
        if found != states.APPLIED and not patch.is_for(version):
            self._tell_other_version(patch, version)
            return
        if not self._judge(patch.id, self.files[patch.id] if found != states.APPLIED else None):
            return
        contents = self._backwards(patch)
        if not contents:
            self.refuse(
                "PATCH_ORIGINAL_LOST", patch.id, "its diff, read backwards, does not lead to the contents before it"
            )
        for path, content in contents.items():
            self._put(path, content, patch.id)

    def _backwards(self, patch: Patch) -> dict[str, bytes | None]:
        """The contents before a patch, worked out from those after it; empty where its files are not what it made."""
        try:
            return _changed(patch, {one.path: one.before for one in patch.files}, self.contents, backwards=True)
        except hunks.Mismatch:
            return {}

    def apply(self, patch: Patch, at: str) -> None:
        version = self.now.versions.get(patch.package)
        if version is None:
            self.refuse(
                "PATCH_PACKAGE_MISSING", patch.id, f"{patch.package} is not there once, so there is nothing to patch"
            )
            return
        if any(one.id == patch.id for one in self.recorded):
            self._judge(patch.id, self.files[patch.id] if self.found[patch.id] != states.APPLIED else None)
            return
        files = self._hashes(states.declared(patch))
        state = states.of_patch(files)
        if state in (states.UPSTREAM, states.EQUIVALENT) or (state != states.APPLIED and patch.is_upstream_in(version)):
            self._tell_upstream(patch, version, state)
            return
        if self.found[patch.id] == states.APPLIED and patch.id not in self.undone:
            state = states.APPLIED  # it may lie beneath others
        elif state != states.APPLIED and not patch.is_for(version):
            told = f"it is made for {', '.join(patch.versions)}, and {patch.package} {version} is installed"
            self.refuse("PATCH_VERSION_UNKNOWN", patch.id, told)
            return
        if state not in (states.PRISTINE, states.APPLIED):
            self._judge(patch.id, files)
            return
        files_before = [self._recorded_file(one.path, one.before, one.after) for one in patch.files]
        if state == states.PRISTINE and not self._make(patch):
            return
        self.recorded.append(Applied(patch.id, patch.digest, patch.package, version, at, tuple(files_before)))

    def _make(self, patch: Patch) -> bool:
        try:
            made = _changed(patch, {one.path: one.after for one in patch.files}, self.contents)
        except hunks.Mismatch as error:
            self.refuse("PATCH_INVALID", patch.id, f"its diff does not fit the file that it names: {error}")
            return False
        for path, content in made.items():
            self._keep(self.contents[path])
            self._put(path, content, patch.id)
        for change in patch.changes:
            if change.old and change.new and change.old != change.new:
                self.done.origins[change.new] = change.old
            if change.executable and not change.old:
                self.done.executables.add(change.new)
        return True

    def _recorded_file(self, path: str, before: str, after: str) -> RecordedFile:
        held = self.now.held[path]
        if after != ABSENT or held.content is None:
            return RecordedFile(path, before, after)
        return RecordedFile(path, before, after, held.mode, held.uid, held.gid)

    def _put(self, path: str, content: bytes | None, name: str) -> None:
        self.contents[path] = content
        self.done.ids.setdefault(path, []).append(name)

    def _keep(self, content: bytes | None) -> None:
        if content is not None:
            self.done.originals.append(content)

    def _keep_of_adopted(self) -> None:
        """What patches replaced that were found applied and that no record knew: worked out backwards, the topmost first."""
        known = {one.id for one in self.now.record.patches}
        contents: dict[str, bytes | None] = {path: held.content for path, held in self.now.held.items()}
        for patch in reversed(self.declared):
            if self.found[patch.id] == states.APPLIED and patch.id not in known:
                with suppress(hunks.Mismatch):  # it lies beneath one that is not declared; its diff will do
                    before = _changed(patch, {one.path: one.before for one in patch.files}, contents, backwards=True)
                    contents.update(before)
                    for content in before.values():
                        self._keep(content)

    def _hashes(self, layer: states.Layer) -> dict[str, str]:
        """The state of a patch's files as they are by now, seen for itself."""
        return {path: side.state(self.hash(path)) for path, side in layer.sides.items()}

    # --- What cannot be ---

    def _judge(self, name: str, files: Mapping[str, str] | None) -> bool:
        """Whether a patch is there as a whole, or not at all where that is meant (``None``: it is). What is wrong is refused."""
        if not files or (state := states.of_patch(files)) == states.APPLIED:
            return True
        if state == states.FOREIGN:
            for path in sorted(path for path, one in files.items() if one == states.FOREIGN):
                self.refuse("PATCH_FOREIGN", name, self._foreign(name, path))
            return False
        sides = "; ".join(f"{path} is {files[path]}" for path in sorted(files))
        self.refuse("PATCH_MIXED", name, sides)
        return False

    def _foreign(self, name: str, path: str) -> str:
        patch = next((one for one in self.declared if one.id == name), None)
        others = [one.id for one in self.recorded if any(file.path == path for file in one.files) and one.id != name]
        if patch and others:
            below = ", ".join(others)
            return f"{path} is not what it was made from once {below} is in it; make it from what that leaves, or fold the two into one"
        pristine = [file.before for file in patch.files if file.path == path] if patch else []
        pristine += [file.before for one in self.now.record.patches for file in one.files if file.path == path]
        wheel = next((found for digest in pristine if (found := self.now.original(digest)) is not None), None)
        change = next((one for one in patch.changes if path in (one.old, one.new)), None) if patch else None
        return f"{path} {difference.of(self.contents.get(path), wheel, change)}"

    def _tell_upstream(self, patch: Patch, version: str, state: str) -> None:
        if state == states.EQUIVALENT:
            what = sorted(
                {one.equivalents[self.hash(one.path)] for one in patch.files if self.hash(one.path) in one.equivalents}
            )
            self.done.findings.append(finding("PATCH_EQUIVALENT", patch.id, "; ".join(what)))
            return
        self.found[patch.id] = states.UPSTREAM
        told = f"{patch.package} {version} has it"
        if patch.superseded_in:
            told += f", as every release from {patch.superseded_in} on"
        self.done.findings.append(finding("PATCH_UPSTREAM", patch.id, told))

    def _tell_other_version(self, patch: Patch, version: str) -> None:
        if patch.is_upstream_in(version):
            self.found[patch.id] = states.UPSTREAM
            return
        self.found[patch.id] = "other_version"
        told = f"it is made for {', '.join(patch.versions)}, and {patch.package} {version} is installed, so it is not in there"
        self.done.findings.append(finding("PATCH_VERSION_UNKNOWN", patch.id, told, severity="info"))

    # --- The end ---

    def plan(self) -> Plan:
        """What came out. Raises ``SlipwayError`` with all that was refused."""
        if self.faults:
            raise SlipwayError("; ".join(dict.fromkeys(self.faults)), self.done.findings)
        self.done.result = {
            path: content for path, content in self.contents.items() if content != self.now.held[path].content
        }
        self.done.ids = {path: ids for path, ids in self.done.ids.items() if path in self.done.result}
        self.done.record = Record(tuple(self.recorded))
        self._keep_of_adopted()
        return self.plan_of_states()

    def plan_of_states(self) -> Plan:
        """The states alone: those that were found, and those that the steps so far have led to."""
        before, versions = self.found, self.now.versions
        applied_now = {one.id for one in self.recorded}
        listed = {patch.id: (patch.package, tuple(one.path for one in patch.files)) for patch in self.declared}
        for one in self.now.record.patches:
            listed.setdefault(one.id, (one.package, tuple(file.path for file in one.files)))
        for name, (package, paths) in listed.items():
            was = before.get(name, self.states.get(name, states.PRISTINE))
            is_now = states.APPLIED if name in applied_now else was
            if is_now in (states.APPLIED, "outdated") and name not in applied_now:
                is_now = states.PRISTINE
            self.done.patches.append(PatchState(name, package, versions.get(package, ""), was, is_now, paths))
        return self.done


def _changed(
    patch: Patch, wanted: Mapping[str, str], contents: Mapping[str, bytes | None], backwards: bool = False
) -> dict[str, bytes | None]:
    """The contents that a patch, or what takes it back, makes of these. Raises ``hunks.Mismatch``."""
    made: dict[str, bytes | None] = {}
    for change in patch.changes:
        step = change.reversed() if backwards else change
        result = hunks.apply(step, contents[step.old] if step.old else contents[step.new])
        if step.old:
            made[step.old] = None
        if step.new:
            if step.new != step.old and contents[step.new] is not None:
                raise hunks.Mismatch(f"there is a file {step.new} already")
            made[step.new] = result
    for path, digest in wanted.items():
        if sha256(made[path]) != digest:
            raise hunks.Mismatch(f"{path} would have sha256 {sha256(made[path])}, and {digest} is declared")
    return made
