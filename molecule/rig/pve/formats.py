# SPDX-License-Identifier: GPL-3.0-or-later
"""Formats of single values and of property strings (``/dev/nvidia0,gid=44``), with Proxmox's words for what is wrong."""

from __future__ import annotations

import ipaddress
import re
import typing as t

Spec = dict[str, t.Any]  # type, optional, format, enum, pattern, minimum, maximum, minLength, maxLength, default_key
Format = dict[str, Spec]  # the keys of a property string


class FormatError(ValueError):
    """The text of a refused value; it ends with a newline, as Proxmox's does."""


LIST_SEPARATORS = re.compile(r"[,;\s\0]+")
TRUE = re.compile(r"1|on|yes|true", re.I)
FALSE = re.compile(r"0|off|no|false", re.I)


def split_list(value: str) -> list[str]:
    """Split ``a,b;c`` as Proxmox does: comma, semicolon and white space separate."""
    return [part for part in LIST_SEPARATORS.split(value) if part]


def _pattern(regex: str, complaint: str) -> t.Callable[[str], None]:
    compiled = re.compile(regex)

    def check(value: str) -> None:
        if not compiled.fullmatch(value):
            raise FormatError(complaint.format(value) + "\n")

    return check


def _address(version: int | None) -> t.Callable[[str], None]:
    def check(value: str) -> None:
        try:
            found = ipaddress.ip_address(value)
        except ValueError:
            found = None
        if found is None or (version and found.version != version):
            kind = f"IPv{version}" if version else "IP"
            raise FormatError(f"value does not look like a valid {kind} address\n")

    return check


def _network(version: int, words: tuple[str, ...]) -> t.Callable[[str], None]:
    def check(value: str) -> None:
        if value in words:
            return
        try:
            good = "/" in value and ipaddress.ip_interface(value).version == version
        except ValueError:
            good = False
        if not good:
            raise FormatError(f"value does not look like a valid ipv{version} network configuration\n")

    return check


def _device_path(value: str) -> None:
    if not value.startswith("/dev/") or re.search(r"/\.\.?(/|$)", value):
        raise FormatError(f"{value} is not a valid device path\n")


def _mount_path(value: str) -> None:
    if re.search(r"/\.\.?(/|$)", value) or value.startswith("../") or value == "..":
        raise FormatError(f"{value} contains illegal character sequences\n")


def _startup(value: str) -> None:
    for part in value.split(","):
        if part.strip() and not re.fullmatch(r"(order=)?\d+|(up|down)=\d+", part.strip()):
            raise FormatError(f"unable to parse startup options '{value}'\n")


def _list_of(check: t.Callable[[str], None]) -> t.Callable[[str], None]:
    def each(value: str) -> None:
        for part in split_list(value):
            check(part)

    return each


_DNS_LABEL = r"(?=.{1,63}(?:\.|$))[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
_dns_name = _pattern(rf"{_DNS_LABEL}(?:\.{_DNS_LABEL})*", "value does not look like a valid DNS name")
_config_id = _pattern(r"(?i)[a-z][a-z0-9_-]+", "invalid configuration ID '{}'")
_tag = _pattern(r"(?i)[a-z0-9_][a-z0-9_\-+.]*", "invalid characters in tag")

NAMED: dict[str, t.Callable[[str], None]] = {
    "pve-lxc-dev-string": _device_path,
    "pve-lxc-mp-string": _mount_path,
    "pve-configid": _config_id,
    "pve-configid-list": _list_of(_config_id),
    "pve-vmid": _pattern(r"[1-9][0-9]{2,8}", "value does not look like a valid VM ID"),
    "pve-node": _pattern(r"(?i)[a-z0-9]([a-z0-9-]*[a-z0-9])?", "value does not look like a valid node name"),
    "pve-storage-id": _pattern(r"(?i)[a-z][a-z0-9\-_.]*[a-z0-9]", "storage ID '{}' contains illegal characters"),
    "pve-storage-content": _pattern(r"[a-z]+", "invalid content type '{}'"),
    "pve-storage-content-list": _list_of(_pattern(r"[a-z]+", "invalid content type '{}'")),
    "pve-volume-id": _pattern(r"[a-zA-Z][a-zA-Z0-9\-_.]*[a-zA-Z0-9]:.+", "unable to parse volume ID '{}'"),
    "pve-poolid": _pattern(r"(?i)[a-z0-9.\-_/]+", "value does not look like a valid pool name"),
    "pve-realm": _pattern(r"[A-Za-z][A-Za-z0-9.\-_]+", "value does not look like a valid realm"),
    "pve-priv-list": _list_of(_pattern(r"[A-Za-z.]+", "invalid privilege '{}'")),
    "pve-startup-order": _startup,
    "pve-tag-list": _list_of(_tag),
    "pve-ct-timezone": _pattern(r"host|[A-Za-z0-9_+\-/]+", "invalid time zone '{}'"),
    "pve-task-status-type-list": _list_of(_pattern(r"ok|error|warning|unknown", "invalid status '{}'")),
    "dns-name": _dns_name,
    "dns-name-list": _list_of(_dns_name),
    "lxc-ip-with-ll-iface-list": _list_of(lambda value: _address(None)(value.split("%")[0])),
    "ipv4": _address(4),
    "ipv6": _address(6),
    "pve-ipv4-config": _network(4, ("dhcp", "manual")),
    "pve-ipv6-config": _network(6, ("auto", "dhcp", "manual")),
    "mac-addr": _pattern(
        r"(?i)[a-f0-9][02468ace](?::[a-f0-9]{2}){5}", "value does not look like a valid unicast MAC address"
    ),
    "disk-size": _pattern(r"\d+(\.\d+)?[KMGT]?", "value does not look like a valid disk size: {}"),
}


def boolean(value: str) -> int | None:
    """1 or 0 for Proxmox's words for yes and no, None for anything else."""
    if TRUE.fullmatch(value):
        return 1
    return 0 if FALSE.fullmatch(value) else None


def check_format(form: str | Format, value: str, path: str = "") -> None:
    """Check a value against a named format or the keys of a property string; raises FormatError."""
    if isinstance(form, dict):
        parse_property_string(form, value, path)
    else:
        NAMED[form](value)


def value_error(spec: Spec, value: str, path: str = "") -> str | None:
    """Why a value does not fit its description, or None. ``path`` prefixes the keys of a property string."""
    kind = spec["type"]
    if kind == "boolean":
        return None if boolean(value) is not None else f"type check ('boolean') failed - got '{value}'"
    if kind in ("integer", "number"):
        if not re.fullmatch(r"[+-]?\d+" if kind == "integer" else r"[+-]?\d+(\.\d+)?", value):
            return f"type check ('{kind}') failed - got '{value}'"
        if "minimum" in spec and float(value) < spec["minimum"]:
            return f"value must have a minimum value of {spec['minimum']}"
        if "maximum" in spec and float(value) > spec["maximum"]:
            return f"value must have a maximum value of {spec['maximum']}"
        return None
    if "format" in spec:
        try:
            check_format(spec["format"], value, path)
        except FormatError as error:
            return f"invalid format - {error}"
    if "pattern" in spec and not re.fullmatch(spec["pattern"], value):
        return "value does not match the regex pattern"
    if "minLength" in spec and len(value) < spec["minLength"]:
        return f"value must be at least {spec['minLength']} characters long"
    if "maxLength" in spec and len(value) > spec["maxLength"]:
        return f"value may only be {spec['maxLength']} characters long"
    if "enum" in spec and value not in spec["enum"]:
        return f"value '{value}' does not have a value in the enumeration '{', '.join(spec['enum'])}'"
    return None


def parse_property_string(form: Format, text: str, path: str = "") -> dict[str, t.Any]:
    """The keys and values of ``value,key=value``; booleans become 1 or 0, the rest stays text. Raises FormatError."""
    default_key = next((key for key, spec in form.items() if spec.get("default_key")), None)
    found: dict[str, t.Any] = {}
    for part in text.split(","):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        if not equals:
            if default_key is None:
                raise FormatError("value without key, but schema does not define a default key\n")
            key, value = default_key, part
        elif not key or not value:
            raise FormatError("missing key in comma-separated list property\n")
        if key in found:
            raise FormatError(f"duplicate key in comma-separated list property: {key}\n")
        found[key] = value
    prefix = f"{path}." if path else ""
    errors = {
        prefix + key: "property is missing and it is not optional"
        for key, spec in form.items()
        if key not in found and not spec.get("optional")
    }
    for key, value in found.items():
        if key not in form:
            errors[prefix + key] = (
                "property is not defined in schema and the schema does not allow additional properties"
            )
        elif why := value_error(form[key], value):
            errors[prefix + key] = why
        elif form[key]["type"] == "boolean":
            found[key] = boolean(value)
    if errors:
        raise FormatError("format error\n" + "".join(f"{key}: {why}\n" for key, why in sorted(errors.items())))
    return found


def print_property_string(form: Format, values: dict[str, t.Any]) -> str:
    """The text of a property string: default key, then required keys, then the others, each group alphabetically."""

    def rank(key: str) -> tuple[bool, bool, str]:
        return (not form[key].get("default_key"), bool(form[key].get("optional")), key)

    return ",".join(
        str(values[key]) if form[key].get("default_key") else f"{key}={values[key]}" for key in sorted(values, key=rank)
    )
