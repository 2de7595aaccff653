# SPDX-License-Identifier: GPL-3.0-or-later
"""The way of a request: find the method, check rights, check parameters, call it. Server and command line tools share it."""

from __future__ import annotations

import dataclasses
import importlib
import re
import typing as t

from . import faults, schema, tasks
from .errors import ApiError, died, not_implemented
from .node import Node


@dataclasses.dataclass(frozen=True)
class Call:
    """One request to a method: who asks, on which node, with which parameters (checked and typed)."""

    node: Node
    user: str
    params: dict[str, t.Any]
    fault: faults.Fault = faults.NONE

    @property
    def vmid(self) -> int:
        return int(self.params["vmid"])

    def may(self, path: str, privileges: list[str], any_of: bool = False) -> bool:
        """Whether the caller has privileges on a path."""
        return self.user == "root@pam" or self.node.access.has(self.user, path, privileges, any_of)

    def require(self, path: str, privileges: list[str], any_of: bool = False) -> None:
        """Raise ApiError 403 where the privileges are missing."""
        if self.user != "root@pam":
            self.node.access.check(self.user, path, privileges, any_of)

    def start(self, kind: str, work: tasks.Work, **arguments: t.Any) -> str:
        """Begin a task on the guest of this call; returns its UPID."""
        return tasks.start(self.node, kind, self.vmid, self.user, work, arguments, self.fault.of_task)


@dataclasses.dataclass(frozen=True)
class Method:
    """A method of the API. ``path`` and ``privileges`` say what is needed to call it; None lets every user in."""

    name: str
    handler: t.Callable[[Call], t.Any]
    path: str | None
    privileges: list[str]
    any_of: bool


METHODS: dict[str, Method] = {}
# The modules that register methods, when they are imported.
PARTS = ("clones", "cluster", "containers", "snapshots")


def method(
    name: str, path: str | None = None, privileges: list[str] | None = None, any_of: bool = False
) -> t.Callable[[t.Callable[[Call], t.Any]], t.Callable[[Call], t.Any]]:
    """Register the function that answers ``VERB /path/{parameter}``; schema.METHODS has its parameters."""

    def register(handler: t.Callable[[Call], t.Any]) -> t.Callable[[Call], t.Any]:
        if name not in schema.METHODS:
            raise KeyError(f"no parameters are described for {name}")
        METHODS[name] = Method(name, handler, path, privileges or [], any_of)
        return handler

    return register


def methods() -> dict[str, Method]:
    """Every method that there is."""
    for part in PARTS:
        importlib.import_module(f".{part}", __package__)
    return METHODS


def find(verb: str, path: str) -> tuple[Method, dict[str, str]]:
    """The method of a path and the parameters in it. Raises ApiError 501 if there is none."""
    path = "/" + path.strip("/")
    for name, found in methods().items():
        template = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/]+)", name)
        if match := re.fullmatch(template, f"{verb} {path}"):
            return found, match.groupdict()
    raise not_implemented(verb, path)


def call(node: Node, user: str, verb: str, path: str, given: dict[str, t.Any]) -> t.Any:
    """Answer a request of ``user``. Raises ApiError, and faults.Dropped where there is to be no answer."""
    found, in_path = find(verb, path)
    fault = faults.strike(node.root, node.name, verb, path)
    fault.before(user)
    if fault.contended:
        node = dataclasses.replace(node, contended=True)
    if found.path and user != "root@pam":
        node.access.check(user, found.path.format(**in_path), found.privileges, found.any_of)
    params = schema.check(found.name, {**given, **in_path})
    _here(node, params.get("node", node.name))
    return fault.around(lambda: found.handler(Call(node, user, params, fault)))


def _here(node: Node, asked: str) -> None:
    """Raise ApiError where a request is for another node: a member can not be reached from here, others are unknown."""
    if asked in (node.name, "localhost"):
        return
    online = node.members().get(asked)
    if online is None:
        raise died(
            f"hostname lookup '{asked}' failed - failed to get address info for: {asked}: Name or service not known"
        )
    raise ApiError(595, "Connection refused" if online else "No route to host")
