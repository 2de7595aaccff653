# SPDX-License-Identifier: GPL-3.0-or-later
"""Root file systems from packages of Debian and Ubuntu: one for nodes, some that guests are made from. Built once, kept in the cache."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import subprocess
import tempfile
import typing as t
from pathlib import Path

CACHE = Path.home() / ".cache" / "slipway"
NODE_PACKAGES = [
    "systemd",
    "systemd-sysv",
    "dbus",
    "openssh-server",
    "python3",
    "iproute2",
    "ca-certificates",
    "kmod",
    "sudo",
    "curl",
    "lxc",
    "openssl",
    "initramfs-tools",
    "zstd",
    "cpio",
    "procps",
    "uidmap",
]
# A bare guest: Slipway must bring everything else itself, Python too. apt is named, since Ubuntu's minimal set is without it.
GUEST_PACKAGES = ["apt", "systemd", "systemd-sysv", "dbus", "openssh-server", "iproute2", "ca-certificates"]


class Template(t.NamedTuple):
    """A guest template: its file's name, as Proxmox's own has it, and the release that it is made from."""

    file: str
    suite: str


TEMPLATES = {
    "debian-13": Template("debian-13-standard_13.1-1_amd64.tar.zst", "trixie"),
    "debian-12": Template("debian-12-standard_12.12-1_amd64.tar.zst", "bookworm"),
    "ubuntu-24.04": Template("ubuntu-24.04-standard_24.04-2_amd64.tar.zst", "noble"),
}
# A template must not carry an identity: whoever makes a machine from it makes these.
# /etc/modules is the target of a link that systemd-modules-load follows; without it a guest starts degraded.
CUSTOMIZE = ': > "$1"/etc/modules && rm -f "$1"/etc/ssh/ssh_host_*_key* "$1"/etc/resolv.conf "$1"/etc/hostname && : > "$1"/etc/machine-id'


@contextlib.contextmanager
def alone(what: str) -> t.Iterator[None]:
    """Wait until no other rig of this machine does the same."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{what}.lock").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


class NotToBeHad(Exception):
    """An image that cannot be built, with the reason."""


def node() -> Path:
    """The tarball that nodes are unpacked from."""
    return _image("node", "trixie", NODE_PACKAGES, "tar")


def guest(name: str) -> Path:
    """The tarball of a template. Raises ``NotToBeHad``."""
    # Proxmox takes no template that is not compressed; a node is unpacked more often than it is kept.
    return _image("guest", TEMPLATES[name].suite, GUEST_PACKAGES, "tar.zst")


def _image(kind: str, suite: str, packages: list[str], suffix: str) -> Path:
    """The tarball of a recipe, built if this recipe has not been built before. Raises ``NotToBeHad``."""
    digest = hashlib.sha256(" ".join([suite, *packages, CUSTOMIZE]).encode()).hexdigest()[:12]
    target = CACHE / "images" / f"{kind}-{suite}-{digest}.{suffix}"
    with alone(f"image-{kind}-{suite}"):
        if not target.exists():
            _build(target, kind, suite, packages, suffix)
    return target


def _build(target: Path, kind: str, suite: str, packages: list[str], suffix: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    print(f"rig: building the {kind} image of {suite} ({len(packages)} packages and what they need)", flush=True)
    part = target.with_name(f"{target.name}.{os.getpid()}.part.{suffix}")
    options = ["--variant=minbase", f"--include={','.join(packages)}", f"--customize-hook={CUSTOMIZE}"]
    try:
        with tempfile.TemporaryDirectory() as scratch:
            if suite == TEMPLATES["ubuntu-24.04"].suite:
                options.append(f"--keyring={_ubuntu_keyring(Path(scratch))}")
            _mmdebstrap(*options, suite, str(part))
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)


def _ubuntu_keyring(scratch: Path) -> Path:
    """The keys of Ubuntu's archive, from Debian's package of them, which Debian's own keys vouch for.

    Unpacked rather than installed: not every Debian release has the package.
    """
    scratch.chmod(0o755)  # apt reads keys as a user of its own
    _mmdebstrap("--variant=extract", "--include=ubuntu-keyring", "trixie", str(scratch / "keys"))
    return scratch / "keys/usr/share/keyrings/ubuntu-archive-keyring.gpg"


def _mmdebstrap(*arguments: str) -> None:
    done = subprocess.run(
        ["mmdebstrap", "--quiet", *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if done.returncode:
        raise NotToBeHad("; ".join(done.stdout.strip().splitlines()[-3:]) or f"mmdebstrap ended with {done.returncode}")
