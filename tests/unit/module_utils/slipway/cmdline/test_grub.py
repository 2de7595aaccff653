# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import pytest
from ansible.module_utils.slipway.cmdline import grub, parameters

LINUX, DEFAULT = grub.VARIABLES
MAIN, DROP = "/etc/default/grub", "/etc/default/grub.d/x.cfg"
FILE = """\
# If you change this file, run 'update-grub' afterwards; GRUB_CMDLINE_LINUX="in a comment"

GRUB_DEFAULT=0
GRUB_DISTRIBUTOR=`( . /etc/os-release && echo ${NAME} )`\t
GRUB_CMDLINE_LINUX_DEFAULT="quiet dyndbg=\\"file a.c +p\\""   # mine
GRUB_CMDLINE_LINUX='root=ZFS=rpool/ROOT/pve-1 boot=zfs'
GRUB_CMDLINE_LINUX_RECOVERY="single"
#GRUB_TERMINAL=console"""


def read(*texts: str) -> dict[str, list[str]]:
    found = grub.parts(dict(zip((MAIN, DROP), texts)))
    return {name: [part.text for part in parts] for name, parts in found.items()}


def change(present: list[str], absent: list[str], *texts: str) -> tuple[list[str], str]:
    after, line = grub.change(dict(zip((MAIN, DROP), texts)), parameters.wanted(present, absent))
    return list(after.values()), line


def test_values_are_read_as_a_shell_does() -> None:
    assert read(FILE) == {DEFAULT: ['quiet dyndbg="file a.c +p"'], LINUX: ["root=ZFS=rpool/ROOT/pve-1 boot=zfs"]}
    assert read("") == {DEFAULT: [], LINUX: []}
    assert read(f'{DEFAULT}="a\\$b \\. c"\n')[DEFAULT] == ["a$b \\. c"]
    assert read(f"export {DEFAULT}=quiet\n{DEFAULT}=\n")[DEFAULT] == [""]
    # The later one counts, also where it comes in a file of its own.
    assert read(f"{DEFAULT}=old\n{DEFAULT}=new\n")[DEFAULT] == ["new"]
    assert read(f"{DEFAULT}=old\n", f"{DEFAULT}=new")[DEFAULT] == ["new"]
    assert read(f"{DEFAULT}=a\n", f'{DEFAULT}="b ${DEFAULT} c"\n{DEFAULT}="${{{DEFAULT}}} d"')[DEFAULT] == [
        "",
        "b ",
        "a",
        " c",
        " d",
    ]


def test_only_a_line_whose_value_changes_is_touched() -> None:
    (same,), _ = change(["quiet", "boot=zfs"], ["iommu"], FILE)
    assert same == FILE
    (changed,), line = change(['dyndbg="file b.c +p"', "iommu=pt"], [], FILE)
    before, after = FILE.splitlines(), changed.splitlines()
    assert [number for number, line in enumerate(before) if line != after[number]] == [4]
    assert after[4] == 'GRUB_CMDLINE_LINUX_DEFAULT="quiet dyndbg=\\"file b.c +p\\" iommu=pt"   # mine'
    assert not changed.endswith("\n")
    assert line == 'root=ZFS=rpool/ROOT/pve-1 boot=zfs quiet dyndbg="file b.c +p" iommu=pt'


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ([""], ['GRUB_CMDLINE_LINUX_DEFAULT="iommu=pt"\n']),
        (["A=1"], ['A=1\nGRUB_CMDLINE_LINUX_DEFAULT="iommu=pt"\n']),
        ([f"{DEFAULT}=quiet\n"], ['GRUB_CMDLINE_LINUX_DEFAULT="quiet iommu=pt"\n']),
        ([f"{DEFAULT}='a'\n"], ["GRUB_CMDLINE_LINUX_DEFAULT='a iommu=pt'\n"]),
        ([f"{DEFAULT}=old\n{DEFAULT}=new\n"], [f'{DEFAULT}=old\n{DEFAULT}="new iommu=pt"\n']),
        ([f'{DEFAULT}="a\\$b"\n'], ['GRUB_CMDLINE_LINUX_DEFAULT="a\\$b iommu=pt"\n']),
        # What is there is changed where it stands.
        ([f"{LINUX}=iommu=on\n{DEFAULT}=a\n"], [f'{LINUX}="iommu=pt"\n{DEFAULT}=a\n']),
        # A drop-in that sets the variable anew is where it counts; one that adds is left alone.
        ([f"{DEFAULT}=a\n", f"{DEFAULT}=b"], [f"{DEFAULT}=a\n", f'{DEFAULT}="b iommu=pt"']),
        (
            [f"{DEFAULT}=a\n", f'{DEFAULT}="${DEFAULT} b"\n'],
            [f'{DEFAULT}="a iommu=pt"\n', f'{DEFAULT}="${DEFAULT} b"\n'],
        ),
        (["", f'{DEFAULT}="${DEFAULT} b"\n'], [f'{DEFAULT}="iommu=pt"\n', f'{DEFAULT}="${DEFAULT} b"\n']),
        (
            [f"{DEFAULT}=a\n", f'{DEFAULT}="x=\\"1 2\\" ${DEFAULT} iommu=on z" # y\n'],
            [f"{DEFAULT}=a\n", f'{DEFAULT}="x=\\"1 2\\" ${DEFAULT} iommu=pt z" # y\n'],
        ),
    ],
)
def test_a_parameter_is_written_where_it_counts(texts: list[str], expected: list[str]) -> None:
    after, _ = change(["iommu=pt"], [], *texts)
    assert after == expected
    assert change(["iommu=pt"], [], *after)[0] == after


def test_both_sides_of_a_line_that_adds_are_changed() -> None:
    text = f'{LINUX}="a=1 b ${LINUX} c a=1"\n'
    assert change([], ["a", "c"], "", text)[0] == ["", f'{LINUX}="b ${LINUX}"\n']
    assert change(["a=22", "c=3"], [], "", text)[0][1] == f'{LINUX}="a=22 b ${LINUX} c=3"\n'


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
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX_DEFAULT"',
        'GRUB_CMDLINE_LINUX="$GRUB_CMDLINE_LINUX $GRUB_CMDLINE_LINUX"',
        "GRUB_CMDLINE_LINUX=$(cat /x)",
        'GRUB_CMDLINE_LINUX="${GRUB_CMDLINE_LINUX},b"',
        'GRUB_CMDLINE_LINUX="a=$GRUB_CMDLINE_LINUX"',
    ],
)
def test_what_only_a_shell_could_tell_is_refused(line: str) -> None:
    with pytest.raises(grub.Refused, match="line 2 does more with the kernel parameters than to set them to") as error:
        grub.parts({MAIN: "", DROP: f"A=1\n{line}\n"})
    assert error.value.file == DROP
