# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.gpu import kernel_log
from ansible.module_utils.slipway.gpu.tree import Tree


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/kmsg").write_text("")
    return Tree(str(tmp_path))


def answers(monkeypatch: pytest.MonkeyPatch, *given: bytes | Exception) -> None:
    """What reading the log gives, one after the other, and the last one for ever."""
    left = list(given)

    def read(handle: int, size: int) -> bytes:
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    monkeypatch.setattr(kernel_log.os, "read", read)


def test_it_is_read_to_its_end_and_never_waited_for(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    # EPIPE: the next record was overwritten while we read; EAGAIN: there is no more.
    answers(monkeypatch, b"6,1,1,-;one\n", BrokenPipeError(), b"6,9,1,-;two\n", BlockingIOError())
    assert kernel_log.read(tree) == "6,1,1,-;one\n6,9,1,-;two\n"
    assert tree.unreadable == {}


def test_one_that_never_ends_is_not_read_for_ever(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "_MOST_BYTES", 100)
    answers(monkeypatch, b"6,1,1,-;x\n")
    log = kernel_log.read(tree)
    assert log is not None and len(log) == 100
    assert tree.unreadable == {"/dev/kmsg": "EFBIG"}


def test_one_that_is_slow_is_not_read_for_ever(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel_log, "_MOST_SECONDS", -1.0)
    assert kernel_log.read(tree) == ""
    assert tree.unreadable == {"/dev/kmsg": "EFBIG"}


def test_an_error_is_remembered_and_the_file_closed(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    before = len(os.listdir("/proc/self/fd"))
    answers(monkeypatch, PermissionError(1, "no"))
    assert kernel_log.read(tree) is None
    assert tree.unreadable == {"/dev/kmsg": "EPERM"}
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("NVRM: Xid (PCI:0000:06:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen", ("0000:06:00.0", 79)),
        ("NVRM: Xid (PCI:0000:C1:00): 31, pid=12, Ch 00000008", ("0000:c1:00.0", 31)),
        ("NVRM: Xid (PCI:00000000:41:00.0): 119, pid=1", ("0000:41:00.0", 119)),
        ("NVRM: loading NVIDIA UNIX Open Kernel Module", None),
        ("somebody: wrote Xid 79", None),
    ],
)
def test_an_xid_is_read_in_each_form(line: str, expected: tuple[str, int] | None) -> None:
    found = kernel_log.xids(f"3,10,5000000,-;{line}\n DEVICE=+pci:x\n", 65.0)
    assert [(one["bus_id"], one["code"]) for one in found] == ([expected] if expected else [])
    assert [one["age_seconds"] for one in found] == ([60] if expected else [])


def test_without_the_uptime_an_xid_has_no_age() -> None:
    (found,) = kernel_log.xids("3,10,5000000,c;NVRM: Xid (PCI:0000:06:00): 13, x", None)
    assert found["age_seconds"] is None


def test_the_uptime() -> None:
    given: dict[str | None, t.Any] = {"12.50 40.0\n": 12.5, "": None, None: None, "x": None}
    assert {text: kernel_log.uptime_seconds(text) for text in given} == given
