# SPDX-License-Identifier: GPL-3.0-or-later
"""Which file of each package of a lock uv would install here, and where it is: uv's own choice, told as a lock with addresses (PEP 751)."""

from __future__ import annotations

import dataclasses
import sys
import tempfile
import typing as t
import urllib.parse
from pathlib import Path

from ..errors import SlipwayError
from ..findings import finding
from . import build, lock
from .source import Source


@dataclasses.dataclass(frozen=True)
class Wheel:
    """One file: its package, its name, its address without a login, its sha256 in hex, its size in bytes (0: not known)."""

    name: str
    file: str
    url: str
    sha256: str
    size_bytes: int = 0

    def as_dict(self) -> dict[str, t.Any]:
        return dataclasses.asdict(self)


def choose(params: dict[str, t.Any], source: Source) -> list[Wheel]:
    """Ask uv, for the first interpreter that runs. Raises ``SlipwayError`` whose message is the cause."""
    requirements = lock.parse(params["lock_content"])
    interpreter = build.first_interpreter(params["python"])
    with tempfile.TemporaryDirectory(prefix="slipway-") as folder:
        text, told = Path(folder) / "requirements.txt", Path(folder) / "pylock.toml"
        text.write_text(params["lock_content"], encoding="utf-8")
        # Without uv's own files: the constraints there are those of the environment in use, which this lock may replace.
        command = [
            "pip",
            "compile",
            "--no-config",
            "--quiet",
            "--no-deps",
            "--only-binary",
            ":all:",
            "--generate-hashes",
        ]
        command += ["--format", "pylock.toml", "--python", interpreter.path, "--output-file", str(told), str(text)]
        build.run_uv(params["uv"], command, params["timeout_seconds"], source)
        wheels = read(told.read_text(encoding="utf-8"))
    return meant(wheels, requirements)


def read(text: str) -> list[Wheel]:
    """The wheels of a ``pylock.toml``. Logins in addresses are left out. Raises ``SlipwayError`` on a Python that cannot read TOML."""
    try:
        import tomllib
    except ImportError:
        cause = f"its {sys.executable} is older than 3.11"
        raise SlipwayError(cause, [finding("PYTHON_MISSING", "python3.11", cause)]) from None
    return [
        _wheel(package["name"], entry)
        for package in tomllib.loads(text).get("packages", [])
        for entry in package.get("wheels", [])
    ]


def _wheel(name: str, entry: dict[str, t.Any]) -> Wheel:
    address = urllib.parse.urlsplit(entry["url"])
    url = address._replace(netloc=address.netloc.rpartition("@")[2], fragment="").geturl()
    file = entry.get("name") or urllib.parse.unquote(address.path.rpartition("/")[2])
    return Wheel(lock.normalise(name), file, url, entry["hashes"].get("sha256", ""), entry.get("size", 0))


def meant(wheels: list[Wheel], requirements: list[lock.Requirement]) -> list[Wheel]:
    """Those whose hash the lock has. Raises ``SlipwayError`` for a package of which none is left."""
    hashes = {digest for one in requirements for digest in one.hashes}
    good = [wheel for wheel in wheels if f"sha256:{wheel.sha256}" in hashes]
    for wheel in wheels:
        if wheel.name not in {one.name for one in good}:
            cause = f"the index has {wheel.file} with sha256 {wheel.sha256 or 'not told'}, which the lock does not have for {wheel.name}"
            raise SlipwayError(cause, [finding("HASH_MISMATCH", wheel.name, cause)])
    return good
