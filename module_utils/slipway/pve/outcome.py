# SPDX-License-Identifier: GPL-3.0-or-later
"""What was done to a guest, gathered on the way; becomes a module's result. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ..findings import Finding, finding

if t.TYPE_CHECKING:
    from collections.abc import Mapping

    from .tasks import Task


@dataclass
class Outcome:
    """Changes with both sides, the last task, and what there is to say."""

    changed: bool = False
    before: dict[str, t.Any] = field(default_factory=dict)
    after: dict[str, t.Any] = field(default_factory=dict)
    task: str | None = None
    deferred: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    # Keys that check mode says would wait for a restart.
    foretold: list[str] = field(default_factory=list)

    def note(self, before: Mapping[str, t.Any], after: Mapping[str, t.Any]) -> None:
        """Record a change, for ``changed`` and the diff."""
        self.changed = True
        self.before = {**before, **self.before}
        self.after.update(after)

    def note_task(self, task: Task, subject: str) -> None:
        """Record a task that ended well; the warnings of its log are a finding about ``subject``."""
        self.task = task.upid
        if task.exit_status != "OK":
            detail = "\n".join(task.warnings) or task.exit_status
            self.findings.append(finding("PVE_TASK_WARNINGS", subject, detail))

    def told(self) -> dict[str, t.Any]:
        """What every module returns of it."""
        return {
            "changed": self.changed,
            "diff": {"before": self.before, "after": self.after},
            "task": self.task,
            "findings": [item.as_dict() for item in self.findings],
        }
