# SPDX-License-Identifier: GPL-3.0-or-later
"""Print docs/findings.md from the catalogue: ``python tools/findings_doc.py > docs/findings.md``.

Run by ``make docs``. It imports the catalogue from its folder, so that neither Ansible nor an installed collection is needed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "module_utils"))
from slipway.findings import GROUPS

HEAD = """\
# Findings

Each check that Slipway makes ends in findings. This page lists every fault that it knows, by the name that playbooks,
reports and logs print. It is made from `module_utils/slipway/faults/` by `make docs`; do not edit it.

Severities: `fail` and `unknown` stop the play, `warn` and `info` are reported. `unknown` means that the check could not be
made, which is no good news. Any finding can come as `unknown`.
"""


def page() -> str:
    """The Markdown page."""
    parts = [HEAD]
    for group in GROUPS:
        parts.append(f"## {(group.__doc__ or '').rstrip('.')}\n")
        for fault_id, fault in group.FAULTS.items():
            summary, remedy = (text.replace("<", "&lt;") for text in (fault.summary, fault.remedy))
            entry = [f"### {fault_id}\n", f"`{fault.severity}` {summary}\n", f"What to do: {remedy}\n"]
            if fault.reference:
                entry.append(f"Seen in: {_linked(fault.reference)}\n")
            parts.append("\n".join(entry))
    return "\n".join(parts)


def _linked(reference: str) -> str:
    """A report of the form ``owner/repository#number`` as a link; anything else as it is."""
    return re.sub(r"\b([\w.-]+/[\w.-]+)#(\d+)\b", r"[\1#\2](https://github.com/\1/issues/\2)", reference)


if __name__ == "__main__":
    sys.stdout.write(page())
