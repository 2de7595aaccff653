# SPDX-License-Identifier: GPL-3.0-or-later
"""Bringing a container to a state: read, plan, check what the identity may do, write, wait, read again."""

from __future__ import annotations

import time
import typing as t
from dataclasses import dataclass, field

from ..errors import SlipwayError, cannot
from ..findings import Finding, finding
from . import api, desired, guest, lookup, permissions, properties, tasks
from .client import ApiError, Client, doing
from .plan import Plan, plan

if t.TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

# What a container gets to shut down in. More than Proxmox's own 60: a server in it may use the whole stop time of its unit.
SHUTDOWN_SECONDS = 180


@dataclass
class Outcome:
    """What was done, gathered on the way; becomes the module's result."""

    changed: bool = False
    before: dict[str, t.Any] = field(default_factory=dict)
    after: dict[str, t.Any] = field(default_factory=dict)
    task: str | None = None
    deferred: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    # Keys that check mode says would wait for a restart.
    foretold: list[str] = field(default_factory=list)

    def note(self, before: Mapping[str, t.Any], after: Mapping[str, t.Any]) -> None:
        """Record a change, for ``changed`` and the diff."""
        self.changed = True
        self.before = {**before, **self.before}
        self.after.update(after)


class Container:
    """One container on one node, and the work on it."""

    def __init__(self, client: Client, params: Mapping[str, t.Any], check_mode: bool) -> None:
        self.client = client
        self.params = params
        self.check_mode = check_mode
        self.vmid: int = params["vmid"]
        self.node: str = params["node"]
        self.outcome = Outcome()
        self.guest = self._read()

    def ensure(self) -> dict[str, t.Any]:
        """Bring the container to ``params["state"]`` and return the module's result. Raises SlipwayError."""
        state = self.params["state"]
        if state == "absent":
            if self.guest.exists:
                self._destroy()
        else:
            self._create() if not self.guest.exists else self._update()
            self._power(state)
        return self._result()

    # --- reading ---

    def _read(self) -> guest.Guest:
        return lookup.find(self.client, self.node, self.vmid)

    def _wait_until_unlocked(self) -> None:
        """Wait for the lock of a task that is at work on the guest: creation of a run before, a backup, a snapshot."""
        deadline = time.monotonic() + self.params["timeout_seconds"]
        while self.guest.lock:
            if time.monotonic() >= deadline:
                raise self._cannot(
                    "change",
                    f"it is locked ({self.guest.lock})",
                    f"Wait for the task that holds it; if none runs any more, run 'pct unlock {self.vmid}' on the node",
                    [finding("PVE_GUEST_LOCKED", self._name, f"lock: {self.guest.lock}")],
                )
            time.sleep(tasks.LONGEST_PAUSE_SECONDS)
            self.guest = self._read()

    # --- writing ---

    def _create(self) -> None:
        if not self.params.get("ostemplate"):
            raise self._cannot(
                "find",
                "it does not exist, and without 'ostemplate' it cannot be made",
                "Give 'ostemplate', as in local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst",
            )
        wanted = self._desired()
        first = desired.creation(self.params)
        # Proxmox makes a container unprivileged unless told otherwise.
        unprivileged = first.get("unprivileged", 1) == 1
        to_set = self._permitted(plan({}, wanted), unprivileged).set
        self.outcome.note({"status": "absent"}, {"status": "stopped", **first, **to_set})
        if self.check_mode:
            return
        with self._doing("create"):
            self._wait(api.create(self.client, self.node, {**first, **to_set}))
        self.guest = self._read()

    def _update(self) -> None:
        changes = plan(self.guest.declared, self._desired())
        if self.guest.lock and not self.check_mode and (changes or self.guest.lock == "create"):
            self._wait_until_unlocked()
            changes = plan(self.guest.declared, self._desired())
        self._refuse_other_privileges()
        self.outcome.warnings += desired.unlike(self.params, self.guest)
        changes = self._permitted(changes, self.guest.unprivileged)
        if not changes:
            return
        self.outcome.note(changes.before, changes.after)
        if self.check_mode:
            self.outcome.foretold = changes.waits_for_restart() if self.guest.running else []
            return
        with self._doing("configure"):
            api.update(self.client, self.node, self.vmid, changes.set, changes.delete, self.guest.digest)
        self.guest = self._read()

    def _destroy(self) -> None:
        if not self.check_mode:
            self._wait_until_unlocked()
        if properties.truth(self.guest.config.get("protection")):
            raise self._cannot(
                "destroy",
                "it is protected",
                f"If it is to go, run 'pct set {self.vmid} --protection 0' on the node first",
            )
        self.outcome.note({"status": self.guest.status}, {"status": "absent"})
        if self.check_mode:
            return
        with self._doing("destroy"):
            if self.guest.running:
                self._wait(api.stop(self.client, self.node, self.vmid))
            self._wait(api.destroy(self.client, self.node, self.vmid, bool(self.params.get("purge"))))
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
        self._wait_until_unlocked()
        with self._doing({"started": "start", "restarted": "restart", "stopped": "stop"}[state]):
            patience = min(SHUTDOWN_SECONDS, self.params["timeout_seconds"])
            if not to_run:
                self._wait(api.shutdown(self.client, self.node, self.vmid, patience))
            elif was == "running":
                self._wait(api.reboot(self.client, self.node, self.vmid, patience))
            else:
                self._wait(api.start(self.client, self.node, self.vmid))
            self._wait_for_status("running" if to_run else "stopped")
        self.guest = self._read()

    def _wait(self, answer: t.Any) -> None:
        task = tasks.wait(self.client, answer, self.params["timeout_seconds"])
        self.outcome.task = task.upid
        if task.exit_status != "OK":
            detail = "\n".join(task.warnings) or task.exit_status
            self.outcome.findings.append(finding("PVE_TASK_WARNINGS", self._name, detail))

    def _wait_for_status(self, wanted: str) -> None:
        """A reboot's task ends when the guest is down; the node's hook starts it again after that."""
        deadline = time.monotonic() + self.params["timeout_seconds"]
        pause = tasks.FIRST_PAUSE_SECONDS
        while api.status(self.client, self.node, self.vmid).get("status") != wanted:
            if time.monotonic() >= deadline:
                raise ApiError(
                    f"its task ended well, but it is not {wanted} after {self.params['timeout_seconds']} seconds",
                    f"Look at 'pct start {self.vmid} --debug' on the node, and whether high availability manages it",
                )
            time.sleep(pause)
            pause = min(pause * 1.5, tasks.LONGEST_PAUSE_SECONDS)

    # --- deciding ---

    def _desired(self) -> dict[str, desired.Value]:
        try:
            return desired.configuration(self.params, self.guest)
        except ValueError as error:
            raise self._cannot("configure", str(error), "Correct the option") from error

    def _permitted(self, changes: Plan, unprivileged: bool) -> Plan:
        """The changes less those that are for root@pam alone; these are deferred, or the reason not to begin."""
        asked = {**changes.set, **dict.fromkeys(changes.delete)}
        refused = permissions.refused(self.client.identity, asked, unprivileged, self.guest.declared)
        if not refused:
            return changes
        if self.params["defer_root_only"]:
            self.outcome.deferred = sorted(refused)
            return changes.without(refused)
        reasons = "; ".join(f"{key}: {reason}" for key, reason in sorted(refused.items()))
        raise self._cannot(
            "configure",
            f"'{self.client.identity}' may not set {', '.join(sorted(refused))} ({reasons})",
            "Set these with api_backend ssh_paramiko (root on the node) or the password of root@pam; a token never may, "
            "not even root's. With defer_root_only the others are set now and these are returned in 'deferred'",
            [finding("PVE_ROOT_ONLY_KEYS", self._name, reasons)],
        )

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
        outcome = self.outcome
        container = self.guest.facts()
        if not self.guest.exists and outcome.after.get("status", "absent") != "absent":
            # Check mode: there is no container yet, so what is declared stands for it.
            declared = {key: value for key, value in outcome.after.items() if key != "status"}
            container = guest.Guest(self.vmid, self.node, config=declared).facts()
        pending = sorted({*self.guest.pending, *outcome.foretold})
        return {
            "changed": outcome.changed,
            "diff": {"before": outcome.before, "after": outcome.after},
            "container": container,
            "pending": pending,
            "restart_required": self.guest.running and bool(pending),
            "task": outcome.task,
            "deferred": outcome.deferred,
            "findings": [item.as_dict() for item in outcome.findings],
            "warnings": outcome.warnings,
        }

    def _doing(self, verb: str) -> t.ContextManager[None]:
        return doing(verb, self._name, self.node)

    def _cannot(self, verb: str, cause: str, remedy: str, findings: Sequence[Finding] = ()) -> SlipwayError:
        return cannot(verb, self._name, self.node, cause, remedy, findings)

    @property
    def _name(self) -> str:
        return f"container '{self.vmid}'"
