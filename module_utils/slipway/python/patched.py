# SPDX-License-Identifier: GPL-3.0-or-later
"""What patches have to do with an audit: which contents they account for, and which of them are there that should not be, or the other way. Pure."""

from __future__ import annotations

import typing as t

from ..findings import Finding, finding
from ..patching.manifest import Patch
from ..patching.record import Record
from . import states
from .lock import same_version


def contents(
    record: Record, declared: t.Sequence[Patch], versions: t.Mapping[str, t.Sequence[str]]
) -> dict[str, dict[str, tuple[str, ...]]]:
    """By path the contents (sha256, or ``absent``) that patches make, each with the ids of those patches.

    A recorded patch of another version than the installed one (``versions`` by package) says nothing. A declared one counts
    also where no record knows it, as does another form of it that it declares as equivalent.
    """
    live = Record(tuple(one for one in record.patches if _installed(one.version, versions.get(one.package, ()))))
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for patch in declared:
        for file in patch.files:
            for content in (file.after, *file.equivalents):
                found.setdefault(file.path, {})[content] = (patch.id,)
    for path, expected in live.expected().items():
        found.setdefault(path, {})[expected.sha256] = expected.ids
    return found


def findings(
    files: t.Sequence[states.File],
    declared: t.Sequence[Patch],
    ids: t.Collection[str],
    versions: t.Mapping[str, t.Sequence[str]],
) -> list[Finding]:
    """Patches that are in the environment and not declared, and declared ones that it needs and does not have.

    ``ids`` are declared as well, of which no more is known.
    """
    there: dict[str, list[str]] = {}
    for file in files:
        for name in file.patches:
            there.setdefault(name, []).append(file.path)
    known = {*ids, *(patch.id for patch in declared)}
    found = [
        finding("SITE_PATCH_UNDECLARED", name, f"it is in {', '.join(sorted(paths))}")
        for name, paths in sorted(there.items())
        if name not in known
    ]
    for patch in declared:
        lacking = sorted({file.path for file in patch.files} - set(there.get(patch.id, ())))
        if lacking and any(patch.is_for(version) for version in versions.get(patch.package, ())):
            found.append(finding("SITE_PATCH_ABSENT", patch.id, f"it is not in {', '.join(lacking)}"))
    found += [
        finding("SITE_PATCH_ABSENT", name, "no file of the environment has it")
        for name in sorted(set(ids) - set(there))
    ]
    return found


def _installed(version: str, installed: t.Sequence[str]) -> bool:
    return any(same_version(version, one) for one in installed)
