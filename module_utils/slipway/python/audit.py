# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment against RECORD, lock and patches: looked at, hashed, and told. Reads, never writes."""

from __future__ import annotations

import os
import typing as t
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import cannot, here
from . import bytecode, hashing, originals, ownership, scan, site, startup, states
from .lock import normalise
from .states import File, Patches


@dataclass(frozen=True)
class Options:
    """What is asked: an empty ``packages`` is all of them, ``expected`` are the patches by path below site-packages."""

    venv: Path
    packages: frozenset[str] = frozenset()
    depth: str = "code"
    originals: tuple[str, ...] = ()
    expected: t.Mapping[str, Patches] = field(default_factory=dict)


@dataclass(frozen=True)
class Traced:
    """What was found in a changed file: whether the wheel's own was there to compare with, and why it could not be read."""

    file: File
    traces: list[scan.Trace]
    compared: bool
    unreadable: str = ""


@dataclass
class Audit:
    """What came out. ``files`` are those that are not as the wheels have them; ``counts`` are states by distribution number (-1: nobody's)."""

    folder: str
    distributions: list[site.Distribution]
    files: list[File] = field(default_factory=list)
    counts: dict[int, Counter[str]] = field(default_factory=dict)
    traced: list[Traced] = field(default_factory=list)
    bytecode: dict[str, str] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    hooks: list[startup.Hook] = field(default_factory=list)
    names: frozenset[str] = frozenset()

    def shown(self, path: str) -> str:
        """A path below site-packages as RECORD has it."""
        return (
            os.path.relpath(path, self.folder)
            if not path.startswith(f"{self.folder}/")
            else path[len(self.folder) + 1 :]
        )


def run(options: Options) -> list[Audit]:
    """Audit each site-packages of an environment. Raises ``SlipwayError`` where there is none, or a package is not there."""
    folders = site.folders(options.venv)
    if not folders:
        remedy = "Give the folder of a virtual environment, or a site-packages itself"
        raise cannot("audit", f"environment '{options.venv}'", here(), "it has no site-packages", remedy)
    try:
        grounds = [(folder, site.distributions(folder)) for folder in folders]
        known = {one.name for _folder, found in grounds for one in found}
        for name in sorted(options.packages - known):
            remedy = "See its name with uv pip list, or leave packages out to audit all"
            raise cannot("audit", f"package '{name}'", here(), f"it is not installed in {options.venv}", remedy)
        return [_audit(str(folder), found, options) for folder, found in grounds]
    except OSError as error:
        remedy = "Run as a user who may read all of it, and when nobody is installing"
        raise cannot("audit", f"environment '{options.venv}'", here(), str(error), remedy) from None


def _audit(folder: str, distributions: list[site.Distribution], options: Options) -> Audit:
    """One site-packages. Raises ``OSError``."""
    owned = ownership.owners(folder, distributions)
    tree = site.walk(folder)
    asked = {number for number, one in enumerate(distributions) if not options.packages or one.name in options.packages}
    present = {path: tree.files.get(path) or site.look(path) for path in owned.files}
    wanted = [
        hashing.Wanted(path, seen.size, algorithm)
        for path, seen in present.items()
        if seen and asked.intersection(number for number, _entry in owned.files[path])
        for algorithm in _algorithms(path, folder, seen.size, [entry for _number, entry in owned.files[path]], options)
    ]
    under_way = hashing.start(wanted)
    try:
        # While the children hash.
        audit = Audit(folder, distributions, links=_foreign_links(tree, owned))
        audit.hooks = startup.hooks(Path(folder))
        audit.names = frozenset(name.partition(".")[0] for name in os.listdir(folder) if not name.endswith("-info"))
        extra = [path for path in tree.files if path not in owned.files and not states.is_no_file_of_its_own(path)]
        audit.bytecode = _bytecode(tree, owned)
        results = under_way.results()
    finally:
        under_way.stop()
    digests: dict[str, dict[str, str]] = {}
    for one, value in zip(wanted, results):
        digests.setdefault(one.path, {})[one.algorithm] = value
    whole = not options.packages
    for path, owners in owned.files.items():
        mine = [number for number, _entry in owners if number in asked]
        if mine:
            entries = [entry for _number, entry in owners]
            _recorded(audit, mine[0], path, entries, present[path] is not None, digests.get(path), options)
    for path in sorted(extra):
        number = owned.of(path)
        if number in asked or (whole and number == -1):
            _unrecorded(audit, number, ownership.claimant(owned, folder, path), path, options)
    _scan(audit, owned, options)
    return audit


def _algorithms(path: str, folder: str, size: int, owners: list[t.Any], options: Options) -> set[str]:
    """By what a file is hashed; by nothing where the depth leaves it out. A size that cannot be right is always looked into."""
    inside = path.startswith(f"{folder}/")
    if options.depth == "all" or not inside or states.is_code(path) or states.differs_in_size(owners, size):
        return {entry.algorithm for entry in owners if entry.digest} or {"sha256"}
    return set()


def _recorded(
    audit: Audit,
    number: int,
    path: str,
    owners: list[t.Any],
    there: bool,
    digests: dict[str, str] | None,
    options: Options,
) -> None:
    """Judge a file that a RECORD names."""
    shown = audit.shown(path)
    patches = options.expected.get(shown, {})
    found = (digests or {}).get("sha256", "")
    state = states.PRISTINE
    if not there:
        found = states.ABSENT
        state = states.PATCHED if found in patches else states.MISSING
    elif digests is not None:
        state = states.of_recorded(owners, digests, patches)
    counts = audit.counts.setdefault(number, Counter())
    counts[state if digests is not None or not there else "unread"] += 1
    if state not in (states.PRISTINE, states.UNHASHED):
        expected = next((entry.digest for entry in owners if entry.algorithm == "sha256"), "")
        ids = patches[found] if state == states.PATCHED else ()
        audit.files.append(File(shown, audit.distributions[number].name, state, ids, found, expected))


def _unrecorded(audit: Audit, number: int, claimant: int, path: str, options: Options) -> None:
    """Judge a file that no RECORD names."""
    shown = audit.shown(path)
    if claimant >= 0:
        audit.counts.setdefault(claimant, Counter())[states.UNHASHED] += 1
        return
    if shown in startup.OF_THE_ENVIRONMENT:
        return
    told = options.depth == "all" or states.is_code(path) or states.is_native(path) or states.is_leftover(path)
    patches = options.expected.get(shown, {})
    if not told and not patches and not path.endswith(".pyc"):
        return
    digest = hashing.digest(path, "sha256", bytearray(hashing.CHUNK_BYTES)).hex()
    ids = patches.get(digest, ())
    state = states.PATCHED if ids else states.EXTRA
    audit.counts.setdefault(number, Counter())[state] += 1
    name = audit.distributions[number].name if number >= 0 else ""
    audit.files.append(File(shown, name, state, ids, digest))


def _foreign_links(tree: site.Tree, owned: ownership.Owners) -> dict[str, str]:
    """Links to folders in the place of what packages brought, or beside it."""
    return {path: target for path, target in tree.links.items() if not target.startswith(os.path.dirname(path))}


def _bytecode(tree: site.Tree, owned: ownership.Owners) -> dict[str, str]:
    """What is wrong with bytecode, by its path. One whose recorded source is missing is told with that source."""
    faults = {}
    for path, source in bytecode.sources(tree.files).items():
        if source not in tree.files and source in owned.files:
            continue
        if told := bytecode.fault(path, source, tree.files.get(source)):
            faults[path] = told
    return faults


def _scan(audit: Audit, owned: ownership.Owners, options: Options) -> None:
    """Look into each changed and added file of Python for what debugging leaves behind."""
    changed = [file for file in audit.files if file.state in (states.MODIFIED, states.EXTRA)]
    where = originals.places(options.venv, options.originals) if changed else None
    for file in changed:
        path = os.path.join(audit.folder, file.path)
        text = _python(path)
        if text is None or where is None:
            continue
        owners = [
            (audit.distributions[number].name, audit.distributions[number].version, entry)
            for number, entry in owned.files.get(os.path.normpath(path), ())
        ]
        original = where.find(file.path, owners) if owners else None
        try:
            traces = scan.scan(text, original.decode("utf-8", "replace") if original is not None else None)
            audit.traced.append(Traced(file, traces, original is not None))
        except (SyntaxError, ValueError) as error:
            audit.traced.append(Traced(file, [], original is not None, f"it is no Python that can be read: {error}"))


def _python(path: str) -> str | None:
    """The text of a file of Python, by its name or its first line; ``None`` for any other."""
    try:
        with open(path, "rb") as file:
            content = file.read(originals.LARGEST_BYTES)
    except OSError:
        return None
    first = content.partition(b"\n")[0]
    if not path.endswith((".py", ".pyw")) and not (first.startswith(b"#!") and b"python" in first):
        return None
    return content.decode("utf-8", "replace")


def packages(audit: Audit) -> list[dict[str, t.Any]]:
    """Each distribution that was audited, with the number of its files by state; nobody's files come under an empty name."""
    told = []
    for number, counts in sorted(audit.counts.items()):
        one = audit.distributions[number] if number >= 0 else None
        numbers = {state: counts[state] for state in (*states.STATES, "unread")}
        told.append({"name": one.name if one else "", "version": one.version if one else "", **numbers})
    return told


def twice(distributions: t.Iterable[site.Distribution]) -> dict[str, list[site.Distribution]]:
    """Distributions that are there more than once, by name."""
    by_name: dict[str, list[site.Distribution]] = {}
    for one in distributions:
        by_name.setdefault(normalise(one.name), []).append(one)
    return {name: found for name, found in by_name.items() if len(found) > 1}
