# SPDX-License-Identifier: GPL-3.0-or-later
"""The inventory as a whole: variables that no role reads, and guests that claim the same thing. Pure.

Ansible ignores a variable that nobody reads, so a misspelt consent or address is the default, without a word.
"""

from __future__ import annotations

import difflib
import typing as t

from .findings import Finding, finding

if t.TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

# How alike two names must be (difflib's ratio): a name with a role's prefix is meant for the role, any other is the user's own
# unless it is nearly the same.
ALIKE = 0.75
NEARLY_THE_SAME = 0.9
ALL_GPUS = "all"


def misspelt(variables: Iterable[str], known: Mapping[str, Collection[str]]) -> list[Finding]:
    """Findings for variables that look like a role's and are none. ``known`` are the variables of each role.

    One that is like a right name fails, since it was meant to change something; one that is like none is a warning.
    """
    names = {name for of_role in known.values() for name in of_role}
    found = []
    for variable in sorted(set(variables) - names):
        if variable.startswith("__"):
            continue
        roles = [role for role in known if variable.startswith(f"{role}_")]
        nearest = _nearest(variable, names, ALIKE if roles else NEARLY_THE_SAME)
        if roles:
            detail = (
                f"the nearest right name is {nearest}" if nearest else f"role {max(roles, key=len)} has nothing like it"
            )
            found.append(finding("VARIABLE_UNKNOWN", variable, detail, "fail" if nearest else "warn"))
        elif nearest and abs(len(nearest) - len(variable)) <= 2 and nearest not in variable:
            found.append(finding("VARIABLE_UNKNOWN", variable, f"the nearest right name is {nearest}"))
    return found


def _nearest(variable: str, names: Iterable[str], cutoff: float) -> str | None:
    return next(iter(difflib.get_close_matches(variable, sorted(names), 1, cutoff)), None)


def clashes(host: str, guests: Iterable[Mapping[str, t.Any]]) -> list[Finding]:
    """What the guest ``host`` and another of the inventory both claim. Nothing where ``host`` is no guest.

    A guest is ``{name, node, vmid, address, gpus}``; ``gpus`` are PCI addresses in lower case, or ``all``. Two nodes may be in
    one cluster or not, which only their API tells, so a vmid is compared here within one node alone.
    """
    guests = list(guests)
    mine = next((guest for guest in guests if guest["name"] == host), None)
    if mine is None:
        return []
    found = [
        finding("GUEST_CLASH", host, f"{address} is named twice in its gpu_container_gpus")
        for address in sorted(_twice(_gpus(mine)))
    ]
    for other in guests:
        if other["name"] == host:
            continue
        for what in _shared(mine, other):
            found.append(finding("GUEST_CLASH", host, f"{other['name']} has {what} too"))
    return found


def _shared(mine: Mapping[str, t.Any], other: Mapping[str, t.Any]) -> list[str]:
    """In words, what two guests both claim."""
    shared = []
    if mine["address"] and mine["address"] == other["address"]:
        shared.append(f"address {mine['address']}")
    if mine["node"] != other["node"]:
        return shared
    if str(mine["vmid"]) == str(other["vmid"]):
        shared.append(f"vmid {mine['vmid']} on {mine['node']}")
    gpus = _shared_gpus(_gpus(mine), _gpus(other))
    if gpus:
        shared.append(f"{gpus} of {mine['node']}")
    return shared


def _gpus(guest: Mapping[str, t.Any]) -> list[str]:
    declared = guest["gpus"]
    return [declared] if isinstance(declared, str) else [str(address).lower() for address in declared]


def _twice(addresses: list[str]) -> set[str]:
    return {address for address in addresses if addresses.count(address) > 1}


def _shared_gpus(mine: list[str], other: list[str]) -> str:
    if not mine or not other:
        return ""
    if ALL_GPUS in mine and ALL_GPUS in other:
        return "all GPUs"
    if ALL_GPUS in mine or ALL_GPUS in other:
        return "GPU " + ", ".join(sorted({*mine, *other} - {ALL_GPUS}))
    both = sorted(set(mine) & set(other))
    return f"GPU {', '.join(both)}" if both else ""
