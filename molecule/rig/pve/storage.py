# SPDX-License-Identifier: GPL-3.0-or-later
"""Storages and their volumes: ``local`` (a folder with templates) and ``local-zfs``, whose subvolumes are plain folders here."""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import typing as t
from pathlib import Path

from .errors import died, refused

TEMPLATE = re.compile(r"(?P<storage>[^:]+):vztmpl/(?P<name>[^/]+\.tar\.(?P<packer>gz|xz|zst|bz2))")
SUBVOLUME = re.compile(r"(?P<storage>[^:]+):(?P<name>(?:subvol|basevol)-(?P<vmid>\d+)-disk-\d+)")


@dataclasses.dataclass(frozen=True)
class Storage:
    """One entry of storage.cfg; ``folder`` is where its volumes or templates lie."""

    name: str
    kind: str
    content: tuple[str, ...]
    folder: Path
    enabled: bool = True
    must_be_mounted: bool = False  # is_mountpoint: what lies in the empty folder is not the storage

    @property
    def active(self) -> bool:
        """Whether it can be used now."""
        return self.enabled and (not self.must_be_mounted or self.folder.is_mount())


class Storages:
    """The storages of a node."""

    def __init__(self, entries: list[Storage]) -> None:
        self.entries = {entry.name: entry for entry in entries}

    @classmethod
    def load(cls, root: Path) -> Storages:
        """Read storage.cfg below ``root``."""
        entries = []
        for block in re.split(r"\n(?=\S)", (root / "etc/pve/storage.cfg").read_text().strip()):
            head, *rest = block.splitlines()
            kind, name = (part.strip() for part in head.split(":", 1))
            options = dict(line.split(None, 1) for line in rest if line.strip())
            where = options["path"] if kind == "dir" else options["pool"]
            content = tuple(part.strip() for part in options["content"].split(","))
            flags = (options.get("disable") != "1", options.get("is_mountpoint") == "1")
            entries.append(Storage(name, kind, content, root / where.lstrip("/"), *flags))
        return cls(entries)

    def get(self, name: str) -> Storage:
        if name not in self.entries:
            raise died(f"storage '{name}' does not exist")
        return self.entries[name]

    def for_containers(self, name: str) -> Storage:
        """A storage that can hold container volumes."""
        storage = self.get(name)
        if not storage.enabled:
            raise died(f"storage '{name}' is disabled")
        if not storage.active:
            raise died(
                f"unable to activate storage '{name}' - directory is expected to be a mount point but is not mounted"
            )
        if "rootdir" not in storage.content:
            raise refused({"storage": f"storage '{name}' does not support container directories"})
        return storage

    def template(self, volid: str) -> Path:
        """The file of an OS template."""
        found = TEMPLATE.fullmatch(volid)
        if not found:
            raise died(
                f"unable to parse volume ID '{volid}'"
                if ":" not in volid
                else f"unable to parse directory volume name '{volid.split(':', 1)[1]}'"
            )
        return self.get(found["storage"]).folder / "template/cache" / found["name"]

    def path(self, volid: str) -> Path:
        """The folder of a container volume."""
        found = SUBVOLUME.fullmatch(volid)
        if not found:
            raise died(f"unable to parse volume ID '{volid}'")
        return self.get(found["storage"]).folder / found["name"]

    def allocate(self, storage: str, vmid: int, owner: int) -> str:
        """Make an empty volume that ``owner`` (a user ID of the node) owns; returns its volume ID."""
        folder = self.for_containers(storage).folder
        folder.mkdir(parents=True, exist_ok=True)
        taken = {path.name.split("-", 1)[1] for path in folder.iterdir()}
        number = next(n for n in range(1000) if f"{vmid}-disk-{n}" not in taken)
        volume = folder / f"subvol-{vmid}-disk-{number}"
        volume.mkdir(0o755)
        os.chown(volume, owner, owner)
        return f"{storage}:{volume.name}"

    def free(self, volid: str) -> None:
        """Remove a volume."""
        shutil.rmtree(self.path(volid), ignore_errors=True)

    def status(self) -> list[dict[str, t.Any]]:
        """The storages as GET /nodes/{node}/storage lists them."""
        result = []
        for entry in self.entries.values():
            entry.folder.mkdir(parents=True, exist_ok=True)
            disk = shutil.disk_usage(entry.folder)
            total, used, free = disk if entry.active else (0, 0, 0)
            result.append(
                {
                    "storage": entry.name,
                    "type": entry.kind,
                    "content": ",".join(entry.content),
                    "active": int(entry.active),
                    "enabled": int(entry.enabled),
                    "shared": 0,
                    "total": total,
                    "used": used,
                    "avail": free,
                    **({"used_fraction": used / total} if total else {}),
                }
            )
        return result

    def content(self, name: str, kind: str | None, vmid: int | None) -> list[dict[str, t.Any]]:
        """What lies on a storage."""
        storage = self.get(name)
        found: list[dict[str, t.Any]] = []
        cache = storage.folder / "template/cache"
        if "vztmpl" in storage.content and cache.is_dir():
            for path in sorted(cache.iterdir()):
                if match := TEMPLATE.fullmatch(f"{name}:vztmpl/{path.name}"):
                    stat = path.stat()
                    entry = {"volid": match[0], "content": "vztmpl", "format": f"t{match['packer']}"}
                    found.append({**entry, "size": stat.st_size, "ctime": int(stat.st_ctime)})
        if "rootdir" in storage.content and storage.folder.is_dir():
            for path in sorted(storage.folder.iterdir()):
                if match := SUBVOLUME.fullmatch(f"{name}:{path.name}"):
                    entry = {"volid": match[0], "content": "rootdir", "format": "subvol"}
                    found.append({**entry, "size": 0, "vmid": int(match["vmid"])})
        return [e for e in found if kind in (None, e["content"]) and vmid in (None, e.get("vmid"))]
