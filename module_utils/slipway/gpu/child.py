# SPDX-License-Identifier: GPL-3.0-or-later
"""Driver calls in a forked child with a hard limit: a call that never returns must not take the module with it.

The child has its own session and none of this process's files. A child in uninterruptible sleep survives even SIGKILL
(leptonai/gpud#117), so this side never waits without bound; what the child reported until then is kept.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import pwd
import select
import signal
import time
import typing as t
from dataclasses import dataclass, field

Emit = t.Callable[[t.Any], None]
_REAP_SECONDS = 2.0
_PR_SET_PDEATHSIG = 1


@dataclass
class Outcome:
    """``ended`` is ``done``, ``hung`` or ``died``; ``cause`` says how it died. ``messages`` came in their order.

    ``quiet_seconds`` is how long a child that hung had said nothing when it was given up.
    """

    ended: str
    messages: list[t.Any] = field(default_factory=list)
    cause: str = ""
    quiet_seconds: float = 0.0


def run(
    work: t.Callable[[Emit], None],
    timeout_seconds: float,
    user: str | None = None,
    silence_seconds: float | None = None,
) -> Outcome:
    """Run ``work(emit)`` in a child. What it emits (anything that JSON holds) comes back in order.

    ``user`` is whom the child becomes, with that user's groups; only root can become another. Raises ``KeyError`` where
    there is no such user. A child that says nothing for ``silence_seconds`` has hung before its time is over.
    """
    account = pwd.getpwnam(user) if user else None
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _be_child(work, writer, parent, account)
    os.close(writer)
    deadline = time.monotonic() + timeout_seconds
    try:
        data, finished, heard = _read_until(reader, deadline, silence_seconds)
    finally:
        os.close(reader)
    messages = [json.loads(line) for line in data.split(b"\n")[:-1]]
    status = _reap(pid, max(deadline - time.monotonic(), 0.1)) if finished else None
    if status is None:
        quiet = time.monotonic() - heard
        _kill(pid)
        _reap(pid, _REAP_SECONDS)
        return Outcome("hung", messages, quiet_seconds=quiet)
    if os.WIFSIGNALED(status):
        return Outcome("died", messages, signal.Signals(os.WTERMSIG(status)).name)
    if os.WEXITSTATUS(status) != 0:
        cause = messages.pop()["exception"] if messages and "exception" in messages[-1] else ""
        return Outcome("died", messages, cause or f"exit status {os.WEXITSTATUS(status)}")
    return Outcome("done", messages)


def _be_child(
    work: t.Callable[[Emit], None], writer: int, parent: int, account: pwd.struct_passwd | None
) -> t.NoReturn:
    code = 1

    def emit(message: t.Any) -> None:
        os.write(writer, json.dumps(message).encode() + b"\n")

    try:
        os.setsid()
        if account is not None:
            os.initgroups(account.pw_name, account.pw_gid)
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
        # After the change of user, which forgets it. If the module is killed (a task's timeout, a lost connection) nothing of it stays behind.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(code)
        # A library that prints must not spoil the module's result, and a stuck child that held the connection's files
        # would keep the connection open.
        null = os.open(os.devnull, os.O_RDWR)
        for standard in (0, 1, 2):
            os.dup2(null, standard)
        for name in os.listdir("/proc/self/fd"):
            if int(name) > 2 and int(name) != writer:
                with contextlib.suppress(OSError):  # the folder's own is closed by now
                    os.close(int(name))
        work(emit)
        code = 0
    except Exception as error:  # the child's main(): the parent must learn of anything that went wrong
        emit({"exception": f"{type(error).__name__}: {error}"[:1000]})
    finally:
        # Neither Python's exit handlers nor the library's destructors may run: both belong to the parent, or can hang.
        os._exit(code)


def _read_until(reader: int, deadline: float, silence: float | None) -> tuple[bytes, bool, float]:
    """What was said, whether the child closed its end, and when it was last heard."""
    parts: list[bytes] = []
    heard = time.monotonic()
    while True:
        left = (deadline if silence is None else min(deadline, heard + silence)) - time.monotonic()
        if left <= 0 or not select.select([reader], [], [], left)[0]:
            return b"".join(parts), False, heard
        part = os.read(reader, 65536)
        heard = time.monotonic()
        if not part:
            return b"".join(parts), True, heard
        parts.append(part)


def _reap(pid: int, seconds: float) -> int | None:
    deadline = time.monotonic() + seconds
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return status
        if time.monotonic() >= deadline:
            return None
        time.sleep(0.01)


def _kill(pid: int) -> None:
    for kill in (os.killpg, os.kill):
        try:
            kill(pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            continue
