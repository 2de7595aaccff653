# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading containers as they are: one, those of a node, or those of a cluster. Reads only."""

from __future__ import annotations

import typing as t
from functools import partial

from ..errors import cannot
from ..findings import Finding, finding
from . import api, lookup, record, snapshots
from .client import ApiError, Client, doing

if t.TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from .guest import Guest

LOOPBACK = "lo"


class Reader:
    """What is read, and what could not be."""

    def __init__(self, client: Client, node: str | None, vmid: int | None) -> None:
        self.client = client
        self.node = node
        self.vmid = vmid
        self.findings: list[Finding] = []

    def read(self) -> dict[str, t.Any]:
        """The module's result. Raises SlipwayError where the API, or the one node that was asked for, gives no answer."""
        containers: list[dict[str, t.Any]] = []
        for node in self._nodes():
            containers += self._of_node(node)
        return {
            "changed": False,
            "containers": sorted(containers, key=lambda one: one["vmid"]),
            "findings": [found.as_dict() for found in self.findings],
        }

    def _nodes(self) -> Iterator[str]:
        if self.node:
            yield self.node
            return
        with doing("read", "the nodes", self.client.host):
            rows = api.nodes(self.client)
        for row in sorted(rows, key=lambda row: str(row["node"])):
            if row.get("status") == "online":
                yield str(row["node"])
            else:
                detail = f"Its status is '{row.get('status', 'unknown')}', so its containers are not among these."
                self.findings.append(finding("PVE_NODE_OFFLINE", f"node '{row['node']}'", detail, "unknown"))

    def _of_node(self, node: str) -> list[dict[str, t.Any]]:
        with doing("read", "the containers", node):
            rows = [row for row in api.containers(self.client, node) if self.vmid in (None, int(row["vmid"]))]
        guests = {}
        for row in rows:
            vmid = int(row["vmid"])
            if found := self._read(f"container '{vmid}' on node '{node}'", partial(self._guest, node, row)):
                guests[vmid] = found
        if not guests:
            return []
        configs = {vmid: guest.config for vmid, (guest, _) in guests.items()}
        records = self._read(f"the records on node '{node}'", lambda: record.read_over(self.client, node, configs))
        return [
            {**told, "record": None if not records or vmid not in records else records[vmid].content}
            for vmid, (_, told) in guests.items()
        ]

    def _guest(self, node: str, row: Mapping[str, t.Any]) -> tuple[Guest, dict[str, t.Any]]:
        vmid = int(row["vmid"])
        guest = lookup.described(self.client, node, vmid, row)
        rows = api.snapshots(self.client, node, vmid)
        subject = f"the addresses of container '{vmid}' on node '{node}'"
        interfaces = self._read(subject, lambda: api.interfaces(self.client, node, vmid)) if guest.running else []
        raw = guest.config.get("lxc") or []
        return guest, {
            **guest.facts(),
            "config": {key: value for key, value in guest.config.items() if key != "lxc"},
            "raw_lines": [f"{key}: {value}" for key, value in raw],
            "pending": pending_of(guest),
            "restart_required": guest.running and bool(guest.pending),
            "digest": guest.digest,
            "lock": guest.lock,
            "unprivileged": guest.unprivileged,
            "addresses": addresses(interfaces or []),
            "snapshots": [one.as_dict() for one in snapshots.from_rows(rows)],
        }

    def _read(self, subject: str, call: t.Callable[[], t.Any]) -> t.Any:
        """Read one thing; where Proxmox refuses or it is gone meanwhile, that is a finding and the others are read."""
        try:
            return call()
        except ApiError as error:
            if error.status is None:
                raise cannot("read", subject, self.client.host, error.cause, error.remedy) from error
            self.findings.append(finding("CHECK_NOT_MADE", subject, f"{error.cause}."))
            return None


def pending_of(guest: Guest) -> dict[str, t.Any]:
    """What waits for a restart: key to the value that it will have, None where it will be unset. Pure."""
    return {key: guest.declared.get(key) for key in guest.pending}


def addresses(interfaces: list[dict[str, t.Any]]) -> list[dict[str, t.Any]]:
    """The interfaces that are up in the guest, each ``{name, hwaddr, addresses}``. Pure.

    ``inet`` and ``inet6`` hold one address each; where Proxmox lists all (``ip-addresses``), these count.
    """
    found = []
    for interface in interfaces:
        if interface.get("name") == LOOPBACK:
            continue
        listed = [
            f"{one.get('ip-address')}/{one['prefix']}" if one.get("prefix") else str(one.get("ip-address"))
            for one in interface.get("ip-addresses") or []
        ]
        single = [str(interface[name]) for name in ("inet", "inet6") if interface.get(name)]
        hwaddr = interface.get("hwaddr") or interface.get("hardware-address")
        found.append(
            {
                "name": interface.get("name"),
                "hwaddr": str(hwaddr).upper() if hwaddr else None,
                "addresses": listed or single,
            }
        )
    return found
