# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the ranks: one process of the stack's Python a GPU. Works in a forked child that has a hard limit and takes all of them with it.

What it emits is bounded whatever the ranks print: ``{rank, pid}``, ``{rank, said}`` (a rank's own words), ``{rank, line}`` (what is worth keeping of
NCCL's log), and ``{rank, status, tail}`` when a rank has ended (its exit status, negative for a signal, and its last lines; a rank that had to be ended because
another failed says ``killed``).
"""

from __future__ import annotations

import collections
import contextlib
import ctypes
import json
import os
import selectors
import signal
import subprocess
import time
import typing as t

from ..gpu.child import Emit
from .log import worth_keeping

# NCCL tells each channel of each pair: eight ranks with 32 channels stay well below it.
_LINES, _LINE_BYTES, _TAIL = 600, 2000, 15
_SAID, _SAID_BYTES = 200, 65536
# How long the others may take to say what they saw when a rank has failed; after that they would wait for ever.
_GRACE_SECONDS, _KILL_SECONDS = 5.0, 2.0
_PR_SET_PDEATHSIG = 1


class Rank:
    """A running rank and what is left of its lines."""

    def __init__(self, number: int, process: subprocess.Popen[bytes], emit: Emit) -> None:
        self.number, self.process, self._emit = number, process, emit
        self.tail: collections.deque[str] = collections.deque(maxlen=_TAIL)
        self.status: int | None = None
        self._pending = {"said": b"", "line": b""}
        self._count = {"said": 0, "line": 0}

    def take(self, kind: str, data: bytes) -> None:
        """Bytes of one of its two outputs; an end without a newline counts as one."""
        limit = _SAID_BYTES if kind == "said" else _LINE_BYTES
        *lines, rest = (self._pending[kind] + data).split(b"\n") if data else [self._pending[kind], b""]
        # A line without an end is cut, so that no output can fill the memory.
        self._pending[kind] = rest[:limit]
        for line in lines:
            self._line(kind, line[:limit])

    def _line(self, kind: str, line: bytes) -> None:
        text = line.decode("utf-8", "replace").strip()
        said = _said(text) if kind == "said" else None
        if said is None:
            if text:
                self.tail.append(text)
            kind, keep = "line", worth_keeping(text)
        else:
            keep = True
        if keep and self._count[kind] < (_SAID if kind == "said" else _LINES):
            self._count[kind] += 1
            self._emit({"rank": self.number, kind: text if said is None else said})


def survivors(pids: t.Iterable[int]) -> list[int]:
    """Which of these processes are still there a moment after they were killed: one in the kernel's hands does not end (leptonai/gpud#117)."""
    deadline = time.monotonic() + _KILL_SECONDS
    left = [pid for pid in pids if _alive(pid)]
    while left and time.monotonic() < deadline:
        time.sleep(0.05)
        left = [pid for pid in left if _alive(pid)]
    return left


def _alive(pid: int) -> bool:
    """Whether it is there and not only waits to be buried by whoever inherited it."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (FileNotFoundError, ProcessLookupError):
        return False


def _said(text: str) -> dict[str, t.Any] | None:
    """A rank's own word, or ``None`` for what somebody else printed there."""
    with contextlib.suppress(ValueError):
        said = json.loads(text)
        if isinstance(said, dict):
            return said
    return None


def run(emit: Emit, python: str, program: str, arguments: t.Sequence[str], environment: t.Mapping[str, str]) -> None:
    """Start ``python`` with ``program`` on its input once for each of ``arguments``, and tell what they say until all have ended.

    The parent's limits end this process, and its group, if that never comes.
    """
    libc = ctypes.CDLL(None)

    def die_with_us() -> None:
        libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)

    ranks = []
    for number, argument in enumerate(arguments):
        process = subprocess.Popen(
            [python, "-u", "-", argument],
            env=dict(environment),
            cwd="/",
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=die_with_us,
        )
        ranks.append(Rank(number, process, emit))
        emit({"rank": number, "pid": process.pid})
    for rank in ranks:
        _give(rank.process, program)
    with selectors.DefaultSelector() as selector:
        for rank in ranks:
            for kind, pipe in (("said", rank.process.stdout), ("line", rank.process.stderr)):
                selector.register(t.cast("t.IO[bytes]", pipe), selectors.EVENT_READ, (rank, kind))
        _follow(emit, ranks, selector)


def _give(process: subprocess.Popen[bytes], program: str) -> None:
    """The program, which is smaller than a pipe; a process that has ended already has no reader."""
    pipe = t.cast("t.IO[bytes]", process.stdin)
    with contextlib.suppress(BrokenPipeError):
        pipe.write(program.encode())
        pipe.flush()
    with contextlib.suppress(BrokenPipeError):
        pipe.close()


def _follow(emit: Emit, ranks: t.Sequence[Rank], selector: selectors.BaseSelector) -> None:
    deadline: float | None = None
    killed: set[int] = set()
    while any(rank.status is None for rank in ranks):
        for key, _events in selector.select(0.1):
            rank, kind = key.data
            data = os.read(key.fd, 65536)
            rank.take(kind, data)
            if not data:
                selector.unregister(key.fileobj)
        for rank in ranks:
            if rank.status is None and rank.process.poll() is not None:
                _ended(emit, rank, selector, rank.number in killed)
        now = time.monotonic()
        if deadline is None and any(rank.status for rank in ranks):
            deadline = now + _GRACE_SECONDS
        if deadline is not None and now > deadline:
            if killed:
                return  # one that survives SIGKILL is in the kernel's hands
            deadline = now + _KILL_SECONDS
            for rank in ranks:
                if rank.status is None:
                    killed.add(rank.number)
                    rank.process.kill()


def _ended(emit: Emit, rank: Rank, selector: selectors.BaseSelector, killed: bool) -> None:
    """What it left in its pipes, and how it ended. A grandchild may keep a pipe open: only what is there is read."""
    for kind, pipe in (("said", rank.process.stdout), ("line", rank.process.stderr)):
        handle = t.cast("t.IO[bytes]", pipe)
        with contextlib.suppress(KeyError, ValueError):
            selector.unregister(handle)
            os.set_blocking(handle.fileno(), False)
            for _number in range(64):
                data = os.read(handle.fileno(), 65536) if _readable(handle) else b""
                rank.take(kind, data)
                if not data:
                    break
    rank.status = rank.process.returncode
    emit({"rank": rank.number, "status": rank.status, "killed": killed, "tail": list(rank.tail)})


def _readable(handle: t.IO[bytes]) -> bool:
    with selectors.DefaultSelector() as selector:
        selector.register(handle, selectors.EVENT_READ)
        return bool(selector.select(0))
