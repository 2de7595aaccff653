# SPDX-License-Identifier: GPL-3.0-or-later
"""A healthy board, one thing changed, and the findings that must follow."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.gpu.faults import faults
from gpu_facts import changed, gpu, hop, link, way

GPU = "0000:06:00.0"


def board(*cards: dict[str, t.Any], **parts: t.Any) -> dict[str, t.Any]:
    """The healthy facts with these in the place of its GPUs."""
    return changed(gpus=[*cards], known_gpus=[*cards], cuda=None, **parts) if cards else changed(cuda=None, **parts)


def told(facts: dict[str, t.Any], under_load: bool = False) -> list[tuple[str, str, str, str]]:
    found = faults(facts, under_load=under_load)
    return [(one.id, one.severity, one.subject, one.detail) for one in found]


def card(**link_of_its_own: t.Any) -> dict[str, t.Any]:
    """A GPU whose own link is so."""
    seen = link(**link_of_its_own)
    return gpu("06", 1, link=seen, path=[*way("06")[:-1], hop("06:00.0", "endpoint", None, **link_of_its_own)])


def switched(**uplink: t.Any) -> dict[str, t.Any]:
    """A GPU whose switch has such a link to its root port."""
    path = way("06")
    path[1] = hop("01:00.0", "upstream port", **uplink)
    return gpu("06", 1, path=path)


OTHER = gpu("07", 0)
OWN, UP = "0000:02:00.0 to 0000:06:00.0", "0000:00:01.1 to 0000:01:00.0"


def test_nothing_is_said_of_a_healthy_board() -> None:
    assert told(board()) == []
    full = card(speed_gts=32.0)
    assert told(board(full, OTHER), under_load=False) == []
    assert told(board(full), under_load=True) == []


@pytest.mark.parametrize(
    ("subject", "under_load", "expected"),
    [
        # A GPU's own link rests in a low speed; under load that is a fault.
        (card(speed_gts=2.5), False, []),
        (card(speed_gts=2.5), True, [("LINK_SLOW", "fail", GPU, f"{OWN}: 2.5 GT/s of 32 GT/s")]),
        (card(speed_gts=16.0), True, [("LINK_SLOW", "warn", GPU, f"{OWN}: 16 GT/s of 32 GT/s")]),
        (card(speed_gts=None), False, []),
        (card(speed_gts=None), True, [("LINK_SLOW", "unknown", GPU, f"{OWN}: sysfs does not tell")]),
        # The width does not change with the load.
        (card(width=8), False, [("LINK_NARROW", "warn", GPU, f"{OWN}: x8 of x16")]),
        (card(width=4), False, [("LINK_NARROW", "fail", GPU, f"{OWN}: x4 of x16")]),
        (card(width=None), False, [("LINK_NARROW", "unknown", GPU, f"{OWN}: sysfs does not tell")]),
        # The link above the switch.
        (
            switched(speed_gts=5.0),
            False,
            [("LINK_SLOW", "warn", GPU, f"{UP}: 5 GT/s of 32 GT/s, read while it may have been at rest")],
        ),
        (switched(width=8), False, [("LINK_NARROW", "warn", GPU, f"{UP}: x8 of x16")]),
        # What the slot cannot do is no fault of the link.
        (switched(width=8, max_width=8), False, []),
        (
            gpu("06", 1, path=[hop("00:01.1", "root port", max_width=8), hop("06:00.0", "endpoint", None, width=8)]),
            False,
            [],
        ),
        # Without a path there is the GPU's own end.
        (gpu("06", 1, path=None, link=link(width=8)), False, [("LINK_NARROW", "warn", GPU, "its own link: x8 of x16")]),
    ],
)
def test_links(subject: dict[str, t.Any], under_load: bool, expected: list[tuple[str, ...]]) -> None:
    assert told(board(subject), under_load) == expected


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        ({"bar1_mib": 131072, "memory_mib": 97887}, []),
        ({"bar1_mib": 32768, "bar1_sizes_mib": None}, []),
        ({"bar1_mib": 256, "bar1_sizes_mib": None}, [("warn", "BAR1 has 256 MiB")]),
        (
            {"bar1_mib": 256, "memory_mib": 97887},
            [("warn", "BAR1 has 256 MiB, its memory 97887 MiB; the card can have 131072 MiB")],
        ),
        (
            {"bar1_mib": 32768, "memory_mib": 97887, "bar1_sizes_mib": None},
            [("warn", "BAR1 has 32768 MiB, its memory 97887 MiB")],
        ),
        ({"bar1_mib": 65536}, [("warn", "BAR1 has 65536 MiB; the card can have 131072 MiB")]),
        # It holds all of the memory, so that it could be larger is no matter.
        ({"bar1_mib": 65536, "memory_mib": 49140}, []),
        ({"bar1_mib": None}, [("unknown", "sysfs does not show its regions")]),
    ],
)
def test_bar1(parts: dict[str, t.Any], expected: list[tuple[str, str]]) -> None:
    assert told(board(gpu("06", 1, **parts))) == [
        ("BAR1_SMALL", severity, GPU, detail) for severity, detail in expected
    ]


def test_iommu() -> None:
    translated = gpu("06", 1, iommu_mode="translated", iommu_group=40)
    known = {"units": ["ivhd0"], "mode": "translated"}
    assert told(board(translated, OTHER, iommu=known)) == [
        ("IOMMU_TRANSLATED", "warn", "IOMMU", "translated: 0000:06:00.0 (group 40)")
    ]
    # One GPU alone has nobody to copy to.
    assert told(board(translated, iommu=known)) == []
    assert told(board(iommu={"mode": "passthrough"})) == []
    ((fault, severity, _, _),) = told(board(iommu={"mode": None}))
    assert (fault, severity) == ("IOMMU_TRANSLATED", "unknown")


def acs_hop(bus_id: str, control: int | None, redirect: bool | None) -> dict[str, t.Any]:
    bits = {"request_redirect": redirect, "completion_redirect": redirect}
    return {"bus_id": f"0000:{bus_id}", "acs_control": control, **bits}


def test_acs() -> None:
    hops = [acs_hop("00:01.1", 0x11, False), acs_hop("02:00.0", 0x1D, True), acs_hop("02:01.0", None, None)]
    on = {"redirect": True, "hops": hops}
    assert told(board(acs=on)) == [("ACS_REDIRECT", "warn", "ACS", "on at 0000:02:00.0 (ACSCtl 0x001d)")]
    assert told(board(gpu("06", 1), acs=on)) == []
    unread = {"redirect": None, "hops": [hops[0], hops[2]]}
    assert told(board(acs=unread)) == [
        ("ACS_REDIRECT", "unknown", "ACS", "the configuration space cannot be read beyond 64 bytes: 0000:02:01.0")
    ]
    ((_, severity, _, detail),) = told(board(acs={"redirect": None, "hops": []}))
    assert (severity, detail) == ("unknown", "no port is shown")
    many = [acs_hop(f"{number:02x}:00.0", 0x1D, True) for number in range(8)]
    assert told(board(acs={"redirect": True, "hops": many}))[0][3].endswith("0000:05:00.0 (ACSCtl 0x001d) and 2 more")


def test_a_container_is_told_nothing_of_the_board() -> None:
    facts = board(place="guest", acs={"redirect": None}, iommu={"mode": None}, xids=None)
    assert told(facts) == []


def test_before_there_is_a_driver_the_board_is_judged() -> None:
    bare = gpu("06", None, driven=False, pci_driver=None, bar1_mib=256, bar1_sizes_mib=None)
    facts = board(bare, driver={"loaded": False}, xids=[])
    assert [one[0] for one in told(facts)] == ["DRIVER_NOT_LOADED", "BAR1_SMALL"]


def test_a_gpu_of_virtual_machines_is_not_judged() -> None:
    kept = gpu("06", None, driven=False, pci_driver="vfio-pci", bar1_mib=256)
    known = {"redirect": True, "hops": [acs_hop("00:01.1", 0x1D, True)]}
    assert [one[0] for one in told(board(kept, OTHER, acs=known))] == ["GPU_BOUND_TO_VFIO"]
    assert [one[0] for one in told(board(kept, xids=None))] == ["GPU_BOUND_TO_VFIO"]


def test_a_gpu_that_a_virtual_machine_would_take() -> None:
    machine = {"vmid": 200, "name": "win", "key": "hostpci0", "running": False, "onboot": True}
    assert told(board(gpu("06", 1, machines=[machine]), OTHER)) == [
        ("GPU_PASSED_THROUGH", "warn", GPU, "virtual machine 'win' (200) has it as hostpci0 and does not run now")
    ]


def test_a_parameter_that_waits() -> None:
    modules = {
        "nvidia": {"live": {}, "on_disk": {"NVreg_EnableMSI": "0"}},
        "nvidia_uvm": {"live": {"uvm_disable_hmm": "N"}, "on_disk": {"uvm_disable_hmm": "1"}},
    }
    facts = board(modules=modules, driver={"parameters": {"EnableMSI": 1}})
    assert told(facts) == [
        ("MODULE_PARAMETER_PENDING", "warn", "nvidia.NVreg_EnableMSI", "it is 1 now, and 0 for the next load")
    ]


def xid(code: int, age_seconds: int | None, bus_id: str = GPU) -> dict[str, t.Any]:
    return {"bus_id": bus_id, "code": code, "age_seconds": age_seconds, "text": f"NVRM: Xid {code}"}


@pytest.mark.parametrize(
    ("xids", "expected"),
    [
        ([xid(31, 60)], [("warn", GPU, "Xid 31, once, the last 1 min ago: NVRM: Xid 31")]),
        ([xid(79, 7200)], [("fail", GPU, "Xid 79, once, the last 2 h ago: NVRM: Xid 79")]),
        ([xid(79, 90000)], []),
        ([xid(79, None)], [("fail", GPU, "Xid 79, once: NVRM: Xid 79")]),
        (
            [xid(13, 90000), xid(13, 600), xid(13, 120), xid(48, 60, "0000:07:00.0")],
            [
                ("warn", GPU, "Xid 13, 2 times, the last 2 min ago: NVRM: Xid 13"),
                ("fail", "0000:07:00.0", "Xid 48, once, the last 1 min ago: NVRM: Xid 48"),
            ],
        ),
        (None, [("unknown", "kernel log", "/dev/kmsg is not here")]),
    ],
)
def test_errors_in_the_kernel_log(xids: list[t.Any] | None, expected: list[tuple[str, str, str]]) -> None:
    assert told(board(xids=xids)) == [("XID_RECENT", *one) for one in expected]


def test_a_log_that_cannot_be_read_is_told_once() -> None:
    found = told(board(xids=None, unreadable={"/dev/kmsg": "EPERM"}))
    assert found == [("FACT_UNREADABLE", "unknown", "/dev/kmsg", "reading gives EPERM")]
