# SPDX-License-Identifier: GPL-3.0-or-later
"""Resolve the stack of a profile and write its lock: ``make lock PROFILE=name``, or ``tools/lock.py folder/of/a/profile``.

Reads ``stack/requirements.in``, ``stack/overrides.txt`` if there is one, and ``stack.target`` of ``profile.yml``. Writes ``requirements.lock`` (every package, exact,
with the hashes of the wheels for that target, without addresses) and ``expected-complaints.txt``: what a dependency check of that environment will say. An override
is the only thing that may cause a complaint. Both files are written together or not at all.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import typing as t
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import tomllib
import wheel_metadata
import yaml
from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
FETCHES_AT_ONCE = 8
LICENCE = "# SPDX-License-Identifier: GPL-3.0-or-later\n"


class Unlockable(Exception):
    """Why no lock can be made; one sentence."""


@dataclass(frozen=True)
class Target:
    """What a lock is for: Python as ``3.12``, uv's name of the platform with its glibc, and the index as it was at a time (RFC 3339)."""

    python: str
    platform: str
    exclude_newer: str

    @property
    def glibc(self) -> str:
        """``2.36`` of ``x86_64-manylinux_2_36``."""
        return self.platform.rpartition("manylinux_")[2].replace("_", ".")

    @property
    def environment(self) -> dict[str, str]:
        """What markers of requirements see on it."""
        return {
            "implementation_name": "cpython",
            "os_name": "posix",
            "platform_machine": self.platform.partition("-")[0],
            "platform_python_implementation": "CPython",
            "platform_system": "Linux",
            "python_full_version": f"{self.python}.0",
            "python_version": self.python,
            "sys_platform": "linux",
            "extra": "",
        }


@dataclass(frozen=True)
class Package:
    """One package as uv chose it: ``wheels`` are those for the target, each with ``url`` and ``hashes``."""

    name: str
    version: str
    wheels: tuple[dict[str, t.Any], ...]


def read_target(folder: Path) -> Target:
    """``stack.target`` of a profile. Raises ``Unlockable``."""
    try:
        profile = yaml.safe_load((folder / "profile.yml").read_text(encoding="utf-8"))
        return Target(**{key: str(value) for key, value in profile["stack"]["target"].items()})
    except OSError as error:
        raise Unlockable(f"its profile.yml cannot be read: {error}") from None
    except (KeyError, TypeError, AttributeError, yaml.YAMLError):
        raise Unlockable("its profile.yml has no stack.target with python, platform and exclude_newer") from None


def resolve(stack: Path, target: Target) -> list[Package]:
    """Let uv resolve for the target, wheels only. Raises ``Unlockable`` with what uv says."""
    with tempfile.TemporaryDirectory(prefix="slipway-lock-") as scratch:
        # PEP 751 tells which wheels are for the target; it also holds addresses, so it is not what is kept.
        told = Path(scratch) / "pylock.toml"
        command = ["uv", "pip", "compile", "--quiet", "--no-header", "--no-annotate", "--generate-hashes"]
        command += ["--only-binary", ":all:", "--python-version", target.python, "--python-platform", target.platform]
        # Any interpreter does for asking; without one named, uv runs all that it finds.
        command += [
            "--python",
            sys.executable,
            "--exclude-newer",
            target.exclude_newer,
            "--format",
            "pylock.toml",
            "--output-file",
            str(told),
        ]
        if (stack / "overrides.txt").exists():
            command += ["--override", str(stack / "overrides.txt")]
        done = subprocess.run([*command, str(stack / "requirements.in")], capture_output=True, text=True, check=False)
        if done.returncode:
            raise Unlockable(re.sub(r"://[^/@\s]+@", "://", done.stderr.strip() or "uv failed without a word"))
        return read_packages(told.read_text(encoding="utf-8"))


def read_packages(text: str) -> list[Package]:
    """The packages of a ``pylock.toml``. Raises ``Unlockable`` for one without a wheel that has a sha256."""
    packages = []
    for entry in tomllib.loads(text)["packages"]:
        wheels = tuple(wheel for wheel in entry.get("wheels", []) if wheel["hashes"].get("sha256"))
        if not wheels:
            raise Unlockable(f"{entry['name']} {entry['version']} has no wheel with a sha256 for this target")
        packages.append(Package(canonicalize_name(entry["name"]), entry["version"], wheels))
    return packages


def render_lock(packages: list[Package], target: Target) -> str:
    """The lock's text: sorted, so that making it again from the same index gives the same bytes."""
    head = (
        f"# Every wheel of the environment, exact, for CPython {target.python} on Linux with glibc {target.glibc} or newer,\n"
        f"# as the index was at {target.exclude_newer}. Made by tools/lock.py from requirements.in; write nothing into it by hand.\n"
    )
    lines = []
    for package in sorted(packages, key=lambda one: one.name):
        digests = sorted(wheel["hashes"]["sha256"] for wheel in package.wheels)
        lines.append(
            " \\\n    ".join([f"{package.name}=={package.version}", *(f"--hash=sha256:{one}" for one in digests)])
        )
    return LICENCE + head + "\n".join(lines) + "\n"


def complaints(packages: list[Package], requires: dict[str, list[str]], target: Target) -> list[str]:
    """What a dependency check of exactly these packages says, in the words of ``uv pip check`` without its quotes.

    ``requires`` holds the ``Requires-Dist`` of each package by name. Raises ``Unlockable`` for one that nobody can read.
    """
    versions = {package.name: package.version for package in packages}
    told = set()
    for package in packages:
        for line in requires[package.name]:
            try:
                wanted = Requirement(line)
            except InvalidRequirement:
                raise Unlockable(f"{package.name} {package.version} requires '{line}', which cannot be read") from None
            if wanted.marker and not wanted.marker.evaluate(target.environment):
                continue
            has = versions.get(canonicalize_name(wanted.name))
            # A requirement by address (url) accepts whatever is there.
            if has is None or not wanted.specifier.contains(has, prereleases=True):
                wish = f"{canonicalize_name(wanted.name)}{wanted.specifier}"
                told.add(
                    f"{package.name} requires {wish}, but " + (f"{has} is installed" if has else "it's not installed")
                )
    return sorted(told)


def unexplained(told: list[str], overrides: str) -> list[str]:
    """The complaints that no override explains."""
    overridden = {
        canonicalize_name(Requirement(line.split("#")[0]).name)
        for line in overrides.splitlines()
        if line.split("#")[0].strip()
    }
    return [line for line in told if re.split(r"[^a-z0-9-]", line.partition(" requires ")[2])[0] not in overridden]


def fetch_requires(packages: list[Package]) -> dict[str, list[str]]:
    """``Requires-Dist`` of each package, as the index has it. Raises ``Unlockable``."""

    def fetch(package: Package) -> list[str]:
        try:
            return wheel_metadata.requires(package.wheels[0])
        except (OSError, ValueError) as error:
            cause = f"the index does not give the metadata of {package.name} {package.version}: {error}"
            raise Unlockable(cause) from None

    with ThreadPoolExecutor(FETCHES_AT_ONCE) as pool:
        return dict(zip((package.name for package in packages), pool.map(fetch, packages)))


def write(stack: Path, lock: str, told: list[str]) -> None:
    """Both files, each whole or not at all; no complaints, no file."""
    head = LICENCE + (
        "# What a dependency check of this environment says because of overrides.txt, and nothing else is accepted.\n"
        "# Made by tools/lock.py from the metadata of every package of the lock.\n"
    )
    texts = {"requirements.lock": lock, "expected-complaints.txt": head + "".join(f"{line}\n" for line in told)}
    for name, text in texts.items():
        (stack / f".{name}.part").write_text(text, encoding="utf-8")
    for name in texts:
        os.replace(stack / f".{name}.part", stack / name)
    if not told:
        (stack / "expected-complaints.txt").unlink()


def lock(folder: Path) -> str:
    """Make the lock of one profile; a sentence of what came out. Raises ``Unlockable``."""
    target, stack = read_target(folder), folder / "stack"
    packages = resolve(stack, target)
    told = complaints(packages, fetch_requires(packages), target)
    overrides = stack / "overrides.txt"
    surprising = unexplained(told, overrides.read_text(encoding="utf-8") if overrides.exists() else "")
    if surprising:
        raise Unlockable("a dependency check would complain, and no override says why: " + "; ".join(surprising))
    write(stack, render_lock(packages, target), told)
    size = sum(package.wheels[0].get("size", 0) for package in packages) // 2**20
    return f"{folder.name}: {len(packages)} packages, {size} MiB to download, {len(told)} expected complaints"


def main(arguments: list[str]) -> int:
    if len(arguments) != 1:
        print("lock: name one profile, or the folder of one", file=sys.stderr)
        return 2
    shipped = ROOT / "profiles" / arguments[0]
    folder = shipped if shipped.is_dir() else Path(arguments[0])
    try:
        print(lock(folder))
    except Unlockable as error:
        print(f"Cannot lock profile '{folder.name}': {error}. Its files are as they were.", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
