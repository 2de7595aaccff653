# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether what an engine compiles on the target can be compiled: by compiling it. Acts on the target, in a folder that goes away.

Triton builds a C extension for the environment's interpreter, FlashInfer runs ninja over C++ and CUDA; both at the first request, minutes after a
start that looked well. A compiler that is there and a header that is not shows nowhere else.
"""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import subprocess
import tempfile
import typing as t
from pathlib import Path

from ..findings import Finding, finding
from . import build

EXTENSION = r"""
#include <Python.h>
static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, "slipway_probe", 0, -1, 0};
PyMODINIT_FUNC PyInit_slipway_probe(void) { return PyModule_Create(&definition); }
"""
# Of the headers those that FlashInfer 0.6 includes and that come in packages of their own.
KERNEL = r"""
#include <cublasLt.h>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <curand_kernel.h>
#include <nvrtc.h>
__global__ void scale(__nv_bfloat16 *values, float by) { values[threadIdx.x] = __float2bfloat16(__bfloat162float(values[threadIdx.x]) * by); }
"""
RULES = """\
rule c
  command = cc -shared -fPIC -I{include} $in -o $out
build slipway_probe.so: c probe.c
"""


def prove(params: dict[str, t.Any]) -> tuple[list[str], list[Finding]]:
    """Load the libraries, compile and import an extension, compile a kernel.

    Returns what was compiled (``extension``, ``kernel``) and a finding for each thing that cannot be done.
    """
    findings = [one for name in params["libraries"] for one in _library(name)]
    python = str(Path(params["venv"]) / "bin" / "python")
    with tempfile.TemporaryDirectory(prefix="slipway-") as folder:
        faults = {"extension": _extension(Path(folder), python, params["timeout_seconds"])}
        if params["cuda"]:
            faults["kernel"] = _kernel(Path(folder), params)
        compiled = [name for name, found in faults.items() if not found]
    return compiled, [*findings, *(one for found in faults.values() for one in found)]


def _library(name: str) -> list[Finding]:
    try:
        ctypes.CDLL(name)
    except OSError as error:
        return [finding("BUILD_TOOL_MISSING", name, str(error))]
    return []


def _extension(scratch: Path, python: str, timeout_seconds: int) -> list[Finding]:
    programs = {name: _find(name, [Path(python).parent]) for name in ("cc", "c++", "ninja")}
    missing = [finding("BUILD_TOOL_MISSING", name) for name, path in programs.items() if not path]
    if missing:
        return missing
    told, include = _call([python, "-I", "-c", "import sysconfig; print(sysconfig.get_path('include'))"], scratch, 60)
    if told:
        return [finding("BUILD_TOOL_BROKEN", python, told)]
    (scratch / "probe.c").write_text(EXTENSION, encoding="utf-8")
    (scratch / "build.ninja").write_text(RULES.format(include=include.strip()), encoding="utf-8")
    fault, _said = _call([programs["ninja"], "-C", str(scratch)], scratch, timeout_seconds)
    if fault:
        return [finding("BUILD_TOOL_BROKEN", "cc", f"a Python extension does not compile: {fault}")]
    code = f"import sys; sys.path.insert(0, {str(scratch)!r}); import slipway_probe"
    fault, _said = _call([python, "-I", "-c", code], scratch, 60)
    return (
        [finding("BUILD_TOOL_BROKEN", "cc", f"an extension that it compiled does not import: {fault}")] if fault else []
    )


def _kernel(scratch: Path, params: dict[str, t.Any]) -> list[Finding]:
    cuda, sm, root = params["cuda"], params["sm"], Path(params["cuda_root"])
    nvcc = _find("nvcc", [root / f"cuda-{cuda}" / "bin", root / "cuda" / "bin"])
    if not nvcc:
        return [finding("BUILD_TOOL_MISSING", "nvcc", f"it is neither in {root}/cuda-{cuda}/bin nor on the path")]
    fault, said = _call([nvcc, "--version"], scratch, 60)
    release = re.search(r"release (\d+\.\d+)", said)
    if fault or not release or release[1] != cuda:
        has = fault or (
            f"it is of CUDA {release[1]}, and the stack is built for {cuda}" if release else "it tells no version"
        )
        return [finding("BUILD_TOOL_BROKEN", nvcc, has)]
    (scratch / "probe.cu").write_text(KERNEL, encoding="utf-8")
    command = [nvcc, f"-gencode=arch=compute_{sm},code=sm_{sm}", "-c", "probe.cu", "-o", "probe.o"]
    fault, _said = _call(command, scratch, params["timeout_seconds"])
    return [finding("BUILD_TOOL_BROKEN", nvcc, f"a kernel for SM{sm} does not compile: {fault}")] if fault else []


def _find(name: str, first: list[Path]) -> str:
    """Its path, from these folders or from the path; empty where it is nowhere."""
    folders = [*map(str, first), os.environ.get("PATH", os.defpath)]
    return shutil.which(name, path=os.pathsep.join(folders)) or ""


def _call(command: list[str], folder: Path, timeout_seconds: int) -> tuple[str, str]:
    """What went wrong (empty: nothing), and what it printed."""
    try:
        done = subprocess.run(
            command,
            check=False,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
            timeout=timeout_seconds,
        )
    except subprocess.TimeoutExpired:
        return f"it did not end within {timeout_seconds} seconds", ""
    except OSError as error:
        return str(error), ""
    if not done.returncode:
        return "", done.stdout
    wrong = [line for line in done.stdout.splitlines() if "error" in line]
    return (wrong[0] if wrong else build.last_lines(done.stdout, 2)), done.stdout
