# SPDX-License-Identifier: GPL-3.0-or-later
"""Property strings, the comma-separated values of Proxmox (``/dev/nvidia0,gid=44,mode=0660``). Pure.

The form is that of pve-common's JSONSchema ``parse_property_string``: options ``name=value`` in any order, one of which
may stand without its name (the default key).
"""

from __future__ import annotations

import ipaddress
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Mapping

# Options that Proxmox defines as booleans with a default of 0: absent and 0 are the same.
BOOLEANS = frozenset(
    {
        "deny-write",
        "firewall",
        "force_rw_sys",
        "fuse",
        "host-managed",
        "keyctl",
        "link_down",
        "mknod",
        "nesting",
        "quota",
        "ro",
        "shared",
    }
)
# Options that hold an address, with or without a prefix length.
ADDRESSES = frozenset({"gw", "gw6", "ip", "ip6"})
# Options that hold a list, in which order says nothing.
LISTS = frozenset({"mount", "trunks"})


def truth(value: object) -> bool:
    """Read a boolean in any spelling that Proxmox accepts (1, on, yes, true). Everything else is false."""
    return str(value).strip().lower() in ("1", "on", "yes", "true")


def parse(value: str, default_key: str | None = None) -> dict[str, str]:
    """Parse a property string into its options.

    Raises ``ValueError`` for an option without a name that is not the default key, and for one that comes twice.
    """
    options: dict[str, str] = {}
    for part in str(value).split(","):
        if not part.strip():
            continue
        name, separator, content = part.partition("=")
        if not separator:
            if default_key is None:
                raise ValueError(f"'{part}' in '{value}' has no name")
            name, content = default_key, part
        name = name.strip()
        if name in options:
            raise ValueError(f"'{name}' comes twice in '{value}'")
        options[name] = content.strip()
    return options


def render(options: Mapping[str, object], default_key: str | None = None) -> str:
    """Print options as Proxmox does: the default key first and without its name, the others in alphabetical order."""
    first = [str(options[default_key])] if default_key is not None and default_key in options else []
    return ",".join(first + [f"{name}={options[name]}" for name in sorted(options) if name != default_key])


def comparable(options: Mapping[str, str], ignore: t.Collection[str] = ()) -> dict[str, str]:
    """Bring options to one spelling, so that equal ones compare equal; booleans that are off are left out."""
    result: dict[str, str] = {}
    for name, value in options.items():
        if name in ignore:
            continue
        if name in BOOLEANS:
            if truth(value):
                result[name] = "1"
        elif name in LISTS:
            result[name] = ";".join(sorted(item for item in value.split(";") if item))
        elif name == "hwaddr":
            result[name] = value.upper()
        elif name in ADDRESSES:
            result[name] = _address(value)
        elif name == "size":
            result[name] = _size(value)
        else:
            result[name] = value
    return result


def _address(value: str) -> str:
    """An address in the one spelling that it has most briefly; words such as dhcp as they are."""
    try:
        return str(ipaddress.ip_interface(value) if "/" in value else ipaddress.ip_address(value))
    except ValueError:
        return value.lower()


def _size(value: str) -> str:
    try:
        return f"{gibibytes(value):g}G"
    except ValueError:
        return value


def gibibytes(size: str) -> float:
    """Read a disk size as Proxmox prints it (``64G``, ``512M``, bytes without a letter) in GiB.

    Raises ``ValueError`` for anything else.
    """
    factors = {"K": 1024, "M": 1024**2, "G": 1024**3, "T": 1024**4}
    text = size.strip()
    factor = factors.get(text[-1:].upper())
    number = float(text[:-1]) * factor if factor else float(text)
    return number / 1024**3
