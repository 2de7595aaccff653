# SPDX-License-Identifier: GPL-3.0-or-later
"""The driver's kernel modules as the node's kernel would show them: what loading and unloading does to ``/proc`` and ``/sys``.

Runs on the node, on files that ``hardware.py`` made on the controller and that are mounted over the real ones.
"""

from __future__ import annotations

import errno
import os
import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

from gpu import drivers, firmware, signature

# module -> the modules it uses, and the names that it registers in /proc/devices.
MODULES: dict[str, tuple[list[str], list[str]]] = {
    "nvidia": ([], ["nvidia", "nvidiactl"]),
    "nvidia_uvm": (["nvidia"], ["nvidia-uvm"]),
    "nvidia_modeset": (["nvidia"], ["nvidia-modeset"]),
    "nvidia_drm": (["nvidia_modeset", "nvidia"], []),
    "vfio": ([], ["vfio"]),
    "vfio_iommu_type1": (["vfio"], []),
    "vfio_pci_core": (["vfio"], []),
    "vfio_pci": (["vfio_pci_core", "vfio"], []),
}
# The modules that are drivers of the PCI bus, by their drivers' names there.
DRIVERS = {"nvidia": drivers.NVIDIA, "vfio_pci": drivers.VFIO}
VFIO_MAJOR = "511"
# Parameters as their files read after loading with none given. A bool is one that the kernel parses itself.
PARAMETERS: dict[str, dict[str, t.Any]] = {
    "nvidia": {
        "NVreg_ResmanDebugLevel": 4294967295,
        "NVreg_RmLogonRC": 1,
        "NVreg_ModifyDeviceFiles": 1,
        "NVreg_DeviceFileUID": 0,
        "NVreg_DeviceFileGID": 0,
        "NVreg_DeviceFileMode": 438,
        "NVreg_InitializeSystemMemoryAllocations": 1,
        "NVreg_UsePageAttributeTable": 4294967295,
        "NVreg_EnableMSI": 1,
        "NVreg_EnableStreamMemOPs": 0,
        "NVreg_EnableResizableBar": 0,
        "NVreg_PreserveVideoMemoryAllocations": 0,
        "NVreg_DynamicPowerManagement": 3,
        "NVreg_EnableGpuFirmware": 18,
        "NVreg_OpenRmEnableUnsupportedGpus": 1,
        "NVreg_DmaRemapPeerMmio": 1,
        "NVreg_RegistryDwords": "",
        "NVreg_RegistryDwordsPerDevice": "",
    },
    "nvidia_uvm": {"uvm_disable_hmm": False, "uvm_ats_mode": 1, "uvm_perf_prefetch_enable": 1},
    "nvidia_modeset": {"config_file": ""},
    "nvidia_drm": {"modeset": True, "fbdev": True},
    "vfio": {"enable_unsafe_noiommu_mode": False},
    "vfio_iommu_type1": {"allow_unsafe_interrupts": False, "disable_hugepages": False, "dma_entry_limit": 65535},
    "vfio_pci_core": {},
    "vfio_pci": {"ids": "", "nointxmask": False, "disable_vga": False, "disable_idle_d3": False, "enable_sriov": False},
}


@dataclass(frozen=True)
class Image:
    """A module's file: its version and whether it is the open flavour."""

    version: str
    is_open: bool


def parse_bool(text: str | None) -> bool:
    """A boolean module parameter, by the kernel's rule (kstrtobool). Errors: ValueError."""
    if text is None or text[:1] in ("y", "Y", "t", "T", "1") or text[:2].lower() == "on":
        return True
    if text[:1] in ("n", "N", "f", "F", "0") or text[:2].lower() == "of":
        return False
    raise ValueError(text)


class Kernel:
    """The modules that are loaded, below ``root`` (``/`` on the node). Errors of the kernel are OSErrors with its number."""

    def __init__(self, root: Path = Path("/")) -> None:
        self._root = root
        self._modules = root / "sys/module"
        self._driver = root / "proc/driver"
        self._hardware = root / "etc/rig/hardware"
        self._drivers = drivers.Drivers(root)

    def is_loaded(self, module: str) -> bool:
        """Whether the module is in the kernel."""
        return (self._modules / module / "initstate").exists()

    def holders(self, module: str) -> list[str]:
        """The loaded modules that use this one."""
        return [name for name, (uses, _devices) in MODULES.items() if module in uses and self.is_loaded(name)]

    def openers(self, module: str) -> int:
        """How many descriptors of the module's device nodes are open, in the node and in the guests below it."""
        return drivers.openers(self._root, self._numbers(module))

    def admit(self, file: Path) -> None:
        """Let a module's file in, before anything else is looked at. Errors: EKEYREJECTED where Secure Boot keeps it out."""
        if file.name.startswith("vfio"):
            return  # the kernel's own, signed by who built it
        if firmware.secure_boot(self._root) and not signature.is_trusted(file, firmware.certificates(self._root)):
            raise OSError(errno.EKEYREJECTED, os.strerror(errno.EKEYREJECTED))

    def load(self, module: str, image: Image, given: dict[str, str | None]) -> None:
        """Insert one module whose dependencies are in. Errors: EEXIST, EINVAL (a value), ENODEV (nothing to drive)."""
        if self.is_loaded(module):
            raise OSError(errno.EEXIST, "Module already in kernel")
        # These GPUs are driven by the open modules only: the other flavour finds none that it supports and gives up.
        if module == "nvidia" and not (image.is_open and self._drivers.waiting(drivers.NVIDIA)):
            raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))
        values = self._values(module, given)
        folder = self._modules / module
        for part in ("parameters", "holders"):
            (folder / part).mkdir(parents=True, exist_ok=True)
        for name, value in values.items():
            text = ("Y" if value else "N") if isinstance(value, bool) else str(value)
            _write(folder / "parameters" / name, f"{text}\n")
        _write(folder / "version", f"{image.version}\n")
        if module.startswith("nvidia"):
            _write(folder / "taint", "OE\n" if image.is_open else "POE\n")
        if module in DRIVERS:
            self._drivers.register(DRIVERS[module], module, str(values.get("ids", "")))
        if module == "nvidia":
            self._show_driver(image, values)
        self._register(MODULES[module][1], True)
        _write(folder / "initstate", "live\n")
        self._refresh()

    def unload(self, module: str) -> None:
        """Remove one module. Errors: EAGAIN where others use it or a descriptor is open."""
        if self.holders(module) or self.openers(module):
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        folder = self._modules / module
        (folder / "initstate").unlink()
        self._register(MODULES[module][1], False)
        if module in DRIVERS:
            self._drivers.unregister(DRIVERS[module])
        if module == "nvidia":
            _remove(self._driver / "nvidia")
        _remove(folder)
        self._refresh()

    def _numbers(self, module: str) -> set[tuple[int, int]]:
        mine = {"nvidia_uvm": r"nvidia-uvm.*", "nvidia_modeset": r"nvidia-modeset", "nvidia": r"nvidia(\d+|ctl)"}.get(
            module, r"-"
        )
        lines = [line.split() for line in (self._hardware / "nodes").read_text().splitlines()]
        return {(int(major), int(minor)) for name, major, minor in lines if re.fullmatch(mine, name)}

    def _values(self, module: str, given: dict[str, str | None]) -> dict[str, t.Any]:
        values = dict(PARAMETERS[module])
        for name, text in given.items():
            if name not in values:
                continue  # the kernel logs "unknown parameter ignored" and goes on
            try:
                if isinstance(values[name], bool):
                    values[name] = parse_bool(text)
                elif isinstance(values[name], int):
                    values[name] = int(text or "", 0)
                else:
                    values[name] = text or ""
            except ValueError as error:
                raise OSError(errno.EINVAL, os.strerror(errno.EINVAL)) from error
        return values

    def _show_driver(self, image: Image, values: dict[str, t.Any]) -> None:
        """``/proc/driver/nvidia``, without the GPUs."""
        folder = self._driver / "nvidia"
        flavour = "Open Kernel Module for x86_64" if image.is_open else "x86_64 Kernel Module"
        _write(
            folder / "params",
            "".join(_parameter_line(name.removeprefix("NVreg_"), value) for name, value in values.items()),
        )
        _write(folder / "registry", 'Binary: ""\n')
        # Last: it is what tells others that the driver is there.
        _write(
            folder / "version",
            f"NVRM version: NVIDIA UNIX {flavour}  {image.version}  Release Build  (rig@rig)\n"
            "GCC version:  gcc version 14.2.0 (Debian 14.2.0-19)\n",
        )

    def _register(self, names: list[str], present: bool) -> None:
        """Add the names to the character devices of /proc/devices, or take them out."""
        numbers = dict(line.split()[:2] for line in (self._hardware / "nodes").read_text().splitlines())
        numbers["nvidia"] = numbers["nvidia0"]
        numbers["vfio"] = VFIO_MAJOR
        path = self._root / "proc/devices"
        character, separator, block = path.read_text().partition("\nBlock devices:")
        title, *lines = character.splitlines()
        lines = [line for line in lines if line.split()[1:] not in [[name] for name in names] and line]
        if present:
            lines += [f"{numbers[name]:>3} {name}" for name in names]
        lines.sort(key=lambda line: int(line.split()[0]))
        _write(path, "\n".join([title, *lines]) + "\n" + separator + block)

    def _refresh(self) -> None:
        """Reference counts, holders, and /proc/modules where this kernel has one."""
        listed = []
        for module in MODULES:
            if not self.is_loaded(module):
                continue
            holders = self.holders(module)
            folder = self._modules / module
            for link in (folder / "holders").iterdir():
                link.unlink()
            for holder in holders:
                (folder / "holders" / holder).symlink_to(f"../../{holder}")
            _write(folder / "refcnt", f"{len(holders)}\n")
            listed.append(
                f"{module} 65536 {len(holders)} {','.join(holders) + ',' if holders else '-'} Live 0x0000000000000000 (OE)\n"
            )
        path = self._root / "proc/modules"
        if path.exists():
            others = [line for line in path.read_text().splitlines(True) if line.split()[0] not in MODULES]
            _write(path, "".join([*reversed(listed), *others]))


def _parameter_line(name: str, value: object) -> str:
    return f'{name}: "{value}"\n' if isinstance(value, str) else f"{name}: {value}\n"


def _write(path: Path, text: str) -> None:
    """Write in place: some of these files are bind mounts, and all of them are in memory on a real machine."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w") as file:
        file.write(text)


def _remove(folder: Path) -> None:
    for entry in sorted(folder.rglob("*"), key=lambda entry: len(entry.parts), reverse=True):
        if entry.is_dir() and not entry.is_symlink():
            entry.rmdir()
        else:
            entry.unlink()
    if folder.is_dir():
        folder.rmdir()
