# SPDX-License-Identifier: GPL-3.0-or-later
"""Root file systems from Debian's packages: one for nodes, one that guests are made from. Built once, kept in the cache."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

CACHE = Path.home() / ".cache" / "slipway"
SUITE = "trixie"
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
# A bare guest: Slipway must bring everything else itself, Python too.
GUEST_PACKAGES = ["systemd", "systemd-sysv", "dbus", "openssh-server", "iproute2", "ca-certificates"]
# A template must not carry an identity: whoever makes a machine from it makes these.
# /etc/modules is the target of a link that systemd-modules-load follows; without it a guest starts degraded.
CUSTOMIZE = ': > "$1"/etc/modules && rm -f "$1"/etc/ssh/ssh_host_*_key* "$1"/etc/resolv.conf "$1"/etc/hostname && : > "$1"/etc/machine-id'


def image(kind: str) -> Path:
    """The tarball for ``node`` or ``guest``, built if this recipe has not been built before."""
    packages = {"node": NODE_PACKAGES, "guest": GUEST_PACKAGES}[kind]
    digest = hashlib.sha256(" ".join([SUITE, *packages, CUSTOMIZE]).encode()).hexdigest()[:12]
    # Proxmox takes no template that is not compressed; a node is unpacked more often than it is kept.
    suffix = {"node": "tar", "guest": "tar.zst"}[kind]
    target = CACHE / "images" / f"{kind}-{SUITE}-{digest}.{suffix}"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    print(
        f"rig: building the {kind} image from Debian {SUITE} ({len(packages)} packages and what they need)", flush=True
    )
    part = target.with_name(f"{target.name}.{os.getpid()}.part.{suffix}")
    command = [
        "mmdebstrap",
        "--quiet",
        "--variant=minbase",
        f"--include={','.join(packages)}",
        f"--customize-hook={CUSTOMIZE}",
    ]
    try:
        subprocess.run([*command, SUITE, str(part)], check=True)
        os.replace(part, target)
    finally:
        part.unlink(missing_ok=True)
    return target
