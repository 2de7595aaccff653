# SPDX-License-Identifier: GPL-3.0-or-later
"""What each method of the API accepts, and the check of a request against it.

Names, types and limits are those of Proxmox VE 9.1; the unit tests compare them with the published description.
"""

from __future__ import annotations

import re
import typing as t

from .errors import refused
from .formats import Format, FormatError, Spec, boolean, check_format, value_error

OPTIONAL = {"optional": True}
BOOLEAN: Spec = {"type": "boolean", **OPTIONAL}
TEXT: Spec = {"type": "string", **OPTIONAL}


def _integer(minimum: int | None = None, maximum: int | None = None) -> Spec:
    limits = {"minimum": minimum, "maximum": maximum}
    return {"type": "integer", **OPTIONAL, **{key: value for key, value in limits.items() if value is not None}}


def _formatted(form: str | Format, **more: t.Any) -> Spec:
    return {"type": "string", "format": form, **OPTIONAL, **more}


def _matching(pattern: str) -> Spec:
    return {"type": "string", "pattern": pattern, **OPTIONAL}


def _one_of(*values: str) -> Spec:
    return {"type": "string", "enum": list(values), **OPTIONAL}


def _required(spec: Spec) -> Spec:
    return {key: value for key, value in spec.items() if key != "optional"}


DEVICE: Format = {
    "path": _formatted("pve-lxc-dev-string", default_key=True),
    "deny-write": BOOLEAN,
    "gid": _integer(0),
    "mode": _matching(r"0[0-7]{3}"),
    "uid": _integer(0),
}
FEATURES: Format = {
    **dict.fromkeys(("force_rw_sys", "fuse", "keyctl", "mknod", "nesting"), BOOLEAN),
    "mount": _matching(r"[a-zA-Z0-9_; ]+"),
}
_MOUNT_OPTION = r"(discard|lazytime|noatime|nodev|noexec|nosuid)"
ROOTFS: Format = {
    "volume": _required(_formatted("pve-lxc-mp-string", default_key=True)),
    **dict.fromkeys(("acl", "quota", "replicate", "ro", "shared"), BOOLEAN),
    "mountoptions": _matching(rf"{_MOUNT_OPTION}(;{_MOUNT_OPTION})*"),
    "size": _formatted("disk-size"),
}
MOUNT: Format = {
    **ROOTFS,
    "mp": _required(_formatted("pve-lxc-mp-string")),
    "backup": BOOLEAN,
    "keepattrs": BOOLEAN,
}
NETWORK: Format = {
    "name": _required(_matching(r"[-_.\w\d]+")),
    "bridge": _matching(r"[-_.\w\d]+"),
    **dict.fromkeys(("firewall", "host-managed", "link_down"), BOOLEAN),
    "gw": _formatted("ipv4"),
    "gw6": _formatted("ipv6"),
    "hwaddr": _formatted("mac-addr"),
    "ip": _formatted("pve-ipv4-config"),
    "ip6": _formatted("pve-ipv6-config"),
    "mtu": _integer(64, 65535),
    "rate": {"type": "number", **OPTIONAL},
    "tag": _integer(1, 4094),
    "trunks": _matching(r"\d+(?:;\d+)*"),
    "type": _one_of("veth"),
}
UNUSED: Format = {"volume": _required(_formatted("pve-volume-id", default_key=True))}

NUMBERED = {"dev": 256, "mp": 256, "net": 32, "unused": 256}

CONFIG: dict[str, Spec] = {
    "arch": _one_of("amd64", "i386", "arm64", "armhf", "riscv32", "riscv64"),
    "cmode": _one_of("shell", "console", "tty"),
    "console": BOOLEAN,
    "cores": _integer(1, 8192),
    "cpulimit": {"type": "number", "minimum": 0, "maximum": 8192, **OPTIONAL},
    "cpuunits": _integer(0, 500000),
    "debug": BOOLEAN,
    "description": {**TEXT, "maxLength": 8192},
    "dev[n]": _formatted(DEVICE),
    "entrypoint": _matching(r"[^\x00-\x08\x10-\x1F\x7F]+"),
    "env": _matching(r"(?:\w+=[^\x00-\x08\x10-\x1F\x7F]*)(?:\0\w+=[^\x00-\x08\x10-\x1F\x7F]*)*"),
    "features": _formatted(FEATURES),
    "hookscript": _formatted("pve-volume-id"),
    "hostname": _formatted("dns-name", maxLength=255),
    "lock": _one_of(
        "backup",
        "create",
        "destroyed",
        "disk",
        "fstrim",
        "migrate",
        "mounted",
        "rollback",
        "snapshot",
        "snapshot-delete",
    ),
    "memory": _integer(16),
    "mp[n]": _formatted(MOUNT),
    "nameserver": _formatted("lxc-ip-with-ll-iface-list"),
    "net[n]": _formatted(NETWORK),
    "onboot": BOOLEAN,
    "ostype": _one_of(
        *("debian", "devuan", "ubuntu", "centos", "fedora", "opensuse", "archlinux", "alpine", "gentoo", "nixos"),
        "unmanaged",
    ),
    "protection": BOOLEAN,
    "rootfs": _formatted(ROOTFS),
    "searchdomain": _formatted("dns-name-list"),
    "startup": _formatted("pve-startup-order"),
    "swap": _integer(0),
    "tags": _formatted("pve-tag-list"),
    "template": BOOLEAN,
    "timezone": _formatted("pve-ct-timezone"),
    "tty": _integer(0, 6),
    "unprivileged": BOOLEAN,
    "unused[n]": _formatted(UNUSED),
}
INTERNAL: dict[str, Spec] = {"parent": _formatted("pve-configid"), "snaptime": _integer(0)}  # in the file only

_NODE: dict[str, Spec] = {"node": _required(_formatted("pve-node"))}
_GUEST: dict[str, Spec] = {**_NODE, "vmid": _required({**_integer(100, 999999999), "format": "pve-vmid"})}
_TASK: dict[str, Spec] = {**_NODE, "upid": _required(TEXT)}
_SKIPLOCK = {"skiplock": BOOLEAN}
_STORAGE_ID = _formatted("pve-storage-id")
_BWLIMIT: dict[str, Spec] = {"bwlimit": {"type": "number", "minimum": 0, **OPTIONAL}}
_SNAPSHOT: dict[str, Spec] = {**_GUEST, "snapname": _required(_formatted("pve-configid", maxLength=40))}

METHODS: dict[str, dict[str, Spec]] = {
    "POST /access/ticket": {
        "new-format": BOOLEAN,
        "otp": TEXT,
        "password": _required(TEXT),
        "path": {**TEXT, "maxLength": 64, "requires": "privs"},
        "privs": _formatted("pve-priv-list", maxLength=64, requires="path"),
        "realm": _formatted("pve-realm", maxLength=32),
        "tfa-challenge": TEXT,
        "username": {"type": "string", "maxLength": 64},
    },
    "GET /access/permissions": {
        "path": _matching(r"/|(/[A-Za-z0-9.\-_@]+)+"),
        "userid": _matching(r"[^\s:/]+@[^\s:/!]+(![^\s:/!]+)?"),
    },
    "GET /version": {},
    "GET /cluster/nextid": {"vmid": {**_GUEST["vmid"], **OPTIONAL}},
    "GET /cluster/resources": {"type": _one_of("vm", "storage", "node", "sdn")},
    "GET /nodes": {},
    "GET /nodes/{node}/version": _NODE,
    "GET /nodes/{node}/status": _NODE,
    "GET /nodes/{node}/network": {
        **_NODE,
        "type": _one_of(
            *("bridge", "bond", "eth", "alias", "vlan", "fabric", "OVSBridge", "OVSBond", "OVSPort", "OVSIntPort"),
            *("vnet", "any_bridge", "any_local_bridge", "include_sdn"),
        ),
    },
    "GET /nodes/{node}/storage": {
        **_NODE,
        "content": _formatted("pve-storage-content-list"),
        "enabled": BOOLEAN,
        "format": BOOLEAN,
        "storage": _STORAGE_ID,
        "target": _formatted("pve-node"),
    },
    "GET /nodes/{node}/storage/{storage}/content": {
        **_NODE,
        "content": _formatted("pve-storage-content"),
        "storage": _required(_STORAGE_ID),
        "vmid": {**_GUEST["vmid"], **OPTIONAL},
    },
    "GET /nodes/{node}/tasks": {
        **_NODE,
        "errors": BOOLEAN,
        "limit": _integer(0),
        "since": _integer(),
        "source": _one_of("archive", "active", "all"),
        "start": _integer(0),
        "statusfilter": _formatted("pve-task-status-type-list"),
        "typefilter": TEXT,
        "until": _integer(),
        "userfilter": TEXT,
        "vmid": {**_GUEST["vmid"], **OPTIONAL},
    },
    "GET /nodes/{node}/tasks/{upid}": _TASK,
    "GET /nodes/{node}/tasks/{upid}/status": _TASK,
    "GET /nodes/{node}/tasks/{upid}/log": {
        **_TASK,
        "download": BOOLEAN,
        "limit": _integer(0),
        "start": _integer(0),
    },
    "GET /nodes/{node}/lxc": _NODE,
    "POST /nodes/{node}/lxc": {
        **_GUEST,
        **CONFIG,
        **_BWLIMIT,
        **dict.fromkeys(("force", "ha-managed", "ignore-unpack-errors", "restore", "start"), BOOLEAN),
        "ostemplate": {"type": "string", "maxLength": 255},
        "password": {**TEXT, "minLength": 5},
        "pool": _formatted("pve-poolid"),
        "ssh-public-keys": TEXT,
        "storage": _STORAGE_ID,
        "unique": {**BOOLEAN, "requires": "restore"},
    },
    "GET /nodes/{node}/lxc/{vmid}": _GUEST,
    "DELETE /nodes/{node}/lxc/{vmid}": {
        **_GUEST,
        **dict.fromkeys(("destroy-unreferenced-disks", "force", "purge"), BOOLEAN),
    },
    "GET /nodes/{node}/lxc/{vmid}/config": {
        **_GUEST,
        "current": BOOLEAN,
        "snapshot": _formatted("pve-configid", maxLength=40),
    },
    "PUT /nodes/{node}/lxc/{vmid}/config": {
        **_GUEST,
        **CONFIG,
        "delete": _formatted("pve-configid-list"),
        "digest": {**TEXT, "maxLength": 40},
        "revert": _formatted("pve-configid-list"),
    },
    "GET /nodes/{node}/lxc/{vmid}/pending": _GUEST,
    "GET /nodes/{node}/lxc/{vmid}/interfaces": _GUEST,
    "POST /nodes/{node}/lxc/{vmid}/template": _GUEST,
    "GET /nodes/{node}/lxc/{vmid}/feature": {
        **_GUEST,
        "feature": _required(_one_of("snapshot", "clone", "copy")),
        "snapname": _formatted("pve-configid", maxLength=40),
    },
    "GET /nodes/{node}/lxc/{vmid}/snapshot": _GUEST,
    "POST /nodes/{node}/lxc/{vmid}/snapshot": {**_SNAPSHOT, "description": TEXT},
    "GET /nodes/{node}/lxc/{vmid}/snapshot/{snapname}": _SNAPSHOT,
    "DELETE /nodes/{node}/lxc/{vmid}/snapshot/{snapname}": {**_SNAPSHOT, "force": BOOLEAN},
    "GET /nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config": _SNAPSHOT,
    "PUT /nodes/{node}/lxc/{vmid}/snapshot/{snapname}/config": {**_SNAPSHOT, "description": TEXT},
    "POST /nodes/{node}/lxc/{vmid}/snapshot/{snapname}/rollback": {**_SNAPSHOT, "start": BOOLEAN},
    "POST /nodes/{node}/lxc/{vmid}/clone": {
        **_GUEST,
        **_BWLIMIT,
        "description": TEXT,
        "full": BOOLEAN,
        "hostname": _formatted("dns-name"),
        "newid": _GUEST["vmid"],
        "pool": _formatted("pve-poolid"),
        "snapname": _formatted("pve-configid", maxLength=40),
        "storage": _STORAGE_ID,
        "target": _formatted("pve-node"),
    },
    "PUT /nodes/{node}/lxc/{vmid}/resize": {
        **_GUEST,
        "digest": {**TEXT, "maxLength": 40},
        "disk": _required(_one_of("rootfs", *(f"mp{number}" for number in range(NUMBERED["mp"])))),
        "size": _required(_matching(r"\+?\d+(\.\d+)?[KMGT]?")),
    },
    "GET /nodes/{node}/lxc/{vmid}/status": _GUEST,
    "GET /nodes/{node}/lxc/{vmid}/status/current": _GUEST,
    "POST /nodes/{node}/lxc/{vmid}/status/start": {**_GUEST, **_SKIPLOCK, "debug": BOOLEAN},
    "POST /nodes/{node}/lxc/{vmid}/status/stop": {**_GUEST, **_SKIPLOCK, "overrule-shutdown": BOOLEAN},
    "POST /nodes/{node}/lxc/{vmid}/status/shutdown": {**_GUEST, "forceStop": BOOLEAN, "timeout": _integer(0)},
    "POST /nodes/{node}/lxc/{vmid}/status/reboot": {**_GUEST, "timeout": _integer(0)},
}


def numbered(table: dict[str, Spec], key: str) -> Spec | None:
    """The description of a key, where ``dev3`` is described as ``dev[n]``; None if there is none."""
    if key in table:
        return None if key.endswith("[n]") else table[key]
    found = re.fullmatch(r"([a-z]+)(0|[1-9]\d*)", key)
    if found and int(found[2]) < NUMBERED.get(found[1], 0):
        return table.get(f"{found[1]}[n]")
    return None


def config_option(key: str) -> Spec | None:
    """The description of a key of the configuration file, or None."""
    return numbered(CONFIG, key) or INTERNAL.get(key)


def as_text(value: t.Any) -> str:
    """A value of a JSON request in the form that it has in any other request."""
    if isinstance(value, bool):
        return str(int(value))
    if isinstance(value, list):
        return ",".join(as_text(part) for part in value)
    return str(value)


def typed(spec: Spec, value: str) -> t.Any:
    """A value that was checked, as the type that its description names."""
    if spec["type"] == "boolean":
        return boolean(value)
    return int(value) if spec["type"] == "integer" else value


def check(method: str, given: dict[str, t.Any]) -> dict[str, t.Any]:
    """The parameters of a request in their types. Raises ApiError 400 that names every refused one."""
    table = METHODS[method]
    values = {key: as_text(value) for key, value in given.items()}
    errors: dict[str, str] = {}
    result: dict[str, t.Any] = {}
    for key, value in values.items():
        spec = numbered(table, key)
        if spec is None:
            errors[key] = "property is not defined in schema and the schema does not allow additional properties"
        elif why := value_error(spec, value, key):
            errors[key] = why
        else:
            result[key] = typed(spec, value)
            if "requires" in spec and spec["requires"] not in values:
                errors[spec["requires"]] = f"missing property - '{key}' requires this property"
    for key, spec in table.items():
        if not spec.get("optional") and key not in values:
            errors[key] = "property is missing and it is not optional"
    if errors:
        raise refused(errors)
    return result


def check_type(key: str, value: str) -> t.Any:
    """The value of a line of the configuration file in its type. Raises FormatError; the file's reader only warns."""
    spec = config_option(key)
    if spec is None:
        raise FormatError(f"unknown setting '{key}'\n")
    kind = spec["type"]
    if kind == "boolean" and boolean(value) is not None:
        return boolean(value)
    if kind == "integer" and value.isdecimal():
        return int(value)
    if kind in ("boolean", "integer") or (kind == "number" and not re.fullmatch(r"\d+(\.\d+)?", value)):
        raise FormatError(f"type check ('{kind}') failed - got '{value}'\n")
    if "format" in spec:
        check_format(spec["format"], value)
    return value
