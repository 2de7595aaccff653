# SPDX-License-Identifier: GPL-3.0-or-later
"""Which kernel a node starts with which command line, from the files that its boot loader reads."""

from __future__ import annotations

from pathlib import Path

import pytest
from boot import loader

MENU = """\
if [ "${next_entry}" ] ; then
   set next_entry=
else
   set default="@DEFAULT@"
fi
menuentry 'Proxmox VE' --class os $menuentry_id_option 'gnulinux-simple-1' {
\tlinux\t/boot/vmlinuz-6.17 root=/dev/sda  ro quiet iommu=pt
}
submenu 'Advanced options' $menuentry_id_option 'gnulinux-advanced-1' {
\tmenuentry 'with Linux 6.17' --class os $menuentry_id_option 'gnulinux-6.17-advanced-1' {
\t\tlinux\t/boot/vmlinuz-6.17 root=/dev/sda ro
\t}
\tmenuentry 'with Linux 6.14' --class os $menuentry_id_option 'gnulinux-6.14-advanced-1' {
\t\tlinux\t/boot/vmlinuz-6.14 root=/dev/sda ro quiet
\t}
}
menuentry 'Other' $menuentry_id_option 'other' {
\tlinux\t/boot/vmlinuz-6.14 root=/dev/sdb
}
"""


def node(root: Path, default: str = "0") -> Path:
    for name in ("vmlinuz-6.17", "vmlinuz-6.14"):
        (root / "boot/grub").mkdir(parents=True, exist_ok=True)
        (root / "boot" / name).touch()
    (root / "boot/grub/grub.cfg").write_text(MENU.replace("@DEFAULT@", default))
    return root


@pytest.mark.parametrize(
    ("default", "line"),
    [
        ("0", "BOOT_IMAGE=/boot/vmlinuz-6.17 root=/dev/sda ro quiet iommu=pt"),
        ("1>1", "BOOT_IMAGE=/boot/vmlinuz-6.14 root=/dev/sda ro quiet"),
        ("2", "BOOT_IMAGE=/boot/vmlinuz-6.14 root=/dev/sdb"),
        ("gnulinux-advanced-1>gnulinux-6.14-advanced-1", "BOOT_IMAGE=/boot/vmlinuz-6.14 root=/dev/sda ro quiet"),
        ("Advanced options>with Linux 6.14", "BOOT_IMAGE=/boot/vmlinuz-6.14 root=/dev/sda ro quiet"),
        ("gnulinux-6.14-advanced-1", "BOOT_IMAGE=/boot/vmlinuz-6.17 root=/dev/sda ro quiet iommu=pt"),
    ],
    ids=["first", "in the submenu", "after it", "by id", "by title", "not there at that level"],
)
def test_grub_starts_the_entry_that_is_set(tmp_path: Path, default: str, line: str) -> None:
    booted = loader.boot(node(tmp_path, default))
    assert (booted.loader, booted.line) == ("grub", line)
    assert booted.release == ("6.14" if "6.14" in line else "6.17")


def test_a_choice_for_one_start_is_used_up(tmp_path: Path) -> None:
    memory = node(tmp_path) / "boot/grub/grubenv"
    loader.write_environment(memory, {"next_entry": "1>1", "kept": "yes"})
    assert memory.stat().st_size == 1024
    assert loader.boot(tmp_path).release == "6.14"
    assert loader.environment(memory) == {"kept": "yes"}
    assert loader.boot(tmp_path).release == "6.17"


def test_the_saved_entry(tmp_path: Path) -> None:
    loader.write_environment(node(tmp_path, "${saved_entry}") / "boot/grub/grubenv", {"saved_entry": "other"})
    assert loader.boot(tmp_path).line.endswith("root=/dev/sdb")


def test_grub_does_not_start_without_menu_entry_or_kernel(tmp_path: Path) -> None:
    with pytest.raises(loader.NotBootable, match="GRUB has no menu"):
        loader.boot(tmp_path)
    (node(tmp_path) / "boot/vmlinuz-6.17").unlink()
    with pytest.raises(loader.NotBootable, match=r"GRUB does not find /boot/vmlinuz-6\.17"):
        loader.boot(tmp_path)
    (tmp_path / "boot/grub/grub.cfg").write_text("set default=0\n")
    with pytest.raises(loader.NotBootable, match="no entry with a kernel"):
        loader.boot(tmp_path)


def partition(root: Path, default: str = "proxmox-*") -> Path:
    folder = root / "etc/rig/esp/A9B4-3C6F"
    (folder / "loader/entries").mkdir(parents=True)
    (folder / "EFI/systemd").mkdir(parents=True)
    (folder / loader.SYSTEMD_BOOT).touch()
    (folder / "loader/loader.conf").write_text(f"timeout 3\ndefault {default}\n")
    for release in ("6.9", "6.14"):
        (folder / f"EFI/{release}").mkdir()
        (folder / f"EFI/{release}/vmlinuz-{release}").touch()
        (folder / f"loader/entries/proxmox-{release}.conf").write_text(
            f"title    Proxmox\nversion  {release}\noptions   root=ZFS=rpool boot=zfs\n"
            f"linux    /EFI/{release}/vmlinuz-{release}\ninitrd   /EFI/{release}/initrd.img-{release}\n"
        )
    return folder


def test_systemd_boot_starts_the_newest_and_names_the_initrd(tmp_path: Path) -> None:
    partition(node(tmp_path))
    line = r"initrd=\EFI\6.14\initrd.img-6.14 root=ZFS=rpool boot=zfs"
    assert loader.boot(tmp_path) == loader.Boot("systemd-boot", "6.14", line)


def test_systemd_boot_starts_the_pinned_one(tmp_path: Path) -> None:
    partition(tmp_path, "proxmox-6.9.conf")
    assert loader.boot(tmp_path).release == "6.9"


def test_systemd_boot_does_not_start_a_kernel_that_is_gone(tmp_path: Path) -> None:
    (partition(tmp_path) / "EFI/6.14/vmlinuz-6.14").unlink()
    with pytest.raises(loader.NotBootable, match=r"does not find /EFI/6\.14"):
        loader.boot(tmp_path)


def test_grub_on_an_efi_partition_reads_nothing_else(tmp_path: Path) -> None:
    folder = node(tmp_path) / "etc/rig/esp/A9B4-3C6F"
    (folder / "grub").mkdir(parents=True)
    (folder / "vmlinuz-6.14").touch()
    (folder / "grub/grub.cfg").write_text(
        "menuentry 'a' $menuentry_id_option 'b' {\n linux /vmlinuz-6.14 root=ZFS=/ROOT\n}\n"
    )
    assert loader.boot(tmp_path).line == "BOOT_IMAGE=/vmlinuz-6.14 root=ZFS=/ROOT"


def test_releases_are_sorted_as_versions() -> None:
    assert sorted(["6.8.12-10-pve", "6.8.12-9-pve", "6.14.0-1-pve"], key=loader.version_key) == [
        "6.8.12-9-pve",
        "6.8.12-10-pve",
        "6.14.0-1-pve",
    ]
