# SPDX-License-Identifier: GPL-3.0-or-later
"""Lines of NCCL's log as its releases have written them, shortened; each names the report that it is from."""

from __future__ import annotations

import pytest
from ansible.module_utils.slipway.all_reduce import log

WAYS = [
    ("10-4-3-3:97095:97196 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/direct pointer", 0, 1, "P2P/direct pointer"),  # nccl#1773
    ("h:6253:6644 [2] NCCL INFO Channel 23/0 : 2[201c0] -> 3[201d0] via P2P/IPC/read", 2, 3, "P2P/IPC/read"),  # Megatron-LM#516
    ("h:406794:406834 [7] NCCL INFO Channel 00 : 15[ca000] -> 14[c6000] via P2P/direct pointer/read", 15, 14, "P2P/direct pointer/read"),  # nccl-tests#111
    ("u:39964:40049 [5] NCCL INFO Channel 20 : 5[5] -> 4[4] via SHM/direct/direct", 5, 4, "SHM/direct/direct"),  # nccl-tests#166
    ("g:2144:2556 [2] NCCL INFO Ring 00 : 2[3d000] -> 3[3e000] via direct shared memory", 2, 3, "SHM/direct"),  # nccl#290
    ("m:4012:4594 [3] NCCL INFO Channel 08/0 : 11[3] -> 10[2] via P2P/CUMEM", 11, 10, "P2P/CUMEM"),  # DeepEP#143
    ("h:1:2 [0] NCCL INFO Channel 00/0 : 1[0] -> 0[0] [receive] via NET/Socket/0", 1, 0, "NET/Socket/0"),
    ("[2026-04-22 21:34:20] h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via SHM/CUMEM comm 0x5 nRanks 02", 0, 1, "SHM/CUMEM"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "source", "target", "via"), WAYS)
def test_ways_between_ranks(line: str, source: int, target: int, via: str) -> None:
    assert log.worth_keeping(line)
    found = log.read([line, line])
    assert found["transport"] == [{"source": source, "target": target, "via": via, "channels": 2}]


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("i:7995:7995 [0] NCCL INFO NCCL version 2.26.5+cuda12.9", "2.26.5"),
        ("NCCL version 2.18.1+cuda12.1", "2.18.1"),
        ("NCCL version 2.4.8+cuda10.0", "2.4.8"),
    ],
)
def test_the_version(line: str, version: str) -> None:
    assert log.worth_keeping(line)
    assert log.read([line])["version"] == version


def test_settings_completion_and_the_fallback() -> None:
    lines = [
        "h:1:1 [0] NCCL INFO NCCL_P2P_LEVEL set by environment to SYS",
        "h:1:1 [0] NCCL INFO NCCL_MIN_NCHANNELS set by environment to 8.",
        "h:1:3 [0] NCCL INFO comm 0x5ed0b2f0 rank 0 nranks 4 cudaDev 0 busId 1000 - Init COMPLETE",
        "v:40609:40609 [1] NCCL INFO cuMem host allocations do not appear to be working; falling back to a /dev/shm/ based implementation.",
    ]
    assert all(log.worth_keeping(line) for line in lines)
    found = log.read(lines)
    assert found["settings"] == {"NCCL_P2P_LEVEL": "SYS", "NCCL_MIN_NCHANNELS": "8"}
    assert (found["complete"], found["cumem_host"]) == (1, False)


def test_warnings_are_told_once() -> None:
    # pytorch/ci-infra#490
    line = (
        "[2026-04-22 21:34:20] w:202016:202235 [0] misc/shmutils.cc:88 NCCL WARN Error: failed to extend "
        "/dev/shm/nccl-WU88OE to 9637892 bytes, error: No space left on device (28)"
    )
    expected = "misc/shmutils.cc:88 Error: failed to extend /dev/shm/nccl-WU88OE to 9637892 bytes, error: No space left on device (28)"
    assert log.read([line, f"{line}\n"])["warnings"] == [expected]
    assert log.read(["h:1:2 [3] NCCL WARN Cuda failure 'invalid argument'"])["warnings"] == [
        "Cuda failure 'invalid argument'"
    ]


@pytest.mark.parametrize(
    "line",
    ["", "Loading weights", "h:1:2 [0] NCCL INFO Channel 00/06 :    0   1", "h:1:2 NCCL INFO Connected all rings"],
)
def test_the_rest_is_not_kept(line: str) -> None:
    assert not log.worth_keeping(line)
    assert log.read([line]) == {
        "version": None, "settings": {}, "complete": 0, "cumem_host": None, "transport": [], "warnings": [],
    }  # fmt: skip
