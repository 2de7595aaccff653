# SPDX-License-Identifier: GPL-3.0-or-later
"""Parameters of the driver's kernel modules: those that are in force, and those that the next load will take."""

from __future__ import annotations

import typing as t

from . import host, modprobe
from .tree import Tree

NAMES = ("nvidia", "nvidia_uvm", "nvidia_modeset", "nvidia_drm", "nvidia_peermem", "vfio_pci")
# Parameters of the module nvidia are not in sysfs. /proc/driver/nvidia/params has them without this.
_PREFIX = "NVreg_"


def look(tree: Tree, configuration: t.Sequence[str] | None, cmdline: str) -> dict[str, dict[str, t.Any]]:
    """For each module ``live`` (``None`` if it is not loaded) and ``on_disk`` (``None`` if that is not known).

    ``configuration`` is what ``on_disk`` gives, or ``None`` in a guest, whose files say nothing of its node's modules.
    """
    found = {}
    for name in NAMES:
        folder = f"/sys/module/{name}"
        parameters = tree.names(f"{folder}/parameters") or []
        live = {one: tree.attribute(f"{folder}/parameters/{one}") for one in parameters}
        disk = None if configuration is None else modprobe.module_options(configuration, name, cmdline)
        found[name] = {"live": live if tree.exists(folder) else None, "on_disk": disk}
    return found


def configuration(tree: Tree) -> list[str] | None:
    """The texts of modprobe's files in their order; ``None`` if one that may say something cannot be read."""
    before = len(tree.unreadable)
    folders = {folder: tree.names(folder) or [] for folder in modprobe.FOLDERS}
    texts = [tree.text(path) or "" for path in modprobe.reading_order(folders)]
    return None if len(tree.unreadable) > before else texts


def pending(
    known: t.Mapping[str, t.Mapping[str, t.Any]], driver_parameters: t.Mapping[str, int | str] | None
) -> list[tuple[str, str, str]]:
    """Module and parameter, value in force and value on disk, where these differ: what waits for the module's next load.

    A parameter that shows nowhere is left out. ``driver_parameters`` are those of ``/proc/driver/nvidia/params``.
    """
    found = []
    for module, parameters in known.items():
        live = dict(parameters["live"] or {})
        if module == "nvidia":
            live.update({f"{_PREFIX}{name}": str(value) for name, value in (driver_parameters or {}).items()})
        for name, value in (parameters["on_disk"] or {}).items():
            now, then = live.get(name), value if value is not None else "1"
            if now is not None and not _same(now, then):
                found.append((f"{module}.{name}", now, then))
    return found


def _same(one: str, other: str) -> bool:
    """Whether two spellings are one value: ``Y`` and ``1``, ``0x10`` and ``16``."""
    if one.strip('"') == other.strip('"'):
        return True
    try:
        return int(one, 0) == int(other, 0)
    except ValueError:
        truth = host.boolean(one)
        return truth is not None and truth is host.boolean(other)
