# SPDX-License-Identifier: GPL-3.0-or-later
"""A patch as it is declared: what ``patch.yml`` says, held against ``change.diff``. Pure: data in, patches out."""

from __future__ import annotations

import hashlib
import json
import re
import typing as t
from dataclasses import dataclass

from ..errors import SlipwayError
from ..findings import finding
from ..python.lock import normalise, same_version
from . import diff, versions

ABSENT = "absent"
SHA256 = re.compile("[0-9a-f]{64}")
IDENTIFIER = re.compile("[a-z0-9][a-z0-9._-]*")
NEEDED = {"id": str, "summary": str, "package": str, "versions": list, "files": list, "diff": str}
OPTIONAL = {"why": str, "upstream": str, "superseded_in": str, "evidence": list, "licence": str}


@dataclass(frozen=True)
class File:
    """One file of a patch. ``before`` and ``after`` are sha256 in hex, or ``absent``.

    ``upstream`` are contents of releases that have the change, ``equivalents`` (with what each is) others that do the same.
    """

    path: str
    before: str
    after: str
    upstream: tuple[str, ...]
    equivalents: dict[str, str]


@dataclass(frozen=True)
class Patch:
    """A patch that has been read. ``digest`` is that of all that decides what it does: another one is another patch."""

    id: str
    package: str
    versions: tuple[str, ...]
    superseded_in: str
    upstream: str
    files: tuple[File, ...]
    changes: tuple[diff.Change, ...]
    digest: str

    def is_for(self, version: str) -> bool:
        """Whether it was made for this version."""
        return any(same_version(one, version) for one in self.versions)

    def is_upstream_in(self, version: str) -> bool:
        """Whether this version of the package has the change by itself, as is declared. Raises ``ValueError`` for what is no version."""
        return bool(self.superseded_in) and versions.reached(version, self.superseded_in)


def sha256(content: bytes | None) -> str:
    """The hash of a content, or ``absent``."""
    return ABSENT if content is None else hashlib.sha256(content).hexdigest()


def read_all(declared: t.Iterable[dict[str, t.Any]]) -> list[Patch]:
    """The patches, in their order. Raises ``SlipwayError`` with the finding ``PATCH_INVALID``; its message is the cause alone."""
    patches: list[Patch] = []
    for one in declared:
        patch = read(one)
        if any(patch.id == other.id for other in patches):
            raise _invalid(patch.id, "it is declared twice")
        patches.append(patch)
        _check_folders(patch, {file.path for other in patches for file in other.files})
    return patches


def _check_folders(patch: Patch, touched: set[str]) -> None:
    """No path can be a file and the folder of another; found between two renames, neither state could be had any more."""
    for path in sorted(touched):
        parts = path.split("/")
        above = {"/".join(parts[:count]) for count in range(1, len(parts))} & touched
        if above:
            raise _invalid(patch.id, f"{above.pop()} is a file, and {path} lies in it")


def read(declared: dict[str, t.Any]) -> Patch:
    """One patch: the keys of ``patch.yml``, and ``diff`` with the text of ``change.diff``. Raises ``SlipwayError``."""
    name = str(declared.get("id") or "without an id")
    for key, kind in NEEDED.items():
        if not isinstance(declared.get(key), kind) or not declared[key]:
            raise _invalid(name, f"{key} is missing, or no {_kind(kind)}")
    for key, value in declared.items():
        if key not in NEEDED and key not in OPTIONAL:
            raise _invalid(name, f"no patch has a key {key}")
        if key in OPTIONAL and value is not None and not isinstance(value, OPTIONAL[key]):
            raise _invalid(name, f"{key} is no {_kind(OPTIONAL[key])}")
    if not IDENTIFIER.fullmatch(name):
        raise _invalid(name, "its id has other characters than a-z, 0-9, dot, underscore and hyphen")
    superseded = declared.get("superseded_in") or ""
    for version in [*declared["versions"], *([superseded] if superseded else [])]:
        _check_version(name, version)
    content = declared["diff"].encode("utf-8", "surrogateescape")
    try:
        changes = tuple(diff.parse(content))
    except diff.DiffError as error:
        raise _invalid(name, f"its diff cannot be used: {error}") from None
    files = tuple(_file(name, entry) for entry in declared["files"])
    _compare(name, files, changes)
    facts = [[one.path, one.before, one.after] for one in files]
    package = normalise(declared["package"])
    digest = hashlib.sha256(json.dumps([package, facts]).encode() + content).hexdigest()
    return Patch(
        name, package, tuple(declared["versions"]), superseded, declared.get("upstream") or "", files, changes, digest
    )


def _check_version(name: str, version: t.Any) -> None:
    # YAML reads 0.5 as a number, and 1.10 as 1.1.
    if not isinstance(version, str):
        raise _invalid(name, f"version {version} is a number; put it into quotes")
    try:
        versions.key(version)
    except ValueError as error:
        raise _invalid(name, str(error)) from None


def _file(name: str, entry: t.Any) -> File:
    if not isinstance(entry, dict) or not isinstance(entry.get("path"), str):
        raise _invalid(name, "an entry of files has no path")
    unknown = set(entry) - {"path", "before", "after", "upstream", "equivalents"}
    if unknown:
        raise _invalid(name, f"an entry of files has no key {', '.join(sorted(unknown))}")
    for key in ("before", "after"):
        if entry.get(key) != ABSENT and not SHA256.fullmatch(str(entry.get(key))):
            raise _invalid(name, f"{key} of {entry['path']} is neither a sha256 in hex nor '{ABSENT}'")
    if entry["before"] == entry["after"]:
        raise _invalid(name, f"before and after of {entry['path']} are the same")
    equivalents = {}
    for one in entry.get("equivalents") or []:
        if not isinstance(one, dict) or set(one) != {"sha256", "what"} or not SHA256.fullmatch(str(one["sha256"])):
            raise _invalid(name, f"an equivalent of {entry['path']} is not a sha256 and what it is")
        equivalents[one["sha256"]] = str(one["what"])
    upstream = tuple(str(one) for one in entry.get("upstream") or [])
    if not all(SHA256.fullmatch(one) for one in upstream):
        raise _invalid(name, f"upstream of {entry['path']} is no list of sha256 in hex")
    if {entry["before"], entry["after"]} & {*equivalents, *upstream}:
        raise _invalid(name, f"an equivalent of {entry['path']} is its before or after")
    return File(entry["path"], entry["before"], entry["after"], upstream, equivalents)


def _compare(name: str, files: tuple[File, ...], changes: tuple[diff.Change, ...]) -> None:
    """What the manifest says of files is what the diff does to them."""
    told = {one.path: one for one in files}
    if len(told) != len(files):
        raise _invalid(name, "an entry of files is there twice")
    done = {path for change in changes for path in (change.old, change.new) if path}
    for path in sorted(done ^ set(told)):
        side = (
            "its diff changes it, and files does not name it"
            if path in done
            else "files names it, and its diff does not change it"
        )
        raise _invalid(name, f"{path}: {side}")
    for change in changes:
        if change.new and change.new != change.old and told[change.new].before != ABSENT:
            raise _invalid(name, f"its diff makes {change.new}, whose before is therefore '{ABSENT}'")
        if change.old and change.new != change.old and told[change.old].after != ABSENT:
            raise _invalid(name, f"its diff takes {change.old} away, whose after is therefore '{ABSENT}'")
        if change.old == change.new and ABSENT in (told[change.old].before, told[change.old].after):
            raise _invalid(name, f"its diff changes {change.old}, which is there before and after")


def _kind(kind: type) -> str:
    return "text" if kind is str else kind.__name__


def _invalid(name: str, cause: str) -> SlipwayError:
    return SlipwayError(f"patch '{name}': {cause}", [finding("PATCH_INVALID", name, cause)])
