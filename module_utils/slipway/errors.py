# SPDX-License-Identifier: GPL-3.0-or-later
"""The one error class that the work raises and that only a module's main() turns into a failure."""

from __future__ import annotations

import platform
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Sequence

    from .findings import Finding


class SlipwayError(Exception):
    """A sentence that a person can act on, with the findings it rests on.

    The message has the form that ``cannot()`` builds. ``findings`` are shown by the module beside it.
    """

    def __init__(self, message: str, findings: Sequence[Finding] = ()) -> None:
        super().__init__(message)
        self.findings = list(findings)


def here() -> str:
    """The name of this machine, for sentences about what is done on it."""
    return platform.node()


def cannot(
    verb: str,
    subject: str,
    where: str,
    cause: str,
    remedy: str,
    findings: Sequence[Finding] = (),
) -> SlipwayError:
    """Build the house's sentence: ``Cannot <verb> <subject> on <where>: <cause>. <remedy>.``

    ``subject`` names kind and name, as in ``container '101'``. Full stops at the end of a part are not doubled.
    """
    sentence = f"Cannot {verb} {subject} on {where}: {cause.strip().rstrip('.')}. {remedy.strip().rstrip('.')}."
    return SlipwayError(sentence, findings)
