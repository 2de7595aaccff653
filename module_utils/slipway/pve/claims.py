# SPDX-License-Identifier: GPL-3.0-or-later
"""What the guests of a node claim of it, read from their configuration, and where a declared guest collides with them. Pure.

A claim counts whether or not its guest runs: which of two guests was stopped an hour ago says nothing about the next boot,
and the second one to start either shares a GPU's memory (a container) or pulls the GPU from under the driver (a virtual
machine). Only templates, which never start, claim nothing.
"""

from __future__ import annotations

import ipaddress
import re
import typing as t
from dataclasses import dataclass, field

from ..findings import Finding, finding
from . import conf, properties

if t.TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

CONTAINER, MACHINE = "lxc", "qemu"
_WORDS = {CONTAINER: "container", MACHINE: "virtual machine"}
# What Proxmox assumes where the file does not say (apidata of pve-docs 9.1.3; for a VM as for a container).
_MEMORY_MIB = 512
_GPU_NODE = re.compile(r"^/dev/nvidia(\d+)$")
# "c 195:3 rwm"; a star stands for every number.
_DEVICE_RULE = re.compile(r"^[ca]\s+(\d+):(\d+|\*)\s")
# Every GPU of the node, where a claim does not say which one.
_ALL = "*"


@dataclass(frozen=True)
class Hardware:
    """What a claim is translated with: the node's GPUs with their minor numbers (None without a driver), the driver's
    major, and Proxmox's mappings of PCI devices, each with its addresses on this node."""

    gpus: Mapping[str, int | None] = field(default_factory=dict)
    major: int | None = None
    mappings: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass(frozen=True)
class Guest:
    """A guest and its claims, each with the key or raw line that makes it.

    ``gpus`` are PCI addresses, ``devices`` paths on the node, ``addresses`` without prefix. A device node of a GPU that no
    driver has numbered yet is among the devices and in no GPU.
    """

    vmid: int
    kind: str
    name: str
    running: bool
    onboot: bool
    template: bool
    memory_mib: int
    gpus: Mapping[str, str]
    devices: Mapping[str, str]
    addresses: Mapping[str, str]
    hwaddrs: tuple[str, ...]
    tags: str

    @property
    def subject(self) -> str:
        return f"{_WORDS[self.kind]} '{self.name}' ({self.vmid})"

    def as_dict(self) -> dict[str, t.Any]:
        """The guest as the module returns it."""
        return {
            "vmid": self.vmid,
            "kind": self.kind,
            "name": self.name,
            "running": self.running,
            "gpus": sorted(self.gpus),
            "devices": sorted(self.devices),
            "addresses": sorted(self.addresses),
            "memory_mib": self.memory_mib,
            "onboot": self.onboot,
        }


@dataclass(frozen=True)
class Wanted:
    """The declared guest. ``networks`` are those of ``pve_container``: ``{id, name, bridge, ip, ip6, ...}``."""

    vmid: int
    hostname: str
    gpus: Sequence[str]
    networks: Sequence[Mapping[str, t.Any]]
    memory_mib: int

    @property
    def subject(self) -> str:
        return f"guest '{self.hostname}' ({self.vmid})"


def guest(vmid: int, kind: str, text: str, running: bool, hardware: Hardware) -> Guest:
    """Read a guest's configuration file. What waits for a restart is claimed as what is in force is."""
    now, later = conf.settings(text), conf.pending(text)
    both = [*now.items(), *later.items()]
    devices = _devices(both, conf.raw_lines(text)) if kind == CONTAINER else {}
    gpus = _gpus_of_container(devices, conf.raw_lines(text), hardware) if kind == CONTAINER else _passed(both, hardware)
    return Guest(
        vmid=vmid,
        kind=kind,
        name=now.get("hostname") or now.get("name") or str(vmid),
        running=running,
        onboot=properties.truth(now.get("onboot", "0")),
        template=properties.truth(now.get("template", "0")),
        memory_mib=_memory(later.get("memory") or now.get("memory")),
        gpus=gpus,
        devices=devices,
        addresses=_addresses(both),
        hwaddrs=tuple(sorted({found.upper() for _, found in _hwaddrs(both)})),
        tags=now.get("tags", ""),
    )


def _memory(text: str | None) -> int:
    # A VM's may be written "current=4096" since Proxmox VE 8.1.
    number = (text or "").rpartition("=")[2]
    return int(number) if number.isdigit() else _MEMORY_MIB


def _options(value: str, default_key: str) -> dict[str, str]:
    """The options of a property string; a value that Proxmox itself could not read claims nothing."""
    try:
        return properties.parse(value, default_key)
    except ValueError:
        return {}


def _addresses(items: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Addresses of ``netN`` (containers) and ``ipconfigN`` (cloud-init) without dhcp and the like."""
    found = {}
    for key, value in items:
        if re.fullmatch(r"(net|ipconfig)\d+", key):
            options = _options(value, "model")
            for option in ("ip", "ip6"):
                if (address := plain_address(options.get(option))) is not None:
                    found[address] = key
    return found


def _hwaddrs(items: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """MAC addresses by key. A VM's stands behind its model: ``virtio=BC:24:11:00:00:01,bridge=vmbr0``."""
    found = []
    for key, value in items:
        if re.fullmatch(r"net\d+", key):
            options = _options(value, "model")
            macs = [text for text in options.values() if re.fullmatch(r"(?i)([0-9a-f]{2}:){5}[0-9a-f]{2}", text)]
            found += [(key, mac) for mac in macs]
    return found


def hwaddr(text: str) -> str | None:
    """The MAC address of a guest's first network, in capitals; Proxmox chooses a random one at creation."""
    found = sorted(_hwaddrs(conf.settings(text).items()), key=lambda item: int(item[0][3:]))
    return found[0][1].upper() if found else None


def plain_address(text: str | None) -> str | None:
    """``192.0.2.21/24`` as ``192.0.2.21``; None for dhcp, auto, manual and what is no address."""
    try:
        return str(ipaddress.ip_address((text or "").partition("/")[0]))
    except ValueError:
        return None


def _devices(items: Iterable[tuple[str, str]], raw: Iterable[conf.Raw]) -> dict[str, str]:
    """Paths below /dev that a container gets, by ``devN``, as a mount, or by a raw mount entry."""
    found: dict[str, str] = {}
    for key, value in items:
        path = ""
        if re.fullmatch(r"dev\d+", key):
            path = _options(value, "path").get("path", "")
        elif re.fullmatch(r"mp\d+", key):
            path = _options(value, "volume").get("volume", "")
        if path.startswith("/dev/"):
            found.setdefault(path, key)
    for line in raw:
        source = line.value.split()[0] if line.value.split() else ""
        if line.key == "lxc.mount.entry" and source.startswith("/dev/"):
            found.setdefault(source, str(line))
    return found


def _gpus_of_container(devices: Mapping[str, str], raw: Iterable[conf.Raw], hardware: Hardware) -> dict[str, str]:
    """GPUs by PCI address: of the device nodes, and of rules that let a GPU's number through.

    The rule for all numbers (``c 195:* rwm``) comes with most recipes beside the mounts of single GPUs, and then means
    these. Only alone it stands for all: the container may make the nodes itself.
    """
    by_minor = {minor: address for address, minor in hardware.gpus.items() if minor is not None}
    found: dict[str, str] = {}
    nodes = [(path, key, int(seen[1])) for path, key in devices.items() if (seen := _GPU_NODE.match(path))]
    for _, key, minor in nodes:
        if minor in by_minor:
            found.setdefault(by_minor[minor], key)
    for line in raw:
        rule = _DEVICE_RULE.match(line.value + " ") if line.key.endswith(".devices.allow") else None
        if rule is None or hardware.major is None or int(rule[1]) != hardware.major:
            continue
        if rule[2] != _ALL and int(rule[2]) in by_minor:
            found.setdefault(by_minor[int(rule[2])], str(line))
        elif rule[2] == _ALL and not nodes:
            found.update({address: str(line) for address in hardware.gpus if address not in found})
    return found


def _passed(items: Iterable[tuple[str, str]], hardware: Hardware) -> dict[str, str]:
    """GPUs that a virtual machine gets by ``hostpciN``; of a mapping with several devices it may take any."""
    found: dict[str, str] = {}
    for key, value in items:
        if re.fullmatch(r"hostpci\d+", key):
            options = _options(value, "host")
            addresses = [part for part in options.get("host", "").split(";") if part]
            addresses += hardware.mappings.get(options.get("mapping", ""), [])
            for address in addresses:
                found.update({gpu: key for gpu in hardware.gpus if _is_function_of(gpu, address) and gpu not in found})
    return found


def _is_function_of(gpu: str, address: str) -> bool:
    """Whether ``03:00``, ``0000:03:00`` (all functions) or a full address means this GPU."""
    wanted = address.strip().lower()
    wanted = wanted if wanted.count(":") == 2 else f"0000:{wanted}"
    return gpu == wanted or ("." not in wanted and gpu.startswith(f"{wanted}."))


def mappings(text: str, node: str) -> dict[str, list[str]]:
    """Read ``/etc/pve/mapping/pci.cfg``: for each mapping the PCI addresses that it has on this node.

    A section is the name on a line of its own and then indented lines; ``map`` holds a property string with node and path,
    where several functions of a device are separated by semicolons (PVE/Mapping/PCI.pm).
    """
    found: dict[str, list[str]] = {}
    name = ""
    for line in text.splitlines():
        if line.strip() and not line[0].isspace():
            name = line.strip()
        elif line.split()[:1] == ["map"]:
            options = _options(line.split(None, 1)[1], "id")
            if options.get("node") == node:
                found.setdefault(name, []).extend(options.get("path", "").split(";"))
    return found


def find(
    wanted: Wanted,
    guests: Sequence[Guest],
    hardware: Hardware,
    memory_mib: int,
    answers: Mapping[str, Answer],
) -> list[Finding]:
    """Where the declared guest collides with the node's others, and with what the node has."""
    others = [other for other in guests if other.vmid != wanted.vmid and not other.template]
    own = next((other for other in guests if other.vmid == wanted.vmid), None)
    return [
        *_gpu_claims(wanted, others, hardware),
        *_address_claims(wanted, others, own, guests, answers),
        *_memory_claims(wanted, others, memory_mib),
    ]


@dataclass(frozen=True)
class Answer:
    """Who has an address: the ``macs`` that answered for it, whether it is the node's own; else why nobody was asked, or
    what went wrong."""

    macs: tuple[str, ...] = ()
    own: bool = False
    not_asked: str = ""
    trouble: str = ""


def _gpu_claims(wanted: Wanted, others: Sequence[Guest], hardware: Hardware) -> list[Finding]:
    found = []
    for other in others:
        if claimed := [f"{gpu} ({other.gpus[gpu]})" for gpu in sorted(other.gpus) if gpu in wanted.gpus]:
            word = "runs" if other.running else "does not run now"
            found.append(finding("GPU_CLAIMED", other.subject, f"It has {', '.join(claimed)} and {word}"))
            continue
        known = set(hardware.gpus.values())
        nodes = [path for path in other.devices if (seen := _GPU_NODE.match(path)) and int(seen[1]) not in known]
        if nodes and None in known and wanted.gpus:
            # No driver has numbered the GPUs yet. If the guest shall get all of them, one of these is that one.
            certain = set(wanted.gpus) == set(hardware.gpus)
            detail = f"It has {', '.join(sorted(nodes))}" + (
                "" if certain else ", and which GPU that is the driver will tell"
            )
            found.append(finding("GPU_CLAIMED", other.subject, detail, None if certain else "warn"))
    return found


def _address_claims(
    wanted: Wanted, others: Sequence[Guest], own: Guest | None, guests: Sequence[Guest], answers: Mapping[str, Answer]
) -> list[Finding]:
    found = []
    for address in addresses(wanted.networks):
        declared = [other for other in others if address in other.addresses]
        # A guest that is named already answers with its own MAC address, and so does ours.
        expected = {mac for known in [*declared, *([own] if own and own.running else [])] for mac in known.hwaddrs}
        answer = answers.get(address, Answer())
        holders = [f"{other.subject} declares it ({other.addresses[address]})" for other in declared]
        holders += ["the node itself has it"] if answer.own else []
        holders += [_who_answers(mac, guests) for mac in answer.macs if mac not in expected]
        if holders:
            found.append(finding("ADDRESS_IN_USE", address, "; ".join(holders)))
        elif answer.trouble or answer.not_asked:
            detail = f"Whether a machine answers for it was not asked: {answer.trouble or answer.not_asked}"
            found.append(finding("ADDRESS_IN_USE", address, detail, "unknown" if answer.trouble else "info"))
    return found


def _who_answers(mac: str, guests: Sequence[Guest]) -> str:
    owner = next((guest.subject for guest in guests if mac in guest.hwaddrs), "a machine")
    return f"{owner} with the MAC address {mac} answers for it"


def addresses(networks: Sequence[Mapping[str, t.Any]]) -> dict[str, Mapping[str, t.Any]]:
    """The addresses of declared networks, without prefix, each with its network."""
    return {
        address: network
        for network in networks
        for option in ("ip", "ip6")
        if (address := plain_address(network.get(option))) is not None
    }


def _memory_claims(wanted: Wanted, others: Sequence[Guest], memory_mib: int) -> list[Finding]:
    live = [other for other in others if other.running or other.onboot]
    total = wanted.memory_mib + sum(other.memory_mib for other in live)
    if total <= memory_mib:
        return []
    parts = [f"{other.subject} {other.memory_mib}" for other in live] + [f"this guest {wanted.memory_mib}"]
    detail = f"{' + '.join(parts)} = {total} MiB, and the node has {memory_mib} MiB"
    return [finding("MEMORY_SHORT", wanted.subject, detail)]


def foreign(guest: Guest, adopted: bool) -> Finding:
    """That the container with the declared vmid is not ours; told as information where taking it over is allowed."""
    detail = f"Its tags are {guest.tags}" if guest.tags else "It has no tags"
    return finding("GUEST_FOREIGN", guest.subject, detail, "info" if adopted else None)
