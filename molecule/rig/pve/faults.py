# SPDX-License-Identifier: GPL-3.0-or-later
"""Faults that are switched on from outside: ``/etc/rig/pve-faults.json`` of a node, read anew for each request.

The file is a list; the first entry that fits a request and is due strikes it. An entry has

``request``  a pattern for ``VERB /path``, such as ``POST /nodes/*/lxc/101/*``, or ``* *`` (a star also covers slashes)
``kind``     one of KINDS, which names the entry's further keys
``skip``     how many requests that fit go by first (0)
``times``    how many it strikes then; left out, it strikes until somebody takes it away

The counters are kept in the file, so it says what is still to come. Whether the request comes over HTTPS or from ``pct`` or
``pvesh`` makes no difference, but that a connection which is dropped is that of SSH there, and that no token is revoked.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import fnmatch
import functools
import json
import time
import typing as t
from pathlib import Path

from .errors import ApiError, unauthorized

if t.TYPE_CHECKING:
    from collections.abc import Iterator

FILE = "etc/rig/pve-faults.json"
LOCK = "run/lock/rig-pve-faults.lock"
KINDS = {
    "error": "an answer with `status` (500) and `message` in place of the work; 595 is what a node that is down gives",
    "drop_before": "the connection is dropped before the work is done",
    "drop_after": "the connection is dropped when the work is done",
    "slow": "the answer comes `seconds` after the work is done",
    "lock_timeout": "the configuration's lock is held by somebody else: the call fails, or the task that it begins",
    "task_fails": "the task does nothing and ends with `message`",
    "task_hangs": "the task holds the configuration's lock for `seconds` before it does anything",
    "task_warns": "the task ends well, with `WARNINGS: n` for its `lines`",
    "frozen": "the answer to the first request is that to all others",
    "revoked": "the token or the ticket of who asks is none any more",
}
MESSAGES = {500: "got no worker upid - start worker failed", 595: "No route to host", 596: "Connection timed out"}


class Dropped(Exception):
    """The connection of this request is to be dropped, with no answer."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """What strikes one request. ``keep`` remembers an answer in the file."""

    entry: dict[str, t.Any]
    keep: t.Callable[[t.Any], None]

    @property
    def kind(self) -> str:
        return str(self.entry["kind"])

    def before(self, user: str) -> None:
        """Raise what comes in place of the work."""
        if self.kind == "error":
            status = int(self.entry.get("status", 500))
            raise ApiError(status, str(self.entry.get("message", MESSAGES.get(status, "fault"))))
        if self.kind == "revoked" and user and user != "root@pam":
            name, _, token = user.partition("!")
            raise unauthorized(
                f"no such token '{token}' for user '{name}'" if token else "permission denied - invalid PVE ticket"
            )
        if self.kind == "drop_before":
            raise Dropped

    def around(self, work: t.Callable[[], t.Any]) -> t.Any:
        """Do the work and answer, as far as it is done and answered."""
        if self.kind == "frozen" and "data" in self.entry:
            return self.entry["data"]
        data = work()
        if self.kind == "frozen":
            self.keep(data)
        if self.kind == "slow":
            time.sleep(float(self.entry["seconds"]))
        if self.kind == "drop_after":
            raise Dropped
        return data

    @property
    def contended(self) -> bool:
        """Whether no lock of a configuration can be had."""
        return self.kind == "lock_timeout"

    @property
    def of_task(self) -> dict[str, t.Any]:
        """What a task needs to know, as JSON."""
        return self.entry if self.kind.startswith("task_") or self.contended else {}


NONE = Fault({"kind": ""}, lambda data: None)


def strike(root: Path, node: str, verb: str, path: str) -> Fault:
    """The fault that strikes a request on a node, NONE as a rule; counts it."""
    if not (root / FILE).exists():
        return NONE
    request = f"{verb} /{path.strip('/')}".replace("/nodes/localhost/", f"/nodes/{node}/")
    with _file(root) as entries:
        for entry in entries:
            if not fnmatch.fnmatchcase(request, entry["request"]) or entry.get("times") == 0:
                continue
            if entry["kind"] not in KINDS:
                raise ApiError(500, f"'{entry['kind']}' is no kind of fault")
            if entry.get("skip", 0):
                entry["skip"] -= 1
                continue
            if "times" in entry:
                entry["times"] -= 1
            return Fault(dict(entry), functools.partial(_remember, root, entry["request"]))
    return NONE


def _remember(root: Path, request: str, data: t.Any) -> None:
    with _file(root) as entries:
        for entry in entries:
            if (entry["kind"], entry["request"]) == ("frozen", request):
                entry["data"] = data


@contextlib.contextmanager
def _file(root: Path) -> Iterator[list[dict[str, t.Any]]]:
    """The entries, under a lock and written back where they changed."""
    path, lock = root / FILE, root / LOCK
    lock.parent.mkdir(parents=True, exist_ok=True)
    with lock.open("a") as handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        text = path.read_text() if path.exists() else "[]"
        entries = json.loads(text)
        yield entries
        if entries != json.loads(text):
            temporary = path.with_suffix(".tmp")
            temporary.write_text(json.dumps(entries, indent=2) + "\n")
            temporary.replace(path)
