# SPDX-License-Identifier: GPL-3.0-or-later
"""A machine's PCI devices as sysfs would show them, built again from what ``lspci -vvv`` printed."""

from __future__ import annotations

import re
import struct
from pathlib import Path

BITS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
UNITS = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


def devices(text: str) -> dict[str, str]:
    """What is said of each device, by its address without the domain."""
    return {one.split(" ", 1)[0]: one for one in text.split("\n\n") if one.strip()}


def sysfs(root: Path, known: dict[str, str]) -> None:
    """Write the devices below ``root``, each in the folder of the bridge that it is behind."""
    behind = {found[1]: at for at, text in known.items() if (found := re.search(r"secondary=(\w+)", text))}

    def folder(address: str) -> str:
        bridge = behind.get(address[:2])
        return f"{folder(bridge) if bridge else f'sys/devices/pci0000:{address[:2]}'}/0000:{address}"

    (root / "sys/bus/pci/devices").mkdir(parents=True)
    for address, text in known.items():
        path = root / folder(address)
        path.mkdir(parents=True, exist_ok=True)
        (root / "sys/bus/pci/devices" / f"0000:{address}").symlink_to(f"../../../../{folder(address)}")
        for name, content in _attributes(text).items():
            (path / name).write_text(content + "\n")
        (path / "config").write_bytes(config(text) if ") Root Port" in text or "Express" in text else bytes(256))


def _attributes(text: str) -> dict[str, str]:
    gpu = "NVIDIA Corporation" in text.split("\n")[0] and "3D controller" in text
    found = {"vendor": "0x10de" if gpu else "0x1022", "class": "0x030200" if gpu else "0x060400"}
    for register, name in (("LnkCap", "max"), ("LnkSta", "current")):
        if said := re.search(rf"{register}:.*?Speed ([\d.]+)GT/s.*?Width x(\d+)", text):
            found |= {f"{name}_link_speed": f"{float(said[1])} GT/s PCIe", f"{name}_link_width": said[2]}
    lines = ["0x0 0x0 0x0"] * 13
    for number, start, size in re.findall(r"^\tRegion (\d): Memory at (\w+).*?\[size=(\w+)\]", text, re.MULTILINE):
        end = int(start, 16) + int(size[:-1]) * UNITS[size[-1]] - 1
        lines[int(number)] = f"0x{start} 0x{end:x} 0x14220c"
    return {**found, "resource": "\n".join(lines)}


def config(text: str) -> bytes:
    """A space with what lspci says of capabilities: their order and places, PCI Express and ACS."""
    data = bytearray(4096)
    struct.pack_into("<HHHH", data, 0, 0x10DE, 1, 0, 0x10)
    lists: dict[bool, list[tuple[int, str]]] = {False: [], True: []}
    for place, version, rest in re.findall(r"Capabilities: \[(\w+)( v\d)?\] (.*)", text):
        lists[bool(version)].append((int(place, 16), rest))
    for at, (place, rest) in enumerate(lists[False]):
        following = lists[False][at + 1][0] if at + 1 < len(lists[False]) else 0
        data[place : place + 2] = bytes([0x10 if rest.startswith("Express") else 0x09, following])
        if rest.startswith("Express"):
            kinds = {"Root Port": 4, "Upstream Port": 5, "Downstream Port": 6, "Legacy Endpoint": 1, "Endpoint": 0}
            number = next((number for kind, number in kinds.items() if f") {kind}" in rest), 9)
            sizes = re.search(r"DevCtl:.*?MaxPayload (\d+) bytes, MaxReadReq (\d+) bytes", text, re.DOTALL)
            assert sizes
            codes = [(int(size) // 128).bit_length() - 1 for size in sizes.groups()]
            struct.pack_into("<HIH", data, place + 2, number << 4 | 2, 0, codes[0] << 5 | codes[1] << 12)
    data[0x34] = lists[False][0][0]
    for at, (place, rest) in enumerate(lists[True]):
        following = lists[True][at + 1][0] if at + 1 < len(lists[True]) else 0
        is_acs = rest.startswith("Access Control Services")
        struct.pack_into("<I", data, place, (0x0D if is_acs else 0x0B) | 1 << 16 | following << 20)
        if is_acs:
            struct.pack_into("<H", data, place + 6, acs_control(text))
    return bytes(data)


def acs_control(text: str) -> int:
    said = re.search(r"ACSCtl:\s+(.*)", text)
    return sum(1 << bit for bit, name in enumerate(BITS) if said and f"{name}+" in said[1])
