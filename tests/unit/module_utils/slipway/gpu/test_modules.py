# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.gpu import modules


@pytest.mark.parametrize(
    ("module", "live", "disk", "waiting"),
    [
        ("nvidia_uvm", {"uvm_x": "Y"}, {"uvm_x": "1"}, []),
        ("nvidia_uvm", {"uvm_x": "16"}, {"uvm_x": "0x10"}, []),
        ("nvidia_uvm", {"uvm_x": "Y"}, {"uvm_x": None}, []),
        ("nvidia_uvm", {"uvm_x": "N"}, {"uvm_x": "1"}, [("nvidia_uvm.uvm_x", "N", "1")]),
        ("nvidia_drm", {"modeset": "N"}, {"modeset": None}, [("nvidia_drm.modeset", "N", "1")]),
        ("vfio_pci", {"ids": "a"}, {"ids": "b"}, [("vfio_pci.ids", "a", "b")]),
        # What shows nowhere, and what is not on disk, or not loaded.
        ("nvidia_uvm", {}, {"uvm_x": "1"}, []),
        ("nvidia_uvm", {"uvm_x": "Y"}, {}, []),
        ("nvidia_uvm", {"uvm_x": "Y"}, None, []),
        ("nvidia_uvm", None, {"uvm_x": "1"}, []),
        # Those of the module nvidia are shown by the driver.
        ("nvidia", {}, {"NVreg_RegistryDwords": "ForceP2P=0x11"}, []),
        (
            "nvidia",
            {},
            {"NVreg_RegistryDwords": '"ForceP2P=0x0"'},
            [("nvidia.NVreg_RegistryDwords", "ForceP2P=0x11", '"ForceP2P=0x0"')],
        ),
        ("nvidia", {}, {"NVreg_EnableMSI": "0"}, [("nvidia.NVreg_EnableMSI", "1", "0")]),
    ],
)
def test_what_waits_for_the_next_load(module: str, live: t.Any, disk: t.Any, waiting: list[t.Any]) -> None:
    driver: dict[str, int | str] = {"EnableMSI": 1, "RegistryDwords": "ForceP2P=0x11"}
    assert modules.pending({module: {"live": live, "on_disk": disk}}, driver) == waiting
