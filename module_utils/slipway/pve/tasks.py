# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for the tasks that Proxmox runs (UPIDs)."""

from __future__ import annotations

import re
import time
import typing as t
from dataclasses import dataclass

from . import api
from .client import ApiError

if t.TYPE_CHECKING:
    from .client import Client

FIRST_PAUSE_SECONDS = 0.2
LONGEST_PAUSE_SECONDS = 2.0
# How long after its start a task may be unknown, and after its end its exit status unwritten (pve-common, Tools.pm).
SETTLE_SECONDS = 10.0
LOG_LINES_SHOWN = 15


@dataclass(frozen=True)
class Task:
    """A task that ended well. ``warnings`` are the lines of its log that say so, if its exit status did."""

    upid: str
    exit_status: str
    warnings: tuple[str, ...] = ()


def wait(
    client: Client,
    answer: t.Any,
    timeout_seconds: float,
    clock: t.Callable[[], float] = time.monotonic,
    sleep: t.Callable[[float], None] = time.sleep,
) -> Task:
    """Wait for the task that a call answered with.

    Raises ApiError when the task fails (with its exit status and the end of its log), and when it has not ended in time:
    then it runs on, and nothing of what it did is taken back.
    """
    upid = upid_of(answer)
    begun = clock()
    pause = FIRST_PAUSE_SECONDS
    ended_at: float | None = None
    while True:
        exit_status = None
        try:
            status = api.task_status(client, upid)
        except ApiError as error:
            # Proxmox knows a task a moment after it has answered with it.
            if error.status != 400 or clock() - begun >= SETTLE_SECONDS:
                raise
        else:
            if status.get("status") == "stopped":
                exit_status = str(status.get("exitstatus", ""))
                ended_at = clock() if ended_at is None else ended_at
        # "unexpected status": the worker is gone and has not closed its log yet.
        if exit_status == "unexpected status" and ended_at is not None and clock() - ended_at < SETTLE_SECONDS:
            exit_status = None
        if exit_status is not None:
            return _ended(client, upid, exit_status)
        if clock() - begun >= timeout_seconds:
            raise ApiError(
                f"the task {upid} has not ended within {timeout_seconds:g} seconds; it still runs",
                "Follow it in the node's task list and run again when it has ended, or give more timeout_seconds",
            )
        sleep(pause)
        pause = min(pause * 1.5, LONGEST_PAUSE_SECONDS)


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
    lines = [str(line.get("t", "")) for line in api.task_log(client, upid)]
    if exit_status.startswith("WARNINGS:"):
        return Task(upid, exit_status, tuple(line for line in lines if line.startswith(("WARN", "Warning"))))
    tail = "\n".join(line for line in lines if line.strip())[-4000:].splitlines()[-LOG_LINES_SHOWN:]
    raise ApiError(
        f"the task {upid} failed: {exit_status}. The end of its log:\n" + "\n".join(f"  {line}" for line in tail),
        "Correct the cause and run again",
    )
