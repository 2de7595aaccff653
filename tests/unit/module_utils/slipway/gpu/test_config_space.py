# SPDX-License-Identifier: GPL-3.0-or-later
"""Configuration spaces that are built here, and those of a real machine, built again from what lspci printed of them."""

from __future__ import annotations

import struct
import typing as t
from pathlib import Path

import lspci
import pytest
from ansible.module_utils.slipway.gpu import config_space
from ansible.module_utils.slipway.gpu.config_space import Port
from gpu_facts import config_space as build


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (build(4, 0x11), Port("root port", 256, 512, 0x11, False, False)),
        (build(5, 0x1D), Port("upstream port", 256, 512, 0x1D, True, True)),
        (build(6, 0x04), Port("downstream port", 256, 512, 0x04, True, False)),
        (build(6, 0x08, 2, 0), Port("downstream port", 512, 128, 0x08, False, True)),
        (build(0, None, 0, 5), Port("endpoint", 128, 4096, None, False, False)),
        (build(7, None), Port(None, 256, 512, None, False, False)),
        # What a container gets, and what is there of a device that does not answer.
        (build(4, 0x1D)[:64], Port()),
        (b"\xff" * 4096, Port()),
        (b"", Port()),
        (None, Port()),
        # Without the extended space nothing is known of ACS.
        (build(4, 0x1D)[:256], Port("root port", 256, 512)),
        (build(4, 0x1D)[:256] + b"\xff" * 3840, Port("root port", 256, 512)),
        (build(4, 0x1D)[:256] + bytes(3840), Port("root port", 256, 512, None, False, False)),
    ],
)
def test_what_a_space_says(data: bytes | None, expected: Port) -> None:
    assert config_space.read(data) == expected


def test_conventional_pci_has_no_acs() -> None:
    data = bytearray(256)
    struct.pack_into("<HHHH", data, 0, 0x1A03, 0x1150, 0, 0)
    assert config_space.read(bytes(data)) == Port(request_redirect=False, completion_redirect=False)


@pytest.mark.parametrize(("at", "value"), [(0x41, 0x40), (0x41, 0xFC), (0x41, 0x10)])
def test_a_list_that_leads_nowhere_ends(at: int, value: int) -> None:
    data = bytearray(build(4, 0x1D))
    data[at] = value
    assert config_space.read(bytes(data)) == Port(request_redirect=False, completion_redirect=False)


def test_an_extended_list_that_leads_nowhere_ends() -> None:
    for following in (0x100, 0xFFC, 0x004):
        data = bytearray(build(4, 0x1D))
        struct.pack_into("<I", data, 0x100, 0x0001 | 2 << 16 | following << 20)
        assert config_space.read(bytes(data)).acs_control is None


@pytest.fixture
def machine(shared_data: Path) -> dict[str, str]:
    """The devices of a real machine with eight GPUs behind switches, by address."""
    return lspci.devices((shared_data / "field/8gpu-switches/lspci-vvv.txt").read_text())


def test_the_devices_of_a_real_machine(machine: dict[str, str]) -> None:
    express = {address: text for address, text in machine.items() if ") Root Port" in text or "Switch (rev" in text}
    assert len(express) > 20
    for address, text in express.items():
        port = config_space.read(lspci.config(text))
        assert port.acs_control == (lspci.acs_control(text) if "ACSCtl" in text else None), address
        assert port.request_redirect is ("ReqRedir+" in text.partition("ACSCtl")[2].split("\n")[0]), address
        assert f"MaxPayload {port.max_payload_bytes} bytes, MaxReadReq {port.max_read_request_bytes} bytes" in text


def test_the_way_to_a_gpu_of_a_real_machine(machine: dict[str, str]) -> None:
    kinds = {
        address: config_space.read(lspci.config(machine[address])).kind for address in ("00:01.1", "01:00.0", "06:00.0")
    }
    assert kinds == {"00:01.1": "root port", "01:00.0": "upstream port", "06:00.0": "endpoint"}
    gpus = [text for text in machine.values() if "NVIDIA Corporation Device 2bb5" in text.split("\n")[0]]
    assert len(gpus) == 8
    ports: list[t.Any] = [config_space.read(lspci.config(text)) for text in gpus]
    assert {(port.max_payload_bytes, port.max_read_request_bytes, port.acs_control) for port in ports} == {
        (256, 512, None)
    }
