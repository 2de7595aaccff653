# SPDX-License-Identifier: GPL-3.0-or-later
"""Digests of many files on all cores, in a fixed amount of memory: as fast as the machine can hash, beside other work.

Processes and not threads, since most files are small and the time for those is spent in Python. They are forked bare: what
``multiprocessing`` offers needs /dev/shm, which not every guest has. Work is handed out by a file offset that all of them share.
"""

from __future__ import annotations

import errno
import gc
import hashlib
import os
import struct
import typing as t
from contextlib import suppress
from dataclasses import dataclass, field

# Larger ones do not stay in a core's cache: measured half the system's time of 256 KiB and a twelfth less in all.
CHUNK_BYTES = 64 * 1024
BATCH_BYTES = 4 * 2**20
# What opening a file costs, as bytes that could be hashed meanwhile.
FILE_BYTES = 32 * 1024
_NUMBER = struct.Struct("<I")
_RESULT = struct.Struct("<Ii64s")


@dataclass(frozen=True)
class Wanted:
    """A file to be hashed: its path, its size in bytes (only for the order of work), and what ``hashlib`` calls the algorithm."""

    path: str
    size: int
    algorithm: str = "sha256"


def digest(path: str, algorithm: str, buffer: bytearray) -> bytes:
    """The digest of one file, read through ``buffer``. Raises ``OSError``."""
    view = memoryview(buffer)
    # A pipe or a device in the place of a file must not keep an audit waiting.
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        value = hashlib.new(algorithm, usedforsecurity=False)
        while count := os.readv(handle, [buffer]):
            value.update(view[:count])
        return value.digest()
    finally:
        os.close(handle)


@dataclass
class Hashing:
    """Work under way in child processes. ``results`` waits for it; whoever does not want it calls ``stop``."""

    wanted: t.Sequence[Wanted]
    children: dict[int, int] = field(default_factory=dict)

    def results(self) -> list[str]:
        """Digests in hex, in the order of what was wanted; empty for a file that cannot be read. Raises ``OSError`` where a child failed."""
        digests = [""] * len(self.wanted)
        failed = 0
        for child, output in self.children.items():
            failed |= os.waitpid(child, 0)[1]
            with os.fdopen(output, "rb") as file:
                file.seek(0)
                for number, length, value in _RESULT.iter_unpack(file.read()):
                    digests[number] = value[:length].hex()
        self.children = {}
        if failed:
            raise OSError(errno.EIO, "a process that hashes files was killed")
        return digests

    def by_path(self) -> dict[str, dict[str, str]]:
        """The same by path and algorithm. Raises ``OSError``."""
        digests: dict[str, dict[str, str]] = {}
        for one, value in zip(self.wanted, self.results()):
            digests.setdefault(one.path, {})[one.algorithm] = value
        return digests

    def stop(self) -> None:
        """End the children; nothing is wanted of them any more."""
        for child, output in self.children.items():
            with suppress(ProcessLookupError):
                os.kill(child, 9)
            os.waitpid(child, 0)
            os.close(output)
        self.children = {}


def start(wanted: t.Sequence[Wanted], workers: int = 0) -> Hashing:
    """Begin to hash in ``workers`` processes (0: one for each core that this process may use). Raises ``OSError``."""
    batches = _batches(wanted)
    queue = os.memfd_create("slipway-batches")
    try:
        os.write(queue, b"".join(_NUMBER.pack(number) for number in range(len(batches))))
        os.lseek(queue, 0, os.SEEK_SET)
        hashing = Hashing(wanted)
        for _worker in range(min(workers or len(os.sched_getaffinity(0)), len(batches))):
            output = os.memfd_create("slipway-digests")
            parent = os.getpid()
            child = os.fork()
            if not child:
                _work(wanted, batches, queue, output, parent)
            hashing.children[child] = output
        return hashing
    finally:
        os.close(queue)


def _batches(wanted: t.Sequence[Wanted]) -> list[list[int]]:
    """Numbers of files in batches of about the same work, the largest file first, so that all cores end together."""
    batches: list[list[int]] = []
    room = 0
    for number in sorted(range(len(wanted)), key=lambda number: -wanted[number].size):
        if room <= 0:
            batches.append([])
            room = BATCH_BYTES
        batches[-1].append(number)
        room -= wanted[number].size + FILE_BYTES
    return batches


def _work(wanted: t.Sequence[Wanted], batches: list[list[int]], queue: int, output: int, parent: int) -> t.NoReturn:
    """What a child does. It never returns into the code that forked it."""
    status = 1
    try:
        gc.disable()  # a collection would touch, and so copy, all memory that is shared with the parent
        buffer = bytearray(CHUNK_BYTES)
        while (taken := os.read(queue, _NUMBER.size)) and os.getppid() == parent:
            told = []
            for number in batches[_NUMBER.unpack(taken)[0]]:
                try:
                    value = digest(wanted[number].path, wanted[number].algorithm, buffer)
                except OSError:
                    continue
                told.append(_RESULT.pack(number, len(value), value))
            os.write(output, b"".join(told))
        status = 0
    finally:
        os._exit(status)
