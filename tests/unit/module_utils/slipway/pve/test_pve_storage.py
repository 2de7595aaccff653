# SPDX-License-Identifier: GPL-3.0-or-later
"""Storages: what each fault says."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.pve import storage

GIB = 1024**3


def row(name: str, content: str, kind: str = "zfspool", free: float = 100, **more: t.Any) -> dict[str, t.Any]:
    return {
        "storage": name,
        "type": kind,
        "content": content,
        "enabled": 1,
        "active": 1,
        "avail": int(free * GIB),
        **more,
    }


ROWS = [
    row("local", "vztmpl,iso,backup", "dir"),
    row("local-zfs", "images,rootdir"),
    row("vg", "rootdir", "lvm", free=7.5),
    row("thin", "rootdir", "lvmthin", free=7.5),
    row("tiny", "rootdir", "dir", free=0.1),
    row("off", "rootdir,vztmpl", enabled=0, active=0, free=0),
    row("away", "rootdir", "nfs", active=0, free=0),
]
DISKS, TEMPLATE = storage.Wish(disks_gib=8), storage.Wish(template=True)


@pytest.mark.parametrize(
    ("name", "wish", "told"),
    [
        ("local-zfs", DISKS, None),
        ("local", TEMPLATE, None),
        (
            "local-zsf",
            DISKS,
            (
                "PVE_STORAGE_UNKNOWN",
                "fail",
                "It is declared for 8 GiB of disks. Fit for that: local-zfs, thin, tiny, vg.",
            ),
        ),
        (
            "nas",
            storage.Wish(8, True),
            ("PVE_STORAGE_UNKNOWN", "fail", "It is declared for 8 GiB of disks and the template. Fit for that: none."),
        ),
        ("off", TEMPLATE, ("PVE_STORAGE_INACTIVE", "fail", "It is disabled, and declared for the template.")),
        (
            "away",
            DISKS,
            ("PVE_STORAGE_INACTIVE", "fail", "It is enabled and not active, and declared for 8 GiB of disks."),
        ),
        (
            "local",
            storage.Wish(8, True),
            (
                "PVE_STORAGE_CONTENT",
                "fail",
                "It takes vztmpl, iso, backup, and 8 GiB of disks would need rootdir. Fit for that: local-zfs, thin, tiny, vg.",
            ),
        ),
        (
            "local-zfs",
            TEMPLATE,
            (
                "PVE_STORAGE_CONTENT",
                "fail",
                "It takes images, rootdir, and the template would need vztmpl. Fit for that: local.",
            ),
        ),
        (
            "vg",
            DISKS,
            (
                "PVE_STORAGE_FULL",
                "fail",
                "Declared are 8 GiB of disks, free are 7.5 GiB. A disk on 'lvm' takes its whole size at once, so it could "
                "not be made.",
            ),
        ),
        (
            "thin",
            DISKS,
            (
                "PVE_STORAGE_FULL",
                "warn",
                "Declared are 8 GiB of disks, free are 7.5 GiB. A disk on 'lvmthin' takes space as it is written, so it "
                "can be made, and not be filled.",
            ),
        ),
        (
            "tiny",
            DISKS,
            (
                "PVE_STORAGE_FULL",
                "fail",
                "Declared are 8 GiB of disks, free are 0.1 GiB. Not even the template has room there.",
            ),
        ),
    ],
)
def test_faults(name: str, wish: storage.Wish, told: tuple[str, str, str] | None) -> None:
    found = list(storage.faults(f"storage '{name}'", name, wish, ROWS, unpacked_bytes=200 * 1024**2))
    assert [(item.id, item.severity, item.detail) for item in found] == ([told] if told else [])


def test_a_template_that_is_not_there() -> None:
    there = [{"volid": f"local:vztmpl/{name}"} for name in ("ubuntu-24.04_amd64.tar.zst", "debian-13_13.1-1.tar.zst")]
    assert list(storage.missing_template("pve1", "local", "debian-13_13.1-1.tar.zst", there)) == []
    [found] = storage.missing_template("pve1", "local", "debian-13_13.1-2.tar.zst", there)
    assert found.subject == "template 'debian-13_13.1-2.tar.zst' on node 'pve1'"
    assert found.detail == (
        "Storage 'local' has debian-13_13.1-1.tar.zst, ubuntu-24.04_amd64.tar.zst. "
        "To fetch it: pveam update && pveam download local debian-13_13.1-2.tar.zst"
    )
    [found] = storage.missing_template("pve1", "local", "a.tar.zst", [])
    assert found.detail.startswith("Storage 'local' has none. ")
