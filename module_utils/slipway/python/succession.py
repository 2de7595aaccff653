# SPDX-License-Identifier: GPL-3.0-or-later
"""Which environment follows which: the one in use is proven, those before it may go. Acts on the target.

Until the one in use is proven, the one before it is kept, and going back is switching a link. What goes is what Slipway made, whole or half, and
what nobody uses: no link of the folder leads to it and no process has it open.
"""

from __future__ import annotations

import os
import shutil
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ..errors import SlipwayError, cannot, here
from . import build


@dataclass(frozen=True)
class Succession:
    """The folder as it is: who is in use, what was proven last, and what may go, or is still needed by a process."""

    current: Path
    proven_before: str
    outdated: tuple[Path, ...]
    used: tuple[Path, ...]


def settle(params: dict[str, t.Any], check_mode: bool, processes: Path = Path("/proc")) -> dict[str, t.Any]:
    """Note that the environment in use is proven, and take away those before it; the module's result. Raises ``SlipwayError``."""
    folder = Path(params["directory"])
    try:
        now = look(folder, processes)
        if not check_mode:
            for venv in now.outdated:
                _remove(venv)
            if now.proven_before != str(now.current):
                build.switch_link(folder / "proven", now.current)
    except (OSError, SlipwayError) as error:
        remedy = "Mend that, and run again"
        raise cannot("settle", f"environments of '{folder}'", here(), str(error), remedy) from None
    names = {"before": [*now.outdated, *now.used, now.current], "after": [*now.used, now.current]}
    diff = {key: "".join(f"{path.name}\n" for path in sorted(paths)) for key, paths in names.items()}
    return {
        "changed": bool(now.outdated) or now.proven_before != str(now.current),
        "proven": str(now.current),
        "removed": [str(path) for path in now.outdated],
        "used": [str(path) for path in now.used],
        "diff": [{"before_header": str(folder), "after_header": str(folder), **diff}],
    }


def look(folder: Path, processes: Path) -> Succession:
    """What is there. Raises ``SlipwayError`` where no environment is in use, since then nothing is proven."""
    current = build.read_link(folder / "current")
    if not current or not build.read_record(Path(current)):
        raise SlipwayError(f"{folder / 'current'} leads to no environment that Slipway finished")
    # `proven` is Slipway's own; every other link is a reason to stay.
    kept = {path.resolve() for path in folder.iterdir() if path.is_symlink() and path.name != "proven"}
    ours = [
        path
        for path in sorted(folder.iterdir())
        if not path.is_symlink() and path.is_dir() and (build.read_record(path) or build.read_note(path))
    ]
    outdated = [path for path in ours if path.resolve() not in kept]
    used = [path for path in outdated if _in_use(path, processes)]
    proven = build.read_link(folder / "proven")
    return Succession(Path(current), proven, tuple(path for path in outdated if path not in used), tuple(used))


def _in_use(venv: Path, processes: Path) -> bool:
    """Whether a process was started from it or has a file of it mapped."""
    inside = f"{venv}/".encode()
    for process in processes.glob("[0-9]*"):
        for name in ("cmdline", "maps"):
            try:
                if inside in (process / name).read_bytes():
                    return True
            except OSError:  # it ended meanwhile
                break
    return False


def _remove(venv: Path) -> None:
    # From then on it is a thing that a run has yet to finish, and no environment, wherever this one is killed.
    build.note_path(venv).write_text("creating\n", encoding="utf-8")
    shutil.rmtree(venv)
    build.note_path(venv).unlink()
    lock = venv.with_name(f"{venv.name}.lock")
    if lock.is_file():
        os.unlink(lock)
