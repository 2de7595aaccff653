# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing a container to a state: read, plan, check what the identity may do, write, wait, read again."""

from __future__ import annotations

import typing as t

from ..errors import SlipwayError, cannot
from ..findings import Finding, finding
from . import api, clones, desired, devices, guest, lookup, ownership, permissions, power, properties, tasks
from .client import DONE, Client, doing
from .outcome import Outcome
from .plan import Plan, plan

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .client import Worked


class Container:
    """One container on one node, and the work on it."""

    def __init__(self, client: Client, params: Mapping[str, t.Any], check_mode: bool) -> None:
        self.client = client
        self.params = params
        self.check_mode = check_mode
        self.vmid: int = params["vmid"]
        self.node: str = params["node"]
        self.outcome = Outcome()
        self.guest = lookup.find(client, self.node, self.vmid)
        # Whether what was written since makes ``guest`` out of date; what Proxmox said of its status after that.
        self.stale = False
        self.row: Mapping[str, t.Any] | None = None
        # In check mode, what the guest would be like.
        self.foreseen: guest.Guest | None = None

    def ensure(self) -> dict[str, t.Any]:
        """Bring the container to ``params["state"]`` and return the module's result. Raises SlipwayError."""
        state = self.params["state"]
        if state == "absent":
            if self.guest.exists:
                self._destroy()
            return self._result()
        if self.guest.exists:
            self._refuse_wrong_state(state)
            self._update()
        elif self.params.get("clone"):
            self._clone()
        else:
            self._create()
        if state == "template":
            self._make_template()
        else:
            self._power(state)
        return self._result()

    # --- reading ---

    def _refresh(self) -> None:
        """Read the guest again if anything was written since. It exists, so one call asks for it and not for all."""
        if not self.stale:
            return
        with self._doing("read"):
            row = self.row or api.status(self.client, self.node, self.vmid)
            self.guest = lookup.described(self.client, self.node, self.vmid, row)
        self.stale, self.row = False, None

    def _wait_until_unlocked(self) -> None:
        self._refresh()
        self.guest = lookup.unlocked(self.client, "change", self.guest, self.params["timeout_seconds"])

    # --- writing ---

    def _create(self) -> None:
        if not self.params.get("ostemplate"):
            raise self._cannot(
                "find",
                "it does not exist, and without 'ostemplate' or 'clone' it cannot be made",
                "Give 'ostemplate', as in local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst",
            )
        wanted = self._desired(self.guest)
        first = desired.creation(self.params)
        # Proxmox makes a container unprivileged unless told otherwise.
        unprivileged = first.get("unprivileged", 1) == 1
        to_set = self._permitted(plan({}, wanted), unprivileged, {}).set
        self.outcome.note({"status": "absent"}, {"status": "stopped", **first, **to_set})
        self.foreseen = guest.Guest(self.vmid, self.node, config={**first, **to_set})
        if self.check_mode:
            return
        with self._doing("create"):
            worked = self._look_up("vzcreate", self._is_there)
            self._run(lambda: api.create(self.client, self.node, {**first, **to_set}, worked))
        self.guest = guest.Guest(self.vmid, self.node, "stopped", dict(to_set), dict(to_set))
        self.stale = True
        if devices.numbered(to_set, "dev"):
            self._refresh()
            with self._doing("keep the record of"):
                self._owned().settle()

    def _clone(self) -> None:
        clone = self.params["clone"]
        with self._doing("clone"):
            source = clones.read(self.client, self.node, clone)
        if source is None:
            raise self._cannot(
                "clone",
                f"there is no container '{clone['vmid']}' on this node",
                "Correct clone.vmid, or move the source to this node",
            )
        for obstacle in clones.obstacles(source, self.params):
            raise self._obstructed(obstacle)
        # The clone as it will be, so that what may not be changed of it is found before it is made.
        config = clones.expected(source, self.params)
        future = guest.Guest(self.vmid, self.node, "stopped", config, config)
        changes = self._permitted(plan(config, self._desired(future)), source.unprivileged, config)
        kept = {key: value for key, value in config.items() if key not in changes.delete}
        kept |= {disk.key: disk.grown for disk in self._growth(future)}
        with self._doing("clone"):
            kind = "copy" if clones.is_full(source, clone) else "clone"
            if not api.feature(self.client, self.node, source.vmid, kind, source.snapshot):
                raise self._obstructed(clones.impossible(source, self.params))
        self.outcome.note({"status": "absent"}, {"status": "stopped", "clone": dict(clone), **kept, **changes.after})
        self.foreseen = guest.Guest(self.vmid, self.node, config={**kept, **changes.after})
        if self.params.get("ssh_public_keys"):
            self.outcome.warnings.append("ssh_public_keys were not set: a clone lets in whom its source lets in")
        if self.check_mode:
            return
        with self._doing("clone"):
            # Its task is one of the source.
            worked = tasks.look_up(self.client, self.node, source.vmid, "vzclone", self._is_there)
            arguments = clones.arguments(source, self.params)
            self._run(lambda: api.clone(self.client, self.node, source.vmid, arguments, worked))
            made = api.config(self.client, self.node, self.vmid)
        self.guest = guest.from_answers(self.vmid, self.node, {"status": "stopped"}, made, [])
        self._configure(noted=True)

    def _update(self) -> None:
        if self.guest.lock == "create" and not self.check_mode:
            # A run before was killed and its task goes on; until its end the configuration says nothing.
            self._wait_until_unlocked()
        self._refuse_other_privileges()
        self._configure()

    def _configure(self, noted: bool = False) -> None:
        """Set what differs, then let disks grow. ``noted``: that the guest is made is a change already."""
        owned = self._owned()
        changes = self._changes(owned)
        if self.guest.lock and not self.check_mode and (changes or self._growth(self.guest)):
            self._wait_until_unlocked()
            changes = self._changes(owned)
        self.outcome.warnings += desired.unlike(self.params, self.guest)
        changes = self._permitted(changes, self.guest.unprivileged, self.guest.declared)
        if changes and not noted:
            self.outcome.note(changes.before, changes.after)
        if self.check_mode:
            self.outcome.foretold = changes.waits_for_restart() if self.guest.running else []
        else:
            self._write(changes, owned)
        for disk in self._growth(self.guest):
            if not noted:
                self.outcome.note({disk.key: disk.value}, {disk.key: disk.grown})
            if not self.check_mode:
                self._grow(disk)

    def _write(self, changes: Plan, owned: ownership.Devices) -> None:
        if changes:
            with self._doing("keep the record of"):
                owned.foresee()
            with self._doing("configure"):
                api.update(
                    self.client,
                    self.node,
                    self.vmid,
                    changes.set,
                    changes.delete,
                    self.guest.digest,
                    lambda: DONE if not self._remaining(owned) else None,
                )
            self.stale = True
        with self._doing("keep the record of"):
            owned.settle()

    def _growth(self, of: guest.Guest) -> list[desired.Disk]:
        return desired.growth(self.params, of) if self.params.get("grow_disks") else []

    def _grow(self, disk: desired.Disk) -> None:
        self._refresh()
        digest = self.guest.digest
        worked = self._look_up("resize", lambda: disk.key not in [left.key for left in self._growth_now()])
        size_gib = disk.declared["size_gib"]
        with self._doing(f"grow {disk.name} of"):
            self._run(lambda: api.resize(self.client, self.node, self.vmid, disk.key, size_gib, digest, worked))
        self.stale = True

    def _destroy(self) -> None:
        if not self.check_mode:
            self._wait_until_unlocked()
        if properties.truth(self.guest.config.get("protection")):
            raise self._cannot(
                "destroy",
                "it is protected",
                f"If it is to go, run 'pct set {self.vmid} --protection 0' on the node first",
            )
        self.outcome.note({"status": self.guest.status, **self.guest.config}, {"status": "absent"})
        if self.check_mode:
            return
        with self._doing("destroy"):
            if self.guest.running:
                stopped = power.stop(self.client, self.node, self.vmid, self.params["timeout_seconds"])
                self.outcome.note_task(stopped, self._name)
            purge = bool(self.params.get("purge"))
            worked = self._look_up("vzdestroy", lambda: not self._is_there())
            self._run(lambda: api.destroy(self.client, self.node, self.vmid, purge, worked))
        self.guest = guest.Guest(self.vmid, self.node)

    def _power(self, state: str) -> None:
        was = self.guest.status if self.guest.exists else "stopped"
        to_run = state in ("started", "restarted")
        if state == "present" or (state != "restarted" and was == ("running" if to_run else "stopped")):
            return
        self.outcome.note({"status": was}, {"status": "running" if to_run else "stopped"})
        if state == "restarted" and was == "running":
            self.outcome.after["status"] = "running, restarted"
        if self.check_mode:
            return
        if self.guest.lock:
            self._wait_until_unlocked()
        work = power.start if to_run else power.shut_down
        if state == "restarted" and was == "running":
            work = power.reboot
        with self._doing({"started": "start", "restarted": "restart", "stopped": "stop"}[state]):
            done = work(self.client, self.node, self.vmid, self.params["timeout_seconds"])
        self.outcome.note_task(done.task, self._name)
        self.outcome.findings += done.findings
        self.stale, self.row = True, done.row

    def _make_template(self) -> None:
        if self.guest.template:
            return
        self.outcome.note({"template": 0}, {"template": 1})
        if self.foreseen:
            self.foreseen.config["template"] = 1
        if self.check_mode:
            return
        if self.guest.lock:
            self._wait_until_unlocked()
        with self._doing("make a template of"):
            api.make_template(
                self.client,
                self.node,
                self.vmid,
                lambda: DONE if lookup.read(self.client, self.node, self.vmid).template else None,
            )
            # The call answers before the task behind it has done the work, and without its UPID.
            for row in api.tasks_of_guest(self.client, self.node, self.vmid, "vztemplate")[:1]:
                task = tasks.wait(self.client, row["upid"], self.params["timeout_seconds"])
                self.outcome.note_task(task, self._name)
            self.guest, self.stale = lookup.read(self.client, self.node, self.vmid), False
        if not self.guest.template:
            raise self._cannot(
                "make a template of",
                "the order was taken, and it is no template",
                "See its last task vztemplate in the node's task list",
            )

    def _run(self, send: t.Callable[[], t.Any]) -> None:
        self.outcome.note_task(tasks.run(self.client, send, self.params["timeout_seconds"]), self._name)

    # --- what was done, where the answer was lost ---

    def _look_up(self, kind: str, done: t.Callable[[], bool]) -> Worked:
        return tasks.look_up(self.client, self.node, self.vmid, kind, done)

    def _is_there(self) -> bool:
        return any(int(row["vmid"]) == self.vmid for row in api.containers(self.client, self.node))

    def _remaining(self, owned: ownership.Devices) -> Plan:
        """What is still to be changed, by what the guest is now."""
        self.guest = lookup.read(self.client, self.node, self.vmid)
        return self._changes(owned).without(self.outcome.deferred)

    def _growth_now(self) -> list[desired.Disk]:
        self.guest = lookup.read(self.client, self.node, self.vmid)
        return self._growth(self.guest)

    # --- deciding ---

    def _desired(self, of: guest.Guest) -> dict[str, desired.Value]:
        try:
            return desired.configuration(self.params, of)
        except ValueError as error:
            raise self._cannot("configure", str(error), "Correct the option") from error

    def _changes(self, owned: ownership.Devices) -> Plan:
        return plan(self.guest.declared, {**self._desired(self.guest), **dict.fromkeys(owned.obsolete(self.guest))})

    def _owned(self) -> ownership.Devices:
        with self._doing("read the record of"):
            return ownership.Devices(self.client, self.guest, self._device_paths)

    def _permitted(self, changes: Plan, unprivileged: bool, current: Mapping[str, t.Any]) -> Plan:
        """The changes less those that are for root@pam alone; these are deferred, or the reason not to begin."""
        asked = {**changes.set, **dict.fromkeys(changes.delete)}
        refused = permissions.refused(self.client.identity, asked, unprivileged, current)
        if not refused:
            return changes
        if self.params["defer_root_only"]:
            self.outcome.deferred = sorted(refused)
            return changes.without(refused)
        reasons = "; ".join(f"{key}: {reason}" for key, reason in sorted(refused.items()))
        raise self._cannot(
            "configure",
            f"'{self.client.identity}' may not set {', '.join(sorted(refused))} ({reasons})",
            f"{permissions.WAY_OUT}. With defer_root_only the others are set now and these are returned in 'deferred'",
            [finding("PVE_ROOT_ONLY_KEYS", self._name, reasons)],
        )

    def _refuse_wrong_state(self, state: str) -> None:
        """What cannot be from what there is, found before anything is written."""
        if self.guest.template and state in ("started", "restarted"):
            raise self._cannot(
                "start",
                "it is a template, and Proxmox starts none",
                "Declare state template, or make a clone of it (clone.vmid)",
                [
                    finding(
                        "PVE_GUEST_IS_TEMPLATE", self._name, f"It is '{self.guest.config.get('hostname', self.vmid)}'."
                    )
                ],
            )
        if self.guest.template or state != "template":
            return
        if self.guest.running:
            raise self._cannot(
                "make a template of", "it runs", "Stop it first (state: stopped); a template can never run again"
            )
        with self._doing("read"):
            names = [
                row["name"] for row in api.snapshots(self.client, self.node, self.vmid) if row["name"] != "current"
            ]
        if names:
            raise self._cannot(
                "make a template of",
                f"it has snapshots ({', '.join(names)}), and a template can have none",
                "Remove them first (pve_snapshot, state: absent)",
            )

    def _obstructed(self, obstacle: clones.Obstacle) -> SlipwayError:
        found = [obstacle.finding] if obstacle.finding else []
        return self._cannot("clone", obstacle.cause, obstacle.remedy, found)

    def _refuse_other_privileges(self) -> None:
        wanted = self.params.get("unprivileged")
        if wanted is not None and wanted != self.guest.unprivileged:
            kinds = {True: "unprivileged", False: "privileged"}
            raise self._cannot(
                "configure",
                f"it is {kinds[self.guest.unprivileged]}, declared is {kinds[wanted]}, and Proxmox fixes this at creation",
                "Declare what it is, or make it anew (state absent, then present)",
            )

    # --- telling ---

    def _result(self) -> dict[str, t.Any]:
        self._refresh()
        outcome = self.outcome
        # In check mode there is no new container yet, so what it would be stands for it.
        shown = self.foreseen if self.foreseen and not self.guest.exists else self.guest
        pending = sorted({*self.guest.pending, *outcome.foretold})
        if self.check_mode and outcome.changed and self.guest.lock:
            outcome.findings.append(finding("PVE_GUEST_LOCKED", self._name, f"lock: {self.guest.lock}", "warn"))
        return {
            **outcome.told(),
            "container": shown.facts(),
            "pending": pending,
            "restart_required": self.guest.running and bool(pending),
            "deferred": outcome.deferred,
            "unmanaged": ownership.unmanaged(self.guest, self._device_paths),
            "warnings": outcome.warnings,
        }

    def _doing(self, verb: str) -> t.ContextManager[None]:
        return doing(verb, self._name, self.node)

    def _cannot(self, verb: str, cause: str, remedy: str, findings: Sequence[Finding] = ()) -> SlipwayError:
        return cannot(verb, self._name, self.node, cause, remedy, findings)

    @property
    def _device_paths(self) -> list[str] | None:
        declared = self.params.get("devices")
        return None if declared is None else [device["path"] for device in declared]

    @property
    def _name(self) -> str:
        return f"container '{self.vmid}'"
