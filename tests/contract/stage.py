# SPDX-License-Identifier: GPL-3.0-or-later
"""One scenario's way to a node: modules run over it, guests made for it, and these taken away again.

A guest is taken away only if a request from here made it, or may have, and it has the tag of this run.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

from ansible.module_utils.slipway.errors import SlipwayError
from ansible.module_utils.slipway.pve import api, connect, lookup, properties, tasks
from ansible.module_utils.slipway.pve.client import ApiError
from contract.guard import FORGET, RECORD, Guard
from contract.settings import Settings, Unusable

if t.TYPE_CHECKING:
    from ansible.module_utils.slipway.pve.client import Client

Result = dict[str, t.Any]
# (vmid, options of pve_container_raw, check mode) to its result.
Raw = t.Callable[[int, dict[str, t.Any], bool], Result]
ROOT = Path(__file__).resolve().parents[2]
DEFAULTS = {key: spec.get("default") for key, spec in connect.API_OPTIONS.items()}
# Answers as JSON, and nothing else.
PLAIN = {"ANSIBLE_NOCOLOR": "1", "ANSIBLE_CALLBACK_RESULT_FORMAT": "json"}
# What a repetition may cost, and what a change, besides asking for its tasks.
MOST_CALLS = 4
MOST_CALLS_OF_WORK = 12
# Any distribution's template fits.
DISK_GIB = 4
# After what time a guest is there that Proxmox was told to make.
SETTLE_SECONDS = 10


def reach(options: t.Mapping[str, t.Any], timeout_seconds: int) -> Client:
    """Connect as the modules do. Raises SlipwayError."""
    return connect.connect({**DEFAULTS, "timeout_seconds": timeout_seconds, **options})


@dataclass(repr=False)
class Stage:
    """``way`` names one of ``settings.ways``; ``mark`` is the tag of the guests of this run."""

    settings: Settings
    way: str
    mark: str
    run_module: t.Callable[..., Result]
    guard: Guard
    raw: Raw | None = None
    _client: Client | None = None
    # vmids about which this run left a record on the node.
    recorded: set[int] = field(default_factory=set)

    @property
    def api(self) -> dict[str, t.Any]:
        return self.settings.ways[self.way]

    @property
    def is_root(self) -> bool:
        """Whether Proxmox takes this way for the literal root@pam."""
        return self.client.identity == "root@pam"

    @property
    def client(self) -> Client:
        if self._client is None:
            self._client = reach(self.api, self.settings.timeout_seconds)
        return self._client

    def run(self, module: t.Any, options: dict[str, t.Any], check: bool = False) -> Result:
        """Run a module over this way."""
        if options.get("devices") is not None and self.api["api_backend"] == "ssh_paramiko" and not check:
            self.recorded.add(options["vmid"])
        timeout = (
            {"timeout_seconds": self.settings.timeout_seconds} if "timeout_seconds" in module.ARGUMENT_SPEC else {}
        )
        return self.run_module(module, {**self.api, "node": self.settings.node, **timeout, **options}, check=check)

    def foretold(self, module: t.Any, options: dict[str, t.Any]) -> Result:
        """What check mode says; it sends nothing but GETs."""
        before = len(self.guard.writes)
        result = self.run(module, options, check=True)
        assert self.guard.writes[before:] == [], "check mode wrote"
        return result

    def becomes(self, module: t.Any, options: dict[str, t.Any]) -> Result:
        """Foretold, done, and done again without a change; returns what was done."""
        foretold = self.foretold(module, options)
        assert foretold["rc"] == 0 and foretold["changed"], foretold.get("msg", foretold)
        sent = len(self.guard.sent)
        done = self.run(module, options)
        assert done["rc"] == 0 and done["changed"], done.get("msg", done)
        assert len(calls := self._calls(sent)) <= MOST_CALLS_OF_WORK, calls
        if done.get("container", {}).get("status") == "absent":
            self.guard.gone(options["vmid"])
        self.stays(module, options)
        return done

    def stays(self, module: t.Any, options: dict[str, t.Any]) -> Result:
        """Nothing to do: no change, no write, and few calls."""
        sent, writes = len(self.guard.sent), len(self.guard.writes)
        again = self.run(module, options)
        assert again["rc"] == 0 and not again["changed"], again.get("msg", again["diff"])
        assert self.guard.writes[writes:] == [], "what is right already was written"
        assert len(calls := self._calls(sent)) <= MOST_CALLS, calls
        return again

    def _calls(self, sent: int) -> list[str]:
        """The calls after the first ``sent`` ones; a login is none, nor is asking how a task is."""
        return [path for _, path in self.guard.sent[sent:] if path != "access/ticket" and "/tasks/" not in path]

    def refused(self, module: t.Any, options: dict[str, t.Any]) -> Result:
        """Slipway refuses before it writes; returns its result."""
        writes = len(self.guard.writes)
        result = self.run(module, options)
        assert result["rc"] == 1, "it was not refused"
        assert self.guard.writes[writes:] == [], "it was refused after a write"
        return result

    def changes_raw(self, vmid: int, **options: t.Any) -> Result:
        """The raw lines, foretold, set, and set again without a change."""
        assert self.raw is not None
        self.recorded.add(vmid)
        assert self.raw(vmid, options, True)["changed"]
        done = self.raw(vmid, options, False)
        assert done["changed"], done
        assert not self.raw(vmid, options, False)["changed"]
        return done

    # --- guests ---

    def free_vmid(self) -> int:
        """The next of the user's vmids that this scenario has not had and nobody has."""
        vmids = self.settings.vmids or range(0)
        for vmid in vmids:
            if vmid not in self.guard.claimed and not lookup.holder(self.client, vmid):
                self.guard.claimed.add(vmid)
                return vmid
        raise Unusable(f"Cannot make a guest: none of the vmids {vmids[0]}-{vmids[-1]} is free. Name more of them.")

    def guest(self, **options: t.Any) -> dict[str, t.Any]:
        """The options of a small guest on a free vmid, with the tag of this run."""
        vmid = self.free_vmid()
        declared = {
            "vmid": vmid,
            "hostname": f"contract-{vmid}",
            "ostemplate": self.settings.ostemplate,
            "rootfs": {"storage": self.settings.storage, "size_gib": DISK_GIB},
            "cores": 1,
            "memory_mib": 256,
            "swap_mib": 0,
            "tags": [self.mark],
            **options,
        }
        if self.settings.bridge:
            address = {"ip": self.settings.ip or "manual"} | ({"gw": self.settings.gw} if self.settings.gw else {})
            net = {"id": 0, "name": "eth0", "bridge": self.settings.bridge, **address}
            declared = {"net": [net], **declared}
        return declared

    def quiet_net(self) -> dict[str, t.Any]:
        """An interface with no address, for guests beside the one that may have the user's."""
        if not self.settings.bridge:
            return {}
        return {"net": [{"id": 0, "name": "eth0", "bridge": self.settings.bridge, "ip": "manual"}]}

    def by_hand(self, vmid: int, **keys: t.Any) -> None:
        """What a person changes, past Slipway's modules; a key of None is unset."""
        gone = ",".join(key for key, value in keys.items() if value is None)
        self.client.call(
            "put",
            f"nodes/{self.settings.node}/lxc/{vmid}/config",
            delete=gone or None,
            **{key: value for key, value in keys.items() if value is not None},
        )

    def config(self, vmid: int) -> dict[str, t.Any]:
        """A guest's configuration in force."""
        return api.config(self.client, self.settings.node, vmid)

    def can(self, vmid: int, feature: str) -> bool:
        """Whether every disk of a guest can do ``snapshot``, ``clone`` or ``copy``, as Proxmox says."""
        return api.feature(self.client, self.settings.node, vmid, feature)

    @property
    def storage_kind(self) -> str:
        rows = api.storages(self.client, self.settings.node)
        return next((str(row["type"]) for row in rows if row["storage"] == self.settings.storage), "unknown")

    # --- clean-up ---

    def clean(self, left: list[str]) -> None:
        """Take away what this scenario made, the last first. What is left is added to ``left``, a sentence each."""
        waiting = [*self.guard.unanswered, *self.guard.ours]
        try:
            while waiting:
                try:
                    self._remove(waiting[-1])
                except (ApiError, SlipwayError, OSError) as error:
                    left.append(self._left(waiting[-1], str(error)))
                waiting.pop()
        finally:
            left += [self._left(vmid, "the clean-up was interrupted") for vmid in waiting]

    def _left(self, vmid: int, why: str) -> str:
        why = " ".join(why.split()).rstrip(".")
        return (
            f"Guest {vmid} of node '{self.settings.node}' may be left: {why}. "
            f"If it has the tag {self.mark}, run 'pct destroy {vmid} --force --purge' there."
        )

    def _remove(self, vmid: int) -> None:
        node = self.settings.node
        found = lookup.read(self.client, node, vmid)
        if not found.exists and vmid not in self.guard.ours:
            # Ordered, and not answered.
            time.sleep(SETTLE_SECONDS)
            found = lookup.read(self.client, node, vmid)
        if found.lock:
            # A task of the scenario may be at work still.
            found = lookup.unlocked(self.client, "remove", found, self.settings.timeout_seconds)
        if found.exists:
            if self.mark not in re.split("[;, ]", str(found.declared.get("tags", ""))):
                raise ApiError("it has not the tag of this run, so it may be somebody's", "Look at it")
            self.guard.answered(vmid, True)
            if properties.truth(found.config.get("protection", 0)):
                self.by_hand(vmid, protection=None)
            for send in [lambda: api.stop(self.client, node, vmid)] if found.running else []:
                tasks.run(self.client, send, self.settings.timeout_seconds)
            tasks.run(self.client, lambda: api.destroy(self.client, node, vmid, True), self.settings.timeout_seconds)
        if vmid in self.recorded:
            self._forget(vmid)

    def _forget(self, vmid: int) -> None:
        """Take the record of a guest of ours from the node."""
        client = self.client if self.client.shell else reach(self.settings.ways["ssh"], self.settings.timeout_seconds)
        client.run(["sh", "-c", FORGET, "contract", RECORD.format(vmid)])


def raw_by_ansible(options: t.Mapping[str, t.Any]) -> Raw:
    """pve_container_raw on the node as Ansible runs it, as root over the same SSH. ``options`` are those of the way."""
    ssh = {
        "ansible_host": options["api_host"],
        "ansible_user": "root",
        "ansible_port": options.get("api_ssh_port"),
        "ansible_ssh_private_key_file": options.get("api_ssh_private_key_file"),
        "ansible_ssh_common_args": " ".join(_arguments(options)) or None,
    }
    inventory = {"all": {"hosts": {"node": {key: value for key, value in ssh.items() if value is not None}}}}

    def run(vmid: int, arguments: dict[str, t.Any], check: bool) -> Result:
        command = [
            str(Path(sys.executable).with_name("ansible")),
            *("node", "-i", "/dev/stdin", "-m", "pve_container_raw", "-a", json.dumps({"vmid": vmid, **arguments})),
            *(["--check"] if check else []),
        ]
        environment = {**os.environ, "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg"), **PLAIN}
        done = subprocess.run(
            command, input=json.dumps(inventory), env=environment, cwd=ROOT, capture_output=True, text=True
        )
        # node | CHANGED => {...}
        head, arrow, answer = done.stdout.partition(" => ")
        assert arrow and "UNREACHABLE" not in head, f"{done.stdout}\n{done.stderr}".strip()
        result: Result = json.loads(answer)
        assert done.returncode == 0, result.get("msg")
        return result

    return run


def _arguments(options: t.Mapping[str, t.Any]) -> t.Iterator[str]:
    """What Ansible has no variable for."""
    if options.get("api_ssh_config_file"):
        yield f"-F '{options['api_ssh_config_file']}'"
    if options.get("api_ssh_known_hosts_file"):
        yield f"-o UserKnownHostsFile='{options['api_ssh_known_hosts_file']}'"
    yield "-o StrictHostKeyChecking=yes"
