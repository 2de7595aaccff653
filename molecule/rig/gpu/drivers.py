# SPDX-License-Identifier: GPL-3.0-or-later
"""Drivers of the PCI bus and the GPUs that each has: what ``bind``, ``unbind``, ``new_id`` and ``drivers_probe`` of sysfs do.

As in the kernel (drivers/base/bus.c, drivers/pci/pci-driver.c): a device with a ``driver_override`` is for the driver of that name
alone, ``bind`` takes a device that matches and has none, and a driver that comes takes all that match and have none. vfio-pci
takes only what is in an IOMMU group, except in its mode without.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
import typing as t
from pathlib import Path

NVIDIA, VFIO = "nvidia", "vfio-pci"
CONTROLS = ("bind", "unbind", "new_id", "remove_id")
PROBE = ".drivers_probe"  # drivers_probe of the bus is a link to it
# Where the plain files of the drivers' folder are seen while the file system that acts on writes is in front of them.
BEHIND = "run/rig/pci-drivers"
_WAIT_SECONDS = 0.5


def folder(root: Path) -> Path:
    """The plain files of the drivers, wherever they are seen below ``root``."""
    behind = root / BEHIND
    return behind if behind.is_mount() else root / "sys/bus/pci/drivers"


def openers(root: Path, numbers: t.Collection[tuple[int, int]]) -> int:
    """How many descriptors of these device numbers are open, in the node and in the guests below it."""
    count = 0
    for process in (root / "proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            descriptors = list((process / "fd").iterdir())
        except OSError:
            continue  # it has ended, or is a kernel thread
        for descriptor in descriptors:
            try:
                status = descriptor.stat()
            except OSError:
                continue
            count += stat.S_ISCHR(status.st_mode) and (os.major(status.st_rdev), os.minor(status.st_rdev)) in numbers
    return count


class Drivers:
    """The bus below ``root`` (``/`` on the node). Errors are OSErrors with the kernel's number."""

    def __init__(self, root: Path = Path("/"), wait: t.Callable[[float], None] = time.sleep) -> None:
        self._root = root
        self._devices = root / "sys/bus/pci/devices"
        self._hardware = root / "etc/rig/hardware"
        self._gpus = root / "proc/driver/nvidia/gpus"
        self._wait = wait

    @property
    def _drivers(self) -> Path:
        return folder(self._root)

    def cards(self) -> list[list[str]]:
        """Address, rank in the order of probing, and UUID of each GPU, in bus order."""
        return [line.split() for line in (self._hardware / "cards").read_text().splitlines()]

    def bound(self, address: str) -> str | None:
        """The driver that has the device."""
        link = self._devices / address / "driver"
        return os.path.basename(os.readlink(link)) if link.is_symlink() else None

    def matches(self, driver: str, address: str) -> bool:
        """Whether the driver is for the device."""
        override = self._read(address, "driver_override")
        if override not in ("", "(null)"):
            return override == driver
        ids = f"{self._read(address, 'vendor')[2:]}:{self._read(address, 'device')[2:]}"
        known = [line.split() for line in self._dynamic().splitlines()]
        if [driver, ids] in known:
            return True
        return driver == NVIDIA and ids.startswith("10de:")

    def waiting(self, driver: str) -> list[str]:
        """The GPUs that a driver would take: it matches them, and they have none. In the order of probing."""
        ranked = sorted(self.cards(), key=lambda card: int(card[1]))
        return [card[0] for card in ranked if self.bound(card[0]) is None and self.matches(driver, card[0])]

    def register(self, driver: str, module: str, ids: str = "") -> None:
        """A driver comes with its module, and takes what waits for it. ``ids`` as vfio-pci's parameter has them."""
        home = self._drivers / driver
        home.mkdir(parents=True, exist_ok=True)
        for control in CONTROLS:
            (home / control).touch(0o200)
        if not (home / "module").is_symlink():
            (home / "module").symlink_to(f"../../../../module/{module}")
        for each in ids.split(","):
            if found := re.match(r"([0-9a-fA-F]{4}):([0-9a-fA-F]{4})", each):
                self._set_dynamic(driver, f"{found[1]}:{found[2]}".lower(), True)
        self._take_all(driver)

    def unregister(self, driver: str) -> None:
        """A driver goes, and with it what it had."""
        for card in self.cards():
            if self.bound(card[0]) == driver:
                self._detach(card[0], driver)
        lines = [line for line in self._dynamic().splitlines() if line.split()[0] != driver]
        self._write_dynamic(lines)
        home = self._drivers / driver
        for entry in list(home.iterdir()) if home.is_dir() else []:
            entry.unlink()
        if home.is_dir():
            home.rmdir()

    def store(self, driver: str | None, control: str, text: str) -> None:
        """Somebody writes ``text`` into ``control`` of a driver, or of the bus (``drivers_probe``)."""
        word = text.strip()
        if control in ("new_id", "remove_id") and driver:
            fields = word.split()
            if len(fields) < 2 or not all(re.fullmatch(r"(0x)?[0-9a-fA-F]{1,4}", each) for each in fields[:2]):
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
            ids = ":".join(f"{int(each, 16):04x}" for each in fields[:2])
            if control == "remove_id" and f"{driver} {ids}" not in self._dynamic().splitlines():
                raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
            self._set_dynamic(driver, ids, control == "new_id")
            if control == "new_id":
                self._take_all(driver)
            return
        if not (self._devices / word).is_dir() or not word or "/" in word:
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        has = self.bound(word)
        if control == "unbind":
            if driver is None or has != driver:
                raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
            minor = self.minor(word)
            if minor is not None:
                self._wait_until_free(word)
            self._detach(word, driver)
            # On a real machine the node stays and opens no more; here nothing else could keep it from opening.
            (self._root / f"dev/nvidia{minor}").unlink(missing_ok=True)
        elif control == "bind" and driver:
            if not self.matches(driver, word) or not self._is_card(word):
                raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
            if has is not None:
                raise OSError(errno.EBUSY, os.strerror(errno.EBUSY))
            self._attach(word, driver)
        elif has is None and self._is_card(word):
            # Asked to look for a driver: none that fits, or one that refuses, is no error.
            for each in (NVIDIA, VFIO):
                if (self._drivers / each).is_dir() and self.matches(each, word) and self.bound(word) is None:
                    self._try(word, each)

    def _take_all(self, driver: str) -> None:
        for address in self.waiting(driver):
            self._try(address, driver)

    def _try(self, address: str, driver: str) -> None:
        try:
            self._attach(address, driver)
        except OSError as error:
            self._log(f"{driver} {address}: probe with driver {driver} failed with error -{error.errno}")

    def _attach(self, address: str, driver: str) -> None:
        device = self._devices / address
        if driver == VFIO and not (device / "iommu_group").is_symlink() and not self._without_iommu():
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        if driver == NVIDIA:
            self._show(address)
        depth = len(device.resolve().relative_to((self._root / "sys/bus/pci").resolve()).parts)
        (device / "driver").symlink_to("../" * depth + f"drivers/{driver}")
        real = os.path.relpath(device.resolve(), (self._root / "sys/bus/pci").resolve())
        (self._drivers / driver / address).symlink_to(f"../../{real}")

    def _detach(self, address: str, driver: str) -> None:
        (self._devices / address / "driver").unlink(missing_ok=True)
        (self._drivers / driver / address).unlink(missing_ok=True)
        if driver == NVIDIA:
            gpu = self._gpus / address
            for entry in gpu.iterdir():
                entry.unlink()
            gpu.rmdir()

    def _show(self, address: str) -> None:
        """What the driver says of a GPU. It gives the lowest number that is free."""
        taken = [self.minor(path.name) for path in self._gpus.iterdir()] if self._gpus.is_dir() else []
        number = next(str(each) for each in range(len(taken) + 1) if str(each) not in taken)
        index, uuid = next((at, card[2]) for at, card in enumerate(self.cards()) if card[0] == address)
        information = {
            "Model": (self._hardware / "model").read_text().strip(),
            "IRQ": str(64 + index),
            "GPU UUID": uuid,
            "Video BIOS": (self._hardware / "vbios").read_text().strip(),
            "Bus Type": "PCIe",
            "DMA Size": "52 bits",
            "DMA Mask": "0xfffffffffffff",
            "Bus Location": address,
            "Device Minor": number,
            "GPU Firmware": (self._root / "sys/module/nvidia/version").read_text().strip(),
            "GPU Excluded": "No",
        }
        (self._gpus / address).mkdir(parents=True, exist_ok=True)
        lines = [f"{key + ':':<16} {value}" for key, value in information.items()]
        (self._gpus / address / "information").write_text("\n".join(lines) + "\n")

    def minor(self, address: str) -> str | None:
        """The number that the driver has given a GPU, if it has it."""
        path = self._gpus / address / "information"
        found = re.search(r"^Device Minor:\s*(\d+)", path.read_text(), re.MULTILINE) if path.exists() else None
        return found[1] if found else None

    def _wait_until_free(self, address: str) -> None:
        """NVIDIA's driver does not let go of a GPU that is open: it says so and waits, however long that takes."""
        minor = self.minor(address)
        lines = [line.split() for line in (self._hardware / "nodes").read_text().splitlines()]
        numbers = {(int(major), int(low)) for name, major, low in lines if name == f"nvidia{minor}"}
        said = False
        while numbers and openers(self._root, numbers):
            if not said:
                self._log(f"NVRM: Attempting to remove device {address} with non-zero usage count!")
                said = True
            self._wait(_WAIT_SECONDS)

    def _without_iommu(self) -> bool:
        path = self._root / "sys/module/vfio/parameters/enable_unsafe_noiommu_mode"
        return path.exists() and path.read_text().strip() == "Y"

    def _is_card(self, address: str) -> bool:
        return address in [card[0] for card in self.cards()]

    def _read(self, address: str, name: str) -> str:
        return (self._devices / address / name).read_text().strip()

    def _dynamic(self) -> str:
        path = self._hardware / "dynamic-ids"
        return path.read_text() if path.exists() else ""

    def _set_dynamic(self, driver: str, ids: str, present: bool) -> None:
        lines = [line for line in self._dynamic().splitlines() if line != f"{driver} {ids}"]
        self._write_dynamic([*lines, f"{driver} {ids}"] if present else lines)

    def _write_dynamic(self, lines: list[str]) -> None:
        (self._hardware / "dynamic-ids").write_text("".join(f"{line}\n" for line in lines))

    def _log(self, text: str) -> None:
        with (self._root / "dev/kmsg").open("a+") as file:
            file.seek(0)
            number = sum(1 for _line in file) + 1
            file.write(f"4,{number},{time.clock_gettime_ns(time.CLOCK_BOOTTIME) // 1000},-;{text}\n")
