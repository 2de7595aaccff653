# SPDX-License-Identifier: GPL-3.0-or-later
"""What procfs and sysfs say about NVIDIA's driver: pure parsers, text in, plain values out.

A field that is not there, or that holds no value, is ``None``: absent is never turned into a good answer here.
"""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from ..cmdline import parameters

# "NVIDIA UNIX Open Kernel Module for x86_64  595.58.03  Release Build ..." and
# "NVIDIA UNIX x86_64 Kernel Module  520.61.05  Thu Sep 29 ...": the word Open is the only difference that counts.
_BANNER = re.compile(r"^NVRM version:\s+.*?(?P<open>\bOpen )?Kernel Module(?: for \S+)?\s+(?P<version>\d+(?:\.\d+)+)\b")
_BUS_ID = re.compile(r"^(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})\.([0-7])$")
_TRUE, _FALSE = frozenset({"1", "y", "on", "yes"}), frozenset({"0", "n", "off", "no"})


@dataclass(frozen=True)
class DriverBanner:
    """The kernel module as it names itself."""

    version: str
    open_kernel_module: bool


def driver_banner(text: str) -> DriverBanner | None:
    """Read ``/proc/driver/nvidia/version``, in the form of the open or of the proprietary module."""
    for line in text.splitlines():
        found = _BANNER.match(line)
        if found:
            return DriverBanner(found["version"], found["open"] is not None)
    return None


def driver_parameters(text: str) -> dict[str, int | str]:
    """Read ``/proc/driver/nvidia/params``: numbers as ``int``, quoted values without their quotes."""
    parameters: dict[str, int | str] = {}
    for line in text.splitlines():
        name, separator, value = line.partition(":")
        value = value.strip()
        if separator and name.strip():
            parameters[name.strip()] = int(value) if value.isdigit() else value.strip('"')
    return parameters


def gpu_information(text: str) -> dict[str, t.Any]:
    """Read ``/proc/driver/nvidia/gpus/<bdf>/information``: ``name``, ``uuid``, ``minor``, ``excluded``.

    The driver prints question marks for what it learns only once the GPU has been initialised; that is ``None``.
    """
    fields = {}
    for line in text.splitlines():
        key, separator, value = line.partition(":")
        if separator:
            fields[key.strip()] = value.strip()

    def known(key: str) -> str | None:
        value = fields.get(key, "")
        return None if not value or "?" in value else value

    minor = known("Device Minor")
    excluded = known("GPU Excluded")
    return {
        "name": known("Model"),
        "uuid": known("GPU UUID"),
        "minor": int(minor) if minor and minor.isdigit() else None,
        "excluded": boolean(excluded) if excluded else None,
    }


def character_majors(text: str) -> dict[str, int]:
    """Read the character part of ``/proc/devices``: name to major. Of two lines with one name the first stands."""
    majors: dict[str, int] = {}
    for line in text.splitlines():
        if line.startswith("Block devices"):
            break
        number, _, name = line.strip().partition(" ")
        if number.isdigit() and name:
            majors.setdefault(name.strip(), int(number))
    return majors


def boolean(text: str) -> bool | None:
    """A kernel parameter's yes or no (``Y``, ``1``, ``on``); ``None`` if it is neither."""
    word = text.strip().strip('"').lower()
    return True if word in _TRUE else False if word in _FALSE else None


def command_line(text: str) -> list[tuple[str, str | None]]:
    """Split ``/proc/cmdline`` into names and values in their order; a flag without ``=`` has the value ``None``."""
    return [(one.name, one.value) for one in parameters.parse(text)]


def bus_id(text: str) -> str:
    """One form for a PCI address: ``0000:01:00.0``, from ``01:00.0``, upper case, or NVML's eight-digit domain.

    Raises ``ValueError`` for anything else.
    """
    found = _BUS_ID.match(text.strip().lower())
    if not found:
        raise ValueError(f"{text!r} is not a PCI address such as 0000:01:00.0")
    domain, bus, device, function = found.groups()
    return f"{int(domain or '0', 16):04x}:{bus}:{device}.{function}"


def is_guest(uid_map: str | None, container: bool, proxmox: bool) -> bool:
    """Whether this is a container that only sees what it was given, and not the machine that owns the GPUs.

    ``uid_map`` is the text of ``/proc/self/uid_map``: anything but the identity over all ids is an unprivileged
    container. A privileged one maps nothing, so there the ``container`` mark of its init decides, except on a Proxmox
    node (``proxmox``), which is never a guest of its own.
    """
    if uid_map is not None and uid_map.split() and uid_map.split() != ["0", "0", "4294967295"]:
        return True
    return container and not proxmox
