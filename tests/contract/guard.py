# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands between the code under test and the node: every request is noted, and one that may not be is never sent.

It sits where requests leave the process, below Slipway and proxmoxer, so that a fault of either is held up too.
"""

from __future__ import annotations

import re
import typing as t
from urllib.parse import parse_qsl, urlsplit

import requests
from ansible.module_utils.slipway.pve import record, ssh

if t.TYPE_CHECKING:
    import pytest

GUEST = re.compile(r"nodes/[^/]+/lxc/(\d+)(?:/.*)?")
CREATION = re.compile(r"nodes/[^/]+/lxc")
CLONE = re.compile(r"nodes/[^/]+/lxc/\d+/clone")
# From this status on an answer does not say that nothing was done.
FAULT = 500
LOGIN = ("POST", "access/ticket")
VERBS = {"create": "POST", "set": "PUT"}
RECORD = "/var/lib/slipway/guests/{}.json"
FORGET = 'rm -f "$1"'


class NotAllowed(Exception):
    """A request that the scenario may not make."""


class Guard:
    """Lets reading pass, and of changes only those of guests that were made behind it.

    ``claimed`` are the vmids that a guest may be made on; ``ours`` those on which one was made, in the order in which that
    happened, and ``unanswered`` those on which one may be, since no answer to the order came. ``sent`` has every request to the
    API as verb and path.
    """

    def __init__(self) -> None:
        self.claimed: set[int] = set()
        self.ours: list[int] = []
        self.unanswered: list[int] = []
        self.sent: list[tuple[str, str]] = []

    @property
    def writes(self) -> list[tuple[str, str]]:
        return [request for request in self.sent if request[0] != "GET" and request != LOGIN]

    def pass_on(self, verb: str, path: str, params: t.Mapping[str, t.Any]) -> int | None:
        """Note a request, or raise NotAllowed. Returns the vmid of the guest that it would make."""
        made = None
        if verb != "GET" and (verb, path) != LOGIN:
            found = GUEST.fullmatch(path)
            source = int(found[1]) if found else None
            if CREATION.fullmatch(path) or CLONE.fullmatch(path):
                made = int(params["newid" if found else "vmid"])
            if (made is not None and made not in self.claimed) or (source not in self.ours and found):
                raise NotAllowed(f"{verb} {path} is of a guest that was not made here; it was not sent")
            if made is None and found is None:
                raise NotAllowed(f"{verb} {path} is no change of a guest; it was not sent")
        self.sent.append((verb, path))
        if made is not None and made not in self.unanswered:
            self.unanswered.append(made)
        return made

    def answered(self, vmid: int | None, made: bool | None) -> None:
        """What became of the order to make a guest: taken, refused, or not known (None)."""
        if vmid is None or made is None:
            return
        if vmid in self.unanswered:
            self.unanswered.remove(vmid)
        if made and vmid not in self.ours:
            self.ours.append(vmid)

    def gone(self, vmid: int) -> None:
        """This guest was destroyed: whatever has its vmid from now on is somebody else's."""
        self.ours.remove(vmid)

    def over_https(self, request: t.Any) -> int | None:
        url = urlsplit(request.url)
        body = request.body or b""
        text = body.decode() if isinstance(body, bytes) else body
        path = url.path.removeprefix("/api2/json").strip("/")
        return self.pass_on(request.method, path, dict(parse_qsl(url.query) + parse_qsl(text)))

    def over_ssh(self, words: list[str]) -> int | None:
        if words[0] == "pvesh":
            verb, path, *rest = words[1:]
            params = {name.lstrip("-"): value for name, value in zip(rest[::2], rest[1::2], strict=False)}
            return self.pass_on(VERBS.get(verb, verb.upper()), path.strip("/"), params)
        mine = [RECORD.format(vmid) for vmid in self.ours]
        scripts = {record._READ: True, record._WRITE: words[-1] in mine, FORGET: words[-1] in mine}
        if words[:2] != ["sh", "-c"] or not scripts.get(words[2]):
            raise NotAllowed(f"'{' '.join(words)[:80]}' is not for the node; it was not run")
        return None

    def stand(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Take the place of what sends requests over HTTPS and what runs commands over SSH."""
        send, run = requests.adapters.HTTPAdapter.send, ssh.VerifiedSession.run

        def guarded_send(adapter: t.Any, request: t.Any, **options: t.Any) -> requests.Response:
            made = self.over_https(request)
            response: requests.Response = send(adapter, request, **options)
            self.answered(made, True if response.ok else False if response.status_code < FAULT else None)
            return response

        def guarded_run(session: t.Any, words: list[str]) -> tuple[str, str, int]:
            made = self.over_ssh(words)
            answer = run(session, words)
            # pvesh does the work of the task as well: whoever got a task has made something.
            self.answered(made, True if answer[2] == 0 or "UPID:" in answer[0] else None)
            return answer

        monkeypatch.setattr(requests.adapters.HTTPAdapter, "send", guarded_send)
        monkeypatch.setattr(ssh.VerifiedSession, "run", guarded_run)
