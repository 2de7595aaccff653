# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the compiled libraries of an environment fit each other, the GPU and the driver; from their files, without loading any.

What an import would only tell on the machine with the GPU: extensions that were built for another torch, kernels that have no code
for this GPU, a CUDA that the driver is too old for.
"""

from __future__ import annotations

import ast
import fnmatch
import os
import re
import typing as t
from dataclasses import dataclass
from pathlib import Path

from ..findings import Finding, finding
from . import elf, kernels, ownership, site

# Mangled names of torch: with something of the namespaces c10, at and torch in them, and what has C's names.
OF_TORCH = re.compile(rb"_Z.*NK?(?:3c10|2at|5torch)|aoti_torch|THP[A-Z]")
LIBRARY = re.compile(r"\.so(?:\.[\d.]+)?$")
# torch fits itself, and NVIDIA's own libraries ask nothing of it.
APART = ("nvidia/", "torch/", "triton/")
# A library for one version of torch among others: torch_c_dlpack_ext brings one for each.
FOR_TORCH = re.compile(r"torch[-_]?(\d)[._]?(\d+)(?!\d)[^/]*$")


@dataclass(frozen=True)
class Library:
    """A compiled library: path below site-packages, package, symbols of torch that it asks for and lacks, and its kernels."""

    path: str
    package: str
    asked: int
    missing: tuple[str, ...]
    kernels: kernels.Kernels

    def as_dict(self) -> dict[str, t.Any]:
        return {
            "path": self.path,
            "package": self.package,
            "torch_symbols": self.asked,
            "missing_symbols": list(self.missing),
            "machine_code": list(self.kernels.machine_code),
            "ptx": list(self.kernels.ptx),
        }


@dataclass(frozen=True)
class Look:
    """What an environment has. ``torch`` and ``cuda`` are empty where torch is not there, or was built without CUDA."""

    libraries: list[Library]
    torch: str
    cuda: str
    cudnn: str


def look(folder: Path, packages: t.Collection[str] = ()) -> Look:
    """The libraries of one site-packages, of these packages alone or of all. Raises ``OSError``."""
    distributions = site.distributions(folder)
    owned = ownership.owners(str(folder), distributions)
    by_package: dict[str, list[str]] = {}
    for path in sorted(path for path in site.walk(str(folder)).files if LIBRARY.search(path)):
        number = owned.of(path)
        name = distributions[number].name if number >= 0 else ""
        if os.path.islink(path) or (packages and name not in packages):
            continue
        by_package.setdefault(name, []).append(path)
    of_torch: set[bytes] = set()
    for library in sorted((folder / "torch" / "lib").glob("*.so*")):
        of_torch |= elf.symbols(str(library)).offered
    version, cuda = _torch(folder)
    libraries = [
        one
        for name, paths in sorted(by_package.items())
        for one in _package(str(folder), name, paths, of_torch, version)
    ]
    cudnn = next((one.version for one in distributions if one.name.startswith("nvidia-cudnn-cu")), "")
    return Look(libraries, version, cuda, cudnn)


def _package(folder: str, name: str, paths: list[str], of_torch: set[bytes], version: str) -> t.Iterator[Library]:
    """The libraries of a package. What they offer each other is not asked of torch, nor what one for another version of it asks."""
    symbols = (
        {path: elf.symbols(path) for path in paths if not path[len(folder) + 1 :].startswith(APART)} if of_torch else {}
    )
    own = {symbol for one in symbols.values() for symbol in one.offered}
    for path in paths:
        asked = [symbol for symbol in (symbols[path].needed if path in symbols else ()) if OF_TORCH.match(symbol)]
        if (named := FOR_TORCH.search(path)) and list(map(int, named.groups())) != list(_numbers(version)[:2]):
            asked = []
        missing = sorted(symbol.decode() for symbol in asked if symbol not in of_torch and symbol not in own)
        yield Library(path[len(folder) + 1 :], name, len(asked), tuple(missing), kernels.of_file(path))


def _torch(folder: Path) -> tuple[str, str]:
    """Version of torch and of the CUDA that it was built with, from its ``version.py``, which is not run."""
    try:
        tree = ast.parse((folder / "torch" / "version.py").read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return "", ""
    told = {}
    for node in tree.body:
        target = (
            node.target
            if isinstance(node, ast.AnnAssign)
            else node.targets[0]
            if isinstance(node, ast.Assign)
            else None
        )
        value = getattr(node, "value", None)
        if isinstance(target, ast.Name) and isinstance(value, ast.Constant):
            told[target.id] = str(value.value or "")
    return told.get("__version__", ""), told.get("cuda", "")


@dataclass(frozen=True)
class Demands:
    """What the libraries must fit. What is empty is not compared.

    ``sm`` is the GPU's compute capability as one number, ``required`` are patterns of libraries that must have code for it, ``accepted``
    of those whose misfit is known and does not matter. ``driver_cuda`` is the newest CUDA that the driver knows, as ``13.0``.
    """

    sm: int = 0
    required: tuple[str, ...] = ()
    accepted: tuple[str, ...] = ()
    driver_cuda: str = ""
    cudnn_minimum: str = ""


def findings(found: Look, demands: Demands) -> list[Finding]:
    """What does not fit."""
    told = [_mismatch(one, found.torch, demands.accepted) for one in found.libraries if one.missing]
    if demands.sm:
        told += _uncovered(found.libraries, demands)
    if demands.driver_cuda and found.cuda:
        told += _driver(found.cuda, demands.driver_cuda)
    if demands.cudnn_minimum and _numbers(found.cudnn) < _numbers(demands.cudnn_minimum):
        has = f"cuDNN {found.cudnn} is installed" if found.cudnn else "no cuDNN is installed"
        told.append(finding("CUDNN_TOO_OLD", "cudnn", f"{has}, and {demands.cudnn_minimum} is the least"))
    return told


def _fits(path: str, patterns: t.Sequence[str]) -> bool:
    return any(fnmatch.fnmatch(path, pattern) for pattern in patterns)


def _mismatch(library: Library, torch: str, accepted: t.Sequence[str]) -> Finding:
    named = ", ".join(library.missing[:3])
    more = f" and {len(library.missing) - 3} more" if len(library.missing) > 3 else ""
    detail = f"{library.path} asks for {named}{more}, which torch {torch} does not have"
    severity = "info" if _fits(library.path, accepted) else None
    return finding("ABI_MISMATCH", library.package or library.path, detail, severity)


def _uncovered(libraries: list[Library], demands: Demands) -> list[Finding]:
    """A library that has kernels and none for this GPU. It fails where it is required, or where its package has no other that has.

    Most packages bring libraries for several kinds of GPUs, of which one is chosen: FlashAttention 3 is for Hopper alone. NVIDIA's
    own keep kernels in other forms as well, and are not judged.
    """
    told = [
        finding("SM_NOT_COVERED", pattern, "no library with kernels has this name", "unknown")
        for pattern in demands.required
        if not any(one.kernels.any and _fits(one.path, [pattern]) for one in libraries)
    ]
    judged = [one for one in libraries if one.kernels.any and not one.path.startswith("nvidia/")]
    good = {one.package for one in judged if one.kernels.cover(demands.sm)}
    for one in judged:
        if not one.kernels.cover(demands.sm):
            fails = _fits(one.path, demands.required) or (
                one.package not in good and not _fits(one.path, demands.accepted)
            )
            detail = (
                f"of {one.package or 'no package'}: it has {kernels.words(one.kernels)}, and the GPU is sm {demands.sm}"
            )
            told.append(finding("SM_NOT_COVERED", one.path, detail, None if fails else "info"))
    return told


def _driver(cuda: str, driver_cuda: str) -> list[Finding]:
    """CUDA's minor versions run on any driver of the same major one, but for PTX (CUDA Compatibility, "Minor Version Compatibility")."""
    built, known = _numbers(cuda)[:2], _numbers(driver_cuda)[:2]
    if built <= known:
        return []
    detail = f"torch was built with CUDA {cuda}, and the driver knows {driver_cuda} at most"
    return [finding("CUDA_TOO_NEW", "torch", detail, "fail" if built[0] > known[0] else "warn")]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0]))
