# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a package as its wheel has them: found in a folder of wheels, compared with the lock or the RECORD, read out."""

from __future__ import annotations

import typing as t
import zipfile
from pathlib import Path

from ..errors import SlipwayError
from ..findings import finding
from ..python import lock, record, wheel
from . import paths, tree
from .manifest import sha256


def contents(
    folder: Path, package: str, version: str, lock_text: str, site: Path
) -> t.Iterator[tuple[str, bytes, bool]]:
    """Path, content and whether it is a program, of each file that a package's wheel puts below site-packages.

    What installers keep of their own (``dist-info``) and scripts, which they rewrite, are left out. With a lock, the wheel is the one
    whose sha256 it has. Without one, each file has the sha256 that the environment's RECORD has for it. Raises ``SlipwayError`` (the cause).
    """
    if not folder.is_dir():
        raise _missing(package, version, f"{folder} is no folder of this machine")
    path = _locked(folder, package, version, lock_text) if lock_text else _named(folder, package, version)
    recorded = tree.recorded(site, package)
    try:
        with zipfile.ZipFile(path) as archive:
            told = _told(archive)
            for member, target in _members(archive):
                content = archive.read(member)
                if told.get(member.filename) != sha256(content):
                    raise _mismatch(package, f"{path.name} is torn: {member.filename} is not what its own RECORD says")
                if not lock_text and recorded.get(target) != sha256(content):
                    cause = f"{target} of {path.name} is not the file that the environment's RECORD has, and there is no lock to say which is right"
                    raise _mismatch(package, cause)
                yield target, content, bool(member.external_attr >> 16 & 0o111)
    except (OSError, zipfile.BadZipFile, KeyError) as error:
        raise _missing(package, version, f"{path} cannot be read: {error}") from None


def _locked(folder: Path, package: str, version: str, lock_text: str) -> Path:
    requirements = [one for one in lock.parse(lock_text) if one.name == package]
    if not any(lock.same_version(one.version, version) for one in requirements):
        named = ", ".join(one.version for one in requirements) or "nothing"
        raise _missing(package, version, f"the lock has {named} for {package}, and {version} is installed")
    found, findings = wheel.choose(folder, requirements)
    if findings:
        raise SlipwayError("; ".join(one.detail for one in findings), findings)
    if not found:
        raise _missing(package, version, f"{folder} has no wheel of {package} {version}")
    return Path(found[0]["path"])


def _named(folder: Path, package: str, version: str) -> Path:
    for path in sorted(folder.glob("*.whl")):
        name, its_version = [*path.name.split("-"), ""][:2]
        if lock.normalise(name) == package and lock.same_version(its_version.replace("_", "+"), version):
            return path
    raise _missing(package, version, f"{folder} has no wheel of {package} {version}")


def _told(archive: zipfile.ZipFile) -> dict[str, str]:
    """What the RECORD inside a wheel says. Raises ``KeyError`` where there is none."""
    name = next(
        (one for one in archive.namelist() if one.count("/") == 1 and one.endswith(".dist-info/RECORD")), "RECORD"
    )
    try:
        return {one.path: one.digest for one in record.parse(archive.read(name).decode("utf-8"))}
    except ValueError as error:
        raise zipfile.BadZipFile(str(error)) from None


def _members(archive: zipfile.ZipFile) -> t.Iterator[tuple[zipfile.ZipInfo, str]]:
    """The files that go below site-packages, each with its path there (packaging.python.org, "Binary distribution format")."""
    for member in archive.infolist():
        first, _slash, rest = member.filename.partition("/")
        target = member.filename
        if first.endswith(".data"):
            kind, _slash, target = rest.partition("/")
            if kind not in ("purelib", "platlib"):
                continue
        if not member.is_dir() and not paths.fault(target):
            yield member, target


def _missing(package: str, version: str, cause: str) -> SlipwayError:
    return SlipwayError(cause, [finding("PACKAGE_UNAVAILABLE", f"{package} {version}", cause)])


def _mismatch(package: str, cause: str) -> SlipwayError:
    return SlipwayError(cause, [finding("HASH_MISMATCH", package, cause)])
