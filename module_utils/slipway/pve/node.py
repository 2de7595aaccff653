# SPDX-License-Identifier: GPL-3.0-or-later
"""A container as its own node sees it: paths, lock, which one it is, whether it runs and what it was started with.

Runs there as root.
"""

from __future__ import annotations

import fcntl
import subprocess
import time
import typing as t
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from .. import files
from ..errors import cannot, here
from . import claims, conf

if t.TYPE_CHECKING:
    from collections.abc import Iterator

# How long Proxmox itself waits for this lock (PVE/AbstractConfig.pm, lock_config).
LOCK_SECONDS = 10.0


@dataclass(frozen=True)
class Place:
    """Where a container's things are. ``root`` is the file system they are on."""

    vmid: int
    root: Path = Path("/")

    @property
    def config(self) -> Path:
        # The link /etc/pve/lxc is this node's own folder: a guest of another node is not in it.
        return self.root / "etc/pve/lxc" / f"{self.vmid}.conf"

    @property
    def lock(self) -> Path:
        return self.root / "run/lock/lxc" / f"pve-config-{self.vmid}.lock"

    @property
    def started_with(self) -> Path:
        """The LXC configuration that Proxmox writes at each start."""
        return self.root / "var/lib/lxc" / str(self.vmid) / "config"

    @property
    def mount_point(self) -> Path:
        """Where Proxmox mounts the root disk: a folder made with the guest and removed with it, whatever the storage.

        Its destroy_lxc_container (PVE/LXC.pm) may leave the folder above it behind, but never this one.
        """
        return self.started_with.with_name("rootfs")

    @property
    def record(self) -> Path:
        return self.root / "var/lib/slipway/guests" / f"{self.vmid}.json"


@contextmanager
def locked(place: Place) -> Iterator[None]:
    """Hold the lock that Proxmox takes for every change of this configuration. Raises SlipwayError after 10 seconds."""
    place.lock.parent.mkdir(parents=True, exist_ok=True)
    # Appending, as Proxmox does: the file is the lock's and stays.
    with open(place.lock, "a", encoding="utf-8") as file:
        deadline = time.monotonic() + LOCK_SECONDS
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise cannot(
                        "lock the configuration of",
                        f"container '{place.vmid}'",
                        here(),
                        f"another process has held {place.lock} for {LOCK_SECONDS:g} seconds",
                        "Wait for the task that is at work on this container and run again",
                    ) from None
                time.sleep(0.1)
        yield


def identity(place: Place, text: str) -> dict[str, t.Any]:
    """What this guest has in common with no other that had or will have its vmid: ``{hwaddr, created}``.

    ``text`` is its configuration. The MAC address of its first network is Proxmox's random choice unless somebody declares
    one, and a restored backup brings it back. So the birth of its mount point counts too, in seconds, or None where the
    file system does not tell.
    """
    try:
        # Python has no statx(2).
        born = subprocess.run(
            ["stat", "--format=%W", str(place.mount_point)], capture_output=True, text=True, check=True, timeout=60
        ).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        born = ""
    return {"hwaddr": claims.hwaddr(text), "created": int(born) if born.isdigit() and born != "0" else None}


def running(place: Place) -> str | None:
    """What identifies this start of the container, or None if it does not run.

    As Proxmox does, by the command socket of lxc-start. Its inode differs from one start to the next; with the boot id
    before it no two starts have the same.
    """
    socket = f"@/var/lib/lxc/{place.vmid}/command"
    for line in (place.root / "proc/net/unix").read_text(encoding="utf-8", errors="replace").splitlines():
        fields = line.split()
        if fields and fields[-1] == socket:
            boot = (place.root / "proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
            return f"{boot}:{fields[-2]}"
    return None


def started_with(place: Place) -> list[conf.Raw] | None:
    """The ``lxc.*`` lines of the LXC configuration of the last start, or None where there is none."""
    try:
        text = files.read(place.started_with)
    except FileNotFoundError:
        return None
    return [found for line in text.splitlines() if (found := conf.raw(line))]


def pct_config(place: Place) -> list[conf.Raw]:
    """The raw lines as Proxmox's own code reads them. Raises SlipwayError."""
    try:
        done = subprocess.run(
            ["pct", "config", str(place.vmid), "--current"],
            capture_output=True,
            text=True,
            errors="surrogateescape",
            check=True,
            timeout=60,
        )
    except (OSError, subprocess.SubprocessError) as error:
        words = " ".join((getattr(error, "stderr", None) or "").split())
        raise cannot(
            "read back the configuration of",
            f"container '{place.vmid}'",
            here(),
            f"'pct config' failed ({error}) {words}",
            "Run it there by hand; the file itself was written whole",
        ) from error
    return [found for line in done.stdout.splitlines() if (found := conf.raw(line))]
