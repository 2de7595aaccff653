# SPDX-License-Identifier: GPL-3.0-or-later
"""The script that clears ACS redirect above the GPUs, on a PCI tree of files."""

from __future__ import annotations

import importlib.util
import struct
import typing as t
from pathlib import Path

import pytest

TEMPLATE = Path(__file__).parents[3] / "roles/pve_host/templates/gpu-acs.py.j2"
GpuMachine = t.Any  # tests/unit/conftest.py
ROOT_PORT, UPSTREAM, LEFT, RIGHT = "0000:00:01.1", "0000:01:00.0", "0000:02:00.0", "0000:02:01.0"


@pytest.fixture
def script(tmp_path: Path) -> t.Any:
    file = tmp_path / "gpu_acs.py"
    file.write_text(TEMPLATE.read_text().replace("{{ ansible_managed }}", ""))
    spec = importlib.util.spec_from_file_location("gpu_acs", file)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(gpu_machine: GpuMachine) -> GpuMachine:
    """Two GPUs behind one switch, redirect on at its downstream ports and at the root port; another switch without a GPU."""
    gpu_machine.port(ROOT_PORT, 4, "pci0000:00", acs_control=0x1D)
    gpu_machine.port(LEFT, 6, f"pci0000:00/{ROOT_PORT}/{UPSTREAM}", acs_control=0x5F)
    gpu_machine.port(RIGHT, 6, f"pci0000:00/{ROOT_PORT}/{UPSTREAM}", acs_control=0x08)
    gpu_machine.port("0000:00:02.1", 4, "pci0000:00", acs_control=0x1D)
    for address in (ROOT_PORT, UPSTREAM, LEFT, RIGHT, "0000:00:02.1"):
        gpu_machine.file(f"sys/bus/pci/devices/{address}/vendor", "0x1022\n")
        gpu_machine.file(f"sys/bus/pci/devices/{address}/class", "0x060400\n")
    return gpu_machine


def controls(script: t.Any, tree: GpuMachine) -> dict[str, int]:
    found = {}
    for address in (ROOT_PORT, UPSTREAM, LEFT, RIGHT, "0000:00:02.1"):
        config = (tree.root / f"sys/bus/pci/devices/{address}/config").read_bytes()
        found[address] = struct.unpack_from("<H", config, script.control(config))[0]
    return found


def test_the_two_bits_go_on_the_way_to_the_gpus_and_nothing_else_changes(
    script: t.Any, tree: GpuMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in tree.root.glob("sys/devices/**/config")}
    assert script.main(tree.root) == 0
    assert controls(script, tree) == {ROOT_PORT: 0x11, UPSTREAM: 0x11, LEFT: 0x53, RIGHT: 0x00, "0000:00:02.1": 0x1D}
    changed = {path for path, content in before.items() if path.read_bytes() != content}
    assert {path.parent.name for path in changed} == {ROOT_PORT, LEFT, RIGHT}
    for path in changed:
        assert sum(a != b for a, b in zip(before[path], path.read_bytes())) == 1
    assert f"{LEFT}: ACSCtl 0x005f -> 0x0053" in capsys.readouterr().out
    assert script.main(tree.root) == 0
    assert capsys.readouterr().out == ""


def test_a_gpu_that_vfio_has_is_not_followed(script: t.Any, tree: GpuMachine) -> None:
    tree.link("sys/bus/pci/devices/0000:06:00.0/driver", "../../drivers/vfio-pci")
    tree.link("sys/bus/pci/devices/0000:07:00.0/driver", "../../drivers/vfio-pci")
    assert script.ports(tree.root) == []


def test_virtual_machines_with_devices_keep_it_on(
    script: t.Any, tree: GpuMachine, capsys: pytest.CaptureFixture[str]
) -> None:
    tree.file("etc/pve/qemu-server/150.conf", "name: router\nhostpci0: 0000:01:00.0\n")
    assert script.main(tree.root) == 0
    assert controls(script, tree)[LEFT] == 0x5F
    assert "150" in capsys.readouterr().out


def test_a_port_that_cannot_be_written_is_told_and_the_others_are_cleared(
    script: t.Any, tree: GpuMachine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write = script.os.pwrite

    def refuse(descriptor: int, data: bytes, at: int) -> int:
        if Path(f"/proc/self/fd/{descriptor}").resolve().parent.name == LEFT:
            raise PermissionError(1, "Operation not permitted")
        return write(descriptor, data, at)

    monkeypatch.setattr(script.os, "pwrite", refuse)
    assert script.main(tree.root) == 1
    assert controls(script, tree)[LEFT] == 0x5F and controls(script, tree)[ROOT_PORT] == 0x11
    assert LEFT in capsys.readouterr().err


def test_a_port_that_keeps_its_bits_is_an_error(
    script: t.Any, tree: GpuMachine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script.os, "pwrite", lambda descriptor, data, at: len(data))
    assert script.main(tree.root) == 1


def test_a_device_without_acs_is_left(script: t.Any) -> None:
    assert script.control(b"\0" * 256) == 0
    assert script.control(b"\0" * 4096) == 0
