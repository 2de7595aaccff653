# SPDX-License-Identifier: GPL-3.0-or-later
"""What has to change so that a guest is as declared. Pure; it alone decides ``changed``, the diff and what is sent."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass, field

from . import properties

if t.TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from .desired import Value

# What Proxmox assumes for a key that is not in the file (apidata of pve-docs 9.1.3).
DEFAULTS: dict[str, t.Any] = {"memory": 512, "onboot": 0, "swap": 512}


@dataclass(frozen=True)
class Plan:
    """Keys to set and to unset, with the values as they are now and as they will be."""

    set: dict[str, t.Any] = field(default_factory=dict)
    delete: tuple[str, ...] = ()
    before: dict[str, t.Any] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.set or self.delete)

    @property
    def after(self) -> dict[str, t.Any]:
        return dict(self.set)

    def without(self, keys: Collection[str]) -> Plan:
        """The plan less these keys."""
        return Plan(
            {key: value for key, value in self.set.items() if key not in keys},
            tuple(key for key in self.delete if key not in keys),
            {key: value for key, value in self.before.items() if key not in keys},
        )

    def waits_for_restart(self) -> list[str]:
        """The keys of which Proxmox will say "pending" while the guest runs: what check mode can foretell.

        New ``devN`` and ``mpN`` are hot-plugged, changed and removed ones wait (pve-container, c702167 of 2025-07-30).
        """
        waiting = [key for key in self.set if key == "features" or (_is("dev", key) and key in self.before)]
        return sorted(waiting + [key for key in self.delete if key == "features" or _is("dev", key) or _is("mp", key)])


def plan(current: Mapping[str, t.Any], desired: Mapping[str, Value]) -> Plan:
    """Compare the configuration (pending changes merged in) with what is declared, key by key.

    ``desired`` holds only what was declared; a value of None means that the key is to be unset.
    """
    to_set: dict[str, t.Any] = {}
    to_delete: list[str] = []
    for key, wanted in desired.items():
        present = current.get(key, DEFAULTS.get(key))
        if wanted is None:
            if key in current:
                to_delete.append(key)
        elif present is None or not same(key, present, wanted):
            to_set[key] = _with_chosen_options(key, present, wanted)
    before = {key: current[key] for key in [*to_set, *to_delete] if key in current}
    return Plan(to_set, tuple(sorted(to_delete)), before)


def same(key: str, present: t.Any, wanted: t.Any) -> bool:
    """Whether two values of a key mean the same to Proxmox, however they are written."""
    left, right = str(present), str(wanted)
    if key == "description":
        # Proxmox stores it as comment lines and so always ends it with a newline.
        return left.rstrip("\n") == right.rstrip("\n")
    if key == "tags":
        # Tags are labels that several people put on a guest: those that are not declared are somebody else's.
        return _tags(right) <= _tags(left)
    if key == "onboot":
        return properties.truth(left) == properties.truth(right)
    if _is_property_string(key):
        try:
            have = properties.parse(left, _default_key(key))
        except ValueError:
            return False
        want = properties.parse(right, _default_key(key))
        chosen = _chosen_by_server(key) - set(want)
        return properties.comparable(have, chosen) == properties.comparable(want, chosen)
    return left.strip() == right.strip()


def _is(prefix: str, key: str) -> bool:
    return re.fullmatch(rf"{prefix}\d+", key) is not None


def _tags(text: str) -> set[str]:
    # Separators and case are a matter of the cluster's tag style, not of the tag.
    return {tag.lower() for tag in re.split(r"[;,\s]+", text) if tag}


def _is_property_string(key: str) -> bool:
    return key in ("features", "startup", "rootfs") or any(_is(prefix, key) for prefix in ("net", "dev", "mp"))


def _default_key(key: str) -> str | None:
    if _is("dev", key):
        return "path"
    if _is("mp", key) or key == "rootfs":
        return "volume"
    return "order" if key == "startup" else None


def _chosen_by_server(key: str) -> set[str]:
    """Options that Proxmox adds by itself: no drift where nobody declared them."""
    if _is("net", key):
        return {"hwaddr", "type"}
    return {"size"} if _is("mp", key) or key == "rootfs" else set()


def _with_chosen_options(key: str, present: t.Any, wanted: t.Any) -> t.Any:
    """What to send: the declared value, with what the server chose kept (a guest must not change its MAC by an update).

    Tags that others put on the guest are kept too.
    """
    if key == "tags" and present is not None:
        return ";".join(sorted(_tags(str(present)) | _tags(str(wanted))))
    if present is None or not _chosen_by_server(key):
        return wanted
    try:
        have = properties.parse(str(present), _default_key(key))
    except ValueError:
        return wanted
    want: dict[str, str] = properties.parse(str(wanted), _default_key(key))
    kept = {name: have[name] for name in _chosen_by_server(key) - set(want) if name in have}
    return properties.render({**want, **kept}, _default_key(key))
