# SPDX-License-Identifier: GPL-3.0-or-later
"""A node's simulated GPU hardware: files on the controller that the node sees below ``/proc`` and ``/sys``.

    python3 -m gpu.hardware power-on FOLDER GPUS ROOTFS

Where each thing goes: ``MOUNTS``. No driver is loaded after power-on; the node's ``modprobe`` (``kmod.py``) changes the same
files as it loads and unloads modules, and guests see them read-only, as the guests of a real node see its kernel. The kernel and its
command line are what the boot loader in the node's root file system gives.
"""

from __future__ import annotations

import os
import shutil
import stat
import sys
import typing as t
from pathlib import Path

from boot import loader

from gpu import board, firmware, iommu, pci

# Below the state folder -> in the node. Nothing can be created in proc and sysfs, so folders that are always there are
# covered. /proc/modules is missing on kernels without loadable modules: hence optional.
MOUNTS = {
    "sys/module": ("sys/module", "bind"),
    # With what is mounted below it on the node: a guest may not look behind that.
    "sys/bus/pci": ("sys/bus/pci", "rbind"),
    "sys/firmware": ("sys/firmware", "bind"),
    "sys/class/iommu": ("sys/class/iommu", "bind,optional"),
    "sys/kernel/iommu_groups": ("sys/kernel/iommu_groups", "bind,optional"),
    "proc/driver": ("proc/driver", "bind"),
    "proc/devices": ("proc/devices", "bind"),
    "proc/modules": ("proc/modules", "bind,optional"),
    "proc/cmdline": ("proc/cmdline", "bind"),
    "proc/osrelease": ("proc/sys/kernel/osrelease", "bind"),
    "dev/kmsg": ("dev/kmsg", "bind,create=file"),
    "hardware": ("etc/rig/hardware", "bind,create=dir"),
}
# What a guest sees of it: its node's, read-only, except that its libcuda shows on the bus that links are at work. Not what only the node's stand-ins read, the firmware's variables, the log, or the
# release of the kernel, which the guest's own uname contradicts.
GUEST_MOUNTS = [
    f"/{target} {target} none {options}{'' if target == 'sys/bus/pci' else ',ro'} 0 0"
    for target, options in MOUNTS.values()
    if not target.startswith(("etc/", "dev/", "sys/firmware", "proc/sys/kernel/osrelease"))
]
NODE_NAMES = (*(f"nvidia{n}" for n in range(8)), "nvidiactl", "nvidia-modeset")
UVM_NAMES = ("nvidia-uvm", "nvidia-uvm-tools")
# (major, first minor). Virtual terminals beyond those in use, and the screen of the current one: character devices that this
# kernel has, that open anywhere without doing anything, and that are on no container's default list. Two majors, so that a
# node with another driver's number can be told from the right one, as with the real nvidia-uvm, whose major is dynamic.
NODE_CANDIDATES = [(4, first) for first in (10, 20, 30, 40, 50)]
UVM_CANDIDATES = [(7, 0), (7, 128), (7, 64), (4, 60)]


# What a machine is started with that nobody has told anything: the IOMMU of this board is on unless the kernel is told so.
COMMAND_LINE = "amd_iommu=off"


def power_on(directory: Path, gpus: int, booted: loader.Boot | None = None, faults: str = "") -> None:
    """Make the state folder, or reset it, as after a power cycle. Also takes effect in a node that is running.

    ``booted`` is the kernel that was started, ``faults`` what is wrong with the board (``board.py``). Errors: ValueError for a
    fault that makes no sense, RuntimeError where this kernel has no device that could stand for a
    GPU, or no PCI at all.
    """
    line = booted.line if booted else COMMAND_LINE
    for name in ("sys/module", "sys/bus/pci", "sys/class/iommu", "sys/kernel/iommu_groups", "proc/driver", "hardware"):
        _empty(directory / name)
    _copy_modules(Path("/sys/module"), directory / "sys/module")
    firmware.power_on(directory, loader.NAMES[booted.loader] if booted else None)
    found = pci.cards(gpus, str(directory.resolve()))
    pci.write(directory / "sys/bus/pci", found)
    kind = iommu.domain(line)
    iommu.write(directory, kind)
    if kind:
        pci.isolate(directory / "sys/bus/pci")
    board.apply(directory / "sys/bus/pci/devices", faults)
    (directory / "dev").mkdir(exist_ok=True)
    # The kernel's log, which a container has none of, as records of /dev/kmsg. In place: it may be mounted somewhere.
    (directory / "dev/kmsg").write_text("6,1,0,-;Linux\n")
    # In place: a bind mount of a file shows the inode it was made on.
    (directory / "proc/cmdline").write_text(f"{line}\n")
    (directory / "proc/osrelease").write_text(f"{booted.release if booted else os.uname().release}\n")
    for name in ("devices", "modules"):
        source = Path("/proc") / name
        text = source.read_text() if source.exists() else ""
        (directory / "proc" / name).write_text("".join(line for line in text.splitlines(True) if "nvidia" not in line))
    (directory / "hardware/model").write_text(pci.MODEL + "\n")
    (directory / "hardware/vbios").write_text(pci.VBIOS + "\n")
    (directory / "hardware/cards").write_text("".join(f"{c.address} {c.minor} {c.uuid}\n" for c in found))
    numbers = {**_numbers(directory, NODE_NAMES, NODE_CANDIDATES), **_numbers(directory, UVM_NAMES, UVM_CANDIDATES)}
    (directory / "hardware/nodes").write_text(
        "".join(f"{name} {major} {minor}\n" for name, (major, minor) in numbers.items())
    )


def node_mounts(directory: Path) -> list[str]:
    """Values of ``lxc.mount.entry`` that show the hardware to a node (which needs an ``/etc/rig`` to hold the private part)."""
    if not Path("/sys/bus/pci").is_dir():
        raise RuntimeError("this kernel has no PCI bus (/sys/bus/pci): a simulated one cannot be shown on it")
    return [f"{directory.resolve() / name} {target} none {options} 0 0" for name, (target, options) in MOUNTS.items()]


def _empty(folder: Path) -> None:
    """Make the folder, or take out what is in it. The folder itself stays: it may be mounted somewhere."""
    folder.mkdir(parents=True, exist_ok=True)
    for entry in folder.iterdir():
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry)
        else:
            entry.unlink()


def _copy_modules(source: Path, target: Path) -> None:
    """Copy what others look for below ``/sys/module`` (is there AppArmor, a parameter of a file system), without any nvidia."""
    for module in sorted(source.iterdir()):
        if module.name.startswith("nvidia"):
            continue
        (target / module.name).mkdir()
        files = [module / name for name in ("version", "refcnt", "initstate")]
        if (module / "parameters").is_dir():
            (target / module.name / "parameters").mkdir()
            files += sorted((module / "parameters").iterdir())
        for file in files:
            try:
                content = file.read_bytes()
            except OSError:
                continue  # not there, or write-only: both are normal in sysfs
            (target / module.name / file.relative_to(module)).write_bytes(content)


def _numbers(
    directory: Path,
    names: t.Sequence[str],
    candidates: t.Sequence[tuple[int, int]],
    opens: t.Callable[[Path, int, int], bool] | None = None,
) -> dict[str, tuple[int, int]]:
    """A device number for each name: the first candidate row on which all of them open."""
    test = opens or _opens
    for major, first in candidates:
        if all(test(directory / "probe", major, first + n) for n in range(len(names))):
            return {name: (major, first + n) for n, name in enumerate(names)}
    raise RuntimeError(
        f"no character device of this kernel can stand for {names[0]}: tried {candidates} below {directory}"
    )


def _opens(path: Path, major: int, minor: int) -> bool:
    path.unlink(missing_ok=True)
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(major, minor))
    try:
        os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOCTTY))
    except OSError:
        return False
    finally:
        path.unlink()
    return True


def main(arguments: list[str]) -> None:
    """The command line: what the node's container runs before each start."""
    if len(arguments) != 4 or arguments[0] != "power-on":
        raise SystemExit("usage: hardware power-on FOLDER GPUS ROOTFS")
    try:
        rootfs = Path(arguments[3])
        faults = rootfs / board.FILE
        text = faults.read_text() if faults.exists() else ""
        power_on(Path(arguments[1]), int(arguments[2]), loader.boot(rootfs), text)
    except (RuntimeError, ValueError, loader.NotBootable) as error:
        raise SystemExit(f"rig: Cannot power on the hardware in '{arguments[1]}': {error}.") from error


if __name__ == "__main__":
    main(sys.argv[1:])
