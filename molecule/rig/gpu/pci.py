# SPDX-License-Identifier: GPL-3.0-or-later
"""The PCI side of the simulated machine: up to eight GPUs behind four switches on two sockets, as files of ``/sys/bus/pci``."""

from __future__ import annotations

import struct
import uuid
from dataclasses import dataclass
from pathlib import Path

from gpu import drivers

MODEL = "NVIDIA RTX PRO 6000 Blackwell Server Edition"
MEMORY_MIB = 97887
VBIOS = "98.02.67.00.0A"
SOCKET_CPUS = ("0-31,64-95", "32-63,96-127")
# One switch below one root port of one root complex each; the first two belong to socket 0.
ROOT_BUSES = (0x00, 0x40, 0x80, 0xC0)
# The driver numbers GPUs in the order in which it probed them, which on real machines is not the order of the bus: whoever
# takes an index for a minor is wrong here too.
PROBE_ORDER = (2, 3, 0, 1, 6, 7, 4, 5)

GPU = (0x10DE, 0x2BB5, 0x030200)
ROOT_PORT = (0x1022, 0x153E, 0x060400)
SWITCH = (0x1000, 0xC030, 0x060400)
# What PCI Express calls each device of a path: root port, upstream and downstream port of the switch, and the GPU.
LEGACY_ENDPOINT = 1
PORTS = (4, 5, 6, LEGACY_ENDPOINT)
EXPRESS = 0x60
ACS = 0x100
# SrcValid and UpstreamFwd: nothing that redirects. Where there is an IOMMU the kernel adds the two redirects, to keep devices apart
# (pci_enable_acs in drivers/pci/pci.c).
ACS_CONTROL, ACS_ISOLATED = 0x11, 0x1D
NO_REGION = " ".join(["0x" + "0" * 16] * 3)
# Sizes that the window on a GPU's memory can have, a bit each from 1 MiB up: 256 MiB to 128 GiB.
RESIZABLE = 0x3FF00


@dataclass(frozen=True)
class Card:
    """One GPU: its address (``0000:03:00.0``), the folder of its ancestors below the root complex, and what it is called."""

    address: str
    path: str
    minor: int
    uuid: str
    numa_node: int


def cards(count: int, machine: str) -> list[Card]:
    """``count`` GPUs (0 to 8) in bus order. ``machine`` makes the UUIDs differ between machines and stay over restarts."""
    if not 0 <= count <= len(PROBE_ORDER):
        raise ValueError(f"a simulated machine has 0 to {len(PROBE_ORDER)} GPUs, not {count}")
    ranks = sorted(PROBE_ORDER[:count])
    found = []
    for index in range(count):
        root, slot = ROOT_BUSES[index // 2], index % 2
        address = f"0000:{root + 3 + slot:02x}:00.0"
        path = f"pci0000:{root:02x}/0000:{root:02x}:01.1/0000:{root + 1:02x}:00.0/0000:{root + 2:02x}:{slot:02x}.0/{address}"
        identity = uuid.uuid5(uuid.NAMESPACE_OID, f"{machine} {address}")
        found.append(Card(address, path, ranks.index(PROBE_ORDER[index]), f"GPU-{identity}", index // 4))
    return found


def write(bus: Path, found: list[Card]) -> None:
    """Fill an empty folder that will be seen as ``/sys/bus/pci``.

    The devices lie below ``tree``, nested as they are wired, so that the real path of a device in ``devices`` names its
    ancestors as it does on a real machine (there the tree is ``/sys/devices``, where nothing can be added).
    """
    for name in ("devices", "drivers", "slots", "tree"):
        (bus / name).mkdir()
    # A link, so that the file system of the drivers acts on it too.
    (bus / "drivers" / drivers.PROBE).touch(0o200)
    (bus / "drivers_probe").symlink_to(f"drivers/{drivers.PROBE}")
    for card in found:
        ancestors = card.path.split("/")
        for depth in range(2, len(ancestors) + 1):
            folder = bus / "tree" / "/".join(ancestors[:depth])
            if not folder.exists():
                folder.mkdir(parents=True)
                identity = GPU if folder.name == card.address else ROOT_PORT if depth == 2 else SWITCH
                _device(folder, identity, card.numa_node, PORTS[depth - 2])
                (bus / "devices" / folder.name).symlink_to(f"../tree/{'/'.join(ancestors[:depth])}")


def _device(folder: Path, identity: tuple[int, int, int], numa_node: int, port: int) -> None:
    vendor, device, class_code = identity
    is_gpu = identity == GPU
    subsystem = (0x10DE, 0x204E) if is_gpu else (vendor, device)
    files = {
        "vendor": f"0x{vendor:04x}",
        "device": f"0x{device:04x}",
        "class": f"0x{class_code:06x}",
        "revision": "0xa1" if is_gpu else "0xb0",
        "subsystem_vendor": f"0x{subsystem[0]:04x}",
        "subsystem_device": f"0x{subsystem[1]:04x}",
        "numa_node": str(numa_node),
        "local_cpulist": SOCKET_CPUS[numa_node],
        # An idle GPU lowers its link to the first generation: the figure at rest says nothing about the link.
        "current_link_speed": "2.5 GT/s PCIe" if is_gpu else "32.0 GT/s PCIe",
        "max_link_speed": "32.0 GT/s PCIe",
        "current_link_width": "16",
        "max_link_width": "16",
        "enable": "1",
        "d3cold_allowed": "1",
        "uevent": f"PCI_CLASS={class_code:X}\nPCI_ID={vendor:04X}:{device:04X}\nPCI_SLOT_NAME={folder.name}",
    }
    files["irq"] = "0"
    files["resource"] = resource(int(folder.name[5:7], 16)) if is_gpu else "\n".join([NO_REGION] * 17)
    if is_gpu:
        files["resource1_resize"] = f"{RESIZABLE:016x}"
    for name, text in files.items():
        (folder / name).write_text(text + "\n")
        # Written by libcuda, whoever runs it: a GPU that works has another speed.
        (folder / name).chmod(0o666 if is_gpu and name == "current_link_speed" else 0o444)
    (folder / "driver_override").write_text("(null)\n")
    # Not even the first 64 bytes are shown to a guest, which a real one would see: there is no file that answers by who asks.
    (folder / "config").write_bytes(_config(vendor, device, class_code, port))
    (folder / "config").chmod(0o600)


def _config(vendor: int, device: int, class_code: int, port: int) -> bytes:
    """The configuration space: header, PCI Express with a payload of 256 bytes, and for a port ACS as firmware leaves it."""
    data = bytearray(4096)
    revision = 0xA1 if port == LEGACY_ENDPOINT else 0xB0
    codes = (revision, class_code & 255, class_code >> 8 & 255, class_code >> 16)
    struct.pack_into(
        "<HHHHBBBBBBBB", data, 0, vendor, device, 0x0406, 0x0010, *codes, 0, 0, int(port != LEGACY_ENDPOINT), 0
    )
    data[0x34] = EXPRESS
    struct.pack_into("<BBHIH", data, EXPRESS, 0x10, 0, port << 4 | 2, 0x8002, 1 << 5 | 2 << 12)
    if port != LEGACY_ENDPOINT:
        struct.pack_into("<IHH", data, ACS, 0x000D | 1 << 16, 0x5F, ACS_CONTROL)
    return bytes(data)


def resource(bus: int, window_mib: int = 128 << 10) -> str:
    """BAR lines of a GPU: registers 64 MiB, the whole memory (128 GiB, resizable BAR on), 32 MiB; 13 lines as the kernel writes."""
    base = 0x70000000000 + bus * (1 << 38)
    flags = 0x14220C
    sizes = {0: (base + (1 << 37), 64 << 20), 1: (base, window_mib << 20), 3: (base + (1 << 37) + (64 << 20), 32 << 20)}
    lines = [
        f"0x{sizes[n][0]:016x} 0x{sizes[n][0] + sizes[n][1] - 1:016x} 0x{flags:016x}" if n in sizes else NO_REGION
        for n in range(13)
    ]
    return "\n".join(lines)


def isolate(bus: Path) -> None:
    """What the kernel does to each port where there is an IOMMU: peers' traffic goes up to the root complex."""
    for device in (bus / "devices").iterdir():
        if (device / "class").read_text() != f"0x{GPU[2]:06x}\n":
            set_acs(device, ACS_ISOLATED)


def set_acs(device: Path, control: int) -> None:
    """The control register of ACS in a port's configuration space."""
    _patch(device, ACS + 6, struct.pack("<H", control))


def set_payload(device: Path, size: int) -> None:
    """The largest payload of a device's packets, in bytes: 128 to 4096."""
    data = (device / "config").read_bytes()
    (control,) = struct.unpack_from("<H", data, EXPRESS + 8)
    code = (size // 128).bit_length() - 1
    _patch(device, EXPRESS + 8, struct.pack("<H", control & ~0xE0 | code << 5))


def _patch(device: Path, at: int, content: bytes) -> None:
    with (device / "config").open("r+b") as file:
        file.seek(at)
        file.write(content)
