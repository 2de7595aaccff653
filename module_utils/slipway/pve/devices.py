# SPDX-License-Identifier: GPL-3.0-or-later
"""Numbered keys of a guest (``devN``, ``mpN``): which number a declared thing has. Pure.

Numbers are Slipway's affair: what is there keeps its number, what is new takes the lowest free one, and what nobody
declared is neither renumbered nor changed.
"""

from __future__ import annotations

import re
import typing as t

from . import properties

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

# pve-container allows dev0 to dev255 and mp0 to mp255 (PVE/LXC/Config.pm).
LIMIT = 256


def numbered(config: Mapping[str, object], prefix: str) -> dict[str, str]:
    """The keys ``<prefix>N`` of a configuration with their values, in order of N."""
    found = [(int(key[len(prefix) :]), key) for key in config if re.fullmatch(rf"{prefix}\d+", key)]
    return {key: str(config[key]) for _, key in sorted(found)}


def assign(
    names: Sequence[str],
    configs: Iterable[Mapping[str, object]],
    prefix: str,
    name_of: t.Callable[[str], str | None],
) -> dict[str, str]:
    """Give each name (a device path, a mount path) its key and return ``{name: key}``.

    ``configs`` are the current configuration and the one with pending changes: a key that is in either is taken.
    ``name_of`` reads the name out of a value. Raises ``ValueError`` when no number is left.
    """
    taken: set[str] = set()
    keys: dict[str, str] = {}
    for config in configs:
        for key, value in numbered(config, prefix).items():
            taken.add(key)
            name = name_of(value)
            if name is not None and name in names:
                keys.setdefault(name, key)
    free = (f"{prefix}{number}" for number in range(LIMIT) if f"{prefix}{number}" not in taken)
    for name in names:
        if name not in keys:
            unused = next(free, None)
            if unused is None:
                raise ValueError(f"all {LIMIT} keys {prefix}N are taken")
            keys[name] = unused
    return keys


def device_path(value: str) -> str | None:
    """The path in a ``devN`` value, or None where the value is not one that Proxmox would accept."""
    try:
        return properties.parse(value, "path").get("path")
    except ValueError:
        return None


def mount_path(value: str) -> str | None:
    """The path inside the guest in an ``mpN`` value, or None where the value is not one that Proxmox would accept."""
    try:
        path = properties.parse(value, "volume").get("mp")
    except ValueError:
        return None
    return path and clean(path)


def clean(path: str) -> str:
    """A path in one spelling: without slashes that say nothing."""
    return re.sub("/+", "/", path).rstrip("/") or "/"


def as_facts(config: Mapping[str, object]) -> list[dict[str, t.Any]]:
    """The devices of a configuration as data: ``{key, path, gid, uid, mode, deny_write}``, unset ones null."""
    facts = []
    for key, value in numbered(config, "dev").items():
        if device_path(value) is None:
            continue
        options = properties.parse(value, "path")
        facts.append(
            {
                "key": key,
                "path": options["path"],
                "gid": int(options["gid"]) if options.get("gid", "").isdigit() else None,
                "uid": int(options["uid"]) if options.get("uid", "").isdigit() else None,
                "mode": options.get("mode"),
                "deny_write": properties.truth(options.get("deny-write", "0")),
            }
        )
    return facts
