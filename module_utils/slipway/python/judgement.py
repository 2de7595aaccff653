# SPDX-License-Identifier: GPL-3.0-or-later
"""What an audit comes to, as findings. Pure: what was seen in, findings out."""

from __future__ import annotations

import os
import typing as t

from .. import findings as catalogue
from ..findings import Finding, finding
from . import scan, states
from .audit import Audit, Traced, twice

# So many files or lines of a package are named one by one in findings; all of them are in what the module returns.
NAMED = 20
FAULTS = {
    states.MODIFIED: "SITE_FILE_MODIFIED",
    states.MISSING: "SITE_FILE_MISSING",
    states.EXTRA: "SITE_FILE_EXTRA",
}


def findings(audit: Audit) -> list[Finding]:
    """All that is wrong with one site-packages, by kind, and within a kind by path."""
    hooks = {audit.shown(hook.path): hook.says for hook in audit.hooks}
    unowned = {file.path for file in audit.files if file.state not in (states.PRISTINE, states.PATCHED)}
    found = [finding("SITE_STARTUP_CODE", path, says) for path, says in sorted(hooks.items()) if path in unowned]
    lines = [(traced.file.package, _debug_code(traced, trace)) for traced in audit.traced for trace in traced.traces]
    found += _by_package(lines, "debug_code")
    # A file that runs at each start, or that an editor left, is told as that.
    told = [file for file in audit.files if file.path not in hooks or file.state != states.EXTRA]
    found += _by_package([(file.package, _file(file, audit)) for file in told if file.state in FAULTS], "files")
    stale = [
        ("", finding("SITE_BYTECODE_STALE", audit.shown(path), fault, "warn" if "is not there" in fault else None))
        for path, fault in sorted(audit.bytecode.items())
    ]
    found += _by_package(stale, "bytecode")
    found += [_editable(one) for one in audit.distributions if one.editable]
    found += [
        finding("SITE_EDITABLE", audit.shown(path), f"it is a link to {target}")
        for path, target in sorted(audit.links.items())
    ]
    for name, copies in sorted(twice(audit.distributions).items()):
        which = " and ".join(os.path.basename(one.folder) for one in copies)
        found.append(finding("SITE_TWO_VERSIONS", name, f"{which} are in {audit.folder}"))
    found += [
        finding("SITE_UNRECORDED", one.name, f"{os.path.basename(one.folder)} has none")
        for number, one in enumerate(audit.distributions)
        if one.entries is None and not one.editable and number in audit.counts
    ]
    return found


def debug_code(audit: Audit) -> list[dict[str, t.Any]]:
    """Each line that debugging left, as data; ``compared`` says whether the wheel's own file was there to compare with."""
    return [
        {
            "path": traced.file.path,
            "package": traced.file.package,
            "line": trace.line,
            "kind": trace.kind,
            "what": trace.what,
            "compared": traced.compared or traced.file.state == states.EXTRA,
        }
        for traced in audit.traced
        for trace in traced.traces
    ]


def _file(file: states.File, audit: Audit) -> Finding:
    """The finding of a file that is not as it should be."""
    if file.state == states.MISSING:
        return finding("SITE_FILE_MISSING", file.path, f"it belongs to {file.package}")
    if file.state == states.MODIFIED:
        wheel = f"sha256 is {file.sha256[:16]}..., RECORD of {file.package} has {file.expected_sha256[:16]}..."
        return finding("SITE_FILE_MODIFIED", file.path, wheel + _unreadable(file, audit))
    where = f"it lies among the files of {file.package}" if file.package else "it belongs to no package"
    if states.is_leftover(file.path):
        return finding("SITE_LEFTOVER", file.path, where)
    severity = None if states.is_run(file.path) else "warn"
    return finding("SITE_FILE_EXTRA", file.path, where + _unreadable(file, audit), severity)


def _unreadable(file: states.File, audit: Audit) -> str:
    fault = next((one.unreadable for one in audit.traced if one.file is file), "")
    return f"; it was not looked into: {fault}" if fault else ""


def _debug_code(traced: Traced, trace: scan.Trace) -> Finding:
    # Without the wheel's file a line of its own cannot be told from one that was added.
    whose = ""
    if traced.file.state == states.MODIFIED and not traced.compared:
        whose = "; the wheel's own file is not at hand, so this line may be its own (option originals)"
    detail = f"{trace.kind.replace('_', ' ')}: {trace.what}{whose}"
    return finding("SITE_DEBUG_CODE", f"{traced.file.path}:{trace.line}", detail)


def _editable(one: t.Any) -> Finding:
    where = (one.source or {}).get("url", "another folder")
    return finding("SITE_EDITABLE", one.name, f"{os.path.basename(one.folder)} says that its code is in {where}")


def _by_package(found: list[tuple[str, Finding]], listed: str) -> list[Finding]:
    """At most ``NAMED`` findings of a kind for one package, and one that counts the others; ``listed`` is where all of them are returned."""
    kinds: dict[tuple[str, str, str], list[Finding]] = {}
    for package, one in found:
        kinds.setdefault((one.id, one.severity, package), []).append(one)
    told = []
    for (fault, severity, package), many in kinds.items():
        told += many[:NAMED]
        if len(many) > NAMED:
            rest = f"{len(many) - NAMED} more; all are listed in {listed}"
            told.append(finding(fault, package or "others", rest, severity))
    order = list(catalogue.CATALOGUE)
    return sorted(told, key=lambda one: order.index(one.id))
