# SPDX-License-Identifier: GPL-3.0-or-later
"""Values of options that Proxmox would refuse, or that no network can have: told by the option's own name. Pure.

Limits and formats are those of the API's schema (apidata of pve-docs 9.1.3) and of pve-common's JSONSchema, where not
said otherwise.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t

if t.TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

VMIDS = (100, 999999999)
# option: least and most.
NUMBERS: dict[str, tuple[int, int | None]] = {
    "vmid": VMIDS,
    "cores": (0, 8192),  # 0 is this module's word for all of them
    "memory_mib": (16, None),
    "swap_mib": (0, None),
}
_LABEL = r"(?=.{1,63}(?:\.|$))[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?"
DNS_NAME = re.compile(rf"(?=.{{1,255}}$){_LABEL}(?:\.{_LABEL})*")
TAG = re.compile(r"[a-zA-Z0-9_][a-zA-Z0-9_\-+.]*")
STORAGE = re.compile(r"[a-zA-Z][a-zA-Z0-9\-_.]*[a-zA-Z0-9]")
TEMPLATE = re.compile(
    r"(?P<storage>[a-zA-Z][a-zA-Z0-9\-_.]*[a-zA-Z0-9]):vztmpl/(?P<file>[^/\s]+\.tar\.(?:gz|xz|zst|bz2))"
)
INTERFACE = re.compile(r"[-_.a-zA-Z0-9]+")
MAC = re.compile(r"[a-fA-F0-9][02468aceACE](?::[a-fA-F0-9]{2}){5}")
STARTUP = re.compile(r"(?:(?:order=)?\d+|(?:up|down)=\d+)(?:,(?:(?:order=)?\d+|(?:up|down)=\d+))*")
MOUNT_FLAGS = re.compile(r"[a-zA-Z0-9_; ]+")
SSH_KEY = re.compile(r"(?:^|\s)(?:ssh-(?:rsa|dss|ed25519)|ecdsa-sha2-\S+|sk-\S+) [A-Za-z0-9+/]+=*(?:\s|$)")
LINUX_NAME_LENGTH = 15  # IFNAMSIZ less its zero
DESCRIPTION_LENGTH = 8192
NETWORKS = 32
WORDS = {4: ("dhcp", "manual"), 6: ("dhcp", "auto", "manual")}
SHORTEST_PREFIX = 8

Fault = tuple[str, str]  # the option, and a sentence about it


def faults(params: Mapping[str, t.Any]) -> list[Fault]:
    """Every option with a value that would be refused, each with a sentence that says what is allowed."""
    return [
        *_numbers(params),
        *_texts(params),
        *_disks(params),
        *(("mounts", text) for text in of_mounts(params.get("mounts") or [])),
        *(("net", text) for text in of_networks(params.get("net") or [])),
        *(("devices", text) for text in of_devices(params.get("devices") or [])),
        *(("ssh_public_keys", text) for text in _keys(params.get("ssh_public_keys") or [])),
    ]


def _limit(name: str, value: int, least: int, most: int | None) -> str | None:
    if value >= least and (most is None or value <= most):
        return None
    return f"{name} is {value}; it must be {least} or more" + (f", and {most} at most" if most else "")


def _numbers(params: Mapping[str, t.Any]) -> Iterator[Fault]:
    for option, (least, most) in NUMBERS.items():
        value = params.get(option)
        if value is not None and (text := _limit(f"'{option}'", value, least, most)):
            yield option, text


def _texts(params: Mapping[str, t.Any]) -> Iterator[Fault]:
    hostname = params.get("hostname")
    if hostname and not DNS_NAME.fullmatch(hostname):
        yield (
            "hostname",
            f"'hostname' is '{hostname}'; it must be a DNS name: letters, digits and hyphens, in parts of 63 at most that "
            "begin and end with a letter or digit, with dots between them",
        )
    for tag in params.get("tags") or []:
        if not TAG.fullmatch(tag):
            yield (
                "tags",
                f"'tags' has '{tag}'; a tag is made of letters, digits and _ - + . and begins with a letter, a digit or _",
            )
    startup = params.get("startup")
    if startup and not STARTUP.fullmatch(startup):
        yield "startup", f"'startup' is '{startup}'; it must be like order=2,up=30,down=60"
    if len(params.get("description") or "") > DESCRIPTION_LENGTH:
        yield (
            "description",
            f"'description' has {len(params['description'])} characters; {DESCRIPTION_LENGTH} is the most",
        )
    template = params.get("ostemplate")
    if template and not TEMPLATE.fullmatch(template):
        yield (
            "ostemplate",
            f"'ostemplate' is '{template}'; it must be STORAGE:vztmpl/FILE, with a file that ends in .tar.zst, .tar.xz, "
            ".tar.gz or .tar.bz2",
        )
    flags = (params.get("features") or {}).get("mount")
    if flags and not MOUNT_FLAGS.fullmatch(flags):
        yield (
            "features",
            f"'features' has mount '{flags}'; it must be names of file systems with semicolons between them",
        )


def _disks(params: Mapping[str, t.Any]) -> Iterator[Fault]:
    disks = [("rootfs", "'rootfs'", params["rootfs"])] if params.get("rootfs") else []
    disks += [("mounts", f"'{mount['path']}' in 'mounts'", mount) for mount in params.get("mounts") or []]
    for option, name, disk in disks:
        if text := _limit(f"size_gib of {name}", disk["size_gib"], 1, None):
            yield option, text
        if not STORAGE.fullmatch(disk["storage"]):
            yield option, f"storage of {name} is '{disk['storage']}', which is no name that a storage can have"


def of_mounts(mounts: Sequence[Mapping[str, t.Any]]) -> Iterator[str]:
    """What is wrong with the paths of ``mounts``, a sentence each."""
    paths = [mount["path"] for mount in mounts]
    for path in dict.fromkeys(paths):
        if not path.startswith("/") or re.search(r"/\.\.?(?:/|$)|[,\s]", path):
            yield f"'{path}' in 'mounts' is not an absolute path without dots, commas and blanks"
        if paths.count(path) > 1:
            yield f"'mounts' has two entries with the path '{path}'"


def _keys(keys: Sequence[str]) -> Iterator[str]:
    for number, key in enumerate(keys, 1):
        if any(line.strip() and not line.startswith("#") and not SSH_KEY.search(line) for line in key.splitlines()):
            yield f"entry {number} of 'ssh_public_keys' is not a public key as in an .pub file"


def of_features(features: Mapping[str, t.Any]) -> Iterator[str]:
    """What is wrong with feature flags."""
    mount = features.get("mount")
    if mount and not re.fullmatch(r"[a-zA-Z0-9_; ]+", mount):
        yield f"'features.mount' is '{mount}'; it has names of file systems, separated by semicolons, as in 'nfs;cifs'"


def of_devices(devices: Sequence[Mapping[str, t.Any]]) -> Iterator[str]:
    """What is wrong with ``devices``, a sentence each."""
    paths = [device["path"] for device in devices]
    for path in dict.fromkeys(paths):
        if not path.startswith("/dev/") or re.search(r"/\.\.?(?:/|$)|,", path):
            yield f"'{path}' in 'devices' is not a device path that Proxmox accepts; it must be below /dev/"
        if paths.count(path) > 1:
            yield f"'devices' has two entries with the path '{path}'"
    for device in devices:
        mode = device.get("mode")
        if mode is not None and not re.fullmatch(r"0[0-7]{3}", mode):
            yield (
                f"mode '{mode}' of '{device['path']}' in 'devices' is not four octal digits that begin with 0; "
                'it must be quoted, as in mode: "0660"'
            )
        for owner in ("uid", "gid"):
            if text := _limit(f"{owner} of '{device['path']}' in 'devices'", device.get(owner) or 0, 0, None):
                yield text


def of_networks(networks: Sequence[Mapping[str, t.Any]]) -> Iterator[str]:
    """What is wrong with ``net``, a sentence each; whether the addresses fit each other is for ``addresses``."""
    numbers = [network["id"] for network in networks]
    for number in dict.fromkeys(numbers):
        if numbers.count(number) > 1:
            yield f"'net' has two entries with id {number}"
    for network in networks:
        yield from _network(network, f"net{network['id']} in 'net'")


def _network(network: Mapping[str, t.Any], where: str) -> Iterator[str]:
    limits = {"id": (0, NETWORKS - 1), "tag": (1, 4094), "mtu": (64, 65535)}
    for option, (least, most) in limits.items():
        if network.get(option) is not None and (text := _limit(f"{option} of {where}", network[option], least, most)):
            yield text
    for option in ("name", "bridge"):
        value = network.get(option)
        if value and not is_interface(value):
            yield (
                f"{option} of {where} is '{value}'; it must be of letters, digits and - _ . and "
                f"{LINUX_NAME_LENGTH} at most"
            )
    if network.get("hwaddr") and not MAC.fullmatch(network["hwaddr"]):
        yield f"hwaddr of {where} is '{network['hwaddr']}'; it must be a unicast address such as BC:24:11:00:00:01"
    for version, address, gateway in ((4, "ip", "gw"), (6, "ip6", "gw6")):
        value = network.get(address)
        if value and value not in WORDS[version] and interface(value, version) is None:
            longest = 32 if version == 4 else 128
            yield (
                f"{address} of {where} is '{value}'; it must be an IPv{version} address with a prefix length of "
                f"{SHORTEST_PREFIX} to {longest}, or {' or '.join(WORDS[version])}"
            )
        if network.get(gateway) and _address(network[gateway], version) is None:
            yield f"{gateway} of {where} is '{network[gateway]}'; it must be an IPv{version} address without a prefix length"


def is_interface(value: str | None) -> bool:
    """Whether an interface or bridge can have this name."""
    return bool(value and INTERFACE.fullmatch(value) and len(value) <= LINUX_NAME_LENGTH)


Address = t.Union[ipaddress.IPv4Address, ipaddress.IPv6Address]
Interface = t.Union[ipaddress.IPv4Interface, ipaddress.IPv6Interface]


def _address(value: str, version: int) -> Address | None:
    try:
        found = ipaddress.ip_address(value)
    except ValueError:
        return None
    return found if found.version == version else None


def interface(value: str, version: int) -> Interface | None:
    """An address with its subnet, None for what is not one (dhcp, a bare address, another version)."""
    if not re.fullmatch(r"[^/]+/\d+", value):
        return None
    try:
        found = ipaddress.ip_interface(value)
    except ValueError:
        return None
    return found if found.version == version and found.network.prefixlen >= SHORTEST_PREFIX else None


def addresses(network: Mapping[str, t.Any]) -> Iterator[tuple[str, str]]:
    """What does not fit among the addresses of one interface: a finding's id, and a sentence."""
    for version, ip, gw in ((4, "ip", "gw"), (6, "ip6", "gw6")):
        mine = interface(network.get(ip) or "", version)
        gateway = _address(network.get(gw) or "", version)
        if mine is None:
            continue
        where = f"of net{network['id']}"
        if role := _reserved(mine.ip, mine):
            yield "PVE_ADDRESS_UNUSABLE", f"{ip} {mine} {where} is the {role} of its subnet {mine.network}"
        if gateway is None:
            continue
        if gateway == mine.ip:
            yield "PVE_ADDRESS_UNUSABLE", f"{ip} {mine} {where} is also its {gw}"
        elif gateway not in mine.network:
            # A lone address (/32, /128) has its gateway outside always, and IPv6 often has a link-local one: Proxmox makes
            # a route to it on the link for both.
            if mine.network.num_addresses > 1 and not gateway.is_link_local:
                yield (
                    "PVE_GATEWAY_UNREACHABLE",
                    f"{gw} {gateway} {where} is not in the subnet {mine.network} of {ip} {mine}",
                )
        elif role := _reserved(gateway, mine):
            yield "PVE_GATEWAY_UNREACHABLE", f"{gw} {gateway} {where} is the {role} of the subnet {mine.network}"


def _reserved(address: Address, mine: Interface) -> str | None:
    """What an address is in a subnet where it is none that a machine can have. IPv6 knows no such addresses."""
    if mine.version == 6 or mine.network.num_addresses <= 2:
        return None
    if address == mine.network.network_address:
        return "network address"
    return "broadcast address" if address == mine.network.broadcast_address else None
