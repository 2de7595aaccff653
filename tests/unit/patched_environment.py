# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments as folders, with one small package and its wheel, and patches of it, for tests of how patches are handled."""

from __future__ import annotations

import base64
import difflib
import hashlib
import typing as t
import zipfile
from pathlib import Path

MAIN = b"import os\n\nLIMIT = 128\n\n\ndef limit():\n    return LIMIT\n"
OTHER = b"NAME = 'other'\n"
DOS = b"one\r\ntwo\r\nthree\r\n"
BARE = b"first\nlast"  # no line break at the end
FILES = {"pkg/__init__.py": b"", "pkg/main.py": MAIN, "pkg/other.py": OTHER, "pkg/dos.txt": DOS, "pkg/bare.txt": BARE}


def sha256(content: bytes | None) -> str:
    return "absent" if content is None else hashlib.sha256(content).hexdigest()


def record(files: dict[str, bytes]) -> str:
    rows = []
    for path, content in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        rows.append(f"{path},sha256={digest},{len(content)}\n")
    return "".join(rows)


class Environment:
    """A virtual environment that has the package; ``before`` writes it as another version of it."""

    def __init__(self, venv: Path, version: str = "1.0", files: dict[str, bytes] = FILES) -> None:
        self.venv = venv
        self.site = venv / "lib" / "python3.12" / "site-packages"
        self.site.mkdir(parents=True)
        (venv / "bin").mkdir()
        (venv / "pyvenv.cfg").write_text("home = /usr/bin\nversion = 3.12.1\n")
        self.install(version, files)

    def install(self, version: str, files: dict[str, bytes] = FILES) -> None:
        """Put the files of a version there in the place of those that RECORD names, as an installer does."""
        for info in list(self.site.glob("pkg-*.dist-info")):
            for line in (info / "RECORD").read_text().splitlines():
                (self.site / line.split(",")[0]).unlink(missing_ok=True)
            for left in info.iterdir():
                left.unlink()
            info.rmdir()
        for path, content in files.items():
            self.write(path, content)
        info = self.site / f"pkg-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: pkg\nVersion: {version}\n")
        (info / "RECORD").write_text(record(files) + f"pkg-{version}.dist-info/RECORD,,\n")

    def write(self, path: str, content: bytes) -> None:
        target = self.site / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)

    def read(self, path: str) -> bytes | None:
        target = self.site / path
        return target.read_bytes() if target.exists() else None

    @property
    def files(self) -> dict[str, bytes]:
        """Every file below site-packages but those of installers."""
        return {
            str(path.relative_to(self.site)): path.read_bytes()
            for path in sorted(self.site.rglob("*"))
            if path.is_file() and ".dist-info/" not in str(path)
        }


def make_wheel(folder: Path, version: str = "1.0", files: dict[str, bytes] = FILES) -> tuple[Path, str]:
    """The package's wheel, and its line for a lock."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"pkg-{version}.dist-info"
    held = {
        **files,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: pkg\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    wheel = folder / f"pkg-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path, content in held.items():
            archive.writestr(zipfile.ZipInfo(path), content)
        archive.writestr(zipfile.ZipInfo(f"{info}/RECORD"), record(held) + f"{info}/RECORD,,\n")
    return wheel, f"pkg=={version} --hash=sha256:{hashlib.sha256(wheel.read_bytes()).hexdigest()}\n"


def diff(path: str, before: bytes | None, after: bytes | None) -> bytes:
    """A unified diff of one file, as diff -u writes it."""
    old, new = ((content or b"").splitlines(keepends=True) for content in (before, after))
    if b"\r" in (before or b"") + (after or b""):
        old, new = ([line + b"\n" for line in (content or b"").split(b"\n")[:-1]] for content in (before, after))
    names = (f"a/{path}" if before is not None else "/dev/null", f"b/{path}" if after is not None else "/dev/null")
    lines = difflib.diff_bytes(difflib.unified_diff, old, new, names[0].encode(), names[1].encode())
    return b"".join(line if line.endswith(b"\n") else line + b"\n\\ No newline at end of file\n" for line in lines)


def patch(name: str, changes: dict[str, tuple[bytes | None, bytes | None]], **more: t.Any) -> dict[str, t.Any]:
    """A patch of version 1.0 as data: content before and after by path, ``None`` where there is no file."""
    return {
        "id": name,
        "summary": "A patch of a test.",
        "package": "pkg",
        "versions": ["1.0"],
        "files": [
            {"path": path, "before": sha256(before), "after": sha256(after)}
            for path, (before, after) in changes.items()
        ],
        "diff": b"".join(diff(path, *sides) for path, sides in changes.items()).decode(),
        **more,
    }
