# SPDX-License-Identifier: GPL-3.0-or-later
"""One look at a server that starts: where it is, whether it died or hangs, and why."""

from __future__ import annotations

import re
import time
import typing as t
from dataclasses import replace

from ..errors import SlipwayError, cannot, here
from ..findings import Finding, finding
from . import log_faults, startup, unit, watchdog

_LOG_LINES = 20
# What systemd says at each start and end of a unit, whatever the cause.
_ROUTINE = re.compile(
    r"^(Starting|Started|Stopping|Stopped|Failed to start) |: (Scheduled restart job|Main process exited|Failed with result|Consumed )"
)


def look(params: t.Mapping[str, t.Any], clock: t.Callable[[], float] = time.monotonic) -> dict[str, t.Any]:
    """The result of ``server_log_info`` for its options. Raises ``SlipwayError``."""
    name, engine = params["unit"], params["engine"]
    try:
        limits = watchdog.limits(engine, params["limits"]) if engine else {}
    except SlipwayError as error:
        raise cannot("watch", f"unit '{name}'", here(), str(error), "Correct the limits of its phases") from None
    now = unit.state(name)
    invocation = params["run_id"] or now.get("InvocationID", "")
    died = unit.ended(now, params["restarts"], params["run_id"] or "")
    lines = unit.journal(name, invocation) if now.get("LoadState") != "not-found" else []
    texts = [line.text for line in lines]
    started = unit.started(now) if invocation == now.get("InvocationID") else 0
    started = started or next((line.seconds for line in lines), clock())
    progress = startup.read(engine, lines, started, clock()) if engine else None
    faults = log_faults.find(name, engine, texts)
    if now.get("Result") == "oom-kill" and not any(one.id == "SERVER_OOM_KILLED" for one in faults):
        faults.insert(0, finding("SERVER_OOM_KILLED", name, "as systemd says"))
    hung = None
    if progress and not died:
        at = unit.processes(now.get("ControlGroup", ""))
        hung = watchdog.judge(name, engine, _counted(progress, params["waited_seconds"]), limits[progress.phase], at)
    return {
        "changed": False,
        "died": died,
        "hung": hung is not None,
        "run_id": invocation,
        "restarts": int(now.get("NRestarts") or 0),
        "seconds": round(clock() - started, 1),
        **_as_told(progress),
        "log": [text.strip() for text in texts if text.strip() and not _ROUTINE.search(text)][-_LOG_LINES:],
        "findings": [one.as_dict() for one in _findings(name, died, faults, hung, progress, texts)],
    }


def _counted(progress: startup.Progress, waited: float | None) -> startup.Progress:
    """As the watchdog counts it: who has served for weeks and does not answer now is busy, until the caller has waited for it."""
    if progress.phase != startup.READY or waited is None:
        return progress
    return replace(
        progress,
        phase_seconds=min(progress.phase_seconds, waited),
        quiet_seconds=min(progress.quiet_seconds, waited),
    )


def _as_told(progress: startup.Progress | None) -> dict[str, t.Any]:
    if progress is None:
        return {"phase": None, "words": "", "done": None, "total": None, "phase_seconds": None, "quiet_seconds": None}
    return {
        "phase": progress.phase,
        "words": progress.words,
        "done": progress.done,
        "total": progress.total,
        "phase_seconds": round(progress.phase_seconds, 1),
        "quiet_seconds": round(progress.quiet_seconds, 1),
    }


def _findings(
    name: str,
    died: str,
    faults: list[Finding],
    hung: Finding | None,
    progress: startup.Progress | None,
    texts: list[str],
) -> list[Finding]:
    """What it said first, then that it hangs; what died without a known word is told by its last one."""
    if hung:
        return [*faults, hung]
    if died and died != unit.ABSENT and not faults:
        last = log_faults.last_error([text for text in texts if not _ROUTINE.search(text)])
        parts = [f"while {progress.words}" if progress else "", f"its last word: {last}" if last else ""]
        return [finding("SERVER_DIED", name, "; ".join(part for part in parts if part))]
    return faults
