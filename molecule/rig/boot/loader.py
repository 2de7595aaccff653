# SPDX-License-Identifier: GPL-3.0-or-later
"""What firmware and boot loader do at a node's start: from the files that the loader reads, the kernel and its command line.

Only these files count. What somebody wrote into ``/etc/default/grub`` or ``/etc/kernel/cmdline`` counts when a tool has made a
menu of it. An EFI partition is a folder ``/etc/rig/esp/<UUID>`` of the node, since its kernel knows no vfat.
"""

from __future__ import annotations

import fnmatch
import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

PARTITIONS = "etc/rig/esp"
SYSTEMD_BOOT = "EFI/systemd/systemd-bootx64.efi"
# What the two say of themselves in EFI's variable LoaderInfo (https://systemd.io/BOOT_LOADER_INTERFACE).
NAMES = {"grub": "GRUB 2.12-9+pmx2", "systemd-boot": "systemd-boot 257.7-1"}
_BOOT = "boot/grub"


class NotBootable(Exception):
    """The machine stays in its boot loader, with the reason."""


@dataclass(frozen=True)
class Boot:
    """What is started: ``loader`` is ``grub`` or ``systemd-boot``, ``release`` the kernel's, ``line`` its command line."""

    loader: str
    release: str
    line: str


@dataclass(frozen=True)
class Entry:
    """An entry of GRUB's menu: its title and id, its place in its menu and those above it, and the words after ``linux``."""

    names: tuple[str, str, str]
    above: tuple[tuple[str, str, str], ...]
    words: tuple[str, ...]


def boot(rootfs: Path) -> Boot:
    """Start the machine below ``rootfs``: by the first EFI partition with a loader, else by GRUB's menu in ``/boot``.

    A choice for the next start only is used up. Raises ``NotBootable``.
    """
    for partition in sorted((rootfs / PARTITIONS).glob("*")):
        if (partition / SYSTEMD_BOOT).exists():
            return _systemd_boot(partition)
        if (partition / "grub/grub.cfg").exists():
            return _grub(partition, partition / "grub")
    return _grub(rootfs, rootfs / _BOOT)


def _grub(disk: Path, folder: Path) -> Boot:
    """``disk`` is where the paths of the menu begin, ``folder`` where the menu and its memory lie."""
    menu = folder / "grub.cfg"
    if not menu.exists():
        raise NotBootable(f"GRUB has no menu: {menu}")
    text = menu.read_text()
    memory = environment(folder / "grubenv")
    default = re.search(r'^\s*set default="([^"]*)"', text, re.MULTILINE)
    wanted = memory.pop("next_entry", "") or (default[1] if default else "0")
    if wanted == "${saved_entry}":
        wanted = memory.get("saved_entry", "0")
    if (folder / "grubenv").exists():
        write_environment(folder / "grubenv", memory)
    words = choose(entries(text), wanted).words
    image, *parameters = words
    release = image.rpartition("/vmlinuz-")[2]
    if not (disk / image.lstrip("/")).exists():
        raise NotBootable(f"GRUB does not find {image}")
    return Boot("grub", release, " ".join([f"BOOT_IMAGE={image}", *parameters]))


def entries(text: str) -> list[Entry]:
    """The entries of a ``grub.cfg``, in their order, those of submenus too."""
    found: list[Entry] = []
    above: list[tuple[str, str, str]] = []
    counts = [0]
    current: tuple[str, str, str] | None = None
    for line in text.splitlines():
        head = re.match(r"""\s*(menuentry|submenu) '([^']*)'.*?(?:menuentry_id_option '([^']*)')?\s*\{$""", line)
        if head:
            names = (head[2], head[3] or "", str(counts[-1]))
            counts[-1] += 1
            if head[1] == "submenu":
                above.append(names)
                counts.append(0)
            else:
                current = names
        elif line.strip() == "}":
            if current is None and above:
                above.pop()
                counts.pop()
            current = None
        elif current is not None and line.split()[:1] == ["linux"]:
            found.append(Entry(current, tuple(above), tuple(line.split()[1:])))
    return found


def choose(menu: t.Sequence[Entry], wanted: str) -> Entry:
    """The entry that ``default`` means: a number, title or id, after those of the submenus above it and ``>``.

    One that is not there makes it the first, as in GRUB. Raises ``NotBootable`` for an empty menu.
    """
    if not menu:
        raise NotBootable("GRUB's menu has no entry with a kernel")
    path = wanted.split(">")
    for entry in menu:
        levels = (*entry.above, entry.names)
        if len(levels) == len(path) and all(part in names for part, names in zip(path, levels)):
            return entry
    return menu[0]


def environment(path: Path) -> dict[str, str]:
    """GRUB's memory (``grubenv``): lines ``name=value`` in a block of 1024 bytes."""
    lines = path.read_text().splitlines() if path.exists() else []
    return dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))


def write_environment(path: Path, values: t.Mapping[str, str]) -> None:
    """Write it back, of the size that it must have."""
    text = "# GRUB Environment Block\n" + "".join(f"{name}={value}\n" for name, value in values.items())
    path.write_text(text + "#" * (1024 - len(text)))


def _systemd_boot(partition: Path) -> Boot:
    settings = _settings(partition / "loader/loader.conf")
    found = {path.name: _settings(path) for path in (partition / "loader/entries").glob("*.conf")}
    newest_first = sorted(found, key=lambda name: version_key(found[name].get("version", "")), reverse=True)
    chosen = [name for name in newest_first if fnmatch.fnmatch(name, settings.get("default", "*"))] or newest_first
    if not chosen:
        raise NotBootable(f"systemd-boot has no entry in {partition}")
    entry = found[chosen[0]]
    if not (partition / entry["linux"].lstrip("/")).exists():
        raise NotBootable(f"systemd-boot does not find {entry['linux']}")
    initrd = entry["initrd"].replace("/", "\\")
    line = " ".join([f"initrd={initrd}", *entry.get("options", "").split()])
    return Boot("systemd-boot", entry["linux"].rpartition("/vmlinuz-")[2], line)


def _settings(path: Path) -> dict[str, str]:
    lines = path.read_text().splitlines() if path.exists() else []
    pairs = (line.split(None, 1) for line in lines if line.strip() and not line.startswith("#"))
    return {pair[0]: pair[1] if len(pair) > 1 else "" for pair in pairs}


def version_key(release: str) -> list[tuple[int, int | str]]:
    """Sorts releases as versions: numbers by their value, before words."""
    return [(1, int(part)) if part.isdigit() else (0, part) for part in re.findall(r"\d+|[a-z]+", release)]
