# SPDX-License-Identifier: GPL-3.0-or-later
"""Snapshots of a container: whose they are, which go, what a rollback changes, and why there can be none. Pure.

The rules are those of pve-guest-common's AbstractConfig (``__snapshot_copy_config``, ``snapshot_rollback``) and of
pve-storage's plugins.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import asdict, dataclass

from . import devices, permissions, properties

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

# The last line of the description of each snapshot that Slipway makes: by it a snapshot is known for ours wherever it is
# looked at from. One that somebody takes away makes the snapshot theirs.
MARK = "[made by Slipway]"
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{1,39}")  # pve-configid, and the API's own limit of 40
RESERVED = ("current", "vzdump")
# Kinds of storage on which disks of containers can be part of a snapshot.
ABLE_KINDS = ("btrfs", "lvmthin", "rbd", "zfspool", "zfs")
# A rollback to another snapshot than the newest one would have to destroy those in between, which ZFS and Proxmox do not.
NEWEST_ONLY_KINDS = ("zfspool", "zfs")
# What a rollback leaves as it is, and what only snapshots have.
NOT_ROLLED_BACK = re.compile(r"description|digest|lock|parent|snaptime|snapstate|snapshots|pending|unused\d+")


@dataclass(frozen=True)
class Snapshot:
    """One snapshot. ``created`` in seconds since 1970; ``unfinished`` is what a task that was killed left it in."""

    name: str
    description: str = ""
    created: int = 0
    parent: str | None = None
    ours: bool = False
    unfinished: str | None = None

    def as_dict(self) -> dict[str, t.Any]:
        return asdict(self)


def from_rows(rows: Iterable[Mapping[str, t.Any]]) -> list[Snapshot]:
    """The snapshots in the answer of ``GET snapshot``, oldest first; the entry ``current`` is none."""
    found = {str(row["name"]): _snapshot(row) for row in rows if row["name"] != "current"}
    return sorted(found.values(), key=lambda one: (one.created, len(_line(one.name, found))))


def _snapshot(row: Mapping[str, t.Any]) -> Snapshot:
    lines = str(row.get("description") or "").rstrip("\n").split("\n")
    ours = lines[-1].strip() == MARK
    return Snapshot(
        name=str(row["name"]),
        description="\n".join(lines[:-1] if ours else lines).rstrip("\n"),
        created=int(row.get("snaptime") or 0),
        parent=row.get("parent") or None,
        ours=ours,
        unfinished=row.get("snapstate") or None,
    )


def _line(name: str, by_name: Mapping[str, Snapshot]) -> list[str]:
    """The ancestors of a snapshot."""
    found: list[str] = []
    parent = by_name[name].parent
    while parent and parent in by_name and parent not in found:
        found.append(parent)
        parent = by_name[parent].parent
    return found


def marked(description: str | None) -> str:
    """The description of a snapshot that is ours."""
    return f"{description.rstrip()}\n{MARK}" if description else MARK


def old(snapshots: Sequence[Snapshot], name: str, keep: int, prefix: str) -> list[Snapshot]:
    """Those that go so that ``keep`` of ours are left, oldest first: none but what is older than ``name``, which may be yet to be made."""
    names = [one.name for one in snapshots]
    made = name not in names
    ours = [one for one in snapshots if one.ours and one.name.startswith(prefix)]
    older = ours if made else [one for one in ours if names.index(one.name) < names.index(name)]
    return older[: max(0, len(ours) + made - keep)]


def newer(snapshots: Sequence[Snapshot], name: str) -> list[Snapshot]:
    """The snapshots that came after this one."""
    by_name = {one.name: one for one in snapshots}
    position = [one.name for one in snapshots].index(name)
    return [
        one
        for one in snapshots[position + 1 :]
        if one.created > by_name[name].created or name in _line(one.name, by_name)
    ]


def differences(current: Mapping[str, t.Any], then: Mapping[str, t.Any]) -> tuple[dict[str, t.Any], dict[str, t.Any]]:
    """The keys that a rollback changes, as they are and as they were in the snapshot; raw lines come under ``lxc``."""
    before, after = _comparable(current), _comparable(then)
    changed = [key for key in sorted({*before, *after}) if before.get(key) != after.get(key)]
    return {key: before[key] for key in changed if key in before}, {key: after[key] for key in changed if key in after}


def _comparable(config: Mapping[str, t.Any]) -> dict[str, t.Any]:
    values = {key: str(value) for key, value in config.items() if key != "lxc" and not NOT_ROLLED_BACK.fullmatch(key)}
    raw = [f"{key}: {value}" for key, value in config.get("lxc") or []]
    return {**values, **({"lxc": raw} if raw else {})}


def disks(config: Mapping[str, t.Any]) -> dict[str, str]:
    """The disks and mounts of a configuration with their values."""
    root = {"rootfs": str(config["rootfs"])} if "rootfs" in config else {}
    return {**root, **devices.numbered(config, "mp")}


def storage_of(value: str) -> str:
    """The storage that a disk is on; of a bind or device mount an empty text."""
    volume = properties.parse(value, "volume").get("volume", "")
    return volume.partition(":")[0] if permissions.mount_kind(value) == "volume" else ""


def unfit(config: Mapping[str, t.Any], kinds: Mapping[str, str]) -> Iterator[str]:
    """Why Proxmox says that there can be no snapshot, a sentence a disk. ``kinds`` are those of the storages, as far as seen."""
    for key, value in disks(config).items():
        options = properties.parse(value, "volume")
        where = f"{key} ({options['mp']})" if options.get("mp") else key
        kind = permissions.mount_kind(value)
        if kind != "volume":
            yield f"{where} is a {kind} mount of {options.get('volume')}"
            continue
        storage = storage_of(value)
        if storage in kinds and kinds[storage] not in ABLE_KINDS:
            yield f"{where} is on '{storage}', a storage of type {kinds[storage]}"
        elif storage not in kinds:
            yield f"{where} is on '{storage}', of which the type could not be seen"


def wrong_name(name: str, prefix: str) -> str | None:
    """What is wrong with a name, None where nothing is."""
    if not NAME.fullmatch(name) or name in RESERVED:
        return (
            f"'{name}' is no name for a snapshot; it must begin with a letter, have letters, digits, - and _ alone, 2 to 40 of "
            f"them, and be none of {', '.join(RESERVED)}"
        )
    if not name.startswith(prefix):
        return f"'{name}' does not begin with keep_prefix '{prefix}', so it would never be one of those that are kept"
    return None
