# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.module_utils.slipway.cmdline import grub

LINUX, DEFAULT = grub.VARIABLES
FILE = """\
# If you change this file, run 'update-grub' afterwards; GRUB_CMDLINE_LINUX="in a comment"

GRUB_DEFAULT=0
GRUB_DISTRIBUTOR=`( . /etc/os-release && echo ${NAME} )`\t
GRUB_CMDLINE_LINUX_DEFAULT="quiet dyndbg=\\"file a.c +p\\""   # mine
GRUB_CMDLINE_LINUX='root=ZFS=rpool/ROOT/pve-1 boot=zfs'
GRUB_CMDLINE_LINUX_RECOVERY="single"
#GRUB_TERMINAL=console"""


def test_values_are_read_as_a_shell_does() -> None:
    assert grub.read(FILE) == {DEFAULT: 'quiet dyndbg="file a.c +p"', LINUX: "root=ZFS=rpool/ROOT/pve-1 boot=zfs"}
    assert grub.read("") == {}
    assert grub.read(f'{DEFAULT}="a\\$b \\. c"\n') == {DEFAULT: "a$b \\. c"}
    assert grub.read(f"export {DEFAULT}=quiet\n{DEFAULT}=\n") == {DEFAULT: ""}
    assert grub.read(f"{DEFAULT}=old\n{DEFAULT}=new\n") == {DEFAULT: "new"}


def test_only_a_line_whose_value_changes_is_touched() -> None:
    assert grub.write(FILE, grub.read(FILE)) == FILE
    changed = grub.write(FILE, {**grub.read(FILE), DEFAULT: 'quiet dyndbg="file b.c +p" iommu=pt'})
    before, after = FILE.splitlines(), changed.splitlines()
    assert [number for number, line in enumerate(before) if line != after[number]] == [4]
    assert after[4] == 'GRUB_CMDLINE_LINUX_DEFAULT="quiet dyndbg=\\"file b.c +p\\" iommu=pt"   # mine'
    assert not changed.endswith("\n")


@pytest.mark.parametrize(
    ("text", "values", "expected"),
    [
        ("", {DEFAULT: "iommu=pt"}, 'GRUB_CMDLINE_LINUX_DEFAULT="iommu=pt"\n'),
        ("A=1", {DEFAULT: "iommu=pt"}, 'A=1\nGRUB_CMDLINE_LINUX_DEFAULT="iommu=pt"\n'),
        ("A=1\n", {LINUX: "", DEFAULT: ""}, "A=1\n"),
        (f"{LINUX}=quiet\n", {LINUX: "quiet x"}, 'GRUB_CMDLINE_LINUX="quiet x"\n'),
        (f"{LINUX}='a'\n", {LINUX: 'a b="c d"'}, "GRUB_CMDLINE_LINUX='a b=\"c d\"'\n"),
        (f"{LINUX}=old\n{LINUX}=new\n", {LINUX: "newer"}, 'GRUB_CMDLINE_LINUX=old\nGRUB_CMDLINE_LINUX="newer"\n'),
        (f'{LINUX}="a\\$b"\n', {LINUX: "a$b c"}, 'GRUB_CMDLINE_LINUX="a\\$b c"\n'),
    ],
)
def test_a_value_is_written_as_a_shell_reads_it(text: str, values: dict[str, str], expected: str) -> None:
    assert grub.write(text, values) == expected
    assert {name: value for name, value in grub.read(expected).items() if value} == {
        name: value for name, value in values.items() if value
    }


@pytest.mark.parametrize(
    "line",
    [
        'GRUB_CMDLINE_LINUX="$OTHER quiet"',
        'GRUB_CMDLINE_LINUX="`cat /x`"',
        'GRUB_CMDLINE_LINUX+=" quiet"',
        'GRUB_CMDLINE_LINUX="quiet \\',
        'GRUB_CMDLINE_LINUX="a""b"',
        'if x; then GRUB_CMDLINE_LINUX="a"; fi',
        '  GRUB_CMDLINE_LINUX="a"',
        'OTHER="$GRUB_CMDLINE_LINUX"',
        "GRUB_CMDLINE_LINUX=$(cat /x)",
    ],
)
def test_what_only_a_shell_could_tell_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match="line 2 does more with the kernel parameters than to set them to plain text"):
        grub.read(f"A=1\n{line}\n")


def test_a_drop_in_may_add() -> None:
    kdump = '# kdump\nGRUB_CMDLINE_LINUX_DEFAULT="$GRUB_CMDLINE_LINUX_DEFAULT crashkernel=384M-:128M"\n'
    assert [one.text for one in grub.added(kdump)] == ["crashkernel=384M-:128M"]
    assert [one.text for one in grub.added('GRUB_CMDLINE_LINUX="a ${GRUB_CMDLINE_LINUX} b"')] == ["a", "b"]
    assert grub.added("GRUB_DEFAULT=1\n") == []
    for line in ('GRUB_CMDLINE_LINUX="quiet"', 'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX_DEFAULT"'):
        with pytest.raises(ValueError, match="line 1 sets the kernel parameters anew"):
            grub.added(line)
