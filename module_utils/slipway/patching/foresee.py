# SPDX-License-Identifier: GPL-3.0-or-later
"""What can be known of patches before the environment is there: whether they are sound, and made for what the lock names. Pure."""

from __future__ import annotations

import typing as t

from ..errors import SlipwayError
from ..findings import Finding, finding
from ..python import lock
from . import manifest

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


def findings(declared: Iterable[dict[str, t.Any]], lock_text: str) -> list[Finding]:
    """A finding for each patch that could not be applied to the lock's packages. Raises ``SlipwayError`` for a lock that is none."""
    found: list[Finding] = []
    patches = []
    for one in declared:
        try:
            patches += manifest.read_all([one])
        except SlipwayError as error:
            found += error.findings
    twice = {patch.id for patch in patches if [other.id for other in patches].count(patch.id) > 1}
    found += [finding("PATCH_INVALID", name, "it is declared twice") for name in sorted(twice)]
    locked = {one.name: one.version for one in lock.parse(lock_text)} if lock_text else {}
    applied = []
    for patch in patches if locked else []:
        version = locked.get(patch.package)
        if version is None:
            found.append(finding("PATCH_PACKAGE_MISSING", patch.id, f"the lock has no {patch.package}"))
        elif patch.is_for(version):
            applied.append(patch)
        elif not patch.is_upstream_in(version):
            told = f"it is made for {', '.join(patch.versions)}, and the lock has {patch.package} {version}"
            found.append(finding("PATCH_VERSION_UNKNOWN", patch.id, told))
    return found + _chains(applied)


def _chains(patches: Sequence[manifest.Patch]) -> list[Finding]:
    """Of patches that touch one file, each is made from what the one before leaves."""
    found = []
    last: dict[str, tuple[str, str]] = {}
    for patch in patches:
        for file in patch.files:
            if file.path in last and last[file.path][1] != file.before:
                told = f"{file.path}: it is not made from what {last[file.path][0]} leaves, which comes before it"
                found.append(finding("PATCH_INVALID", patch.id, told))
            last[file.path] = (patch.id, file.after)
    return found
