# SPDX-License-Identifier: GPL-3.0-or-later
"""Finding a guest in the cluster."""

from __future__ import annotations

import time
import typing as t

from ..errors import cannot
from ..findings import finding
from . import api, guest, tasks, values
from .client import ApiError, doing

if t.TYPE_CHECKING:
    from collections.abc import Mapping

    from .client import Client


def find(client: Client, node: str, vmid: int) -> guest.Guest:
    """Read a container in three calls; one that does not exist comes back with status absent.

    Raises SlipwayError where it cannot be read, and where the vmid belongs to something else.
    """
    least, most = values.VMIDS
    if not least <= vmid <= most:
        raise cannot(
            "manage",
            f"container '{vmid}'",
            node,
            f"Proxmox numbers guests from {least} to {most}",
            "Declare such a number",
        )
    with doing("read", f"container '{vmid}'", node):
        found = read(client, node, vmid)
        taken_by = None if found.exists else holder(client, vmid)
    if taken_by:
        raise cannot(
            "manage",
            f"container '{vmid}'",
            node,
            f"this vmid is taken by {taken_by}",
            "Declare another vmid, or the node on which the container is",
        )
    return found


def read(client: Client, node: str, vmid: int) -> guest.Guest:
    """Read a container of this node; absent where the identity sees none. Raises ApiError.

    That it is missing is known from the node's own list: asked for its configuration, Proxmox answers 500 as for any
    other trouble.
    """
    row = next((row for row in api.containers(client, node) if int(row["vmid"]) == vmid), None)
    return guest.Guest(vmid, node) if row is None else described(client, node, vmid, row)


def described(client: Client, node: str, vmid: int, row: Mapping[str, t.Any]) -> guest.Guest:
    """A guest of which the row in the node's list, or ``status/current``, is known, in two calls. Raises ApiError."""
    config = api.config(client, node, vmid)
    return guest.from_answers(vmid, node, row, config, api.pending(client, node, vmid))


def unlocked(client: Client, verb: str, found: guest.Guest, timeout_seconds: float) -> guest.Guest:
    """Wait for the lock of a task that is at work on the guest (creation of a run before, a backup, a snapshot).

    Returns the guest as it is then. Raises SlipwayError ("Cannot <verb> ...") where the lock stays.
    """
    deadline = time.monotonic() + timeout_seconds
    subject = f"container '{found.vmid}'"
    while found.lock:
        if time.monotonic() >= deadline:
            raise cannot(
                verb,
                subject,
                found.node,
                f"it is locked ({found.lock})",
                f"Wait for the task that holds it; if none runs any more, run 'pct unlock {found.vmid}' on the node",
                [finding("PVE_GUEST_LOCKED", subject, f"lock: {found.lock}")],
            )
        time.sleep(tasks.LONGEST_PAUSE_SECONDS)
        found = find(client, found.node, found.vmid)
    return found


def holder(client: Client, vmid: int) -> str | None:
    """In words who has a vmid in the cluster, None where it is free. Raises ApiError."""
    try:
        api.claim_free(client, vmid)
    except ApiError as error:
        # 400 is how Proxmox says that the vmid is not free.
        if error.status != 400:
            raise
        return _who_has_it(client, vmid)
    return None


def _who_has_it(client: Client, vmid: int) -> str:
    try:
        guests = api.guests_of_cluster(client)
    except ApiError:
        # Only a name for the sentence is missing then; that the vmid is taken is known.
        guests = []
    for row in guests:
        if int(row.get("vmid", 0)) == vmid:
            kind = "virtual machine" if row.get("type") == "qemu" else "container"
            return f"the {kind} '{row.get('name', vmid)}' on node '{row.get('node')}'"
    return f"a guest on another node, or one that '{client.identity}' may not see (VM.Audit)"
