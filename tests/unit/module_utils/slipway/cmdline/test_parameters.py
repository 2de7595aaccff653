# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

from pathlib import Path

import pytest
from ansible.module_utils.slipway.cmdline import parameters


@pytest.mark.parametrize(
    ("line", "present", "absent", "expected"),
    [
        ("quiet", [], [], "quiet"),
        ("", ["iommu=pt"], [], "iommu=pt"),
        ("  ", [], ["iommu"], "  "),
        ("quiet", ["iommu=pt"], [], "quiet iommu=pt"),
        # What is there is left where it is, blanks included.
        ("quiet  iommu=pt\tsplash ", ["iommu=pt"], [], "quiet  iommu=pt\tsplash "),
        ("quiet  iommu=on\tsplash ", ["iommu=pt"], [], "quiet  iommu=pt\tsplash "),
        ("quiet  splash ", ["iommu=pt"], [], "quiet  splash iommu=pt "),
        # One name is not another.
        ("intel_iommu=on amd_iommu=on", ["iommu=pt"], [], "intel_iommu=on amd_iommu=on iommu=pt"),
        ("intel_iommu=on iommu=pt", [], ["iommu"], "intel_iommu=on"),
        ("intel_iommu=on iommu=pt", ["intel_iommu=off"], [], "intel_iommu=off iommu=pt"),
        # Quoted values are one word; quotes around the value or the whole word mean the same.
        ('a="b iommu=off c" d', ["iommu=pt"], [], 'a="b iommu=off c" d iommu=pt'),
        ('"dyndbg=file a.c +p" x', ['dyndbg="file a.c +p"'], [], '"dyndbg=file a.c +p" x'),
        ('dyndbg="file a.c +p" x', ['dyndbg="file b.c +p"'], [], 'dyndbg="file b.c +p" x'),
        # A name that comes several times.
        ("console=tty0 console=ttyS0,115200", ["quiet"], [], "console=tty0 console=ttyS0,115200 quiet"),
        ("console=tty0 x console=ttyS0", ["console=tty0", "console=ttyS1"], [], "console=tty0 x console=ttyS1"),
        ("console=tty0 x console=ttyS0", ["console=ttyS0"], [], "console=ttyS0 x"),
        ("console=tty0 x", ["console=tty0", "console=ttyS0"], [], "console=tty0 x console=ttyS0"),
        ("console=tty0 console=ttyS0", [], ["console=ttyS0"], "console=tty0"),
        ("console=ttyS0 console=tty0", [], ["console"], ""),
        # - and _ are the same to the kernel.
        ("vfio_pci.ids=10de:2bb5 ro", [], ["vfio-pci.ids"], "ro"),
        ("vfio_pci.ids=1:2", ["vfio-pci.ids=1:2"], [], "vfio_pci.ids=1:2"),
        # A flag and a name with an empty value are two things.
        ("quiet=", ["quiet"], [], "quiet"),
        # What follows -- is for init.
        ("quiet -- iommu=off", ["iommu=pt"], [], "quiet iommu=pt -- iommu=off"),
        ("quiet -- iommu=off", [], ["iommu"], "quiet -- iommu=off"),
        ("-- x", ["iommu=pt"], [], "iommu=pt -- x"),
        ("iommu=off  quiet ", [], ["iommu"], "quiet "),
    ],
)
def test_a_line_is_changed_where_it_must_be(line: str, present: list[str], absent: list[str], expected: str) -> None:
    declared = parameters.wanted(present, absent)
    (changed,) = parameters.change([line], declared)
    assert changed == expected
    assert parameters.change([changed], declared) == [changed]
    assert parameters.differs(line, declared) is (parameters.parse(line) != parameters.parse(changed))
    assert not parameters.differs(changed, declared)


def test_several_lines_are_one_command_line() -> None:
    declared = parameters.wanted(["root=ZFS=rpool/x", "iommu=pt", "pcie_aspm=off"], ["nomodeset"])
    before = ["root=ZFS=rpool/ROOT nomodeset", "quiet iommu=on"]
    after = ["root=ZFS=rpool/x", "quiet iommu=pt pcie_aspm=off"]
    assert parameters.change(before, declared, 1) == after
    assert parameters.change(after, declared, 1) == after
    assert parameters.change(["console=a", "console=b"], parameters.wanted(["console=b"], [])) == ["console=b", ""]
    added = parameters.wanted(["c"], [])
    assert parameters.change(["a", "b", "d"], added, 1) == ["a", "b c", "d"]
    assert parameters.change(["a --", "b"], added, 1) == ["a c --", "b"]
    assert parameters.change(["a", "-- b"], added, 0) == ["a", "c -- b"]
    assert parameters.change(["", ""], added, 1) == ["", "c"]


@pytest.mark.parametrize("word", ["", "a b", 'a="b', "--", "=x", "BOOT_IMAGE=/vmlinuz", "initrd=/x", "a\nb"])
def test_what_is_no_parameter_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="is not one parameter"):
        parameters.wanted([word], [])
    with pytest.raises(ValueError, match="is not one parameter"):
        parameters.wanted([], [word])


@pytest.mark.parametrize("word", ["a=$x", "a=`x`", "a=b;c", "a=b\\c", "a='b", "a=ü", "a=b&c"])
def test_what_a_boot_loader_would_read_otherwise_is_refused(word: str) -> None:
    with pytest.raises(ValueError, match="which boot loaders read as their own"):
        parameters.wanted([word], [])


def test_present_and_absent_at_once_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'vfio_pci\.ids' is declared as present and as absent"):
        parameters.wanted(["vfio-pci.ids=1:2"], ["vfio_pci.ids=3:4"])


def test_what_the_loader_added_is_left_out() -> None:
    line = "initrd=\\EFI\\proxmox\\6.8.12-9-pve\\initrd.img-6.8.12-9-pve root=ZFS=rpool/ROOT/pve-1 boot=zfs"
    assert parameters.without_the_loaders(line) == "root=ZFS=rpool/ROOT/pve-1 boot=zfs"


def test_a_line_of_a_real_machine(shared_data: Path) -> None:
    line = (shared_data / "field/8gpu-switches/cmdline.txt").read_text()
    names = [one.name for one in parameters.parse(line)]
    assert (names[0], names[-2:]) == ("BOOT_IMAGE", ["amd_iommu", "iommu"])
    assert not parameters.differs(line, parameters.wanted(["iommu=off", "amd_iommu=off"], ["pci"]))
    assert parameters.differs(line, parameters.wanted(["iommu=pt"], []))
