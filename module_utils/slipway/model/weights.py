# SPDX-License-Identifier: GPL-3.0-or-later
"""The safetensors files of a folder: their headers, and whether they and their index are whole. Reads no tensor."""

from __future__ import annotations

import typing as t
from pathlib import Path

from ..errors import SlipwayError
from ..findings import Finding, finding
from . import index, safetensors


def look(folder: Path) -> tuple[dict[str, safetensors.Header | None], list[Finding]]:
    """Headers by file name, ``None`` for a file that is torn, and what is wrong with them. Raises ``OSError``."""
    headers: dict[str, safetensors.Header | None] = {}
    findings = []
    for path in sorted(folder.glob("*.safetensors")):
        try:
            headers[path.name] = safetensors.read_header(path)
        except SlipwayError as error:
            headers[path.name] = None
            findings.append(finding("MODEL_FILE_DAMAGED", path.name, str(error)))
    table = folder / index.NAME
    if table.exists():
        findings += index.compare(table.read_text(encoding="utf-8", errors="replace"), headers)
    return headers, findings


def total_bytes(headers: t.Iterable[safetensors.Header | None]) -> int:
    """What the weights take in memory, as they lie in the files."""
    return sum(header.data_bytes for header in headers if header)
