# SPDX-License-Identifier: GPL-3.0-or-later
"""Installed distributions against a lock: versions, what is too many, and what came from somewhere else than the lock's wheel. Pure."""

from __future__ import annotations

import typing as t

from ..findings import Finding, finding
from . import environment
from .lock import Requirement, normalise
from .site import Distribution

ORIGINS = {"vcs_info": "a repository", "dir_info": "a folder", "archive_info": "a file that need not be the lock's"}
# What makes an environment brings these along, and no lock has them.
SEEDS = ("pip", "setuptools", "wheel")


def findings(
    requirements: t.Sequence[Requirement], locked: dict[str, str], distributions: t.Sequence[Distribution]
) -> list[Finding]:
    """What separates an environment from its lock. ``locked`` are the versions by name that are wanted here."""
    installed: dict[str, list[str]] = {}
    for one in distributions:
        installed.setdefault(one.name, []).append(one.version)
    plan = environment.plan(locked, installed, same_lock=True)
    found = [finding("LOCK_DRIFT", one["name"], f"version {one['version']} is not installed") for one in plan.added]
    found += [
        finding("LOCK_DRIFT", one["name"], f"version {one['before']} is installed, the lock has {one['after']}")
        for one in plan.changed
    ]
    found += [
        finding("PACKAGE_EXTRA", name, f"version {', '.join(versions)}")
        for name, versions in sorted(installed.items())
        if name not in locked and name not in SEEDS
    ]
    return found + _elsewhere(requirements, locked, distributions)


def _elsewhere(
    requirements: t.Sequence[Requirement], locked: dict[str, str], distributions: t.Sequence[Distribution]
) -> list[Finding]:
    """Distributions of the lock that say that they came from an address, and not as a file that the lock names.

    RECORD is right for such a one, since it was made with it (packaging.python.org, "Recording the Direct URL Origin").
    """
    hashes = {(one.name, digest) for one in requirements for digest in one.hashes}
    found = []
    for one in distributions:
        if not one.source or one.name not in locked or one.editable:
            continue
        archive = one.source.get("archive_info") or {}
        hashes_told = archive.get("hashes")
        told = [f"{name}:{digest}" for name, digest in hashes_told.items()] if isinstance(hashes_told, dict) else []
        told += [str(archive["hash"]).replace("=", ":")] if archive.get("hash") else []
        if any((normalise(one.name), digest) in hashes for digest in told):
            continue
        # An address may carry a login, so that only its kind is told.
        kind = next((name for name in ("vcs_info", "dir_info") if name in one.source), "archive_info")
        unknown = kind == "archive_info" and not told  # uv tells no hash of a file that it was given
        detail = f"version {one.version} was installed from {ORIGINS[kind]}"
        found.append(finding("LOCK_DRIFT", one.name, detail, "unknown" if unknown else None))
    return found
