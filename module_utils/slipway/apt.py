# SPDX-License-Identifier: GPL-3.0-or-later
"""What apt says: parsers of ``apt-cache policy`` and ``apt-get --simulate``, and the judgement of both. Pure."""

from __future__ import annotations

import fnmatch
import re
import typing as t
from dataclasses import dataclass

from .findings import Finding, finding


@dataclass(frozen=True)
class Known:
    """A package as apt knows it: the version installed, and all that there are, newest first as apt lists them."""

    installed: str | None
    candidate: str | None
    versions: tuple[str, ...]


@dataclass(frozen=True)
class Simulation:
    """What an installation would do: packages to their new version, packages that would go, and why it cannot be done."""

    installs: dict[str, str]
    removes: tuple[str, ...]
    error: str


def split(declared: str) -> tuple[str, str | None]:
    """``libcuda1=580.105.08-1`` as name and version; a bare name has none. Errors: ValueError."""
    found = re.fullmatch(r"([a-z0-9][a-z0-9.+-]+)(?:=([A-Za-z0-9.+:~-]+))?", declared)
    if not found:
        raise ValueError(f"{declared!r} is neither a package's name nor name=version")
    return found[1], found[2]


def policy(text: str) -> dict[str, Known]:
    """Read ``apt-cache policy NAME...`` in the C locale; a package of which apt has never heard is not in the result."""
    known = {}
    for block in re.split(r"^(?=\S+:\n)", text, flags=re.MULTILINE):
        name, _, rest = block.partition(":\n")

        def field(label: str, rest: str = rest) -> str | None:
            found = re.search(rf"^  {label}: (\S+)$", rest, re.MULTILINE)
            return found[1] if found and found[1] != "(none)" else None

        versions = re.findall(r"^ (?:\*\*\*|   ) (\S+) -?\d+$", rest, re.MULTILINE)
        if name.strip() and rest:
            known[name] = Known(field("Installed"), field("Candidate"), tuple(versions))
    return known


def simulation(status: int, output: str, errors: str) -> Simulation:
    """Read ``apt-get --simulate install``: lines ``Inst NAME [OLD] (NEW ...)`` and ``Remv NAME [OLD]``."""
    installs = dict(re.findall(r"^Inst (\S+) (?:\[\S+\] )?\((\S+)", output, re.MULTILINE))
    removes = tuple(re.findall(r"^Remv (\S+)", output, re.MULTILINE))
    reasons = re.findall(
        r"^ \S+ : .*$|^ {2,}(?:Depends|Breaks|Conflicts|PreDepends|Recommends): .*$", output, re.MULTILINE
    )
    reasons = reasons or re.findall(r"^E: (.*)$", errors, re.MULTILINE)
    error = "; ".join(" ".join(reason.split()) for reason in reasons) or f"apt-get ends with status {status}"
    return Simulation(installs, removes, error if status else "")


def availability(
    declared: t.Sequence[str], known: t.Mapping[str, Known], held: t.Collection[str], certain: bool
) -> list[Finding]:
    """Packages that no source has as they are declared, and those that are held in another version.

    Where apt's lists will be renewed before the installation, nothing is ``certain``: what is missing is a warning.
    """
    found = []
    for entry in declared:
        name, version = split(entry)
        package = known.get(name, Known(None, None, ()))
        if version in package.versions or (version is None and package.candidate):
            if name in held and version not in (None, package.installed):
                found.append(finding("APT_PACKAGE_HELD", name, f"{package.installed} is held, {version} is declared"))
            continue
        wanted = version or "any version"
        there = f"there is {', '.join(package.versions)}" if package.versions else "apt knows no such package"
        note = (
            ""
            if certain
            else "; apt's lists are old or its sources not complete yet, both are put right before it is needed"
        )
        severity = None if certain else "warn"
        found.append(
            finding("APT_VERSION_UNAVAILABLE", name, f"{wanted} is declared, {there}{note}", severity=severity)
        )
    return found


def consequences(
    simulated: Simulation, unwanted: t.Sequence[str], may_go: t.Callable[[str], bool] = lambda name: False
) -> list[Finding]:
    """What must not come of an installation: a conflict, packages like ``unwanted`` (patterns), packages that would go."""
    if simulated.error:
        return [finding("APT_CONFLICT", "apt", simulated.error)]
    found = [
        finding("APT_UNWANTED_PACKAGE", name, f"{version} would be installed")
        for name, version in simulated.installs.items()
        if any(fnmatch.fnmatchcase(name, pattern) for pattern in unwanted)
    ]
    return found + [finding("APT_WOULD_REMOVE", name) for name in simulated.removes if not may_go(name)]
