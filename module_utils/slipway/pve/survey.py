# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading what decides whether a declared guest can be: eight calls for a new one, seven for one that exists."""

from __future__ import annotations

import typing as t

from . import api, lookup, permissions, preflight, storage, values
from .client import ApiError, doing

if t.TYPE_CHECKING:
    from collections.abc import Mapping

    from .client import Client

Answer = t.TypeVar("Answer")
# The API host could not reach the node: nothing of it can be read, and the sentence for that is the client's.
NO_WAY = (595, 596)


class _Reader:
    """Reads one thing after another, and notes what was refused and why."""

    def __init__(self) -> None:
        self.unread: dict[str, str] = {}

    def read(self, what: str, call: t.Callable[[], Answer]) -> Answer | None:
        try:
            return call()
        except ApiError as error:
            if error.status is None or error.status in NO_WAY:
                raise
            self.unread[what] = error.cause
            return None


def survey(client: Client, params: Mapping[str, t.Any]) -> preflight.Facts:
    """Read the facts about one declared guest. Raises SlipwayError where the API itself cannot be asked."""
    node, vmid = params["node"], params["vmid"]
    reader = _Reader()
    with doing("look ahead for", f"container '{vmid}'", client.host):
        nodes = api.nodes(client)
        if preflight.node_trouble(node, nodes):
            return preflight.Facts(nodes=nodes)
        tree = None
        if client.identity != permissions.ROOT:
            tree = reader.read("permissions", lambda: api.own_permissions(client))
        guest = lookup.read(client, node, vmid)
        asked = not guest.exists and not any(option == "vmid" for option, _ in values.faults(params))
        taken_by = lookup.holder(client, vmid) if asked else None
        storages = templates = None
        if (not guest.exists and not taken_by) or params.get("mounts"):
            storages = reader.read("storages", lambda: api.storages(client, node))
        template = preflight.template_of(params)
        if not guest.exists and not taken_by and template and storage.holds_templates(storages or [], template[0]):
            templates = reader.read("templates", lambda: api.templates(client, node, template[0]))
        bridges = None
        if any(values.is_interface(network.get("bridge")) for network in params.get("net") or []):
            bridges = reader.read("bridges", lambda: api.bridges(client, node))
        machine = reader.read("machine", lambda: api.machine(client, node))
    return preflight.Facts(nodes, guest, taken_by, tree, storages, templates, machine, bridges, reader.unread)
