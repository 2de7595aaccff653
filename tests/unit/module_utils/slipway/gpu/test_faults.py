# SPDX-License-Identifier: GPL-3.0-or-later
"""Facts of a healthy guest or node, one thing changed, and the findings that must follow: no more, no less."""

from __future__ import annotations

import typing as t

import pytest
from ansible.module_utils.slipway.gpu.cuda_codes import CODES
from ansible.module_utils.slipway.gpu.faults import faults
from gpu_facts import FACTS, changed, gpu, node


def nodes_with(path: str, **parts: t.Any) -> list[dict[str, t.Any]]:
    return [{**known, **parts} if known["path"] == path else known for known in FACTS["devices"]]


def nodes_without(path: str) -> list[dict[str, t.Any]]:
    return [known for known in FACTS["devices"] if known["path"] != path]


def told(facts: dict[str, t.Any], *expected: str) -> list[tuple[str, str, str]]:
    return [(found.id, found.severity, found.subject) for found in faults(facts, expected)]


def test_nothing_is_said_of_a_healthy_machine() -> None:
    assert told(changed(), "0000:06:00.0", "0000:07:00.0") == []
    assert told(changed(cuda=None)) == []


UVM, UVM_DEVICE = "nvidia_uvm", "/dev/nvidia-uvm"
REFUSED = {"result": 3, "call": "cuInit", "error": "cuInit returned 3"}
LOST = {"result": None, "call": None, "error": "libcuda.so.1 cannot be loaded"}


@pytest.mark.parametrize(
    ("parts", "expected"),
    [
        # HMM
        ({"uvm": {"disable_hmm": False}}, [("HMM_CONFLICT", "fail", "uvm_disable_hmm")]),
        ({"uvm": {"disable_hmm": False}, "cuda": REFUSED}, [("HMM_CONFLICT", "fail", "uvm_disable_hmm")]),
        ({"uvm": {"disable_hmm": None}, "cuda": REFUSED}, [("HMM_CONFLICT", "fail", "uvm_disable_hmm")]),
        ({"uvm": {"disable_hmm": None}}, [("HMM_CONFLICT", "unknown", "uvm_disable_hmm")]),
        ({"cuda": REFUSED}, [("CUDA_INIT_FAILED", "fail", "CUDA")]),
        ({"uvm": {"disable_hmm_on_disk": False}}, [("HMM_NOT_PERSISTENT", "warn", "uvm_disable_hmm")]),
        ({"uvm": {"disable_hmm_on_disk": None}}, [("HMM_NOT_PERSISTENT", "unknown", "uvm_disable_hmm")]),
        ({"uvm": {"disable_hmm_on_disk": None}, "place": "guest"}, []),
        # nvidia_uvm and its node
        ({"uvm": {"loaded": False, "disable_hmm": None}}, [("UVM_NOT_LOADED", "fail", UVM)]),
        ({"uvm": {"loaded": None, "disable_hmm": None}}, [("UVM_NOT_LOADED", "unknown", UVM)]),
        ({"devices": nodes_without(UVM_DEVICE)}, [("UVM_NODE_MISSING", "fail", UVM_DEVICE)]),
        (
            {"devices": nodes_with(UVM_DEVICE, opens="ENXIO", major=510)},
            [("UVM_NODE_STALE", "fail", UVM_DEVICE)],
        ),
        # A wrong number is a fault even where it happens to lead to something that opens.
        ({"devices": nodes_with(UVM_DEVICE, major=510)}, [("UVM_NODE_STALE", "fail", UVM_DEVICE)]),
        (
            {"devices": nodes_with(UVM_DEVICE, expected_major=None), "majors_known": False},
            [("UVM_NODE_STALE", "unknown", UVM_DEVICE)],
        ),
        (
            {"uvm": {"loaded": False, "disable_hmm": None}, "devices": nodes_with(UVM_DEVICE, opens="ENXIO")},
            [("UVM_NOT_LOADED", "fail", UVM)],
        ),
        # Other nodes
        ({"devices": nodes_with("/dev/nvidia0", opens="EPERM")}, [("DEVICE_DENIED", "fail", "/dev/nvidia0")]),
        ({"devices": nodes_with("/dev/nvidia0", opens="EACCES")}, [("DEVICE_NOT_ACCESSIBLE", "fail", "/dev/nvidia0")]),
        ({"devices": nodes_with("/dev/nvidia0", opens="ENXIO")}, [("DEVICE_NODE_DEAD", "fail", "/dev/nvidia0")]),
        ({"devices": nodes_with("/dev/nvidia0", opens="ENODEV")}, [("DEVICE_NODE_DEAD", "fail", "/dev/nvidia0")]),
        ({"devices": nodes_with("/dev/nvidia0", major=240)}, [("DEVICE_NODE_DEAD", "fail", "/dev/nvidia0")]),
        (
            {"devices": nodes_with("/dev/nvidia0", opens="not a device", major=None)},
            [("DEVICE_NODE_DEAD", "fail", "/dev/nvidia0")],
        ),
        ({"devices": nodes_with("/dev/nvidia0", opens="EIO")}, [("DEVICE_OPEN_FAILED", "fail", "/dev/nvidia0")]),
        ({"devices": nodes_with("/dev/nvidia0", opens="hung")}, [("DEVICE_HUNG", "fail", "/dev/nvidia0")]),
        (
            {"devices": nodes_with("/dev/nvidia0", opens="not tried")},
            [("DEVICE_OPEN_FAILED", "unknown", "/dev/nvidia0")],
        ),
        (
            {"devices": [*FACTS["devices"], node("/dev/nvidia-modeset", opens="EPERM")]},
            [("DEVICE_DENIED", "warn", "/dev/nvidia-modeset")],
        ),
        ({"devices": nodes_without("/dev/nvidiactl")}, [("GPU_NODE_MISSING", "fail", "/dev/nvidiactl")]),
        # Driver
        ({"driver": {"open_kernel_module": False}}, [("DRIVER_NOT_OPEN", "fail", "driver")]),
        ({"driver": {"open_kernel_module": None}}, [("DRIVER_NOT_OPEN", "unknown", "driver")]),
        ({"driver": {"user_version": "595.58.04"}}, [("DRIVER_MISMATCH", "fail", "driver")]),
        ({"driver": {"user_version": None}}, [("DRIVER_MISMATCH", "unknown", "driver")]),
        ({"driver": {"kernel_version": None}}, [("DRIVER_MISMATCH", "unknown", "driver")]),
        ({"driver": {"user_library": None, "user_version": None}}, [("DRIVER_MISMATCH", "unknown", "driver")]),
        (
            {"driver": {"user_library": None, "user_version": None}, "cuda": LOST},
            [("DRIVER_USERSPACE_MISSING", "fail", "libcuda.so.1")],
        ),
        (
            {"driver": {"user_library": None, "user_version": None}, "cuda": None, "place": "guest"},
            [("DRIVER_USERSPACE_MISSING", "fail", "libcuda.so.1")],
        ),
        (
            {"driver": {"user_library": None, "user_version": None}, "cuda": None},
            [("DRIVER_USERSPACE_MISSING", "warn", "libcuda.so.1")],
        ),
        # What could not be read
        ({"unreadable": {"/proc/devices": "EACCES"}}, [("FACT_UNREADABLE", "unknown", "/proc/devices")]),
        # CUDA
        ({"cuda": {"hung": True, "result": None, "error": "cuInit did not return"}}, [("CUDA_HUNG", "fail", "CUDA")]),
        ({"cuda": {"result": None, "error": "the process died"}}, [("CUDA_INIT_FAILED", "fail", "CUDA")]),
        ({"cuda": {"devices": 0, "gpus": []}}, [("CUDA_INIT_FAILED", "fail", "CUDA")]),
        (
            {"cuda": {"devices": 1, "gpus": [{"bus_id": "0000:07:00.0"}]}},
            [("CUDA_GPU_MISSING", "fail", "0000:06:00.0")],
        ),
    ],
)
def test_one_thing_wrong(parts: dict[str, t.Any], expected: list[tuple[str, str, str]]) -> None:
    assert told(changed(**parts)) == expected


@pytest.mark.parametrize("code", [code for code in CODES if code not in (0, 3)])
def test_each_code_comes_with_its_usual_cause(code: int) -> None:
    facts = changed(cuda={"result": code, "call": "cuInit", "error": f"cuInit returned {code}"})
    (found,) = faults(facts)
    assert found.id == "CUDA_INIT_FAILED"
    assert found.detail == f"cuInit returned {code}; usually {CODES[code].cause}"


def test_hidden_devices_are_part_of_the_detail() -> None:
    (found,) = faults(changed(cuda={"devices": 0, "gpus": [], "visible_devices": ""}))
    assert found.detail == "cuInit succeeds and there is no device; CUDA_VISIBLE_DEVICES is ''"


def test_without_a_driver_it_is_named_once() -> None:
    facts = changed(
        driver={"loaded": False, "kernel_version": None, "open_kernel_module": None},
        uvm={"loaded": False, "disable_hmm": None},
        gpus=[gpu("06", None, driven=False)],
        known_gpus=[gpu("06", None, driven=False)],
        cuda=None,
    )
    assert told(facts, "0000:06:00.0") == [("DRIVER_NOT_LOADED", "fail", "driver")]


def test_a_machine_without_gpus() -> None:
    facts = changed(gpus=[], known_gpus=[], driver={"loaded": False}, devices=[], cuda=None)
    assert told(facts) == [("NO_GPU", "fail", "GPUs")]
    assert told(facts, "0000:06:00.0")[1:] == [("GPU_NODE_MISSING", "fail", "0000:06:00.0")]


def test_a_node_must_have_the_node_of_each_gpu() -> None:
    assert told(changed(devices=nodes_without("/dev/nvidia1"))) == [("GPU_NODE_MISSING", "fail", "0000:06:00.0")]


def test_a_guest_must_have_what_it_was_meant_to_get() -> None:
    seen = [{"bus_id": "0000:07:00.0"}]
    facts = changed(
        place="guest",
        gpus=[gpu("07", 0)],
        devices=nodes_without("/dev/nvidia1"),
        cuda={"devices": 1, "gpus": seen},
    )
    assert told(facts) == []
    assert told(facts, "0000:07:00.0") == []
    # One less and another more are two things.
    for missing in ("0000:06:00.0", "0000:aa:00.0"):
        assert told(facts, missing) == [
            ("GPU_NODE_MISSING", "fail", missing),
            ("GPU_UNEXPECTED", "fail", "0000:07:00.0"),
        ]


def test_a_guest_that_has_more_than_it_was_meant_to_get() -> None:
    guest = changed(place="guest")
    assert told(guest) == []
    assert told(guest, "0000:06:00.0", "0000:07:00.0") == []
    (found,) = faults(guest, ["0000:07:00.0"])
    assert (found.id, found.severity, found.subject) == ("GPU_UNEXPECTED", "fail", "0000:06:00.0")
    assert found.detail == "/dev/nvidia1 was passed in"
    assert "pct set <vmid> --delete devN" in found.remedy


def test_a_node_may_have_more_than_is_expected() -> None:
    assert told(changed(), "0000:07:00.0") == []


def test_a_guest_that_was_given_nothing() -> None:
    facts = changed(place="guest", gpus=[], devices=[], cuda=None)
    assert told(facts) == [("NO_GPU", "fail", "GPUs")]


def test_a_gpu_that_another_driver_has() -> None:
    taken = gpu("06", None, driven=False, device=None, pci_driver="nouveau")
    facts = changed(gpus=[taken, gpu("07", 0)], known_gpus=[taken, gpu("07", 0)])
    assert told(facts) == [("GPU_NOT_DRIVEN", "warn", "0000:06:00.0")]
    assert told(facts, "0000:06:00.0") == [("GPU_NOT_DRIVEN", "fail", "0000:06:00.0")]
    assert faults(facts)[0].detail == "bound to nouveau"
    assert told(changed(place="guest", gpus=[gpu("07", 0)], known_gpus=[taken, gpu("07", 0)])) == []


@pytest.mark.parametrize(
    ("changes", "ids", "detail"),
    [
        ({}, None, "no virtual machine of this node has it"),
        (
            {"machines": [{"vmid": 200, "name": "win", "key": "hostpci0", "running": True, "onboot": False}]},
            {"ids": "10de:22bc,10DE:2BB5"},
            "virtual machine 'win' (200) has it as hostpci0 and runs; 10de:2bb5 is among the ids of vfio-pci in "
            "/etc/modprobe.d or on the kernel command line",
        ),
        ({"driver_override": "vfio-pci"}, {"ids": "1002:1234"}, "; its driver_override is vfio-pci"),
    ],
)
def test_a_gpu_that_is_kept_for_virtual_machines(
    changes: dict[str, t.Any], ids: dict[str, str] | None, detail: str
) -> None:
    taken = gpu("06", None, driven=False, device=None, pci_driver="vfio-pci", **changes)
    modules = {**FACTS["modules"], "vfio_pci": {"live": {}, "on_disk": ids}}
    facts = changed(gpus=[taken, gpu("07", 0)], known_gpus=[taken, gpu("07", 0)], modules=modules)
    assert told(facts) == [("GPU_BOUND_TO_VFIO", "warn", "0000:06:00.0")]
    assert told(facts, "0000:06:00.0") == [("GPU_BOUND_TO_VFIO", "fail", "0000:06:00.0")]
    (found,) = faults(facts)
    assert found.detail.endswith(detail)
    assert "/sys/bus/pci/drivers_probe" in found.remedy


def test_a_capability_node_of_a_driver_that_was_loaded_again() -> None:
    caps = {"path": "/dev/nvidia-caps/nvidia-cap1", "major": 234, "minor": 1, "mode": "0400", "expected_major": 235}
    (found,) = faults(changed(capability_nodes=[caps, {**caps, "major": 235}, {**caps, "expected_major": None}]))
    assert (found.id, found.severity, found.subject) == ("DEVICE_NODE_DEAD", "warn", "/dev/nvidia-caps/nvidia-cap1")
    assert found.detail == "its major is 234, /proc/devices has 235"


SIGNING = {"missing": [], "enrolled": True, "said": "x is already enrolled"}


@pytest.mark.parametrize(
    ("signing", "expected"),
    [
        (None, []),
        (SIGNING, []),
        ({**SIGNING, "missing": ["nothing", "nothing"]}, [("SECURE_BOOT_UNSIGNED", "fail", "none is declared")]),
        (
            {**SIGNING, "missing": ["/k"]},
            [("SECURE_BOOT_UNSIGNED", "fail", "the key or certificate that is declared does not exist: /k")],
        ),
        (
            {**SIGNING, "enrolled": False, "said": "/c is not enrolled"},
            [("SECURE_BOOT_KEY_NOT_ENROLLED", "fail", "/c is not enrolled")],
        ),
        (
            {**SIGNING, "enrolled": None, "said": "mokutil does not run"},
            [("SECURE_BOOT_KEY_NOT_ENROLLED", "unknown", "mokutil does not run")],
        ),
    ],
)
def test_a_key_that_is_to_sign(signing: dict[str, t.Any] | None, expected: list[tuple[str, str, str]]) -> None:
    found = faults(changed(signing=signing, secure_boot=True))
    assert [(one.id, one.severity, one.detail) for one in found] == expected


def test_a_module_that_the_kernel_refused_explains_that_it_is_not_loaded() -> None:
    facts = changed(driver={"loaded": False}, secure_boot=True, cuda=None)
    said = "modprobe: ERROR: could not insert 'nvidia': Key was rejected by service"
    assert [(one.id, one.detail) for one in faults(facts, modprobe_error=said)] == [
        ("SECURE_BOOT_MODULE_REFUSED", said)
    ]
    (other,) = faults(facts, modprobe_error="modprobe: FATAL: Module nvidia not found")
    assert (other.id, other.detail) == (
        "DRIVER_NOT_LOADED",
        "2 GPUs are on the PCI bus; modprobe: FATAL: Module nvidia not found",
    )
