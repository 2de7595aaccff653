# SPDX-License-Identifier: GPL-3.0-or-later
"""Environments with a small torch and small extensions, compiled here, that fit each other or do not."""

from __future__ import annotations

import base64
import hashlib
import shutil
import struct
import subprocess
import typing as t
from pathlib import Path

import pytest
from ansible.module_utils.slipway.python import elf, kernels
from ansible.modules import native_libraries_info

Run = t.Callable[..., dict[str, t.Any]]
# c10::Error(int), at::add(int), and the symbol that sgl-kernel 0.3.21 lacked with torch 2.10.
ERROR, ADD = "_ZN3c105ErrorC1Ei", "_ZN2at3addEi"
CHECK = "_ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib"
MACHINE_CODE, PTX = 2, 1


def fatbin(*kinds: tuple[int, int]) -> bytes:
    """A container with an entry of each kind and architecture, with a little content."""
    entries = b"".join(struct.pack("<HHIQ12xI32x", kind, 0x101, 64, 24, sm) + bytes(24) for kind, sm in kinds)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(entries)) + entries


def compile_library(path: Path, needs: tuple[str, ...] = (), offers: tuple[str, ...] = (), fat: bytes = b"") -> None:
    """A library that calls ``needs``, has ``offers``, and holds ``fat`` as nvcc's do."""
    lines = [f"extern int {name}(void); int call{n}(void) {{ return {name}(); }}" for n, name in enumerate(needs)]
    lines += [
        "__attribute__((weak)) extern int _ZTHN3c104weakE(void); int weak(void) { return _ZTHN3c104weakE ? 1 : 0; }"
    ]
    lines += [f"int {name}(void) {{ return 1; }}" for name in offers]
    if fat:
        data = ", ".join(map(str, fat))
        lines += [
            f'__attribute__((section(".nv_fatbin"), aligned(8), used)) static const unsigned char fat[] = {{{data}}};'
        ]
    path.parent.mkdir(parents=True, exist_ok=True)
    source = path.with_suffix(".c")
    source.write_text("\n".join(lines))
    subprocess.run(["gcc", "-shared", "-fPIC", "-nostdlib", "-w", "-o", path, source], check=True)
    source.unlink()


class Environment:
    """site-packages with a torch, and packages with a library each."""

    def __init__(self, folder: Path, run_module: Run) -> None:
        self.site = folder / "venv/lib/python3.12/site-packages"
        self.venv = folder / "venv"
        self.run_module = run_module
        self.torch("2.9.1", (ERROR, ADD, CHECK))

    def torch(self, version: str, offers: tuple[str, ...]) -> None:
        compile_library(
            self.site / "torch/lib/libtorch.so", offers=offers, fat=fatbin((MACHINE_CODE, 90), (MACHINE_CODE, 120))
        )
        text = f"__version__ = '{version}+cu128'\ncuda: Optional[str] = '12.8'\nhip: Optional[str] = None\n"
        (self.site / "torch/version.py").write_text(text)
        self.record("torch", version, "torch/lib/libtorch.so")

    def add(self, path: str, package: str, **library: t.Any) -> None:
        compile_library(self.site / path, **library)
        self.record(package, "1.0", path)

    def record(self, package: str, version: str, path: str) -> None:
        content = (self.site / path).read_bytes()
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        info = self.site / f"{package}-{version}.dist-info"
        info.mkdir(exist_ok=True)
        with (info / "RECORD").open("a") as file:
            file.write(f"{path},sha256={digest},{len(content)}\n")

    def __call__(self, check: bool = False, **arguments: t.Any) -> dict[str, t.Any]:
        return self.run_module(native_libraries_info, {"venv": str(self.venv), **arguments}, check)


@pytest.fixture
def environment(tmp_path: Path, run_module: Run) -> Environment:
    if not shutil.which("gcc"):
        pytest.skip("no C compiler here")
    return Environment(tmp_path, run_module)


def found(result: dict[str, t.Any]) -> list[tuple[str, str, str]]:
    return [(one["id"], one["severity"], one["subject"]) for one in result["findings"]]


@pytest.mark.parametrize("check", [False, True])
def test_what_fits_is_told_and_clean(environment: Environment, check: bool) -> None:
    environment.add("ext/ops.so", "ext", needs=(ERROR, ADD), fat=fatbin((MACHINE_CODE, 120), (PTX, 90)))
    done = environment(check, sm=120, driver_cuda="13.0")
    assert (done["rc"], done["changed"], done["findings"], done["cudnn"]) == (0, False, [], "")
    assert done["torch"] == {"version": "2.9.1+cu128", "cuda": "12.8"}
    assert done["libraries"][0] == {
        "path": "ext/ops.so",
        "package": "ext",
        "torch_symbols": 2,
        "missing_symbols": [],
        "machine_code": [120],
        "ptx": [90],
    }


def test_an_extension_for_another_torch_is_named_with_its_symbol(environment: Environment) -> None:
    environment.add("sgl_kernel/common_ops.abi3.so", "sgl_kernel", needs=(ADD, CHECK))
    assert environment()["findings"] == []
    environment.torch("2.10.0", (ERROR, ADD))
    done = environment()
    assert found(done) == [("ABI_MISMATCH", "fail", "sgl-kernel")]
    assert done["findings"][0]["detail"] == (
        f"sgl_kernel/common_ops.abi3.so asks for {CHECK}, which torch 2.10.0+cu128 does not have"
    )
    assert found(environment(accepted=["sgl_kernel/*"])) == [("ABI_MISMATCH", "info", "sgl-kernel")]
    assert found(environment(packages=["torch"])) == []


def test_what_is_nobodys_fault(environment: Environment) -> None:
    # Its own symbol, one of the C++ library with 'at' in it, and a library for another torch among others.
    environment.add("audio/own.so", "audio", offers=("_ZN5torch5audio4loadEv",))
    environment.add("audio/ops.so", "audio", needs=("_ZN5torch5audio4loadEv", "_ZNSt7__cxx1112basic_stringIcE2atEm"))
    environment.add("dlpack/addon_torch24-cpu.so", "dlpack", needs=(CHECK + "x",))
    assert environment()["findings"] == []
    environment.add("dlpack/addon_torch29-cpu.so", "dlpack", needs=(CHECK + "x",))
    assert found(environment()) == [("ABI_MISMATCH", "fail", "dlpack")]


def test_kernels_without_code_for_the_gpu(environment: Environment) -> None:
    environment.add("attention/fa2.so", "attention", fat=fatbin((MACHINE_CODE, 80), (PTX, 80)))
    environment.add("attention/fa3.so", "attention", fat=fatbin((MACHINE_CODE, 90)))
    environment.add("mla/ops.so", "mla", fat=fatbin((MACHINE_CODE, 90), (MACHINE_CODE, 100)))
    done = environment(sm=120)
    # FlashAttention 3 is for Hopper, and its package has another that this GPU can run; the other package has none.
    assert found(done) == [
        ("SM_NOT_COVERED", "info", "attention/fa3.so"),
        ("SM_NOT_COVERED", "fail", "mla/ops.so"),
    ]
    assert done["findings"][1]["detail"] == "of mla: it has sm 90, 100, and the GPU is sm 120"
    assert found(environment(sm=90)) == []
    assert environment()["findings"] == []
    asked = environment(sm=120, required=["*/fa3.so", "gone.so"], accepted=["mla/*"])
    assert found(asked) == [
        ("SM_NOT_COVERED", "unknown", "gone.so"),
        ("SM_NOT_COVERED", "fail", "attention/fa3.so"),
        ("SM_NOT_COVERED", "info", "mla/ops.so"),
    ]


@pytest.mark.parametrize(
    ("driver", "expected"), [("13.0", []), ("12.8", []), ("12.4", ["warn"]), ("11.8", ["fail"]), ("", [])]
)
def test_cuda_against_the_driver(environment: Environment, driver: str, expected: list[str]) -> None:
    assert [one["severity"] for one in environment(driver_cuda=driver)["findings"]] == expected


def test_the_floor_of_cudnn(environment: Environment) -> None:
    missing = environment(cudnn_minimum="9.15")
    assert missing["findings"][0]["detail"] == "no cuDNN is installed, and 9.15 is the least"
    environment.add("nvidia/cudnn/lib/libcudnn.so.9", "nvidia_cudnn_cu12")
    info = environment.site / "nvidia_cudnn_cu12-1.0.dist-info"
    info.rename(info.with_name("nvidia_cudnn_cu12-9.10.2.21.dist-info"))
    assert found(environment(cudnn_minimum="9.15")) == [("CUDNN_TOO_OLD", "fail", "cudnn")]
    assert found(environment(cudnn_minimum="9.10.2")) == []


def test_a_folder_without_packages_is_refused(environment: Environment, tmp_path: Path) -> None:
    failed = environment(venv=str(tmp_path / "nowhere"))
    assert failed["rc"] == 1
    assert failed["msg"].startswith(f"Cannot look at environment '{tmp_path}/nowhere' on ")


@pytest.mark.parametrize(
    ("machine_code", "ptx", "sm", "covered"),
    [
        ((120,), (), 120, True),
        ((120,), (), 121, True),
        ((121,), (), 120, False),
        ((90, 100), (), 120, False),
        ((), (90,), 120, True),
        ((), (120,), 90, False),
        ((), (), 120, False),
    ],
)
def test_what_a_gpu_can_run(machine_code: tuple[int, ...], ptx: tuple[int, ...], sm: int, covered: bool) -> None:
    assert kernels.Kernels(machine_code, ptx).cover(sm) is covered


def test_containers_behind_padding_are_found(tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("no C compiler here")
    padded = fatbin((MACHINE_CODE, 80)) + bytes(5000) + fatbin((MACHINE_CODE, 120)) + b"\x50\xed\x55\xba" + bytes(20)
    compile_library(tmp_path / "padded.so", fat=padded)
    assert kernels.of_file(str(tmp_path / "padded.so")) == kernels.Kernels((80, 120), ())


@pytest.mark.parametrize("content", [b"", b"text", b"\x7fELF\x02\x01" + bytes(20), b"\x7fELF\x02\x01" + b"\xff" * 100])
def test_what_is_no_library_has_nothing(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "x.so"
    path.write_bytes(content)
    assert elf.symbols(str(path)) == elf.Symbols(frozenset(), frozenset())
    assert kernels.of_file(str(path)) == kernels.Kernels()


def test_a_library_that_is_cut_off_has_nothing(tmp_path: Path) -> None:
    if not shutil.which("gcc"):
        pytest.skip("no C compiler here")
    compile_library(tmp_path / "whole.so", needs=(ADD,))
    assert elf.symbols(str(tmp_path / "whole.so")).needed == {ADD.encode()}
    content = (tmp_path / "whole.so").read_bytes()
    (tmp_path / "torn.so").write_bytes(content[: len(content) // 2])
    assert elf.symbols(str(tmp_path / "torn.so")).needed == frozenset()
