# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing the snapshots of a container to a state, and the container to one of its snapshots."""

from __future__ import annotations

import contextlib
import typing as t

from ..errors import SlipwayError, cannot
from ..findings import Finding, finding
from . import api, lookup, power, snapshots, tasks
from .client import ApiError, Client, doing
from .outcome import Outcome

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .client import Worked


class Snapshots:
    """The snapshots of one container, and the work on them."""

    def __init__(self, client: Client, params: Mapping[str, t.Any], check_mode: bool) -> None:
        self.client = client
        self.params = params
        self.check_mode = check_mode
        self.vmid: int = params["vmid"]
        self.node: str = params["node"]
        self.name: str = params["name"]
        self.prefix: str = params.get("keep_prefix") or ""
        self.outcome = Outcome()
        self.guest = lookup.find(client, self.node, self.vmid)
        self.there: list[snapshots.Snapshot] = []

    def ensure(self) -> dict[str, t.Any]:
        """Bring the snapshot, or the container, to ``params["state"]`` and return the module's result. Raises SlipwayError."""
        if fault := snapshots.wrong_name(self.name, self.prefix if self.params["state"] == "present" else ""):
            raise self._cannot("use", fault, "Correct the option")
        if self.params.get("keep") is not None and self.params["keep"] < 1:
            raise self._cannot(
                "make", "'keep' must be 1 or more, since this one is among those that are kept", "Correct it"
            )
        state = self.params["state"]
        if not self.guest.exists:
            self._without_guest(state)
            return self._result()
        self._read()
        nothing_to_do = state == "absent" and self._existing is None
        if self.guest.lock and not self.check_mode and not nothing_to_do:
            # The task of a run before that was killed may be making this very snapshot.
            self.guest = lookup.unlocked(self.client, "change", self.guest, self.params["timeout_seconds"])
            self._read()
        {"present": self._present, "absent": self._absent, "rolled_back": self._roll_back}[state]()
        if self.outcome.changed and not self.check_mode:
            self._read()
        return self._result()

    def _without_guest(self, state: str) -> None:
        if state == "present" and self.check_mode:
            # The guest would be made by a task before this one.
            self.outcome.note({"snapshots": {}}, {"snapshots": {self.name: self._description}})
        elif state != "absent":
            raise self._cannot("find", "it does not exist", "Make the container first, or correct node and vmid")

    def _read(self) -> None:
        with self._doing("read the snapshots of"):
            self.there = snapshots.from_rows(api.snapshots(self.client, self.node, self.vmid))

    @property
    def _existing(self) -> snapshots.Snapshot | None:
        return next((one for one in self.there if one.name == self.name), None)

    @property
    def _description(self) -> str:
        return (self.params.get("description") or "").rstrip()

    # --- states ---

    def _present(self) -> None:
        if self._existing is None and not self.check_mode:
            self._wait_for_others()
        existing = self._existing
        told = {one.name: one.description for one in self.there}
        wanted = dict(told)
        if existing is None:
            self._refuse_impossible()
            wanted[self.name] = self._description
        else:
            self._refuse_unfinished(existing)
            if self.params.get("description") is not None:
                wanted[self.name] = self._description
        gone = []
        if self.params.get("keep") is not None:
            gone = snapshots.old(self.there, self.name, self.params["keep"], self.prefix)
        wanted = {name: text for name, text in wanted.items() if name not in [one.name for one in gone]}
        if wanted != told:
            self.outcome.note({"snapshots": told}, {"snapshots": wanted})
        if self.check_mode:
            return
        if existing is None:
            text = snapshots.marked(self.params.get("description"))
            worked = self._look_up("vzsnapshot", lambda: self.name in self._names())
            self._do("make", lambda: api.make_snapshot(self.client, self.node, self.vmid, self.name, text, worked))
        elif wanted[self.name] != existing.description:
            text = snapshots.marked(self._description) if existing.ours else self._description
            with self._doing("describe"):
                # To do it twice does no harm.
                api.describe_snapshot(self.client, self.node, self.vmid, self.name, text, lambda: None)
        # Last: as long as there is no new one, the old ones are needed.
        for one in gone:
            self._remove(one.name)

    def _wait_for_others(self) -> None:
        """A task of a run that did not wait for it may be about to make this one, and has locked nothing yet."""
        with self._doing("make"):
            upid = tasks.at_work(self.client, self.node, self.vmid, "vzsnapshot")
            if upid is None:
                return
            with contextlib.suppress(tasks.TaskFailed):  # then there is none, and it is made now
                tasks.wait(self.client, upid, self.params["timeout_seconds"])
        self._read()

    def _absent(self) -> None:
        if self._existing is None:
            return
        told = {one.name: one.description for one in self.there}
        self.outcome.note({"snapshots": told}, {"snapshots": {name: told[name] for name in told if name != self.name}})
        if not self.check_mode:
            self._remove(self.name)

    def _roll_back(self) -> None:
        existing = self._existing
        if existing is None:
            names = ", ".join(one.name for one in self.there) or "none"
            raise self._cannot("roll back to", "there is no such snapshot", f"Name one of those there are: {names}")
        self._refuse_unfinished(existing)
        with self._doing("roll back to"):
            then = api.snapshot_config(self.client, self.node, self.vmid, self.name)
        self._refuse_not_newest(then)
        before, after = snapshots.differences(self.guest.config, then)
        starts = self.params["start"] if self.params.get("start") is not None else self.guest.running
        if self.guest.pending:
            before["pending"], after["pending"] = list(self.guest.pending), []
        # A change also where the configuration is the same: what is on the disks is not known.
        after = {"status": "running" if starts else "stopped", **after, "snapshot": self.name}
        self.outcome.note({"status": self.guest.status, **before}, after)
        if self.check_mode:
            return
        # One that was done is done again, unless it is still at work: it comes to the same.
        worked = self._look_up("vzrollback", lambda: False)
        self._do("roll back to", lambda: api.roll_back(self.client, self.node, self.vmid, self.name, worked))
        if starts:
            with doing("start", f"container '{self.vmid}', which was rolled back to '{self.name}',", self.node):
                done = power.start(self.client, self.node, self.vmid, self.params["timeout_seconds"])
            self.outcome.note_task(done.task, f"container '{self.vmid}'")
            self.outcome.findings += done.findings
        self.guest = lookup.find(self.client, self.node, self.vmid)

    # --- writing ---

    def _remove(self, name: str) -> None:
        worked = self._look_up("vzdelsnapshot", lambda: name not in self._names())
        self._do("remove", lambda: api.remove_snapshot(self.client, self.node, self.vmid, name, worked), name)

    def _look_up(self, kind: str, done: t.Callable[[], bool]) -> Worked:
        return tasks.look_up(self.client, self.node, self.vmid, kind, done)

    def _names(self) -> list[str]:
        return [one.name for one in snapshots.from_rows(api.snapshots(self.client, self.node, self.vmid))]

    def _do(self, verb: str, call: t.Callable[[], t.Any], name: str | None = None) -> None:
        with self._doing(verb, name):
            task = tasks.run(self.client, call, self.params["timeout_seconds"])
        self.outcome.note_task(task, self._subject(name))

    # --- what cannot be ---

    def _refuse_impossible(self) -> None:
        """Ask before making one. What would be left out of a snapshot is never left out silently."""
        if self.guest.template:
            raise self._cannot(
                "make", "the container is a template, which has none", "Take a snapshot of a clone of it"
            )
        with self._doing("make"):
            if api.feature(self.client, self.node, self.vmid, "snapshot"):
                return
        causes = list(snapshots.unfit(self.guest.config, self._storage_kinds()))
        cause = "; ".join(causes) or "Proxmox does not say which of its disks cannot"
        found = finding("PVE_SNAPSHOT_UNSUPPORTED", f"container '{self.vmid}'", f"{cause}.")
        raise self._cannot("make", f"not all of the container can be part of one: {cause}", found.remedy, [found])

    def _refuse_unfinished(self, one: snapshots.Snapshot) -> None:
        if one.unfinished:
            raise self._cannot(
                "use",
                f"a task that was killed left it unfinished ({one.unfinished})",
                f"Remove it on the node with 'pct delsnapshot {self.vmid} {one.name} --force 1', and run again",
            )

    def _refuse_not_newest(self, then: Mapping[str, t.Any]) -> None:
        later = [one.name for one in snapshots.newer(self.there, self.name)]
        if not later:
            return
        kinds = self._storage_kinds()
        used = sorted({snapshots.storage_of(value) for value in snapshots.disks(then).values()} - {""})
        strict = [name for name in used if kinds.get(name) in snapshots.NEWEST_ONLY_KINDS]
        if strict:
            cause = f"there are newer ones ({', '.join(later)}), and {', '.join(strict)} is ZFS, which rolls back to the newest only"
            found = finding(
                "PVE_SNAPSHOT_NOT_NEWEST", f"snapshot '{self.name}' of container '{self.vmid}'", f"{cause}."
            )
            raise self._cannot("roll back to", cause, found.remedy, [found])

    def _storage_kinds(self) -> dict[str, str]:
        try:
            rows = api.storages(self.client, self.node)
        except ApiError as error:
            if error.status is None:
                raise self._cannot("read the storages for", error.cause, error.remedy) from error
            # Who may not see them is told what Proxmox says of the disks.
            return {}
        return {str(row["storage"]): str(row.get("type")) for row in rows}

    # --- telling ---

    def _result(self) -> dict[str, t.Any]:
        if self.check_mode and self.outcome.changed and self.guest.lock:
            subject = f"container '{self.vmid}'"
            self.outcome.findings.append(finding("PVE_GUEST_LOCKED", subject, f"lock: {self.guest.lock}", "warn"))
        snapshots_now = [one.as_dict() for one in self.there]
        return {**self.outcome.told(), "snapshots": snapshots_now, "status": self.guest.status}

    def _subject(self, name: str | None = None) -> str:
        return f"snapshot '{name or self.name}' of container '{self.vmid}'"

    def _doing(self, verb: str, name: str | None = None) -> t.ContextManager[None]:
        return doing(verb, self._subject(name), self.node)

    def _cannot(self, verb: str, cause: str, remedy: str, findings: Sequence[Finding] = ()) -> SlipwayError:
        return cannot(verb, self._subject(), self.node, cause, remedy, findings)
