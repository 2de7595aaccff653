# SPDX-License-Identifier: GPL-3.0-or-later
"""Which privileges in Proxmox the work on a guest needs, and which of them an identity lacks. Pure.

What is needed is what pve-container's API2/LXC.pm and pve-storage's ``check_volume_access`` ask for. ``tree`` is the answer
of ``GET /access/permissions``: path to privileges, each with whether it also holds below the path. A path that is listed
for others, and where the identity has nothing, is not in it; such a one is seen only when Proxmox refuses.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass

from . import permissions, properties

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from .guest import Guest

Tree = t.Mapping[str, t.Mapping[str, t.Any]]

# A role of Proxmox's own that has the privilege and little else.
ROLES = {"VM": "PVEVMAdmin", "Datastore": "PVEDatastoreUser", "SDN": "PVESDNUser", "Sys": "PVEAuditor"}
BRIDGES = "/sdn/zones/localnetwork"


@dataclass(frozen=True)
class Need:
    """Any of ``privileges`` on ``path``, for ``purposes``: configuration keys, or words of work."""

    path: str
    privileges: tuple[str, ...]
    purposes: tuple[str, ...]


def needed(
    node: str,
    guest: Guest,
    changes: Mapping[str, t.Any],
    *,
    creating: bool,
    unprivileged: bool,
    storages: Iterable[str],
    template_storage: str | None,
    vnets: t.Collection[str] = (),
) -> list[Need]:
    """What an identity that is not root@pam needs so that ``changes`` (key to value, None to delete) can be made.

    ``storages`` are those on which disks are allocated; ``vnets`` are networks of SDN, whose zone the API does not tell here.
    """
    vm = f"/vms/{guest.vmid}"
    needs: list[tuple[str, tuple[str, ...], str]] = [
        (vm, ("VM.Audit",), "reading it"),
        (f"/nodes/{node}", ("Sys.Audit",), "reading the node's memory and CPUs"),
    ]
    if creating:
        needs.append((vm, ("VM.Allocate",), "creating it"))
        if not unprivileged:
            needs.append(("/", ("Sys.Modify",), "creating a privileged container"))
    for key, value in sorted(changes.items()):
        privileges = permissions.verdict("", key, value, unprivileged, guest.declared).privileges
        needs += [(vm, (privilege,), key) for privilege in privileges]
        if key.startswith("net"):
            # The bridge that it has is asked for as well as the one that it gets.
            used = [str(text) for text in (guest.declared.get(key), value) if text]
            needs += [(path, ("SDN.Use",), key) for text in used if (path := _bridge_path(text, vnets))]
    needs += [(f"/storage/{name}", ("Datastore.AllocateSpace",), "its disks") for name in sorted(set(storages))]
    if template_storage:
        needs.append(
            (f"/storage/{template_storage}", ("Datastore.Audit", "Datastore.AllocateSpace"), "reading the template")
        )
    if changes or not guest.running:
        needs.append((vm, ("VM.PowerMgmt",), "starting it"))
    return _merged(needs)


def _bridge_path(value: str, vnets: t.Collection[str]) -> str | None:
    """The path of an interface's bridge, or of its VLAN on it; None where it has none, and where it is one of ``vnets``."""
    options = properties.parse(value)
    if not options.get("bridge") or options["bridge"] in vnets:
        return None
    return "/".join([BRIDGES, options["bridge"], *([options["tag"]] if options.get("tag") else [])])


def _merged(needs: Sequence[tuple[str, tuple[str, ...], str]]) -> list[Need]:
    purposes: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for path, privileges, purpose in needs:
        purposes.setdefault((path, privileges), []).append(purpose)
    return [Need(path, privileges, tuple(dict.fromkeys(found))) for (path, privileges), found in purposes.items()]


def held(tree: Tree, path: str) -> set[str]:
    """The privileges on a path: those of the nearest listed path above it hold as far as they are handed down."""
    parts = [part for part in path.split("/") if part]
    above = ["/", *("/" + "/".join(parts[:length]) for length in range(1, len(parts) + 1))]
    found: set[str] = set()
    for step in above:
        listed = tree.get(step, {})
        final = step == above[-1]
        here = {name for name, handed_down in listed.items() if final or properties.truth(handed_down)}
        if here:
            found = here
    return found


def missing(tree: Tree, needs: Iterable[Need]) -> dict[str, list[Need]]:
    """The needs that the identity does not meet, by path: what is missing there is given by one command."""
    found: dict[str, list[Need]] = {}
    for need in needs:
        if not held(tree, need.path) & set(need.privileges):
            found.setdefault(need.path, []).append(need)
    return found


def sentence(identity: str, path: str, needs: Sequence[Need]) -> str:
    """What is missing on a path, what it is needed for, and the command that gives it."""
    parts = [f"{' or '.join(need.privileges)} (for {', '.join(need.purposes)})" for need in needs]
    return f"On {path}: {', '.join(parts)}. To give it, on the node: {way_out(identity, path, needs[0].privileges[0])}"


def way_out(identity: str, path: str, privilege: str) -> str:
    """The command that gives what is missing. A token with privileges of its own needs them beside its user."""
    user, _, token = identity.partition("!")
    who = [] if user == permissions.ROOT else [f"--users {user}"]
    if token:
        who.append(f"--tokens '{identity}'")
    if privilege == "Sys.Modify":
        # Roles of Proxmox that have this one have nearly everything.
        role = "SlipwayPrivileged"
        make = f"pveum role add {role} --privs {privilege} && "
    else:
        role, make = ROLES[privilege.split(".")[0]], ""
    return f"{make}pveum acl modify {path} {' '.join(who)} --roles {role}"
