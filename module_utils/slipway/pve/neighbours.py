# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what a node has and what its guests claim of it. Runs there as root, below ``root``, and writes nothing."""

from __future__ import annotations

import re
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

from .. import files
from ..errors import cannot, here
from ..findings import finding
from ..gpu import cards, host
from ..gpu.tree import Tree
from . import claims, conf, node, record

if t.TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

# The names that NVIDIA's driver gives its GPUs' major in /proc/devices, before release 545 and since.
_MAJORS = ("nvidia", "nvidia-frontend")
_PAUSE_SECONDS = 1.0


@dataclass(frozen=True)
class Node:
    """What the node has: its guests, its GPUs ``{bus_id, device, ...}`` and memory."""

    guests: list[claims.Guest]
    gpus: list[dict[str, t.Any]]
    hardware: claims.Hardware
    memory_mib: int


def look(root: Path) -> Node:
    """Read the node. Raises SlipwayError where it is none of Proxmox."""
    if not (root / "etc/pve/lxc").is_dir():
        raise cannot(
            "read",
            "the guests",
            here(),
            f"{root / 'etc/pve/lxc'} does not exist",
            "Run this on a Proxmox VE node, with its cluster file system mounted (systemctl status pve-cluster)",
        )
    gpus = cards.look(Tree(str(root)))
    known = hardware(root, gpus)
    return Node(list(guests(root, known)), gpus, known, _memory_mib(root))


def hardware(root: Path, gpus: Sequence[Mapping[str, t.Any]]) -> claims.Hardware:
    """What claims on these GPUs are translated with."""
    minors = {gpu["bus_id"]: gpu["minor"] for gpu in gpus}
    return claims.Hardware(gpus=minors, major=_major(root), mappings=_mappings(root))


def wait_for_creation(place: node.Place, timeout_seconds: float) -> None:
    """Wait while a task of Proxmox makes the guest: one that a killed run began goes on, and until its end the
    configuration says nothing. Raises SlipwayError when it does not end."""
    deadline = time.monotonic() + timeout_seconds
    while conf.lock(_text(place.config)) == "create":
        if time.monotonic() >= deadline:
            subject = f"container '{place.vmid}'"
            raise cannot(
                "read",
                subject,
                here(),
                f"it has been in the making for {timeout_seconds:g} seconds",
                f"Wait for the task that makes it; if none runs any more, run 'pct unlock {place.vmid}' and destroy it",
                [finding("PVE_GUEST_LOCKED", subject, "lock: create")],
            )
        time.sleep(_PAUSE_SECONDS)


def is_ours(place: node.Place) -> bool:
    """Whether the record says that this very guest is ours."""
    return bool(record.read(place.record, node.identity(place, _text(place.config))))


def guests(
    root: Path, hardware: claims.Hardware, kinds: Collection[str] = (claims.CONTAINER, claims.MACHINE)
) -> Iterator[claims.Guest]:
    """The node's guests of these kinds."""
    # These links are this node's own folders: guests of other nodes are not in them. One without VMs may lack the second.
    folders = {claims.CONTAINER: "lxc", claims.MACHINE: "qemu-server"}
    for folder, kind in ((folders[kind], kind) for kind in kinds):
        for path in sorted((root / "etc/pve" / folder).glob("[0-9]*.conf")):
            vmid = int(path.stem)
            running = (
                node.running(node.Place(vmid, root)) is not None if kind == claims.CONTAINER else _runs(root, vmid)
            )
            if text := _text(path):
                yield claims.guest(vmid, kind, text, running, hardware)


def _runs(root: Path, vmid: int) -> bool:
    """Whether a virtual machine runs: by its pid file, as Proxmox does (PVE/QemuServer/Helpers.pm)."""
    pid = _text(root / f"run/qemu-server/{vmid}.pid").strip()
    return pid.isdigit() and (root / "proc" / pid).exists()


def _text(path: Path) -> str:
    """A file's text; empty where it is not there (any more)."""
    try:
        return files.read(path)
    except FileNotFoundError:
        return ""


def _major(root: Path) -> int | None:
    majors = host.character_majors(_text(root / "proc/devices"))
    return next((majors[name] for name in _MAJORS if name in majors), None)


def _mappings(root: Path) -> dict[str, list[str]]:
    local = root / "etc/pve/local"
    name = local.resolve().name if local.exists() else ""
    return claims.mappings(_text(root / "etc/pve/mapping/pci.cfg"), name)


def _memory_mib(root: Path) -> int:
    total = re.search(r"^MemTotal:\s+(\d+) kB", _text(root / "proc/meminfo"), re.MULTILINE)
    return int(total[1]) // 1024 if total else 0
