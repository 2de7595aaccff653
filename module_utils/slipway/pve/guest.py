# SPDX-License-Identifier: GPL-3.0-or-later
"""A guest as Proxmox describes it, put together from its answers. Pure."""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from . import devices, properties

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping


@dataclass(frozen=True)
class Guest:
    """One container. ``status`` is running, stopped or absent.

    ``config`` is what is in force now, ``declared`` the same with the pending changes merged in: what it will be after
    the next start. ``pending`` are the keys in which the two differ.
    """

    vmid: int
    node: str
    status: str = "absent"
    config: dict[str, t.Any] = field(default_factory=dict)
    declared: dict[str, t.Any] = field(default_factory=dict)
    pending: tuple[str, ...] = ()
    digest: str | None = None
    lock: str | None = None

    @property
    def exists(self) -> bool:
        return self.status != "absent"

    @property
    def running(self) -> bool:
        return self.status == "running"

    @property
    def template(self) -> bool:
        return properties.truth(self.config.get("template", 0))

    @property
    def unprivileged(self) -> bool:
        return properties.truth(self.config.get("unprivileged", 0))

    def facts(self) -> dict[str, t.Any]:
        """The guest as modules return it."""
        return {
            "vmid": self.vmid,
            "node": self.node,
            "status": self.status,
            "template": self.template,
            "hostname": self.config.get("hostname"),
            "config": dict(self.config),
            "devices": devices.as_facts(self.config),
        }


def from_answers(
    vmid: int,
    node: str,
    row: Mapping[str, t.Any],
    config: Mapping[str, t.Any],
    pending: Iterable[Mapping[str, t.Any]],
) -> Guest:
    """Build a guest from its row in ``GET /nodes/N/lxc``, ``GET config?current=1`` and ``GET pending``."""
    current = {key: value for key, value in config.items() if key != "digest"}
    declared = dict(current)
    waiting = []
    for item in pending:
        key = str(item["key"])
        # "delete" is 0, 1 or 2 (forced); over HTTP numbers may come as text.
        if str(item.get("delete", 0)) not in ("0", ""):
            declared.pop(key, None)
            waiting.append(key)
        elif item.get("pending") is not None:
            declared[key] = item["pending"]
            waiting.append(key)
    return Guest(
        vmid=vmid,
        node=node,
        status=str(row.get("status", "stopped")),
        config=current,
        declared=declared,
        pending=tuple(sorted(waiting)),
        digest=config.get("digest"),
        lock=row.get("lock") or config.get("lock") or None,
    )
