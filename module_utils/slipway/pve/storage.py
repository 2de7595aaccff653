# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the storages of a node can take what a guest is declared with: its disks, and the template it is made from. Pure."""

from __future__ import annotations

import difflib
import typing as t
from dataclasses import dataclass

from ..findings import Finding, finding
from . import properties

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

GIB = 1024**3
# Only LVM allocates a container's disk as a whole (LVMPlugin, alloc_image). A subvolume of ZFS has a quota and no
# reservation (ZFSPoolPlugin, zfs_create_subvol), and images on folders, NFS, Ceph or LVM-thin grow as they are written.
THICK_KINDS = frozenset({"lvm"})

# A storage as GET /nodes/N/storage lists it: storage, type, content, enabled, active, avail.
Row = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class Wish:
    """What is to lie on one storage: GiB of disks (0: none), and whether the template is read from it."""

    disks_gib: int = 0
    template: bool = False

    @property
    def uses(self) -> dict[str, str]:
        """Content type to words for what it is needed for."""
        disks = {"rootdir": f"{self.disks_gib} GiB of disks"} if self.disks_gib else {}
        return {**disks, **({"vztmpl": "the template"} if self.template else {})}


def faults(subject: str, name: str, wish: Wish, rows: Sequence[Row], unpacked_bytes: int = 0) -> Iterator[Finding]:
    """What keeps a storage from taking a wish. ``unpacked_bytes`` are written when the guest is made, and that at least."""
    uses = wish.uses
    row = next((row for row in rows if row["storage"] == name), None)
    if row is None:
        text = f"It is declared for {_joined(uses.values())}. Fit for that: {_fitting(name, uses, rows)}."
        yield finding("PVE_STORAGE_UNKNOWN", subject, text)
    elif not usable(row):
        state = "is enabled and not active" if properties.truth(row.get("enabled", 1)) else "is disabled"
        yield finding("PVE_STORAGE_INACTIVE", subject, f"It {state}, and declared for {_joined(uses.values())}.")
    else:
        lacking = [content for content in uses if content not in contents(row)]
        if lacking:
            text = (
                f"It takes {', '.join(contents(row))}, and {_joined(uses[content] for content in lacking)} would need "
                f"{_joined(lacking)}. Fit for that: {_fitting(name, lacking, rows)}."
            )
            yield finding("PVE_STORAGE_CONTENT", subject, text)
        if wish.disks_gib and "rootdir" not in lacking:
            yield from _space(subject, wish.disks_gib, row, unpacked_bytes)


def _space(subject: str, gib: int, row: Row, unpacked_bytes: int) -> Iterator[Finding]:
    free, kind = int(row.get("avail") or 0), str(row.get("type"))
    if gib * GIB <= free:
        return
    text = f"Declared are {gib} GiB of disks, free are {free / GIB:.1f} GiB. "
    if kind in THICK_KINDS:
        text += f"A disk on '{kind}' takes its whole size at once, so it could not be made."
        yield finding("PVE_STORAGE_FULL", subject, text)
    elif free < unpacked_bytes:
        yield finding("PVE_STORAGE_FULL", subject, text + "Not even the template has room there.")
    else:
        text += f"A disk on '{kind}' takes space as it is written, so it can be made, and not be filled."
        yield finding("PVE_STORAGE_FULL", subject, text, "warn")


def missing_template(node: str, storage: str, file: str, rows: Sequence[Row]) -> Iterator[Finding]:
    """Whether a template is among those of its storage (``GET content``)."""
    there = [str(row["volid"]).rpartition("/")[2] for row in rows]
    if file not in there:
        text = f"Storage '{storage}' has {nearest(file, there)}. To fetch it: pveam update && pveam download {storage} {file}"
        yield finding("PVE_TEMPLATE_MISSING", f"template '{file}' on node '{node}'", text)


def nearest(wanted: str, names: Iterable[str]) -> str:
    """Names in a sentence, those first that resemble the wanted one."""
    ranked = sorted(names, key=lambda name: (-difflib.SequenceMatcher(None, wanted, name).ratio(), name))
    return ", ".join(ranked) or "none"


def contents(row: Row) -> list[str]:
    """The content types that a storage takes."""
    return [part.strip() for part in str(row.get("content", "")).split(",") if part.strip()]


def usable(row: Row) -> bool:
    """Whether a storage is enabled on the node and can be reached."""
    return properties.truth(row.get("enabled", 1)) and properties.truth(row.get("active", 1))


def holds_templates(rows: Sequence[Row], name: str) -> bool:
    """Whether a storage is there, can be reached and takes templates, so that asking for them makes sense."""
    return any(row["storage"] == name and usable(row) and "vztmpl" in contents(row) for row in rows)


def _fitting(wanted: str, needed: Iterable[str], rows: Sequence[Row]) -> str:
    return nearest(wanted, [str(row["storage"]) for row in rows if usable(row) and set(needed) <= set(contents(row))])


def _joined(words: Iterable[str]) -> str:
    return " and ".join(words)
