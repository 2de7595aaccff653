# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.gpu import secure_boot
from ansible.module_utils.slipway.gpu.tree import Tree

GpuMachine = t.Any  # tests/unit/conftest.py
STATE = "sys/firmware/efi/efivars/SecureBoot-8be4df61-93ca-11d2-aa0d-00e098032b8c"
SHIM = "sys/firmware/efi/efivars/MokSBStateRT-605dab50-e046-4300-abb6-3dd810dd8b23"


@pytest.mark.parametrize(
    ("variables", "is_on"),
    [
        ({}, None),
        ({STATE: b"\x06\0\0\0\1"}, True),
        ({STATE: b"\x06\0\0\0\0"}, False),
        ({STATE: b""}, None),
        ({STATE: b"\x06\0\0\0\1", SHIM: b"\x06\0\0\0\1"}, False),
        ({STATE: b"\x06\0\0\0\1", SHIM: b"\x06\0\0\0\0"}, True),
    ],
)
def test_state(
    variables: dict[str, bytes], is_on: bool | None, gpu_machine: GpuMachine, look: t.Callable[..., dict[str, t.Any]]
) -> None:
    for path, content in variables.items():
        gpu_machine.file(path, content)
    assert look()["secure_boot"] is is_on


def test_a_guest_does_not_say(gpu_machine: GpuMachine, look: t.Callable[..., dict[str, t.Any]]) -> None:
    gpu_machine.file(STATE, b"\x06\0\0\0\1")
    assert look(place="guest")["secure_boot"] is None


@pytest.mark.parametrize(
    ("said", "on", "refused"),
    [
        ("modprobe: ERROR: could not insert 'nvidia': Key was rejected by service", None, True),
        ("modprobe: ERROR: could not insert 'nvidia': Required key not available", False, True),
        ("modprobe: ERROR: could not insert 'nvidia': Operation not permitted", True, True),
        ("modprobe: ERROR: could not insert 'nvidia': Operation not permitted", False, False),
        ("modprobe: ERROR: could not insert 'nvidia': No such device", True, False),
        ("", True, False),
    ],
)
def test_words_of_a_refusal(said: str, on: bool | None, refused: bool) -> None:
    assert secure_boot.refused(said, on) is refused


@pytest.mark.parametrize(
    ("words", "enrolled"),
    [
        ("echo $2 is already enrolled; exit 1", True),
        ("echo $2 is not enrolled", False),
        ("echo $2 is already in the enrollment request; exit 1", False),
        ("echo EFI variables are not supported on this system >&2; exit 1", None),
    ],
)
def test_what_mokutil_says_of_the_certificate(words: str, enrolled: bool | None, tmp_path: Path) -> None:
    for name in ("key", "certificate"):
        (tmp_path / name).touch()
    mokutil = tmp_path / "mokutil"
    mokutil.write_text(f'#!/bin/sh\n[ "$1" = --test-key ] || exit 9\n{words}\n')
    mokutil.chmod(0o755)
    told = secure_boot.signing(Tree(str(tmp_path)), "/key", "/certificate", str(mokutil))
    assert (told["missing"], told["enrolled"]) == ([], enrolled)
    assert told["said"]


def test_files_that_are_not_there(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    told = secure_boot.signing(Tree(str(tmp_path)), "/key", "/certificate", "/nowhere/mokutil")
    assert told == {"missing": ["/certificate"], "enrolled": None, "said": ""}
    assert secure_boot.signing(Tree(str(tmp_path)), "", "", "/nowhere/mokutil")["missing"] == ["nothing", "nothing"]


def test_without_mokutil_nothing_is_known(tmp_path: Path) -> None:
    (tmp_path / "key").touch()
    told = secure_boot.signing(Tree(str(tmp_path)), "/key", "/key", "/nowhere/mokutil")
    assert told["enrolled"] is None
    assert told["said"].startswith("mokutil does not run: ")
