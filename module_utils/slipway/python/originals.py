# SPDX-License-Identifier: GPL-3.0-or-later
"""The file as the wheel has it, to compare a changed one with: from a wheel, uv's cache or another environment of this machine.

What is found is believed only if its digest is the one that RECORD has, so that it does not matter who could write to where it lay:
uv's cache in particular changes with every environment that is hard-linked to it.
"""

from __future__ import annotations

import hashlib
import os
import typing as t
import zipfile
from dataclasses import dataclass
from pathlib import Path

from .lock import normalise, same_version
from .record import Entry

WHEELS = ("/var/cache/slipway/wheels",)
LARGEST_BYTES = 16 * 2**20


@dataclass(frozen=True)
class Places:
    """Where originals may lie: folders that look like site-packages, wheels, and one with contents by their sha256."""

    folders: tuple[Path, ...]
    wheels: tuple[Path, ...]
    kept: Path | None = None

    def find(self, path: str, owners: t.Sequence[tuple[str, str, Entry]]) -> bytes | None:
        """A file as one of its owners brought it, by its path below site-packages; ``None`` where it is not at hand.

        ``owners`` are name, version and RECORD's entry.
        """
        for content in self._candidates(path, owners):
            if content is not None and any(_is(content, entry) for _name, _version, entry in owners):
                return content
        return None

    def _candidates(self, path: str, owners: t.Sequence[tuple[str, str, Entry]]) -> t.Iterator[bytes | None]:
        for _name, _version, entry in owners:
            if self.kept and entry.digest:
                yield _lying(self.kept / entry.digest)
        for folder in self.folders:
            yield _lying(folder / path)
        for wheel in self.wheels:
            name, version = [*wheel.name.split("-"), ""][:2]
            if any(normalise(name) == one and same_version(version.replace("_", "+"), of) for one, of, _ in owners):
                yield _packed(wheel, path)


def places(venv: Path, given: t.Iterable[str], kept: Path | None = None) -> Places:
    """Those that were given (files or folders of wheels, unpacked wheels), then what this machine usually has.

    ``kept`` is the folder in which contents that patches replaced are kept by their sha256.
    """
    named = [Path(one) for one in given]
    home = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    cache = Path(os.environ.get("UV_CACHE_DIR") or os.path.join(home, "uv"))
    own = venv.resolve()
    others = (path for path in own.parent.glob("*/lib/python*/site-packages") if own not in path.parents)
    wheels = [path for path in named if path.suffix == ".whl"]
    for folder in (*named, *map(Path, WHEELS)):
        wheels += [*sorted(folder.glob("*.whl")), *sorted(folder.glob("*/*.whl"))]
    return Places((*named, *sorted(others), *sorted(cache.glob("archive-v*/*"))), tuple(wheels), kept)


def _is(content: bytes, entry: Entry) -> bool:
    found = hashlib.new(entry.algorithm, content, usedforsecurity=False).hexdigest() if entry.digest else ""
    return bool(found) and found == entry.digest


def _lying(path: Path) -> bytes | None:
    try:
        with path.open("rb") as file:
            return file.read(LARGEST_BYTES)
    except OSError:
        return None


def _packed(wheel: Path, path: str) -> bytes | None:
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(path) as file:
            return file.read(LARGEST_BYTES)
    except (OSError, KeyError, zipfile.BadZipFile, NotImplementedError, RuntimeError):
        return None
