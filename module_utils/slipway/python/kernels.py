# SPDX-License-Identifier: GPL-3.0-or-later
"""For which GPUs a library has kernels: the headers of the fat binaries in it. Reads, never loads, and needs no GPU.

Layout as cuobjdump reads it and as seen in torch 2.9.1, sgl-kernel 0.3.21 and vLLM 0.16.0: a container begins with its magic number,
version, header size and the size of what follows; each entry with its kind (PTX or machine code), and at byte 28 the number of the
architecture.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass

from . import elf

MAGIC = b"\x50\xed\x55\xba"
CONTAINER = struct.Struct("<4sHHQ")
ENTRY = struct.Struct("<HHIQ12xI")
PTX, MACHINE_CODE = 1, 2
SECTIONS = (".nv_fatbin", "__nv_relfatbin")
CHUNK_BYTES = 2**20


@dataclass(frozen=True)
class Kernels:
    """Architectures, such as 120, for which there is machine code, and for which there is PTX."""

    machine_code: tuple[int, ...] = ()
    ptx: tuple[int, ...] = ()

    @property
    def any(self) -> bool:
        return bool(self.machine_code or self.ptx)

    def cover(self, sm: int) -> bool:
        """Whether a GPU of this compute capability can run them.

        Machine code runs on GPUs of the same major version that are not older; the driver compiles PTX for any that is not older
        (CUDA C++ Programming Guide, "Binary Compatibility" and "PTX Compatibility").
        """
        return any(one // 10 == sm // 10 and one <= sm for one in self.machine_code) or any(
            one <= sm for one in self.ptx
        )


def of_file(path: str) -> Kernels:
    """The kernels of a library; none where it has no fat binary. Raises ``OSError``."""
    found: set[tuple[int, int]] = set()
    with open(path, "rb") as file:
        for section in elf.sections(file):
            if section.name in SECTIONS:
                found |= _entries(file.fileno(), section.offset, section.offset + section.size)
    return Kernels(
        tuple(sorted(sm for kind, sm in found if kind == MACHINE_CODE)),
        tuple(sorted(sm for kind, sm in found if kind == PTX)),
    )


def _entries(handle: int, position: int, end: int) -> set[tuple[int, int]]:
    """Kind and architecture of each entry between two offsets. Only headers are read: what they lead over is gigabytes."""
    found: set[tuple[int, int]] = set()
    while position + CONTAINER.size <= end:
        magic, _version, header, size = CONTAINER.unpack(os.pread(handle, CONTAINER.size, position))
        if magic != MAGIC or header != CONTAINER.size or position + header + size > end:
            position = _next(handle, position + 4, end)
            continue
        entry, last = position + header, position + header + size
        while entry + 40 <= last:
            kind, _version, header, size, sm = ENTRY.unpack(os.pread(handle, ENTRY.size, entry))
            if not 40 <= header <= 4096:
                break
            found.add((kind, sm))
            entry += header + size
        position = last + (-last) % 8
    return found


def _next(handle: int, position: int, end: int) -> int:
    """Where the next magic number is, behind padding; the end where there is none."""
    while position < end:
        chunk = os.pread(handle, min(CHUNK_BYTES, end - position), position)
        at = chunk.find(MAGIC)
        if at >= 0:
            return position + at
        if len(chunk) <= len(MAGIC):
            break
        position += len(chunk) - len(MAGIC) + 1
    return end


def words(kernels: Kernels) -> str:
    """What there is, for a sentence."""
    parts: list[str] = []
    for name, numbers in (("sm", kernels.machine_code), ("PTX", kernels.ptx)):
        parts += [f"{name} {', '.join(map(str, numbers))}"] if numbers else []
    return " and ".join(parts) or "none"
