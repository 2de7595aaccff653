# SPDX-License-Identifier: GPL-3.0-or-later
"""A virtual environment as its files tell it, and what must happen to make it equal a lock. Reads, never writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .lock import normalise, same_version


@dataclass(frozen=True)
class Plan:
    """What separates an environment from a lock. Empty lists all through: nothing to do.

    ``extra`` are packages that are there and not in the lock. They are a person's as long as nothing else is to be
    done: reported then, and removed when the environment is built again.
    """

    added: list[dict[str, str]] = field(default_factory=list)
    removed: list[dict[str, str]] = field(default_factory=list)
    changed: list[dict[str, str]] = field(default_factory=list)
    extra: list[dict[str, str]] = field(default_factory=list)
    build: bool = False


def plan(locked: dict[str, str], installed: dict[str, list[str]], same_lock: bool, whole: bool = False) -> Plan:
    """Compare versions by name with what is installed (several versions where two copies lie there).

    ``same_lock``: the environment was made from this very lock (or nobody knows from which); then packages beyond it
    are a person's. ``whole``: it is built from nothing, because it is absent, incomplete or for another interpreter.
    """
    if whole:
        return Plan(added=[_package(name, locked[name]) for name in sorted(locked)], build=True)
    added = [_package(name, locked[name]) for name in sorted(locked) if name not in installed]
    changed = [
        {"name": name, "before": ", ".join(installed[name]), "after": locked[name]}
        for name in sorted(locked)
        if name in installed and not (len(installed[name]) == 1 and same_version(installed[name][0], locked[name]))
    ]
    beyond = [_package(name, ", ".join(installed[name])) for name in sorted(installed) if name not in locked]
    if added or changed or (beyond and not same_lock):
        return Plan(added=added, removed=beyond, changed=changed, build=True)
    return Plan(extra=beyond)


def drift(plan: Plan) -> str:
    """In words, how an environment that once was the lock's differs from it; empty where it does not."""
    moved = [f"{one['name']} is {one['before']} in the place of {one['after']}" for one in plan.changed]
    return "; ".join(moved + [f"{one['name']} {one['version']} is gone" for one in plan.added])


def _package(name: str, version: str) -> dict[str, str]:
    return {"name": name, "version": version}


def listing(versions: dict[str, list[str]] | dict[str, str]) -> str:
    """Packages as lines ``name==version``, for a diff."""
    lines = [
        f"{name}=={version}\n"
        for name, found in versions.items()
        for version in ([found] if isinstance(found, str) else found)
    ]
    return "".join(sorted(lines))


def read_installed(site_packages: Path) -> dict[str, list[str]]:
    """Versions by normalised name, from the ``dist-info`` folders. A folder that is not there has no packages.

    A distribution without readable metadata has the version ``?``, which equals no locked one.
    """
    versions: dict[str, list[str]] = {}
    for folder in sorted(site_packages.glob("*.dist-info")):
        name, version = _metadata(folder / "METADATA")
        if not name:
            name, version = folder.name[: -len(".dist-info")].split("-")[0], "?"
        versions.setdefault(normalise(name), []).append(version)
    return versions


def _metadata(path: Path) -> tuple[str, str]:
    """Name and version of a METADATA file; empty where it cannot tell."""
    found = {"name": "", "version": ""}
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            for line in file:
                if not line.strip():
                    break  # the headers end here, the description follows
                key, _colon, value = line.partition(":")
                if key.lower() in found:
                    found[key.lower()] = value.strip()
    except OSError:
        return "", ""
    return (found["name"], found["version"]) if all(found.values()) else ("", "")


def read_settings(venv: Path) -> dict[str, str]:
    """``pyvenv.cfg`` as a dictionary; empty where the folder is no virtual environment."""
    try:
        text = (venv / "pyvenv.cfg").read_text(encoding="utf-8")
    except OSError:
        return {}
    pairs = (line.partition("=") for line in text.splitlines())
    return {key.strip().lower(): value.strip() for key, equals, value in pairs if equals}


def site_packages(venv: Path, version: str) -> Path:
    """Where an environment of this Python version (``3.12``) keeps its packages on Linux."""
    return venv / "lib" / f"python{version}" / "site-packages"
