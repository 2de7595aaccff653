# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for the tasks that Proxmox runs (UPIDs)."""

from __future__ import annotations

import re
import typing as t
from dataclasses import dataclass

from . import api
from .client import CONTENTION, DONE, ApiError, Fate, Patience, persist

if t.TYPE_CHECKING:
    from .client import Client, Worked

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 2.0
# How long after its start a task may be unknown, and after its end its exit status unwritten (pve-common, Tools.pm).
SETTLE_SECONDS = 10.0
# What the status of a task is until then.
UNSETTLED = ("unexpected status", "")
LOG_LINES_SHOWN = 15


@dataclass(frozen=True)
class Task:
    """A task that ended well. ``warnings`` are the lines of its log that say so, if its exit status did.

    ``upid`` is None where the work was found done after its answer had been lost.
    """

    upid: str | None
    exit_status: str
    warnings: tuple[str, ...] = ()


def run(
    client: Client,
    send: t.Callable[[], t.Any],
    timeout_seconds: float,
    clock: t.Callable[[], float] | None = None,
    sleep: t.Callable[[float], None] | None = None,
) -> Task:
    """Start a task with ``send`` and wait for it; again, while it fails because another task holds the lock. Raises ApiError.

    Such a task has done nothing: Proxmox takes the lock first, for 10 seconds, and a task that was started just before may
    hold it longer (Telmate/terraform-provider-proxmox#1126).
    """
    patience = Patience(timeout_seconds, clock, sleep)

    def judge(error: ApiError) -> None:
        # What a call can mend by itself it has tried already.
        if not isinstance(error, TaskFailed):
            raise error

    return persist(lambda: wait(client, send(), timeout_seconds, clock, sleep), judge, patience)


class TaskFailed(ApiError):
    """A task ended badly."""


def wait(
    client: Client,
    answer: t.Any,
    timeout_seconds: float,
    clock: t.Callable[[], float] | None = None,
    sleep: t.Callable[[float], None] | None = None,
) -> Task:
    """Wait for the task that a call answered with.

    Raises TaskFailed when the task fails (with its exit status and the end of its log), and another ApiError when it has
    not ended in time or cannot be asked any more: then it runs on, and nothing of what it did is taken back. That it
    cannot be asked for a while says nothing of the task.
    """
    if answer is DONE:
        return Task(None, "OK")
    upid = upid_of(answer)
    patience = Patience(timeout_seconds, clock, sleep)
    pauses = patience.pauses(FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS)
    begun = patience.now()
    ended_at: float | None = None
    while True:
        state = "it still runs"
        try:
            status = api.task_status(client, upid)
        except ApiError as error:
            # Proxmox knows a task a moment after it has answered with it.
            early = error.status == 400 and patience.now() - begun < SETTLE_SECONDS
            if error.fate is Fate.FINAL and not early:
                raise _unwatched(error, upid) from error
            state = f"whether it still runs cannot be told ({error.cause})"
        else:
            if status.get("status") == "stopped":
                ended_at = patience.now() if ended_at is None else ended_at
                exit_status = str(status.get("exitstatus") or "")
                # The worker is gone and has not closed its log yet.
                settling = exit_status in UNSETTLED and patience.now() - ended_at < SETTLE_SECONDS
                if not settling:
                    return _ended(client, upid, exit_status)
        if next(pauses, None) is None:
            raise ApiError(
                f"the task {upid} has not ended within {timeout_seconds:g} seconds; {state}",
                "Follow it in the node's task list and run again when it has ended, or give more timeout_seconds",
            )


def _unwatched(error: ApiError, upid: str) -> ApiError:
    """What is in the way of asking after a task is no failure of the task."""
    return ApiError(
        f"{error.cause}; the task {upid} was started and may still run",
        f"{error.remedy}, and look at the node's task list before running again",
        error.status,
    )


def at_work(client: Client, node: str, vmid: int, kind: str) -> str | None:
    """The UPID of a task of this kind (``vzcreate``, ``vzstart``) that runs on a guest, or None."""
    for row in api.tasks_of_guest(client, node, vmid, kind):
        # The list keeps those that have just ended.
        if not row.get("endtime") and str(row.get("status") or "RUNNING") == "RUNNING":
            return str(row["upid"])
    return None


def look_up(client: Client, node: str, vmid: int, kind: str, done: t.Callable[[], bool]) -> Worked:
    """What ``Client.call`` asks when the answer to a call that starts a task was lost.

    The task that is at it, or else whether the guest is as the task would leave it (``done``: it is there, it runs, it is
    gone). A task that failed in the meantime left it as it was, so that the call is made again.
    """

    def worked() -> str | bool | None:
        return at_work(client, node, vmid, kind) or (DONE if done() else None)

    return worked


def upid_of(answer: t.Any) -> str:
    """The UPID in an answer. Raises ApiError where there is none."""
    # Over SSH proxmoxer hands on the raw output, under "errors", where it finds no JSON in it.
    text = str(answer.get("errors", "")) if isinstance(answer, dict) else str(answer)
    found = re.findall(r"UPID:[^\s:\"']+(?::[^\s:\"']*){6}:", text)
    if not found:
        raise ApiError(f"it started no task but answered '{text[:200]}'", "See the node's task list")
    return found[-1]


def _ended(client: Client, upid: str, exit_status: str) -> Task:
    if exit_status == "OK":
        return Task(upid, exit_status)
    try:
        lines = [str(line.get("t", "")) for line in api.task_log(client, upid)]
    except ApiError as error:
        # How it ended is known, and no log changes that.
        lines = [f"(the log cannot be read: {error.cause})"]
    if exit_status.startswith("WARNINGS:"):
        return Task(upid, exit_status, tuple(line for line in lines if line.startswith(("WARN", "Warning"))))
    tail = "\n".join(line for line in lines if line.strip())[-4000:].splitlines()[-LOG_LINES_SHOWN:]
    raise TaskFailed(
        f"the task {upid} failed: {exit_status or UNSETTLED[0]}. The end of its log:\n"
        + "\n".join(f"  {line}" for line in tail),
        "Correct the cause and run again",
        fate=Fate.UNDONE if CONTENTION.search(exit_status) else Fate.FINAL,
    )
