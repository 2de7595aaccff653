# SPDX-License-Identifier: GPL-3.0-or-later
"""cuInit's results, from the compiled library in a process of its own, on a folder that stands for ``/``."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from gpu import runfile

VERSION = "595.58.03"
# Any device that opens may stand for a GPU: the library compares majors only. (1, 200) is one that this kernel lacks.
NULL = (1, 3)
ABSENT = (1, 200)

CHILD = """
import ctypes, json, sys
cuda = ctypes.CDLL(sys.argv[1])
def number(function, *arguments):
    value = ctypes.c_int()
    return value.value if function(ctypes.byref(value), *arguments) == 0 else None
def text(function, *arguments):
    value = ctypes.create_string_buffer(100)
    function(value, 100, *arguments)
    return value.value.decode()
before = number(cuda.cuDeviceGetCount)
result = cuda.cuInit(0)
name = ctypes.c_char_p()
cuda.cuGetErrorName(result, ctypes.byref(name))
count = number(cuda.cuDeviceGetCount) or 0
size = ctypes.c_size_t()
identity = ctypes.create_string_buffer(16)
gpus = []
for device in range(count):
    cuda.cuDeviceTotalMem_v2(ctypes.byref(size), device)
    cuda.cuDeviceGetUuid_v2(identity, device)
    gpus.append([text(cuda.cuDeviceGetPCIBusId, device), text(cuda.cuDeviceGetName, device), size.value >> 20, identity.raw.hex()])
capability = [number(cuda.cuDeviceGetAttribute, a, 0) for a in (75, 76)]
print(json.dumps([before, result, name.value.decode(), number(cuda.cuDriverGetVersion), count, gpus, capability,
    cuda.cuDeviceGet(ctypes.byref(ctypes.c_int()), count)]))
"""


class Machine:
    """A folder with two GPUs, minors 1 and 0 in bus order, a loaded driver with HMM off, and every node in place."""

    def __init__(self, root: Path, library: Path) -> None:
        self.root, self.library = root, library
        self.write(
            "proc/driver/nvidia/version",
            f"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  {VERSION}  Release Build\n",
        )
        for bus, minor in (("03", 1), ("c4", 0)):
            uuid = f"GPU-{bus}345678-1234-5678-1234-567812345678"
            lines = f"Model: \t\t NVIDIA Test\nGPU UUID: \t {uuid}\nBus Location: \t 0000:{bus}:00.0\nDevice Minor: \t {minor}\n"
            self.write(f"proc/driver/nvidia/gpus/0000:{bus}:00.0/information", lines)
        self.majors(nvidia=1, nvidiactl=1, uvm=1)
        self.write("sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "Y\n")
        (root / "dev").mkdir()
        for node in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm"):
            self.node(node, NULL)

    def write(self, name: str, text: str) -> None:
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text)

    def majors(self, nvidia: int, nvidiactl: int, uvm: int) -> None:
        lines = f"  1 mem\n{nvidia:3} nvidia\n{nvidiactl:3} nvidiactl\n{uvm:3} nvidia-uvm\n"
        self.write("proc/devices", f"Character devices:\n{lines}\nBlock devices:\n  1 nvidia-uvm\n")

    def node(self, name: str, number: tuple[int, int]) -> None:
        (self.root / "dev" / name).unlink(missing_ok=True)
        os.mknod(self.root / "dev" / name, stat.S_IFCHR | 0o666, os.makedev(*number))

    def ask(self, **environment: str) -> dict[str, object]:
        line = [sys.executable, "-c", CHILD, str(self.library)]
        done = subprocess.run(
            line, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin", **environment}, timeout=20
        )
        keys = ("before", "result", "name", "version", "count", "gpus", "capability", "beyond")
        return dict(zip(keys, json.loads(done.stdout), strict=True))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    if os.geteuid() or not shutil.which("gcc"):
        pytest.skip("needs root (device nodes) and a C compiler")
    folder = tmp_path_factory.mktemp("cuda")
    runfile.compile_libcuda(folder / "libcuda.so.1", VERSION, folder / "root")
    return folder / "root", folder / "libcuda.so.1"


@pytest.fixture
def cuda(built: tuple[Path, Path]) -> Machine:
    root, library = built
    if root.exists():
        shutil.rmtree(root)
    root.mkdir()
    return Machine(root, library)


def test_success_shows_the_gpus_in_bus_order(cuda: Machine) -> None:
    answer = cuda.ask()
    assert (answer["result"], answer["name"], answer["version"], answer["count"]) == (0, "CUDA_SUCCESS", 13020, 2)
    assert answer["gpus"] == [
        ["0000:03:00.0", "NVIDIA Test", 97251, "03345678123456781234567812345678"],
        ["0000:C4:00.0", "NVIDIA Test", 97251, "c4345678123456781234567812345678"],
    ]
    assert answer["capability"] == [12, 0]
    assert answer["before"] is None, "nothing answers before cuInit"
    assert answer["beyond"] == 101


def test_hmm(cuda: Machine) -> None:
    cuda.write("sys/module/nvidia_uvm/parameters/uvm_disable_hmm", "N\n")
    assert cuda.ask()["name"] == "CUDA_ERROR_NOT_INITIALIZED"


def test_uvm_node_absent(cuda: Machine) -> None:
    (cuda.root / "dev/nvidia-uvm").unlink()
    assert cuda.ask()["result"] == 999


def test_uvm_node_that_does_not_open(cuda: Machine) -> None:
    cuda.majors(nvidia=1, nvidiactl=1, uvm=ABSENT[0])
    cuda.node("nvidia-uvm", ABSENT)
    assert cuda.ask()["result"] == 999


def test_uvm_node_with_a_stale_major_opens_and_still_fails(cuda: Machine) -> None:
    cuda.majors(nvidia=1, nvidiactl=1, uvm=509)
    assert cuda.ask()["result"] == 999


def test_a_plain_file_is_no_node(cuda: Machine) -> None:
    (cuda.root / "dev/nvidia-uvm").unlink()
    cuda.write("dev/nvidia-uvm", "")
    assert cuda.ask()["result"] == 999


def test_user_part_of_another_version(cuda: Machine) -> None:
    cuda.write("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  595.58.030  Thu Jan  1\n")
    assert cuda.ask()["name"] == "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"


def test_no_driver(cuda: Machine) -> None:
    shutil.rmtree(cuda.root / "proc/driver/nvidia")
    assert cuda.ask()["result"] == 100


def test_no_gpu_node_that_opens(cuda: Machine) -> None:
    (cuda.root / "dev/nvidia0").unlink()
    cuda.node("nvidia1", ABSENT)
    assert cuda.ask()["result"] == 100


def test_only_gpus_whose_node_opens_are_counted(cuda: Machine) -> None:
    (cuda.root / "dev/nvidia0").unlink()
    assert [gpu[0] for gpu in cuda.ask()["gpus"]] == ["0000:03:00.0"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("visible", "buses"),
    [
        ("1,0", ["0000:C4:00.0", "0000:03:00.0"]),
        ("GPU-c4", ["0000:C4:00.0"]),
        ("0,7,1", ["0000:03:00.0"]),
        ("", None),
        ("-1", None),
        ("NoDevFiles", None),
    ],
)
def test_visible_devices(cuda: Machine, visible: str, buses: list[str] | None) -> None:
    answer = cuda.ask(CUDA_VISIBLE_DEVICES=visible)
    assert answer["result"] == (0 if buses else 100)
    assert [gpu[0] for gpu in answer["gpus"]] == (buses or [])  # type: ignore[attr-defined]
