# SPDX-License-Identifier: GPL-3.0-or-later
"""What Slipway did to a guest, kept on its node: ``/var/lib/slipway/guests/<vmid>.json``.

A lost record means that less is ours, never more; facts read from the machine win over it.
"""

from __future__ import annotations

import json
import typing as t

from .. import files

if t.TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def read(path: Path) -> dict[str, t.Any]:
    """The record, or an empty one where there is none or it is not one."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


def write(path: Path, content: Mapping[str, t.Any]) -> None:
    """Replace the record, readable by root alone."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    files.replace(path, json.dumps(content, indent=2, sort_keys=True) + "\n", mode=0o600)
