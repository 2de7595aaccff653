# SPDX-License-Identifier: GPL-3.0-or-later
"""The user part of the driver: which ``libcuda.so.1`` the dynamic loader would take, and its version."""

from __future__ import annotations

import os
import re
import struct
from dataclasses import dataclass

LIBRARY = "libcuda.so.1"
_MAGIC = b"glibc-ld.so.cache1.1"
_VERSION = re.compile(r"^libcuda\.so\.(\d{3,}(?:\.\d+)+)$")
# Where the loader looks when its cache does not name the library (Debian's and Red Hat's glibc).
_DEFAULT_FOLDERS = ("/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/lib")
_ELF64_X86_64 = (2, 62)


@dataclass(frozen=True)
class UserPart:
    """``path`` as the loader finds it, ``version`` from the name of the file behind it, or ``None`` if it has none."""

    path: str
    version: str | None


def cached_paths(cache: bytes, name: str = LIBRARY) -> list[str]:
    """Paths that ``/etc/ld.so.cache`` gives for ``name``, in the loader's order; none for a form not known.

    The form is that of glibc's ``dl-cache.h``: a header of 48 bytes, entries of 24, offsets from the header's start.
    """
    start = cache.find(_MAGIC)
    if start < 0 or len(cache) < start + 48:
        return []
    cache = cache[start:]
    (count,) = struct.unpack_from("=I", cache, 20)
    if len(cache) < 48 + 24 * count:
        return []

    def string(offset: int) -> str:
        return cache[offset : cache.find(b"\0", offset)].decode("utf-8", "replace")

    entries = (struct.unpack_from("=iII", cache, 48 + 24 * index) for index in range(count))
    return [string(value) for _flags, key, value in entries if string(key) == name]


def find(root: str = "/") -> UserPart | None:
    """The 64-bit ``libcuda.so.1`` that the loader would take below ``root``, or ``None`` if there is none."""
    try:
        with open(_below(root, "/etc/ld.so.cache"), "rb") as stream:
            candidates = cached_paths(stream.read())
    except OSError:
        candidates = []
    candidates += [f"{folder}/{LIBRARY}" for folder in _DEFAULT_FOLDERS]
    for path in candidates:
        target = _resolve(root, path)
        if target and _is_for_this_machine(target):
            found = _VERSION.match(os.path.basename(target))
            return UserPart(path, found[1] if found else None)
    return None


def _below(root: str, path: str) -> str:
    return os.path.join(root, path.lstrip("/"))


def _resolve(root: str, path: str) -> str | None:
    """Follow links of the file itself without leaving ``root``: an absolute target starts again below it."""
    for _hop in range(16):
        real = _below(root, path)
        if not os.path.islink(real):
            return real if os.path.isfile(real) else None
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(real)))
    return None


def _is_for_this_machine(path: str) -> bool:
    """Hosts with 32-bit libraries hold a second libcuda of the same name; the loader passes over it."""
    try:
        with open(path, "rb") as stream:
            head = stream.read(20)
    except OSError:
        return False
    if len(head) < 20 or head[:4] != b"\x7fELF":
        return False
    return (head[4], struct.unpack_from("<H", head, 18)[0]) == _ELF64_X86_64
