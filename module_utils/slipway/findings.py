# SPDX-License-Identifier: GPL-3.0-or-later
"""Findings: the one form in which everything that was checked is told.

A finding is made from an entry of the catalogue, so that a fault has one text wherever it is met. ``docs/findings.md`` is
generated from the catalogue. A check that could not be made is ``unknown``, never ``ok``.
"""

from __future__ import annotations

import typing as t
from dataclasses import asdict, dataclass, replace

from .faults import (
    all_reduce,
    answers,
    board,
    command_line,
    debian,
    gpu_host,
    guests,
    inventory,
    kernel_cmdline,
    links,
    models,
    patches,
    proofs,
    serving,
    site,
    stack,
    weights,
)
from .faults.fault import Fault

SEVERITIES = ("ok", "info", "warn", "fail", "unknown")


@dataclass(frozen=True)
class Finding:
    """One result of one check, as modules return it and the report prints it."""

    id: str
    severity: str
    subject: str
    summary: str
    detail: str = ""
    remedy: str = ""
    reference: str = ""

    def as_dict(self) -> dict[str, str]:
        """The finding as a plain dictionary of strings, the form that modules return."""
        return asdict(self)


# In the order of the journey; docs/findings.md has it too.
GROUPS = (
    inventory,
    guests,
    gpu_host,
    kernel_cmdline,
    board,
    debian,
    stack,
    patches,
    site,
    weights,
    models,
    command_line,
    links,
    all_reduce,
    serving,
    answers,
    proofs,
)
CATALOGUE: dict[str, Fault] = {fault_id: fault for group in GROUPS for fault_id, fault in group.FAULTS.items()}


def finding(fault_id: str, subject: str, detail: str = "", severity: str | None = None) -> Finding:
    """Make a finding of a catalogued fault about ``subject`` (a GPU, a file, a unit, an endpoint).

    ``severity`` replaces the catalogue's where the caller knows better (``unknown`` when the check could not be made).
    Raises ``KeyError`` for an id that is not in the catalogue and ``ValueError`` for a severity that does not exist.
    """
    fault = CATALOGUE[fault_id]
    chosen = severity or fault.severity
    if chosen not in SEVERITIES:
        raise ValueError(f"severity {chosen!r} is none of {', '.join(SEVERITIES)}")
    return Finding(fault_id, chosen, subject, fault.summary, detail, fault.remedy, fault.reference)


def softened(findings: t.Sequence[Finding]) -> list[Finding]:
    """The same findings where what they are about is not required: what would fail only warns."""
    return [replace(found, severity="warn") if found.severity in ("fail", "unknown") else found for found in findings]
