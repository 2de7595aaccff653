# SPDX-License-Identifier: GPL-3.0-or-later
"""Code that runs before a program does, and places from which modules come that no lock knows (docs.python.org, "site"). Reads, never writes."""

from __future__ import annotations

import os
import subprocess
import typing as t
from dataclasses import dataclass
from pathlib import Path

from . import traces

CUSTOMIZE = ("sitecustomize", "usercustomize")
# Made by virtualenv and older releases of uv for every environment; no RECORD names them.
OF_THE_ENVIRONMENT = ("_virtualenv.pth", "_virtualenv.py", "distutils-precedence.pth")
WATCHED = ("PYTHONPATH", "PYTHONHOME", *traces.VARIABLES)


@dataclass(frozen=True)
class Hook:
    """A file that Python reads when it starts: what it runs, and which folders it adds."""

    path: str
    runs: tuple[str, ...]
    adds: tuple[str, ...]

    @property
    def says(self) -> str:
        """What it does, as the rest of a sentence."""
        parts = [f"runs {'; '.join(self.runs)}"] if self.runs else []
        parts += [f"adds {', '.join(self.adds)} to where modules are looked for"] if self.adds else []
        return " and ".join(parts) or "says nothing"

    def as_dict(self) -> dict[str, t.Any]:
        return {"path": self.path, "runs": list(self.runs), "adds": list(self.adds)}


def hooks(site: Path) -> list[Hook]:
    """The ``.pth`` files, ``sitecustomize`` and ``usercustomize`` of a folder, in the order of their names."""
    found = []
    for path in sorted(site.glob("*.pth")):
        try:
            lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            continue
        wanted = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        runs = tuple(_short(line) for line in wanted if line.startswith(("import ", "import\t")))
        adds = tuple(_short(line) for line in wanted if not line.startswith(("import ", "import\t")))
        found.append(Hook(str(path), runs, adds))
    for name in CUSTOMIZE:
        for path in (site / f"{name}.py", site / name / "__init__.py"):
            if path.is_file():
                found.append(Hook(str(path), (f"its code, since Python imports {name} at each start",), ()))
    return found


def shadowed(folder: str, site_names: t.Collection[str]) -> list[str]:
    """The modules of an environment that a folder of PYTHONPATH has too, and which are taken from there."""
    try:
        found = {name.partition(".")[0] for name in os.listdir(folder or ".")}
    except OSError:
        return []
    return sorted(found & set(site_names))


def of_unit(unit: str) -> dict[str, str]:
    """The watched variables of a systemd unit: as its running process has them, else as it is declared. Raises ``OSError``."""
    done = subprocess.run(
        ["systemctl", "show", "--property=LoadState,MainPID,Environment", unit],
        check=False,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        encoding="utf-8",
        errors="replace",
        timeout=60,
    )
    told = dict(line.partition("=")[::2] for line in done.stdout.splitlines())
    if told.get("LoadState") != "loaded":
        raise FileNotFoundError(
            f"systemd does not know it ({told.get('LoadState') or ' '.join(done.stderr.split()) or 'no answer'})"
        )
    try:
        raw = Path(f"/proc/{int(told.get('MainPID') or 0)}/environ").read_bytes()
        words = raw.decode(errors="surrogateescape").split("\0")
    except (OSError, ValueError):
        words = told.get("Environment", "").split(" ")
    # Only these: an environment holds secrets.
    return {
        name: value for name, equals, value in (word.partition("=") for word in words) if equals and name in WATCHED
    }


def _short(line: str) -> str:
    return line if len(line) <= 200 else f"{line[:197]}..."
