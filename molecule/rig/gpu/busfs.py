# SPDX-License-Identifier: GPL-3.0-or-later
"""``/sys/bus/pci/drivers`` that acts on what is written into it: ``python3 -m gpu.busfs BEHIND MOUNTPOINT``.

Everything else of the bus are plain files. A write into ``bind``, ``unbind``, ``new_id``, ``remove_id`` or ``drivers_probe`` returns when it is done,
with the kernel's error where it is none: whoever reads next sees what came of it. The file system itself is pmxcfs's.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import struct
import sys
import threading
from pathlib import Path

from pve import pmxcfs

from gpu import drivers

_WRITE = 16


class Bus(pmxcfs.Files):
    """The drivers' folder. Nothing can be made or removed in it by hand."""

    group = 0
    waits = (_WRITE,)

    def __init__(self, behind: Path, bus: drivers.Drivers | None = None) -> None:
        super().__init__(behind)
        self.bus = bus or drivers.Drivers()
        self._turn = threading.Lock()

    def quorate(self) -> bool:
        return True

    def _mode(self, inside: str, mode: int) -> int:
        return stat.S_IFMT(mode) | (stat.S_IMODE(mode) if stat.S_ISREG(mode) else 0o755)

    def _writable(self) -> None:
        raise PermissionError(errno.EACCES, "sysfs")

    def setattr(self, number: int, body: bytes) -> bytes:
        # A shell empties what it writes into; an attribute has nothing to be emptied.
        return self.getattr(number, b"")

    def create(self, number: int, body: bytes) -> bytes:
        raise PermissionError(errno.EACCES, "sysfs")

    def open(self, number: int, body: bytes) -> bytes:
        return struct.pack("<QII", os.open(self._path(number), os.O_RDONLY), 1, 0)

    def write(self, number: int, body: bytes) -> bytes:
        folder, _, control = self._inside(number).rpartition("/")
        size = struct.unpack_from("<QQI", body)[2]
        name = "drivers_probe" if control == drivers.PROBE else control
        # One that waits for a GPU to be let go of does not keep others waiting.
        with contextlib.nullcontext() if control == "unbind" else self._turn:
            self.bus.store(folder or None, name, body[40 : 40 + size].decode(errors="replace"))
        return struct.pack("<II", size, 0)


if __name__ == "__main__":
    pmxcfs.main(Path(sys.argv[1]), Path(sys.argv[2]), Bus, "sysfs")
