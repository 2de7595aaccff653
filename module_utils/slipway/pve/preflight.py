# SPDX-License-Identifier: GPL-3.0-or-later
"""What Proxmox would refuse, or what could not work, of one declared guest: judged from facts, before anything is changed.

Pure. ``survey`` reads the facts. One finding a fault: what cannot be seen because a privilege is missing is told by that.
"""

from __future__ import annotations

import typing as t
from dataclasses import dataclass, field

from ..findings import Finding, finding
from . import desired, grants, permissions, plan, properties, storage, values
from .guest import Guest

if t.TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

MIB = 1024**2
# What Proxmox takes where a new guest names no storage and no root disk (API2/LXC.pm).
DEFAULT_STORAGE = "local"
DEFAULT_ROOTFS_GIB = 4

Row = t.Mapping[str, t.Any]


@dataclass(frozen=True)
class Facts:
    """What was read, as the API gives it. None is what was not asked for; ``unread`` says why something could not be.

    ``guest`` is None where its node cannot be asked. ``taken_by`` says in words who else has the vmid. ``permissions`` is
    None for root@pam, which needs none.
    """

    nodes: Sequence[Row] = ()
    guest: Guest | None = None
    taken_by: str | None = None
    permissions: grants.Tree | None = None
    storages: Sequence[Row] | None = None
    templates: Sequence[Row] | None = None
    machine: Row | None = None
    bridges: Sequence[Row] | None = None
    unread: Mapping[str, str] = field(default_factory=dict)

    @property
    def hidden(self) -> bool:
        """Whether the identity is known not to see the guest, even if it exists."""
        if self.permissions is None or self.guest is None:
            return False
        return "VM.Audit" not in grants.held(self.permissions, f"/vms/{self.guest.vmid}")

    def container(self, node: str) -> dict[str, t.Any]:
        """The guest as the module returns it; null is what could not be seen."""
        seen = self.guest if not (self.taken_by and self.hidden) else None
        return {
            "exists": seen.exists if seen else None,
            "status": seen.status if seen else None,
            "node": node,
            "hostname": seen.config.get("hostname") if seen else None,
            "lock": seen.lock if seen else None,
        }


def node_trouble(node: str, nodes: Sequence[Row]) -> tuple[str, str, str] | None:
    """Why a node cannot be asked: a finding's id, a severity, and a sentence. None where it is online."""
    row = next((row for row in nodes if row["node"] == node), None)
    if row is None:
        names = storage.nearest(node, (str(row["node"]) for row in nodes))
        return "PVE_NODE_UNKNOWN", "fail", f"Its nodes are {names}."
    if row.get("status") == "online":
        return None
    severity = "fail" if row.get("status") == "offline" else "unknown"
    return "PVE_NODE_OFFLINE", severity, f"Its status is '{row.get('status', 'unknown')}'."


def judge(params: Mapping[str, t.Any], identity: str, facts: Facts) -> list[Finding]:
    """All that is wrong, in the order in which it would be met."""
    return list(_Judgement(params, identity, facts).findings())


def template_of(params: Mapping[str, t.Any]) -> tuple[str, str] | None:
    """Storage and file of the declared template, None where there is none or it cannot be read."""
    found = values.TEMPLATE.fullmatch(params.get("ostemplate") or "")
    return (found["storage"], found["file"]) if found else None


class _Judgement:
    """One declaration and the facts, with what follows from both."""

    def __init__(self, params: Mapping[str, t.Any], identity: str, facts: Facts) -> None:
        self.params = params
        self.identity = identity
        self.facts = facts
        self.node: str = params["node"]
        self.vmid: int = params["vmid"]
        self.subject = f"container '{self.vmid}'"
        self.guest = facts.guest or Guest(self.vmid, self.node)
        self.refused_values = values.faults(params)
        refused = {option for option, _ in self.refused_values}
        # What has a wrong value is left out of everything else, so that one mistake is told once.
        self.sound = {name: None if name in refused else value for name, value in params.items()}
        self.unprivileged = self.guest.unprivileged if self.guest.exists else params.get("unprivileged") is not False
        self.is_new = facts.guest is not None and not self.guest.exists and not facts.taken_by
        self.changes = self._changes()
        self.root_only = permissions.refused(identity, self.changes, self.unprivileged, self.guest.declared)
        self.disks = self._disks()

    def findings(self) -> Iterator[Finding]:
        yield from self._values()
        yield from self._node()
        yield from self._vmid()
        if self.facts.guest is None:
            return
        yield from self._guest()
        yield from self._identity()
        yield from self._storages()
        yield from self._machine()
        yield from self._network()

    # --- what follows ---

    def _changes(self) -> dict[str, t.Any]:
        """The keys that would be set (or, with None, deleted), less those with a wrong value."""
        if self.facts.guest is None or self.facts.taken_by:
            return {}
        changes = plan.plan(self.guest.declared, desired.configuration(self.sound, self.guest))
        keys: dict[str, t.Any] = {**changes.set, **dict.fromkeys(changes.delete)}
        if self.is_new and not (self.params.get("rootfs") and self.sound["rootfs"] is None):
            rootfs = self.sound.get("rootfs") or {
                "storage": self.params.get("storage") or DEFAULT_STORAGE,
                "size_gib": DEFAULT_ROOTFS_GIB,
            }
            keys["rootfs"] = f"{rootfs['storage']}:{rootfs['size_gib']}"
        return keys

    def _disks(self) -> dict[str, int]:
        """GiB that would be allocated, by storage."""
        sizes: dict[str, int] = {}
        for key, value in self.changes.items():
            if key == "rootfs" or key.startswith("mp"):
                name, _, size = properties.parse(str(value), "volume")["volume"].partition(":")
                sizes[name] = sizes.get(name, 0) + int(size)
        return sizes

    def _lacks(self, path: str, *privileges: str) -> bool:
        """Whether the identity is known to have none of the privileges on a path."""
        tree = self.facts.permissions
        return tree is not None and not grants.held(tree, path) & set(privileges)

    # --- faults ---

    def _values(self) -> Iterator[Finding]:
        for _, text in self.refused_values:
            yield finding("PVE_VALUE_REFUSED", self.subject, f"{text}.")
        if self.is_new and not self.params.get("ostemplate"):
            text = "'ostemplate' is not given, and the container does not exist; it must be STORAGE:vztmpl/FILE."
            yield finding("PVE_VALUE_REFUSED", self.subject, text)

    def _node(self) -> Iterator[Finding]:
        if trouble := node_trouble(self.node, self.facts.nodes):
            fault, severity, text = trouble
            yield finding(fault, f"node '{self.node}'", text, severity)

    def _vmid(self) -> Iterator[Finding]:
        cluster = {str(row["node"]) for row in self.facts.nodes} | {self.node}
        for other in self.params.get("others") or []:
            if other["vmid"] == self.vmid and other["node"] in cluster:
                where = "the same node" if other["node"] == self.node else f"node '{other['node']}' of the same cluster"
                text = f"'{other['name']}' on {where} is declared with {self.vmid} too."
                yield finding("PVE_VMID_TWICE", self.subject, text)
        # Without VM.Audit it may well be this guest itself that has it.
        if self.facts.taken_by and not self.facts.hidden:
            yield finding("PVE_VMID_TAKEN", self.subject, f"It belongs to {self.facts.taken_by}.")

    def _guest(self) -> Iterator[Finding]:
        guest = self.guest
        if not guest.exists:
            return
        if guest.lock:
            text = f"Its lock is '{guest.lock}'; Slipway waits for it before it changes anything."
            yield finding("PVE_GUEST_LOCKED", self.subject, text, "warn")
        if properties.truth(guest.config.get("template", 0)):
            yield finding("PVE_GUEST_IS_TEMPLATE", self.subject, f"It is '{guest.config.get('hostname', self.vmid)}'.")
        declared = self.params.get("unprivileged")
        if declared is not None and declared != guest.unprivileged:
            kinds = {True: "unprivileged", False: "privileged"}
            text = f"It is {kinds[guest.unprivileged]}, declared is {kinds[declared]}."
            yield finding("PVE_GUEST_OTHER_PRIVILEGES", self.subject, text)

    def _identity(self) -> Iterator[Finding]:
        if self.root_only and not self.params["root_over_ssh"]:
            told = permissions.sentence(self.identity, self.changes, self.unprivileged, self.guest.declared)
            yield finding("PVE_ROOT_ONLY_KEYS", self.subject, f"{told}.")
        if self.identity == permissions.ROOT or (self.facts.taken_by and not self.facts.hidden):
            return
        if self.facts.permissions is None:
            yield self._unread("permissions", f"privileges of '{self.identity}'")
            return
        for path, needs in grants.missing(self.facts.permissions, self._needs()).items():
            text = grants.sentence(self.identity, path, needs)
            yield finding("PVE_PRIVILEGE_MISSING", f"'{self.identity}'", text)

    def _needs(self) -> list[grants.Need]:
        template = template_of(self.params) if self.is_new else None
        return grants.needed(
            self.node,
            self.guest,
            {key: value for key, value in self.changes.items() if key not in self.root_only},
            creating=self.is_new,
            unprivileged=self.unprivileged,
            storages=self.disks,
            template_storage=template[0] if template else None,
            vnets=[str(row["iface"]) for row in self.facts.bridges or [] if row.get("type") == "vnet"],
        )

    def _storages(self) -> Iterator[Finding]:
        """Whether each storage can take what is to lie on it: disks, and the template of a guest that is new."""
        template = template_of(self.params) if self.is_new else None
        names = {*self.disks, *([template[0]] if template else [])}
        rows = self.facts.storages
        if names and rows is None:
            yield self._unread("storages", f"storages of node '{self.node}'")
        for name in sorted(names) if rows is not None else []:
            # One that the identity may not use is not listed. Of such a one the missing privilege is told.
            if self._lacks(f"/storage/{name}", "Datastore.Audit", "Datastore.AllocateSpace"):
                continue
            wish = storage.Wish(self.disks.get(name, 0), bool(template and template[0] == name))
            subject = f"storage '{name}' of node '{self.node}'"
            yield from storage.faults(subject, name, wish, rows or [], self._template_bytes())
        if template and "templates" in self.facts.unread:
            yield self._unread("templates", f"templates of storage '{template[0]}'")
        # Without templates the storage could not be asked, which is told of the storage.
        elif template and self.facts.templates is not None:
            yield from storage.missing_template(self.node, *template, self.facts.templates)

    def _template_bytes(self) -> int:
        found = (row for row in self.facts.templates or [] if row["volid"] == self.params.get("ostemplate"))
        return int(next(found, {}).get("size") or 0)

    def _machine(self) -> Iterator[Finding]:
        machine = self.facts.machine
        if machine is None:
            if not self._lacks(f"/nodes/{self.node}", "Sys.Audit"):
                yield self._unread("machine", f"memory and CPUs of node '{self.node}'")
            return
        for option, fault, key in (
            ("memory_mib", "PVE_MEMORY_EXCEEDED", "memory"),
            ("swap_mib", "PVE_SWAP_EXCEEDED", "swap"),
        ):
            total = (machine.get(key) or {}).get("total")
            declared = self.sound.get(option) or 0
            if total is not None and declared * MIB > int(total):
                text = f"'{option}' is {declared}, and node '{self.node}' has {int(total) // MIB} MiB of {key}."
                yield finding(fault, self.subject, text)
        cpus = int((machine.get("cpuinfo") or {}).get("cpus") or 0)
        declared = self.sound.get("cores") or 0
        if cpus and declared > cpus:
            text = f"'cores' is {declared}, and node '{self.node}' has {cpus} CPUs."
            yield finding("PVE_CPUS_EXCEEDED", self.subject, text)

    def _network(self) -> Iterator[Finding]:
        networks = self.params.get("net") or []
        for network in networks:
            for fault, text in values.addresses(network):
                yield finding(fault, self.subject, f"{text}.")
        bridges = dict.fromkeys(network["bridge"] for network in networks if values.is_interface(network.get("bridge")))
        if bridges and self.facts.bridges is None:
            yield self._unread("bridges", f"bridges of node '{self.node}'")
            return
        there = [str(row["iface"]) for row in self.facts.bridges or []]
        for bridge in bridges:
            # One that the identity may not use is not listed. Of such a one the missing privilege is told.
            if bridge not in there and not self._lacks(f"{grants.BRIDGES}/{bridge}", "SDN.Use", "SDN.Audit"):
                text = f"Node '{self.node}' has {storage.nearest(bridge, there)}."
                yield finding("PVE_BRIDGE_UNKNOWN", f"bridge '{bridge}' of {self.subject}", text)

    def _unread(self, what: str, subject: str) -> Finding:
        cause = self.facts.unread.get(what, "it was not asked for")
        return finding("CHECK_NOT_MADE", subject, f"{cause.rstrip('.')}.")
