# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration file of a guest, ``/etc/pve/lxc/<vmid>.conf``: its settings and a container's raw ``lxc.*`` lines. Pure.

The file has a main part and then sections, ``[pve:pending]`` and one a snapshot, each with lines of its own. Only the
main part counts for the guest; nothing else is ever touched here. Lines are edited where they are and the rest stays as
it is byte for byte: Proxmox puts the file in its own order when it writes it next.
"""

from __future__ import annotations

import hashlib
import re
import typing as t
from dataclasses import dataclass

if t.TYPE_CHECKING:
    from collections.abc import Collection, Sequence

# As pve-container reads it (PVE/LXC/Config.pm, parse_pct_config): a colon, or an equals sign, after the key.
RAW_LINE = re.compile(r"^(lxc\.[a-z0-9_.-]+)(?::|\s*=)\s*(.*?)\s*$")
LOCK_LINE = re.compile(r"^lock:\s*(\S+)\s*$")
# Containers and virtual machines alike: a plain key, which comes once.
SETTING_LINE = re.compile(r"^([a-z][a-z_-]*\d*):\s*(.*?)\s*$")
PENDING = "[pve:pending]"


class Raw(t.NamedTuple):
    """A raw line: a key, which may come several times, and its value."""

    key: str
    value: str

    def __str__(self) -> str:
        return f"{self.key}: {self.value}"


@dataclass(frozen=True)
class Edit:
    """A new text of the file, with the raw lines that went and came."""

    text: str
    removed: tuple[Raw, ...] = ()
    added: tuple[Raw, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)


def digest(text: str) -> str:
    """The digest that Proxmox gives a configuration: SHA-1 of the whole file."""
    return hashlib.sha1(text.encode("utf-8", "surrogateescape"), usedforsecurity=False).hexdigest()


def split(text: str) -> tuple[list[str], str]:
    """Split the file into the lines of its main part, with their ends, and the sections after it."""
    # Not splitlines(): a description may hold characters that it takes for the end of a line and Proxmox does not.
    lines = re.findall(r"[^\n]*\n|[^\n]+", text)
    first = next((number for number, line in enumerate(lines) if line.startswith("[")), len(lines))
    return lines[:first], "".join(lines[first:])


def lock(text: str) -> str | None:
    """The lock of a task that is at work on the guest, or None."""
    return next((found.group(1) for line in split(text)[0] if (found := LOCK_LINE.match(line))), None)


def raw(line: str) -> Raw | None:
    """Read one line; None where it is not a raw one."""
    found = RAW_LINE.match(line.rstrip("\r\n"))
    return Raw(found.group(1), found.group(2)) if found else None


def raw_lines(text: str) -> list[Raw]:
    """The raw lines of the main part, in their order."""
    return [found for line in split(text)[0] if (found := raw(line))]


def settings(text: str) -> dict[str, str]:
    """The plain keys of the main part with their values."""
    return _settings(split(text)[0])


def pending(text: str) -> dict[str, str]:
    """The plain keys that wait for a restart, with their values to be."""
    lines = split(text)[1].splitlines()
    if PENDING not in lines:
        return {}
    return _settings(split("\n".join(lines[lines.index(PENDING) + 1 :]))[0])


def _settings(lines: Sequence[str]) -> dict[str, str]:
    return {found[1]: found[2] for line in lines if (found := SETTING_LINE.match(line.rstrip("\r\n")))}


def edit(text: str, declared: Sequence[Raw], ours: Collection[Raw], exclusive_keys: Collection[str]) -> Edit:
    """Bring the main part to hold every declared line once, and those of one key in the declared order.

    Of what is not declared a line goes if it is ``ours`` (the record says so) or its key is exclusive; all others are the
    user's and stay where they are.
    """
    main, sections = split(text)
    wanted = list(dict.fromkeys(declared))
    present = [(number, found) for number, line in enumerate(main) if (found := raw(line))]
    drop: set[int] = set()
    seen: list[Raw] = []
    for number, line in present:
        undeclared = line not in wanted and (line in ours or line.key in exclusive_keys)
        if undeclared or line in seen:
            drop.add(number)
        elif line in wanted:
            seen.append(line)
    misplaced = {key for key in {line.key for line in wanted} if not _in_order(key, seen, wanted)}
    drop |= {number for number, line in present if line in wanted and line.key in misplaced}
    add = [line for line in wanted if line not in seen or line.key in misplaced]
    if not drop and not add:
        return Edit(text)
    removed = tuple(line for number, line in present if number in drop)
    return Edit(_assembled(main, drop, add) + sections, removed, tuple(add))


def _in_order(key: str, seen: Sequence[Raw], wanted: Sequence[Raw]) -> bool:
    """Whether appending what is missing gives the lines of a key the declared order."""
    of_key = [line for line in wanted if line.key == key]
    there = [line for line in seen if line.key == key]
    return there + [line for line in of_key if line not in there] == of_key


def _assembled(main: Sequence[str], drop: Collection[int], add: Sequence[Raw]) -> str:
    """The main part without the dropped lines, the new ones after the last raw line or else after the last line."""
    kept = [line for number, line in enumerate(main) if number not in drop]
    last = max((number for number, line in enumerate(kept) if raw(line)), default=None)
    if last is None:
        last = max((number for number, line in enumerate(kept) if line.strip()), default=-1)
    end = "\r\n" if last >= 0 and kept[last].endswith("\r\n") else "\n"
    if add and last >= 0 and not kept[last].endswith("\n"):
        kept[last] += end
    return "".join([*kept[: last + 1], *(f"{line}{end}" for line in add), *kept[last + 1 :]])
