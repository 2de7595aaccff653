# SPDX-License-Identifier: GPL-3.0-or-later
"""What is known of a fault."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fault:
    """A known fault: what every finding with its id says. ``reference`` is a report or manual that shows it."""

    severity: str
    summary: str
    remedy: str
    reference: str = ""
