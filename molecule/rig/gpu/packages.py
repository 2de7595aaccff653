# SPDX-License-Identifier: GPL-3.0-or-later
"""The same simulated drivers as Debian packages, named and cut as in NVIDIA's repository, and a flat apt repository of them.

    python3 -m gpu.packages FOLDER

makes FOLDER/packages (and packages.tar, to be carried somewhere) from each NVIDIA-Linux-x86_64-<version>.run in FOLDER, if it has
not been made from these before. An apt source for it: ``deb [trusted=yes] file:/where/it/lies ./``
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tarfile
import tempfile
import typing as t
from dataclasses import dataclass, field
from pathlib import Path

LIBRARIES = "usr/lib/x86_64-linux-gnu"
REVISION = "1"


@dataclass(frozen=True)
class Package:
    """What one package holds: path below / to a file of the ``.run``'s payload, or to ``-> target`` for a link."""

    files: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    scripts: tuple[str, ...] = ()


# @V@ is the driver's version, @P@ the package's. The tool needs its libraries in the same version; the kernel part it only
# recommends, so that who installs it in a container with what it recommends gets a kernel part too, as with the real ones.
PACKAGES: dict[str, Package] = {
    "libcuda1": Package(
        {
            f"{LIBRARIES}/libcuda.so.@V@": "libcuda.so",
            f"{LIBRARIES}/libcuda.so.1": "-> libcuda.so.@V@",
            f"{LIBRARIES}/libcuda.so": "-> libcuda.so.1",
        }
    ),
    "libnvidia-ml1": Package(
        {
            f"{LIBRARIES}/libnvidia-ml.so.@V@": "libnvidia-ml.so",
            f"{LIBRARIES}/libnvidia-ml.so.1": "-> libnvidia-ml.so.@V@",
        }
    ),
    "nvidia-modprobe": Package({"usr/bin/nvidia-modprobe": "nvidia-modprobe"}),
    "nvidia-persistenced": Package(
        {
            "usr/bin/nvidia-persistenced": "nvidia-persistenced",
            "usr/lib/systemd/system/nvidia-persistenced.service": "nvidia-persistenced.service",
        }
    ),
    "nvidia-driver-cuda": Package(
        {"usr/bin/nvidia-smi": "nvidia-smi"},
        {
            "Depends": "libcuda1 (= @P@), libnvidia-ml1 (= @P@), nvidia-modprobe (= @P@)",
            "Recommends": "nvidia-kernel-open-dkms (= @P@) | nvidia-kernel-dkms (= @P@)",
        },
    ),
    "nvidia-kernel-open-dkms": Package(
        {
            f"usr/src/nvidia-@V@/{name}": name if name in ("sign-file", "dkms.conf") else f"open/{name}"
            for name in ("sign-file", "dkms.conf", "nvidia.ko", "nvidia-uvm.ko", "nvidia-modeset.ko", "nvidia-drm.ko")
        },
        {"Recommends": "nvidia-driver-cuda (= @P@)"},
        ("postinst", "prerm"),
    ),
    "nvidia-open": Package({}, {"Depends": "nvidia-driver-cuda (= @P@), nvidia-kernel-open-dkms (= @P@)"}),
}


def build(folder: Path) -> Path:
    """Make ``folder/packages`` from the drivers in ``folder``; its path. Done again with nothing new it does nothing."""
    drivers = sorted(folder.glob("NVIDIA-Linux-x86_64-*.run"))
    scripts = sorted((Path(__file__).parent / "package").glob("dkms-*"))
    parts = [path.read_bytes() for path in (*drivers, Path(__file__), *scripts)]
    digest = hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()
    target, mark = folder / "packages", folder / "packages/.made-from"
    if mark.exists() and mark.read_text() == digest:
        return target
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir()
    for driver in drivers:
        version = driver.name.removeprefix("NVIDIA-Linux-x86_64-").removesuffix(".run")
        with tempfile.TemporaryDirectory() as name:
            payload = Path(name) / "payload"
            subprocess.run(["sh", driver, "-x", "--target", payload], check=True, stdout=subprocess.DEVNULL)
            for package in PACKAGES:
                _build(package, version, payload, Path(name) / package, target)
    index(target)
    with tarfile.open(folder / "packages.tar", "w") as tar:
        for path in sorted(target.iterdir()):
            tar.add(path, path.name)
    mark.write_text(digest)
    return target


def _build(name: str, version: str, payload: Path, root: Path, target: Path) -> None:
    package, values = PACKAGES[name], {"@V@": version, "@P@": f"{version}-{REVISION}"}
    for path, source in package.files.items():
        file = root / _fill(path, values)
        file.parent.mkdir(parents=True, exist_ok=True)
        if source.startswith("-> "):
            file.symlink_to(_fill(source.removeprefix("-> "), values))
        else:
            shutil.copy(payload / source, file)
            file.chmod(0o644 if source.endswith((".ko", ".service", ".conf")) else 0o755)
    control = {
        "Package": name,
        "Version": values["@P@"],
        "Architecture": "amd64",
        "Section": "non-free/kernel",
        "Maintainer": "The rig <rig@rig.invalid>",
        **{key: _fill(text, values) for key, text in package.fields.items()},
        "Description": "simulated NVIDIA driver",
    }
    (root / "DEBIAN").mkdir(parents=True)
    (root / "DEBIAN/control").write_text("".join(f"{key}: {text}\n" for key, text in control.items()))
    if any(path.startswith(LIBRARIES) for path in package.files):
        (root / "DEBIAN/triggers").write_text("activate-noawait ldconfig\n")
    for script in package.scripts:
        text = _fill((Path(__file__).parent / "package" / f"dkms-{script}").read_text(), values)
        (root / "DEBIAN" / script).write_text(text)
        (root / "DEBIAN" / script).chmod(0o755)
    deb = target / f"{name}_{values['@P@']}_amd64.deb"
    subprocess.run(
        ["dpkg-deb", "--root-owner-group", "-Zgzip", "-z1", "--build", root, deb],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def index(target: Path) -> None:
    """Write the repository's index of the packages in ``target``."""
    (target / "Packages").write_text("\n".join(_entry(deb) for deb in sorted(target.glob("*.deb"))))


def _entry(deb: Path) -> str:
    """What a repository's index says of one package."""
    control = subprocess.run(["dpkg-deb", "--field", deb], check=True, capture_output=True, text=True).stdout
    content = deb.read_bytes()
    where = {"Filename": f"./{deb.name}", "Size": len(content), "SHA256": hashlib.sha256(content).hexdigest()}
    return control + "".join(f"{key}: {value}\n" for key, value in where.items())


def _fill(text: str, values: t.Mapping[str, str]) -> str:
    for mark, value in values.items():
        text = text.replace(mark, value)
    return text


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("usage: packages FOLDER")
    print(build(Path(sys.argv[1])))
