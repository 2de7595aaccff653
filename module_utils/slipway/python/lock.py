# SPDX-License-Identifier: GPL-3.0-or-later
"""Locks: requirements files in which every package has one version and its hashes. Pure: text in, requirements out.

A lock holds no addresses and no options, so that the same file serves a machine with an index, a mirror or a folder.
"""

from __future__ import annotations

import hashlib
import re
import typing as t
from dataclasses import dataclass

from ..errors import SlipwayError
from ..findings import finding
from . import markers

REQUIREMENT = re.compile(
    r"(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*==\s*(?P<version>[A-Za-z0-9][A-Za-z0-9.!+_-]*)"
    r"\s*(?:;\s*(?P<marker>.*))?"
)
HASH = re.compile(r"\s--hash=(?P<algorithm>[a-z0-9]+):(?P<digest>\S+)")
# md5 and sha1 are what an attacker can forge; pip and uv refuse them in locks as well.
DIGEST_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}


@dataclass(frozen=True)
class Requirement:
    """One package of a lock. ``name`` is normalised, ``marker`` is empty where the package is always wanted."""

    name: str
    version: str
    hashes: tuple[str, ...]
    marker: str = ""


def normalise(name: str) -> str:
    """The one spelling of a package's name (packaging.python.org, "Names and normalization")."""
    return re.sub(r"[-_.]+", "-", name).lower()


def same_version(one: str, other: str) -> bool:
    """Whether two spellings name one version: ``1.0`` is ``1.0.0``, ``2.9.1+cpu`` is not ``2.9.1``."""
    return _canonical(one) == _canonical(other)


def _canonical(version: str) -> str:
    public, _plus, local = version.strip().lower().lstrip("v").partition("+")
    release, rest = t.cast("re.Match[str]", re.match(r"((?:\d+!)?[\d.]*)(.*)", public)).groups()
    rest = re.sub(r"[-_.]", "", rest).replace("alpha", "a").replace("beta", "b")
    rest = re.sub(r"^(?:c|pre|preview)(?=\d)", "rc", rest)
    return f"{re.sub(r'(?:[.]0+)*[.]?$', '', release)}{rest}+{re.sub('[-_]', '.', local)}"


def digest(text: str) -> str:
    """SHA-256 of a lock's text, in hex: what an environment says it was made from."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def parse(text: str) -> list[Requirement]:
    """The requirements of a lock, in its order.

    Raises ``SlipwayError`` with the finding ``LOCK_INVALID`` or ``LOCK_UNHASHED``; its message is the cause alone and
    names lines or packages.
    """
    requirements = [_requirement(line, number) for number, line in _logical_lines(text)]
    if not requirements:
        raise _invalid("it names no package")
    unhashed = [requirement.name for requirement in requirements if not requirement.hashes]
    if unhashed:
        named = ", ".join(unhashed[:10]) + (" and others" if len(unhashed) > 10 else "")
        cause = f"{len(unhashed)} of its {len(requirements)} packages have no hash: {named}"
        raise SlipwayError(cause, [finding("LOCK_UNHASHED", "lock", cause)])
    return requirements


def wanted(requirements: t.Iterable[Requirement], environment: dict[str, str]) -> dict[str, str]:
    """Version by name, of the packages whose markers hold in this environment (the names of ``markers.PROBE``).

    Raises ``SlipwayError`` for a marker that cannot be read and for a package with two versions.
    """
    versions: dict[str, str] = {}
    for requirement in requirements:
        try:
            if requirement.marker and not markers.evaluate(requirement.marker, environment):
                continue
        except ValueError as error:
            raise _invalid(f"the marker of {requirement.name} ({requirement.marker}) cannot be read: {error}") from None
        other = versions.setdefault(requirement.name, requirement.version)
        if not same_version(other, requirement.version):
            raise _invalid(f"{requirement.name} is there in two versions, {other} and {requirement.version}")
    return versions


def _invalid(cause: str) -> SlipwayError:
    return SlipwayError(cause, [finding("LOCK_INVALID", "lock", cause)])


def _logical_lines(text: str) -> t.Iterator[tuple[int, str]]:
    """Lines with their number, without comments, continued lines joined."""
    joined, start = "", 0
    for number, raw in enumerate(text.splitlines(), 1):
        line = re.sub(r"(^|\s)#.*$", "", raw).rstrip()
        start = start or number
        if line.endswith("\\"):
            joined += line[:-1] + " "
            continue
        joined = (joined + line).strip()
        if joined:
            yield start, joined
        joined, start = "", 0
    if joined.strip():
        yield start, joined.strip()


def _requirement(line: str, number: int) -> Requirement:
    if line.startswith("-"):
        raise _invalid(f"line {number} is an option ({line.split()[0].split('=')[0]}), and a lock holds packages only")
    hashes = tuple(f"{match['algorithm']}:{match['digest']}" for match in HASH.finditer(line))
    for item in hashes:
        algorithm, value = item.split(":", 1)
        if len(value) != DIGEST_LENGTHS.get(algorithm) or not re.fullmatch("[0-9a-f]+", value):
            raise _invalid(f"line {number} has a hash that is no sha256, sha384 or sha512")
    specification = HASH.sub("", line).strip()
    match = REQUIREMENT.fullmatch(specification)
    if not match:
        # Not shown whole: an address in it could carry a password.
        name = re.split(r"[^A-Za-z0-9._-]", specification)[0]
        raise _invalid(f"line {number} ({name}) does not pin one version with ==")
    return Requirement(normalise(match["name"]), match["version"], hashes, (match["marker"] or "").strip())
