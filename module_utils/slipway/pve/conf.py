# SPDX-License-Identifier: GPL-3.0-or-later
"""The configuration file of a guest, ``/etc/pve/lxc/<vmid>.conf``: its settings and a container's raw ``lxc.*`` lines. Pure.

The file has a main part and then sections, ``[pve:pending]`` and one a snapshot, each with lines of its own. Only the
main part counts for the guest; nothing else is ever touched here. Lines are edited where they are and the rest stays as
it is byte for byte: Proxmox puts the file in its own order when it writes it next.

``parse`` and ``render`` do with a container's file what Proxmox does when it reads and writes one, and lose what it loses
(PVE/LXC/Config.pm, parse_pct_config and write_pct_config of pve-container 6.1.10). To change a file, ``edit`` it.
"""

from __future__ import annotations

import hashlib
import re
import typing as t
import urllib.parse
from dataclasses import dataclass, field, replace

from . import properties, rawkeys

if t.TYPE_CHECKING:
    from collections.abc import Collection, Sequence

# As pve-container reads it (PVE/LXC/Config.pm, parse_pct_config): a colon, or an equals sign, after the key.
# Its white space is that of ASCII everywhere: Perl reads bytes here.
RAW_LINE = re.compile(r"^(lxc\.[a-z0-9_.-]+)(?::|\s*=)\s*(.*?)\s*$", re.ASCII)
LOCK_LINE = re.compile(r"^lock:\s*(\S+)\s*$", re.ASCII)
# Containers and virtual machines alike: a plain key, which comes once.
SETTING_LINE = re.compile(r"^([a-z][a-z_-]*\d*):\s*(.*?)\s*$", re.ASCII)
PENDING = "[pve:pending]"
# A virtual machine's (PVE/QemuServer.pm). In small letters it would be a container's snapshot.
PENDING_LINE = re.compile(r"^\[(?:(?i:pve:pending)|PENDING)\]\s*$", re.ASCII)

# What follows is of containers alone. A name of one character makes no section.
HEADER = re.compile(r"^\[(pve:pending|[a-z][a-z0-9_-]+)\]\s*$", re.IGNORECASE | re.ASCII)
_BLANKS = " \t\r\f\v"
_DESCRIPTION = re.compile(r"^description:\s*(.*\S)\s*$", re.ASCII)
_STATE = re.compile(r"snapstate:\s*(prepare|delete)\s*$", re.ASCII)
_PLAIN = re.compile(r"^([a-z][a-z_]*\d*):\s*(.+?)\s*$", re.ASCII)
_INTEGERS = frozenset({"cores", "cpuunits", "memory", "snaptime", "swap", "tty"})
_BOOLEANS = frozenset({"console", "debug", "onboot", "protection", "template", "unprivileged"})
_TRUTHS = {**dict.fromkeys(("1", "on", "yes", "true"), 1), **dict.fromkeys(("0", "off", "no", "false"), 0)}
# What a description may hold as it is: printable ASCII but for percent and colon.
_READABLE = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) not in "%:")


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


@dataclass
class Part:
    """The main part, the pending changes or a snapshot.

    ``settings`` are the plain keys; integers and booleans are ints where Proxmox accepts what the file has, and all else is
    text. ``lost`` are lines that Proxmox does not understand and drops when it writes the file next.
    """

    settings: dict[str, int | str] = field(default_factory=dict)
    description: str = ""
    raw: list[Raw] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)

    def as_dict(self) -> dict[str, t.Any]:
        """The keys and values, with ``description`` and, as ``lxc``, the raw lines as [key, value]; each only if there is one."""
        described = {"description": self.description} if self.description else {}
        raw = {"lxc": [[line.key, line.value] for line in self.raw]} if self.raw else {}
        return {**self.settings, **described, **raw}


@dataclass
class Config:
    """A container's configuration file as Proxmox understands it."""

    digest: str
    main: Part = field(default_factory=Part)
    pending: Part = field(default_factory=Part)
    snapshots: dict[str, Part] = field(default_factory=dict)

    @property
    def parts(self) -> list[Part]:
        """All parts, in the order in which they are written."""
        return [self.main, self.pending, *(part for _, part in sorted(self.snapshots.items()))]

    def as_dict(self) -> dict[str, t.Any]:
        """The main part with ``digest``, ``pending`` (a part) and ``snapshots`` (name to part)."""
        snapshots = {name: part.as_dict() for name, part in self.snapshots.items()}
        return {**self.main.as_dict(), "digest": self.digest, "pending": self.pending.as_dict(), "snapshots": snapshots}


def parse(text: str) -> Config:
    """Read a container's file as Proxmox does: of a plain key that comes twice the last one counts, of raw ones all."""
    config = Config(digest(text))
    part = config.main
    for line in text.split("\n"):
        if header := HEADER.match(line):
            # A section that comes twice is the second one.
            part = Part()
            if header.group(1).lower() == "pve:pending":
                config.pending = part
            else:
                config.snapshots[header.group(1)] = part
        elif line.strip(_BLANKS):
            _take(part, line, part is config.pending)
    # Only a snapshot may be in the making.
    config.main.settings.pop("snapstate", None)
    return config


def _take(part: Part, line: str, is_pending: bool) -> None:
    """Take one line into a part."""
    if line.startswith("#"):
        part.description += urllib.parse.unquote(line[1:]) + "\n"
    elif found := raw(line):
        if rawkeys.known(found.key):
            part.raw.append(found)
        else:
            part.lost.append(line)
    elif plain := _DESCRIPTION.match(line):
        part.description += urllib.parse.unquote(plain.group(1))
    elif state := _STATE.search(line):
        part.settings["snapstate"] = state.group(1)
    elif (plain := _PLAIN.match(line)) and (is_pending or plain.group(1) != "delete"):
        part.settings[plain.group(1)] = _typed(plain.group(1), plain.group(2))
    else:
        part.lost.append(line)


def _typed(key: str, value: str) -> int | str:
    """A value as Proxmox types it; what does not fit its key is kept as it is."""
    if key in _INTEGERS and re.fullmatch(r"[0-9]+", value):
        return int(value)
    return _TRUTHS.get(value.lower(), value) if key in _BOOLEANS else value


def render(config: Config) -> str:
    """Write a file as Proxmox does: description, sorted keys, raw lines in their order; then pending changes and snapshots.

    Raises ``ValueError`` for a value with a line break in it.
    """
    settings = config.main.settings
    used = {_volume(str(value)) for key, value in settings.items() if re.fullmatch(r"rootfs|mp\d+", key)}
    # A volume that is in use again is unused no more.
    left = {key: value for key, value in settings.items() if not (key.startswith("unused") and value in used)}
    text = _written(replace(config.main, settings=left))
    if pending := _written(config.pending):
        text += f"\n{PENDING}\n{pending}"
    return text + "".join(f"\n[{name}]\n{_written(part)}" for name, part in sorted(config.snapshots.items()))


def _written(part: Part) -> str:
    notes = part.description.rstrip("\n")
    lines = ["#" + urllib.parse.quote(line, _READABLE, errors="surrogateescape") for line in notes.split("\n") if notes]
    lines += [f"{key}: {value}" for key, value in sorted(part.settings.items())]
    lines += [str(line) for line in part.raw]
    if broken := [line for line in lines if "\n" in line]:
        raise ValueError(f"'{broken[0]}' has a line break in it")
    return "".join(f"{line}\n" for line in lines)


def _volume(value: str) -> str:
    """The volume of a disk, in whatever place its property string has it."""
    try:
        return properties.parse(value, "volume").get("volume", "")
    except ValueError:
        # Proxmox keeps what it cannot read, and finds no volume in it.
        return ""


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
    lines = split(text)[1].split("\n")
    start = next((number for number, line in enumerate(lines) if PENDING_LINE.match(line)), None)
    return {} if start is None else _settings(split("\n".join(lines[start + 1 :]))[0])


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
