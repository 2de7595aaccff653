# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
from pathlib import Path

from gpu import hardware, install


def test_install_twice(tmp_path: Path) -> None:
    for folder in ("usr/sbin", "usr/bin", "var/lib/dpkg"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "usr/bin/kmod").write_text("real")
    for program in ("modprobe", "rmmod"):
        (tmp_path / "usr/sbin" / program).symlink_to("../bin/kmod")
    install.install(tmp_path)
    install.install(tmp_path)
    assert (tmp_path / "usr/bin/kmod").read_text() == "real", "nothing was written through the link"
    assert os.readlink(tmp_path / "usr/lib/rig/kmod/modprobe") == "/usr/bin/kmod"
    assert "exec /usr/lib/rig/kmod/rmmod" in (tmp_path / "usr/sbin/rmmod").read_text()
    assert (tmp_path / "var/lib/dpkg/diversions").read_text().splitlines()[:3] == [
        "/usr/sbin/modprobe",
        "/usr/lib/rig/kmod/modprobe",
        ":",
    ]
    assert len((tmp_path / "var/lib/dpkg/diversions").read_text().splitlines()) == 6
    assert (tmp_path / "etc/rig/guest-mounts").read_text().splitlines() == hardware.GUEST_MOUNTS
