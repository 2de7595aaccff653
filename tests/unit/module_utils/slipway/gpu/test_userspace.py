# SPDX-License-Identifier: GPL-3.0-or-later
from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest
from ansible.module_utils.slipway.gpu import userspace

ELF64 = b"\x7fELF\x02\x01\x01".ljust(16, b"\0") + struct.pack("<HH", 3, 62)
ELF32 = b"\x7fELF\x01\x01\x01".ljust(16, b"\0") + struct.pack("<HH", 3, 3)


def cache(entries: list[tuple[str, str]]) -> bytes:
    """An ld.so.cache of glibc's present form."""
    strings, table, at = b"", b"", 48 + 24 * len(entries)
    for name, path in entries:
        key = at + len(strings)
        strings += name.encode() + b"\0"
        value = at + len(strings)
        strings += path.encode() + b"\0"
        table += struct.pack("=iIIIQ", 0x0303, key, value, 0, 0)
    return struct.pack("=20sIIBxxxI12x", b"glibc-ld.so.cache1.1", len(entries), len(strings), 2, 0) + table + strings


def put(root: Path, path: str, content: bytes) -> None:
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_bytes(content)


def test_the_first_cached_library_of_this_machine_is_taken(tmp_path: Path) -> None:
    put(tmp_path, "opt/lib32/libcuda.so.1", ELF32)
    put(tmp_path, "opt/driver/libcuda.so.595.58.03", ELF64)
    (tmp_path / "opt/driver/libcuda.so.1").symlink_to("/opt/driver/libcuda.so.595.58.03")
    put(tmp_path, "usr/lib/libcuda.so.1", ELF64)
    put(
        tmp_path,
        "etc/ld.so.cache",
        cache(
            [
                ("libc.so.6", "/lib/libc.so.6"),
                ("libcuda.so.1", "/opt/gone/libcuda.so.1"),
                ("libcuda.so.1", "/opt/lib32/libcuda.so.1"),
                ("libcuda.so.1", "/opt/driver/libcuda.so.1"),
            ]
        ),
    )
    assert userspace.find(str(tmp_path)) == userspace.UserPart("/opt/driver/libcuda.so.1", "595.58.03")


@pytest.mark.parametrize("broken", [b"", b"ld.so-1.7.0\0", cache([("libcuda.so.1", "/x")])[:60]])
def test_without_a_usable_cache_the_default_folders_are_searched(tmp_path: Path, broken: bytes) -> None:
    put(tmp_path, "etc/ld.so.cache", broken)
    put(tmp_path, "usr/lib/x86_64-linux-gnu/libcuda.so.580.142", ELF64)
    os.symlink("libcuda.so.580.142", tmp_path / "usr/lib/x86_64-linux-gnu/libcuda.so.1")
    assert userspace.find(str(tmp_path)) == userspace.UserPart("/usr/lib/x86_64-linux-gnu/libcuda.so.1", "580.142")


def test_a_library_without_a_version_in_its_name_has_none(tmp_path: Path) -> None:
    put(tmp_path, "usr/lib/libcuda.so.1", ELF64)
    assert userspace.find(str(tmp_path)) == userspace.UserPart("/usr/lib/libcuda.so.1", None)


def test_no_library(tmp_path: Path) -> None:
    put(tmp_path, "usr/local/cuda/lib64/stubs/libcuda.so", ELF64)
    assert userspace.find(str(tmp_path)) is None


def test_the_cache_of_this_machine_is_read() -> None:
    file = Path("/etc/ld.so.cache")
    if not file.exists() or b"glibc-ld.so.cache1.1" not in file.read_bytes():
        pytest.skip("no glibc cache here")
    paths = userspace.cached_paths(file.read_bytes(), "libc.so.6")
    assert paths
    assert all(Path(path).exists() for path in paths)
