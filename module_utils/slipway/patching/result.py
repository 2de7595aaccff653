# SPDX-License-Identifier: GPL-3.0-or-later
"""What the module returns of a plan that was, or would be, carried out. Pure."""

from __future__ import annotations

import typing as t

from .manifest import sha256

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from .journal import Recovery
    from .plan import Plan
    from .tree import Held

SHOWN_BYTES = 2**20


def of(
    venv: Path,
    plan: Plan,
    held: Mapping[str, Held],
    recovery: Recovery | None,
    changed: bool,
    units: Sequence[str],
) -> dict[str, t.Any]:
    """The result. Files that an earlier run had begun to change are among those that changed: what runs has read neither."""
    files = [
        {
            "path": path,
            "before": sha256(held[path].content),
            "after": sha256(content),
            "patches": plan.ids.get(path, []),
        }
        for path, content in plan.result.items()
    ]
    if recovery and recovery.way != "discard":
        seen = {one["path"] for one in files}
        files += [
            {"path": step.path, "before": step.before, "after": step.after, "patches": []}
            for step in recovery.journal.steps
            if step.path not in seen
        ]
    return {
        "changed": changed,
        "patches": [
            {
                "id": one.id,
                "state": one.state,
                "before": one.before,
                "package": one.package,
                "version": one.version,
                "files": list(one.files),
            }
            for one in plan.patches
        ],
        "files": files,
        "restart_required": bool(files),
        "units": list(units) if files else [],
        "findings": [one.as_dict() for one in plan.findings],
        "diff": [_difference(venv, path, held[path].content, content) for path, content in plan.result.items()],
    }


def _difference(venv: Path, path: str, before: bytes | None, after: bytes | None) -> dict[str, str]:
    old, new = (f"{venv}: {path}" if one is not None else "/dev/null" for one in (before, after))
    return {"before_header": old, "after_header": new, "before": _text(before), "after": _text(after)}


def _text(content: bytes | None) -> str:
    """A content as it is shown; of one that nobody reads, only the hash."""
    if content is None:
        return ""
    if b"\0" in content or len(content) > SHOWN_BYTES:
        return f"{len(content)} bytes, sha256 {sha256(content)}\n"
    return content.decode("utf-8", "replace")
