# SPDX-License-Identifier: GPL-3.0-or-later
"""Builds the simulated driver package ``NVIDIA-Linux-x86_64-<version>.run``. Needs a C compiler on the controller only."""

from __future__ import annotations

import io
import os
import re
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

from gpu import pci

SOURCE = Path(__file__).resolve().parent / "package"
MODULES = ("nvidia", "nvidia-uvm", "nvidia-modeset", "nvidia-drm")
LICENSES = {"open": "Dual MIT/GPL", "proprietary": "NVIDIA"}
# The CUDA version of a driver branch, as cuDriverGetVersion gives it.
CUDA_VERSIONS = {550: 12040, 560: 12060, 565: 12070, 570: 12080, 575: 12090, 580: 13000, 590: 13010, 595: 13020}


def build(out: Path, version: str) -> Path:
    """Make the package of this version as ``out`` (a file, or a folder to put it into); its path.

    Errors: ValueError for what is no version, RuntimeError without a compiler, CalledProcessError if it fails.
    """
    if not re.fullmatch(r"\d{3}\.\d+(\.\d+)?", version):
        raise ValueError(f"'{version}' is not a driver version such as 595.58.03")
    if not shutil.which("gcc"):
        raise RuntimeError("Cannot build the simulated driver: no gcc on this machine. Install the package 'gcc'.")
    target = out / f"NVIDIA-Linux-x86_64-{version}.run" if out.is_dir() else out
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _compile(folder, version)
        values = {
            "VERSION": version,
            "CUDA": "{}.{}".format(*divmod(cuda_version(version) // 10, 100)),
            "MEMORY_MIB": str(pci.MEMORY_MIB),
        }
        shutil.copy(SOURCE / "nvidia-persistenced.service", folder)
        (folder / "dkms.conf").write_text(dkms_conf(version))
        for script in ("nvidia-installer", "nvidia-smi", "nvidia-modprobe", "nvidia-persistenced", "sign-file"):
            (folder / script).write_text(_fill((SOURCE / script).read_text(), values))
            (folder / script).chmod(0o755)
        archive = _archive(folder)
    checksum = subprocess.run(["cksum"], input=archive, capture_output=True, check=True).stdout.decode().strip()
    head = (SOURCE / "runfile.sh").read_text()
    values |= {"CHECKSUM": checksum, "LINES": str(head.count("\n"))}
    partial = target.with_name(target.name + ".part")
    partial.write_bytes(_fill(head, values).encode() + archive)
    partial.chmod(0o755)
    os.replace(partial, target)
    return target


def cuda_version(version: str) -> int:
    """The CUDA version (13020 for 13.2) that comes with a driver version: that of its branch or of the last one before."""
    branch = int(version.split(".")[0])
    return max((number for known, number in CUDA_VERSIONS.items() if known <= branch), default=12000)


def dkms_conf(version: str) -> str:
    """What the driver's source tells DKMS of itself."""
    modules = "".join(
        f'BUILT_MODULE_NAME[{number}]="{module}"\nDEST_MODULE_LOCATION[{number}]="/kernel/drivers/char/drm"\n'
        for number, module in enumerate(MODULES)
    )
    return f'PACKAGE_NAME="nvidia"\nPACKAGE_VERSION="{version}"\nAUTOINSTALL="yes"\n{modules}'


def compile_libcuda(target: Path, version: str, root: Path | None = None) -> None:
    """Compile the simulated ``libcuda.so.1``. With ``root`` (tests) it looks below that folder in place of ``/``."""
    defines = [
        f'-DVERSION="{version}"',
        f"-DCUDA_DRIVER_VERSION={cuda_version(version)}",
        f"-DMEMORY_MIB={pci.MEMORY_MIB}",
    ]
    if root:
        defines.append(f'-DROOT="{root}"')
    _gcc(
        "-shared",
        "-fPIC",
        "-pthread",
        "-fvisibility=hidden",
        "-Wl,-soname,libcuda.so.1",
        *defines,
        "-o",
        target,
        *sorted((SOURCE / "libcuda").glob("*.c")),
    )


def _compile(folder: Path, version: str) -> None:
    compile_libcuda(folder / "libcuda.so", version)
    define = f'-DVERSION="{version}"'
    _gcc(
        "-shared",
        "-fPIC",
        "-Wl,-soname,libnvidia-ml.so.1",
        define,
        "-o",
        folder / "libnvidia-ml.so",
        SOURCE / "nvidia_ml.c",
    )
    for flavour, text in LICENSES.items():
        (folder / flavour).mkdir()
        for module in MODULES:
            names = [f"-DMODULE_{module.replace('-', '_')}", define, f'-DLICENSE="{text}"']
            _gcc("-c", *names, "-o", folder / flavour / f"{module}.ko", SOURCE / "module.c")


def _gcc(*arguments: str | Path) -> None:
    subprocess.run(["gcc", "-O2", "-Wall", *map(str, arguments)], check=True)


def _fill(text: str, values: dict[str, str]) -> str:
    return re.sub(r"@([A-Z_]+)@", lambda match: values.get(match[1], match[0]), text)


def _archive(folder: Path) -> bytes:
    """A tar.gz of the folder with nothing of this machine in it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for path in sorted(folder.rglob("*")):
            entry = tar.gettarinfo(path, str(path.relative_to(folder)))
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = "root"
            if entry.isfile():
                with path.open("rb") as file:
                    tar.addfile(entry, file)
            else:
                tar.addfile(entry)
    return buffer.getvalue()
