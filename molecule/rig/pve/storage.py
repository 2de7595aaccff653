# SPDX-License-Identifier: GPL-3.0-or-later
"""Storages and their volumes: ``local`` (a folder with templates) and ``local-zfs``, whose subvolumes are plain folders here.

So are their snapshots (``<volume>@<name>`` beside it) and linked clones: copies, which share space only where the file system
knows reflinks. What is possible on which kind of storage is what its plugin in pve-storage says.
"""

from __future__ import annotations

import dataclasses
import os
import re
import shutil
import subprocess
import typing as t
from pathlib import Path

from .errors import died, refused

TEMPLATE = re.compile(r"(?P<storage>[^:]+):vztmpl/(?P<name>[^/]+\.tar\.(?P<packer>gz|xz|zst|bz2))")
SUBVOLUME = re.compile(
    r"(?P<storage>[^:]+):(?:(?P<base>basevol-\d+-disk-\d+)/)?(?P<name>(?P<kind>subvol|basevol)-(?P<vmid>\d+)-disk-\d+)"
)
# What can be done with a volume as it is, with a base volume (of a template) and with a snapshot. A folder of files has none
# of it but the copying: its volumes for containers are raw images.
FEATURES = {
    "zfspool": {
        "snapshot": {"current", "snap"},
        "clone": {"base"},
        "copy": {"base", "current"},
    },
    "dir": {"copy": {"base", "current"}},
}


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


def _copy(source: Path, target: Path) -> None:
    """Copy a volume with owners, modes, links and attributes, as a whole or not at all. Raises ApiError."""
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    done = subprocess.run(
        ["cp", "--archive", "--reflink=auto", "--no-target-directory", str(source), str(part)],
        capture_output=True,
        text=True,
    )
    if done.returncode:
        shutil.rmtree(part, ignore_errors=True)
        raise died(f"command 'cp' failed: {done.stderr.strip().splitlines()[-1]}")
    part.rename(target)


class Storages:
    """The storages of a node."""

    def __init__(self, entries: list[Storage], configurations: Path | None = None) -> None:
        self.entries = {entry.name: entry for entry in entries}
        self.configurations = configurations  # /etc/pve, whose guests say which base volumes are in use

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
        return cls(entries, root / "etc/pve")

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

    def _volume(self, volid: str) -> re.Match[str]:
        found = SUBVOLUME.fullmatch(volid)
        if not found:
            raise died(f"unable to parse volume ID '{volid}'")
        return found

    def path(self, volid: str, snapshot: str | None = None) -> Path:
        """The folder of a container volume, or of a snapshot of it."""
        found = self._volume(volid)
        return self.get(found["storage"]).folder / (f"{found['name']}@{snapshot}" if snapshot else found["name"])

    def owner(self, volid: str) -> int:
        """The vmid that a volume belongs to."""
        return int(self._volume(volid)["vmid"])

    def has_feature(self, volume: str, feature: str, snapshot: str | None = None) -> bool:
        """Whether a volume can do ``snapshot``, ``clone`` (linked) or ``copy``; a folder of the node can do nothing."""
        found = SUBVOLUME.fullmatch(volume)
        if not found:
            return False
        state = "snap" if snapshot else {"basevol": "base"}.get(found["kind"], "current")
        return state in FEATURES.get(self.get(found["storage"]).kind, {}).get(feature, set())

    def _new(self, storage: str, vmid: int) -> Path:
        """The path of the first number that is free."""
        folder = self.for_containers(storage).folder
        folder.mkdir(parents=True, exist_ok=True)
        taken = {path.name.split("-", 1)[1] for path in folder.iterdir() if "-" in path.name}
        number = next(n for n in range(1000) if f"{vmid}-disk-{n}" not in taken)
        return folder / f"subvol-{vmid}-disk-{number}"

    def allocate(self, storage: str, vmid: int, owner: int) -> str:
        """Make an empty volume that ``owner`` (a user ID of the node) owns; returns its volume ID."""
        volume = self._new(storage, vmid)
        volume.mkdir(0o755)
        os.chown(volume, owner, owner)
        return f"{storage}:{volume.name}"

    def copy(self, volid: str, snapshot: str | None, storage: str, vmid: int) -> str:
        """A full copy for another guest; returns its volume ID."""
        volume = self._new(storage, vmid)
        _copy(self.path(volid, snapshot), volume)
        return f"{storage}:{volume.name}"

    def clone(self, volid: str, vmid: int) -> str:
        """A linked clone of a base volume; returns its volume ID, which names the base."""
        found = self._volume(volid)
        if found["kind"] != "basevol":
            raise died("clone_image only works on base images")
        copied = self.copy(volid, None, found["storage"], vmid)
        return f"{found['storage']}:{found['name']}/{copied.partition(':')[2]}"

    def make_base(self, volid: str) -> str:
        """Turn a volume into one that clones can be linked to; returns its new volume ID."""
        if self._volume(volid)["kind"] == "basevol":
            raise died("create_base not possible with base image")
        base = volid.replace("subvol-", "basevol-", 1)
        self.path(volid).rename(self.path(base))
        return base

    def snapshot(self, volid: str, name: str) -> None:
        """Keep a volume as it is now."""
        _copy(self.path(volid), self.path(volid, name))

    def delete_snapshot(self, volid: str, name: str) -> None:
        if not self.path(volid, name).exists():
            raise died("zfs error: could not find any snapshots to destroy; check snapshot names.")
        shutil.rmtree(self.path(volid, name))

    def check_rollback(self, volid: str, name: str) -> None:
        """ZFS goes back to the newest snapshot of a volume only. Raises ApiError."""
        kept = self.path(volid, name)
        if not kept.exists():
            raise died(f"can't rollback, snapshot '{name}' does not exist on '{volid}'")
        # A snapshot's folder gets its name last, and nothing in it is touched again.
        made = kept.lstat().st_ctime_ns
        if any(other.lstat().st_ctime_ns > made for other in kept.parent.glob(f"{self.path(volid).name}@*")):
            raise died(f"can't rollback, '{name}' is not most recent snapshot on '{volid}'")

    def rollback(self, volid: str, name: str) -> None:
        """Bring a volume back."""
        self.check_rollback(volid, name)
        volume = self.path(volid)
        aside = volume.with_name(f".{volume.name}.aside")
        shutil.rmtree(aside, ignore_errors=True)
        volume.rename(aside)
        _copy(self.path(volid, name), volume)
        shutil.rmtree(aside)

    def free(self, volid: str) -> None:
        """Remove a volume with its snapshots. Raises ApiError for a base that clones are linked to."""
        volume = self.path(volid)
        confs = [*self.configurations.glob("nodes/*/lxc/*.conf")] if self.configurations else []
        linked = re.compile(rf"[:/]{volume.name}/")
        if volume.name.startswith("basevol-") and any(linked.search(conf.read_text()) for conf in confs):
            raise died(f"base volume '{volume.name}' is still in use by linked clones")
        for kept in volume.parent.glob(f"{volume.name}@*"):
            shutil.rmtree(kept, ignore_errors=True)
        shutil.rmtree(volume, ignore_errors=True)

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
