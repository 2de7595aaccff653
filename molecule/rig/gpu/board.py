# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong with a board, or set so in its firmware's menu: lines of ``/etc/rig/board`` of a node, in force from its next start.

A line is a kind and words ``key=value``, as in ``/proc/driver/gpu-faults``; ``#`` begins a comment. Without ``device`` it is about all.

    bar1 mib=256                         the window on a GPU's memory (Resizable BAR off)
    link device=ADDRESS width=8          lanes of the link above a device; ``generation`` its speed
    acs control=0x1d                     the control register of each port's ACS
    payload bytes=128                    MaxPayload of each device
"""

from __future__ import annotations

import re
import typing as t
from pathlib import Path

from gpu import pci

FILE = "etc/rig/board"
SPEEDS = {1: "2.5", 2: "5.0", 3: "8.0", 4: "16.0", 5: "32.0"}


def parse(text: str) -> list[tuple[str, dict[str, str]]]:
    """The lines as kind and values. Raises ValueError for one that makes no sense."""
    found = []
    for line in text.splitlines():
        words = line.partition("#")[0].split()
        if not words:
            continue
        kind, *rest = words
        values = dict(word.split("=", 1) for word in rest if "=" in word)
        known = KINDS[kind][0] if kind in KINDS else ()
        numbers = [value for name, value in values.items() if name in known]
        right = numbers and len(values) == len(rest) and set(values) <= {"device", *known}
        if not right or not all(re.fullmatch(r"0x[0-9a-f]+|\d+", number) for number in numbers):
            raise ValueError(f"/{FILE}: '{line.strip()}' is no fault of a board")
        found.append((kind, values))
    return found


def apply(devices: Path, text: str) -> None:
    """Set it so below ``devices`` (``/sys/bus/pci/devices``)."""
    for kind, values in parse(text):
        chosen = [devices / values["device"]] if "device" in values else sorted(devices.iterdir())
        for device in chosen:
            if not device.exists():
                raise ValueError(f"/{FILE}: there is no {device.name} on this board")
            KINDS[kind][1](device, values)


def _is_gpu(device: Path) -> bool:
    return (device / "class").read_text().strip() == f"0x{pci.GPU[2]:06x}"


def _bar1(device: Path, values: t.Mapping[str, str]) -> None:
    if _is_gpu(device):
        _put(device / "resource", pci.resource(int(device.name[5:7], 16), int(values["mib"])))


def _link(device: Path, values: t.Mapping[str, str]) -> None:
    if "width" in values:
        _put(device / "current_link_width", values["width"])
    if "generation" in values:
        _put(device / "current_link_speed", f"{SPEEDS[int(values['generation'])]} GT/s PCIe")


def _acs(device: Path, values: t.Mapping[str, str]) -> None:
    if not _is_gpu(device):
        pci.set_acs(device, int(values["control"], 0))


def _payload(device: Path, values: t.Mapping[str, str]) -> None:
    pci.set_payload(device, int(values["bytes"]))


def _put(path: Path, text: str) -> None:
    path.chmod(0o644)
    path.write_text(f"{text}\n")
    path.chmod(0o444)


KINDS: dict[str, tuple[tuple[str, ...], t.Callable[[Path, t.Mapping[str, str]], None]]] = {
    "bar1": (("mib",), _bar1),
    "link": (("width", "generation"), _link),
    "acs": (("control",), _acs),
    "payload": (("bytes",), _payload),
}
