# SPDX-License-Identifier: GPL-3.0-or-later
"""The index of weights that lie in several files (``model.safetensors.index.json``), held against these files' headers. Pure.

``{"metadata": {"total_size": bytes}, "weight_map": {tensor: file}}`` is what transformers writes and engines load by.
"""

from __future__ import annotations

import json
import typing as t
from collections import Counter

from ..errors import SlipwayError
from ..findings import Finding, finding
from .safetensors import Header

NAME = "model.safetensors.index.json"
# As many as are named; of the others it is said how many there are.
NAMED = 3


def read(text: str) -> tuple[dict[str, str], int | None]:
    """Files by tensor, and the bytes of all tensors where it tells them. Raises ``SlipwayError`` whose message is the fault in words."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise SlipwayError(f"it is no JSON ({error})") from None
    table = content.get("weight_map") if isinstance(content, dict) else None
    if not isinstance(table, dict) or not table or not all(isinstance(name, str) for name in table.values()):
        raise SlipwayError("it has no weight_map that names a file for each tensor")
    outside = next((name for name in table.values() if "/" in name or name in ("", ".", "..")), None)
    if outside is not None:
        raise SlipwayError(f"it names '{outside}', which is no file beside it")
    metadata = content.get("metadata")
    total = metadata.get("total_size") if isinstance(metadata, dict) else None
    return table, int(total) if isinstance(total, (int, float)) else None


def compare(text: str, headers: t.Mapping[str, Header | None]) -> list[Finding]:
    """What separates an index from the safetensors files beside it, by name; ``None`` for one that is there and has no sound header.

    Such a file is told by its reader, and here it counts as there.
    """
    try:
        table, total = read(text)
    except SlipwayError as error:
        return [finding("MODEL_INDEX_WRONG", NAME, str(error))]
    named = sorted(set(table.values()))
    missing = [name for name in named if name not in headers]
    findings = [finding("MODEL_FILE_MISSING", name, f"{NAME} names it for {_count(table, name)}") for name in missing]
    whole = {name: header for name, header in headers.items() if header is not None}
    findings += _tensors(table, whole, {*missing, *headers} - set(whole))
    extra = [name for name in sorted(headers) if name not in named]
    if extra:
        findings.append(finding("MODEL_INDEX_INEXACT", NAME, f"it does not name {_some(extra)}"))
    bytes_there = sum(whole[name].data_bytes for name in named if name in whole)
    if total is not None and set(named) <= set(whole) and total != bytes_there:
        cause = f"it tells {total} bytes of weights, and its files hold {bytes_there}"
        findings.append(finding("MODEL_INDEX_INEXACT", NAME, cause))
    return findings


def _tensors(table: dict[str, str], headers: dict[str, Header], unread: set[str]) -> list[Finding]:
    """What contradicts the table in the files that could be read."""
    homes: dict[str, list[str]] = {}
    for name, header in headers.items():
        for tensor in header.tensors:
            homes.setdefault(tensor, []).append(name)
    findings = []
    wrong = [
        (tensor, name)
        for tensor, name in sorted(table.items())
        if name not in unread and name not in homes.get(tensor, [])
    ]
    moved = [f"{tensor} is in {homes[tensor][0]}, not in {name}" for tensor, name in wrong if tensor in homes]
    lost = [f"{tensor} is not in {name}" for tensor, name in wrong if tensor not in homes]
    if wrong:
        findings.append(finding("MODEL_INDEX_WRONG", NAME, _some(moved + lost)))
    beyond = sorted(
        tensor for tensor, names in homes.items() if tensor not in table and set(names) & set(table.values())
    )
    if beyond:
        findings.append(finding("MODEL_INDEX_INEXACT", NAME, f"it does not name the tensors {_some(beyond)}"))
    return findings


def _count(table: dict[str, str], name: str) -> str:
    number = Counter(table.values())[name]
    return f"{number} tensors" if number > 1 else "one tensor"


def _some(texts: list[str]) -> str:
    more = len(texts) - NAMED
    return ", ".join(texts[:NAMED]) + (f", and {more} more" if more > 0 else "")
