# SPDX-License-Identifier: GPL-3.0-or-later
"""Files by which uv and pip themselves keep to the lock, whoever calls them on this machine.

``pip install torchvision`` once moved torch and broke the kernels that were compiled against it. The environment's own ``pip.conf`` holds for pip
in that environment (pip.pypa.io, "Configuration", level Site). uv has no file of an environment: its system-wide ``uv.toml`` holds for every
``uv pip`` of the machine (docs.astral.sh, "Configuration files", ``constraint-dependencies``), so a part of it is Slipway's and the rest its owner's.
"""

from __future__ import annotations

import json
import os
import re
import stat
import typing as t
from dataclasses import dataclass
from pathlib import Path

from .. import files
from ..findings import Finding, finding

NAME = "constraints.txt"
MARK = "# Written by Slipway"
BEGIN = f"{MARK}: packages of the environment in use stay as its lock has them. Change the profile's requirements.in instead.\n"
END = "# End of what Slipway wrote.\n"
OWN = re.compile(rf"\A{re.escape(MARK)}\.\n\[install\]\nconstraint = .*\n")
BLOCK = re.compile(rf"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
# TOML lets a key stand in quotes as well.
KEY = re.compile(r"""^\s*(["']?)constraint-dependencies\1\s*=""", re.MULTILINE)


@dataclass(frozen=True)
class File:
    """A file as it is and as it has to be. ``after`` equals ``before`` where somebody else's file stays as it is."""

    path: Path
    before: str
    after: str
    foreign: bool = False

    @property
    def differs(self) -> bool:
        return self.before != self.after

    @property
    def findings(self) -> list[Finding]:
        return [finding("CONSTRAINTS_FOREIGN", str(self.path))] if self.foreign else []


def of_environment(venv: Path, locked: dict[str, str]) -> list[File]:
    """The environment's own: the constraints, and the ``pip.conf`` that names them. Raises ``OSError``."""
    text = f"{MARK}.\n" + "".join(f"{one}\n" for one in _pins(locked))
    settings = venv / "pip.conf"
    before = _read(settings)
    conf = f"{MARK}.\n[install]\nconstraint = {venv / NAME}\n"
    # What somebody wrote below Slipway's part, such as an index of his own, is his.
    others = OWN.sub("", before)
    foreign = bool(others) and others == before
    return [
        File(venv / NAME, _read(venv / NAME), text),
        File(settings, before, before if foreign else conf + others, foreign),
    ]


def of_machine(path: Path, locked: dict[str, str]) -> File:
    """uv's own, with Slipway's part first: a TOML file's tables come after its keys. Raises ``OSError``."""
    before = _read(path)
    others = BLOCK.sub("", before)
    if KEY.search(others):
        return File(path, before, before, foreign=True)
    lines = "".join(f"    {json.dumps(one)},\n" for one in _pins(locked))
    return File(path, before, f"{BEGIN}constraint-dependencies = [\n{lines}]\n{END}{others}")


def write(wanted: t.Iterable[File]) -> None:
    """Write those that differ, where links lead, with the mode and owner that they have. Raises ``OSError``."""
    for one in wanted:
        if one.differs:
            path = Path(os.path.realpath(one.path))
            path.parent.mkdir(parents=True, exist_ok=True)
            # The rest of uv.toml is its owner's, and an index's login in it for nobody else's eyes.
            facts = path.stat() if path.exists() else None
            files.replace(path, one.after, stat.S_IMODE(facts.st_mode) if facts else 0o644)
            if facts and facts.st_uid != os.geteuid():
                os.chown(path, facts.st_uid, facts.st_gid)


def _pins(locked: dict[str, str]) -> list[str]:
    return [f"{name}=={locked[name]}" for name in sorted(locked)]


def _read(path: Path) -> str:
    try:
        return files.read(path)
    except (FileNotFoundError, NotADirectoryError):
        return ""
