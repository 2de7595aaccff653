# SPDX-License-Identifier: GPL-3.0-or-later
"""A healthy node with two GPUs behind one switch: what ``machine.look`` tells of it, and a PCI device's configuration space."""

from __future__ import annotations

import copy
import struct
import typing as t

SWITCH = (("00:01.1", "root port"), ("01:00.0", "upstream port"))


def link(**changed: t.Any) -> dict[str, t.Any]:
    return {"speed_gts": 32.0, "width": 16, "max_speed_gts": 32.0, "max_width": 16, **changed}


def hop(bus_id: str, kind: str | None, acs: int | None = 0x11, **changed: t.Any) -> dict[str, t.Any]:
    """A device on the way; the changes are those of its link."""
    bits = {"request_redirect": bool((acs or 0) & 4), "completion_redirect": bool((acs or 0) & 8)}
    return {"bus_id": f"0000:{bus_id}", "kind": kind, "link": link(**changed), "acs_control": acs, **bits}


def way(bus: str) -> list[dict[str, t.Any]]:
    """The path of a GPU at rest."""
    ports = [hop(bus_id, kind) for bus_id, kind in (*SWITCH, (f"02:0{int(bus, 16) % 2}.0", "downstream port"))]
    return [*ports, hop(f"{bus}:00.0", "endpoint", acs=None, speed_gts=2.5)]


def node(path: str, **changed: t.Any) -> dict[str, t.Any]:
    major = 511 if "uvm" in path else 195
    base = {"path": path, "major": major, "minor": 0, "mode": "0666", "uid": 0, "gid": 0, "opens": "ok"}
    return {**base, "expected_major": major, **changed}


def gpu(bus: str, minor: int | None, **changed: t.Any) -> dict[str, t.Any]:
    base = {"bus_id": f"0000:{bus}:00.0", "minor": minor, "device": f"/dev/nvidia{minor}", "driven": True}
    board = {
        "link": link(speed_gts=2.5),
        "path": way(bus),
        "bar1_mib": 131072,
        "bar1_sizes_mib": [64, 256, 131072],
        "memory_mib": None,
        "iommu_group": None,
        "iommu_type": None,
        "iommu_mode": "off",
        "machines": [],
        "driver_override": None,
        "vendor_id": "0x10de",
        "device_id": "0x2bb5",
    }
    return {**base, **board, "pci_driver": "nvidia", **changed}


CUDA: dict[str, t.Any] = {
    "result": 0,
    "name": "CUDA_SUCCESS",
    "call": "cuDeviceGetAttribute",
    "devices": 2,
    "gpus": [{"bus_id": "0000:06:00.0"}, {"bus_id": "0000:07:00.0"}],
    "visible_devices": None,
    "hung": False,
    "error": "",
}
FACTS: dict[str, t.Any] = {
    "place": "node",
    "gpus": [gpu("06", 1), gpu("07", 0)],
    "known_gpus": [gpu("06", 1), gpu("07", 0)],
    "driver": {
        "loaded": True,
        "kernel_version": "595.58.03",
        "open_kernel_module": True,
        "user_version": "595.58.03",
        "user_library": "/usr/lib/libcuda.so.1",
        "parameters": {},
    },
    "uvm": {"loaded": True, "disable_hmm": True, "disable_hmm_on_disk": True},
    "devices": [node(f"/dev/{name}") for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm")],
    "capability_nodes": [],
    "modules": {name: {"live": {}, "on_disk": {}} for name in ("nvidia", "nvidia_uvm", "vfio_pci")},
    "iommu": {"units": [], "mode": "off"},
    "acs": {"redirect": False, "hops": []},
    "processes": [],
    "persistence": {"daemon": False, "devices": []},
    "xids": [],
    "cmdline": "",
    "cuda": CUDA,
    "majors_known": True,
    "unreadable": {},
    "secure_boot": None,
    "signing": None,
}


def changed(**parts: t.Any) -> dict[str, t.Any]:
    """The healthy facts with parts replaced; a dictionary is merged into the part of its name."""
    facts = copy.deepcopy(FACTS)
    for name, part in parts.items():
        merge = isinstance(part, dict) and isinstance(facts[name], dict)
        facts[name] = {**facts[name], **part} if merge else part
    return facts


def config_space(kind: int, acs_control: int | None, payload: int = 1, read_request: int = 2) -> bytes:
    """4096 bytes: power management at 0x40, PCI Express at 0x60, and behind another extended capability ACS, if there is any.

    ``payload`` and ``read_request`` are codes: 0 is 128 bytes, and each step doubles it.
    """
    data = bytearray(4096)
    struct.pack_into("<HHHH", data, 0, 0x10DE, 0x2BB5, 0x0406, 0x0010)
    data[0x34], data[0x40:0x42], data[0x60:0x62] = 0x40, b"\x01\x60", b"\x10\x00"
    struct.pack_into("<HIH", data, 0x62, kind << 4 | 2, 0x8002, payload << 5 | read_request << 12)
    struct.pack_into("<I", data, 0x100, 0x0001 | 2 << 16 | (0x2A0 << 20 if acs_control is not None else 0))
    if acs_control is not None:
        struct.pack_into("<IHH", data, 0x2A0, 0x000D | 1 << 16, 0x5F, acs_control)
    return bytes(data)
