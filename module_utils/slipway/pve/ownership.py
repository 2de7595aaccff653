# SPDX-License-Identifier: GPL-3.0-or-later
"""Which devices of a guest are Slipway's, by the record on its node: one that is no longer declared goes if it is ours.

The record is seen over SSH alone. Over HTTPS nothing that is not declared is ours, and it stays.
"""

from __future__ import annotations

import typing as t

from . import devices, record

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .client import Client
    from .guest import Guest


class Devices:
    """The devices that are declared for a guest (``paths``, None: nothing is said about any), and those of its record."""

    def __init__(self, client: Client, guest: Guest, paths: Sequence[str] | None) -> None:
        """Read the record, if devices are declared and it can be seen. Raises ApiError."""
        self.client = client
        self.vmid = guest.vmid
        self.paths = list(paths or [])
        seen = {} if paths is None else record.read_over(client, guest.node, {guest.vmid: guest.config})
        self.remote = seen.get(guest.vmid)

    @property
    def ours(self) -> list[str]:
        """The paths that the record says are ours."""
        return [str(path) for path in self.remote.content.get("devices", [])] if self.remote else []

    def obsolete(self, guest: Guest) -> list[str]:
        """The keys of devices that are ours and no longer declared."""
        gone = set(self.ours) - set(self.paths)
        return [
            key for key, value in devices.numbered(guest.declared, "dev").items() if devices.device_path(value) in gone
        ]

    def foresee(self) -> None:
        """Before a change: record what is ours and what will be, so that what a killed run leaves is known to the next."""
        self._write([*self.ours, *self.paths])

    def settle(self) -> None:
        """After it: record what is declared."""
        self._write(self.paths)

    def _write(self, paths: Iterable[str]) -> None:
        wanted = list(dict.fromkeys(paths))
        if self.remote is None or self.ours == wanted:
            return
        content = {**self.remote.content, "guest": self.remote.identity, "vmid": self.vmid, "devices": wanted}
        record.write_over(self.client, self.vmid, content)
        self.remote = record.Remote(content, self.remote.identity)


def unmanaged(guest: Guest, paths: Sequence[str] | None) -> list[str]:
    """The keys of devices that are there and not declared, where any are declared at all. Pure."""
    if paths is None:
        return []
    return [
        key for key, value in devices.numbered(guest.declared, "dev").items() if devices.device_path(value) not in paths
    ]
