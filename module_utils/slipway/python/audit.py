# SPDX-License-Identifier: GPL-3.0-or-later
"""An environment against RECORD, lock and patches: looked at, hashed, and told. Reads, never writes."""

from __future__ import annotations

import os
import typing as t
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from ..errors import SlipwayError, cannot, here
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
    kept: Path | None = None
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

    def count(self, number: int, state: str) -> None:
        """One more file of a distribution that is in this state."""
        if number not in self.counts:
            self.counts[number] = Counter()
        self.counts[number][state] += 1

    def shown(self, path: str) -> str:
        """A path below site-packages as RECORD has it."""
        return (
            os.path.relpath(path, self.folder)
            if not path.startswith(f"{self.folder}/")
            else path[len(self.folder) + 1 :]
        )


OTHER_CODE = "its header fits the source and its code does not, so that Python runs what the source does not say"
Ground = tuple[Path, "list[site.Distribution]"]


def look(venv: Path) -> list[Ground]:
    """Each site-packages of an environment with what is installed there. Raises ``SlipwayError`` where there is none."""
    try:
        if folders := site.folders(venv):
            return [(folder, site.distributions(folder)) for folder in folders]
    except OSError as error:
        raise _unreadable(venv, error) from None
    remedy = "Give the folder of a virtual environment, or a site-packages itself"
    raise cannot("audit", f"environment '{venv}'", here(), "it has no site-packages", remedy)


def _unreadable(venv: Path, error: OSError) -> SlipwayError:
    remedy = "Run as a user who may read all of it, and when nobody is installing"
    return cannot("audit", f"environment '{venv}'", here(), str(error), remedy)


def run(grounds: t.Sequence[Ground], options: Options) -> list[Audit]:
    """Audit each site-packages of an environment. Raises ``SlipwayError``, also where a package is not there."""
    try:
        known = {one.name for _folder, found in grounds for one in found}
        for name in sorted(options.packages - known):
            remedy = "See its name with uv pip list, or leave packages out to audit all"
            raise cannot("audit", f"package '{name}'", here(), f"it is not installed in {options.venv}", remedy)
        return [_audit(str(folder), found, options) for folder, found in grounds]
    except OSError as error:
        raise _unreadable(options.venv, error) from None


def _audit(folder: str, distributions: list[site.Distribution], options: Options) -> Audit:
    """One site-packages. Raises ``OSError``."""
    owned = ownership.owners(folder, distributions)
    asked = {number for number, one in enumerate(distributions) if not options.packages or one.name in options.packages}
    mine = {path: owners for path, owners in owned.files.items() if any(number in asked for number, _entry in owners)}
    under_way = hashing.start([one for path in mine for one in _wanted(path, mine[path], folder, options.depth)])
    try:
        # While the children hash.
        tree = site.walk(folder)
        present = {path: tree.files.get(path) or site.look(path) for path in mine}
        audit = Audit(folder, distributions, links=_foreign_links(tree))
        audit.hooks = startup.hooks(Path(folder))
        audit.names = frozenset(name.partition(".")[0] for name in os.listdir(folder) if not name.endswith("-info"))
        pairs = bytecode.sources(tree.files)
        audit.bytecode = _bytecode(pairs, tree, owned)
        digests = under_way.by_path()
    finally:
        under_way.stop()
    torn = [
        path
        for path, seen in present.items()
        if seen and path not in digests and states.differs_in_size(mine[path], seen.size)
    ]
    digests |= hashing.start([one for path in torn for one in _wanted(path, mine[path], folder, "all")]).by_path()
    for path, owners in mine.items():
        _recorded(audit, asked, path, owners, present[path] is not None, digests.get(path), options)
    for path in sorted(
        path for path in tree.files if path not in owned.files and not states.is_no_file_of_its_own(path)
    ):
        number = owned.of(path)
        claimant = ownership.claimant(owned, folder, path)
        if claimant >= 0:
            if claimant in asked:
                audit.count(claimant, states.UNHASHED)
        elif number in asked or (number == -1 and not options.packages):
            _unrecorded(audit, number, path, options)
    _scan(audit, owned, options)
    changed = {os.path.normpath(os.path.join(folder, file.path)) for file in audit.files}
    fitting = {path: source for path, source in pairs.items() if path not in audit.bytecode}
    doubted = bytecode.doubted(tree.files, fitting, changed)
    for path in bytecode.differing(str(options.venv / "bin" / "python"), doubted):
        audit.bytecode[path] = OTHER_CODE
    return audit


def _wanted(path: str, owners: t.Sequence[ownership.Owner], folder: str, depth: str) -> t.Iterator[hashing.Wanted]:
    """By what a file is hashed; by nothing where the depth leaves it out."""
    if depth == "all" or states.is_code(path) or not path.startswith(f"{folder}/"):
        for algorithm in {entry.algorithm or "sha256" for _number, entry in owners}:
            yield hashing.Wanted(path, owners[0][1].size or 0, algorithm)


def _recorded(
    audit: Audit,
    asked: set[int],
    path: str,
    owners: t.Sequence[ownership.Owner],
    there: bool,
    digests: dict[str, str] | None,
    options: Options,
) -> None:
    """Judge a file that a RECORD names. Raises ``OSError`` for one that is there and cannot be read."""
    patches = options.expected.get(audit.shown(path), {}) if options.expected else {}
    state = states.of_recorded(owners, there, digests, patches)
    number = next(number for number, _entry in owners if number in asked)
    audit.count(number, state)
    if state in (states.PRISTINE, states.UNREAD, states.UNHASHED):
        return
    found = (digests or {}).get("sha256", "") if there else states.ABSENT
    if there and not any((digests or {}).values()):
        raise PermissionError(f"{path} cannot be read")
    expected = next((entry.digest for _number, entry in owners if entry.algorithm == "sha256"), "")
    ids = patches[found] if state == states.PATCHED else ()
    name = audit.distributions[number].name
    audit.files.append(File(audit.shown(path), name, state, ids, found if there else "", expected))


def _unrecorded(audit: Audit, number: int, path: str, options: Options) -> None:
    """Judge a file that no RECORD names."""
    shown = audit.shown(path)
    if shown in startup.OF_THE_ENVIRONMENT:
        return
    patches = options.expected.get(shown, {})
    if options.depth != "all" and not patches and not states.is_run(path) and not states.is_leftover(path):
        return
    digest = hashing.digest(path, "sha256", bytearray(hashing.CHUNK_BYTES)).hex()
    ids = patches.get(digest, ())
    state = states.PATCHED if ids else states.EXTRA
    audit.count(number, state)
    audit.files.append(File(shown, audit.distributions[number].name if number >= 0 else "", state, ids, digest))


def _foreign_links(tree: site.Tree) -> dict[str, str]:
    """Links to folders that lie elsewhere."""
    return {path: target for path, target in tree.links.items() if not target.startswith(os.path.dirname(path))}


def _bytecode(pairs: dict[str, str], tree: site.Tree, owned: ownership.Owners) -> dict[str, str]:
    """What is wrong with bytecode, by its path. One whose recorded source is missing is told with that source."""
    faults = {}
    for path, source in pairs.items():
        if source not in tree.files and source in owned.files:
            continue
        if told := bytecode.fault(path, source, tree.files.get(source)):
            faults[path] = told
    return faults


def _scan(audit: Audit, owned: ownership.Owners, options: Options) -> None:
    """Look into each changed and added file of Python for what debugging leaves behind."""
    changed = [file for file in audit.files if file.state in (states.MODIFIED, states.EXTRA)]
    where = originals.places(options.venv, options.originals, options.kept) if changed else None
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
            traces = scan.scan(text, original.decode("utf-8-sig", "replace") if original is not None else None)
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
    return content.decode("utf-8-sig", "replace")


def packages(audit: Audit) -> list[dict[str, t.Any]]:
    """Each distribution that was audited, with the number of its files by state; nobody's files come under an empty name."""
    told = []
    for number, counts in sorted(audit.counts.items()):
        one = audit.distributions[number] if number >= 0 else None
        numbers = {state: counts[state] for state in (*states.STATES, states.UNREAD)}
        told.append({"name": one.name if one else "", "version": one.version if one else "", **numbers})
    return told


def twice(distributions: t.Iterable[site.Distribution]) -> dict[str, list[site.Distribution]]:
    """Distributions that are there more than once, by name."""
    by_name: dict[str, list[site.Distribution]] = {}
    for one in distributions:
        by_name.setdefault(normalise(one.name), []).append(one)
    return {name: found for name, found in by_name.items() if len(found) > 1}
