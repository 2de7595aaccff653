#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-3.0-or-later
"""In the place of a stack's Python: takes the program of a rank as an interpreter does, and plays what stands in recording.json beside bin/.

A recording is ``{all: steps}``, with other steps for ranks by their number. A step is one of ``say`` (an object, as a rank says it), ``out`` and ``err`` (a line), ``raw``,
``flood`` (so many blocks of warnings), ``sleep``, ``hang``, ``signal``, ``exit``; or a list of steps. What a rank was started with is noted in rank.N.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time

HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def play(step: list | dict) -> None:
    """One step."""
    if isinstance(step, list):
        for one in step:
            play(one)
        return
    ((kind, what),) = step.items()
    if kind == "say":
        print(json.dumps(what), flush=True)
    elif kind in ("out", "err"):
        print(what, file=sys.stdout if kind == "out" else sys.stderr, flush=True)
    elif kind == "raw":
        os.write(1, what.encode())
    elif kind == "flood":
        for number in range(what):
            os.write(2, b"NCCL WARN something %d again\n" % number * 40)
    elif kind == "sleep":
        time.sleep(what)
    elif kind == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        while True:
            time.sleep(60)
    elif kind == "signal":
        os.kill(os.getpid(), what)
        time.sleep(60)
    elif kind == "exit":
        os._exit(what)
    else:
        raise ValueError(kind)


program, given = sys.stdin.read(), json.loads(sys.argv[-1])
rank = str(given["rank"])
with open(os.path.join(HERE, "rank." + rank), "w") as note:
    json.dump({"given": given, "environment": dict(os.environ), "program": program, "pid": os.getpid()}, note)
with open(os.path.join(HERE, "recording.json")) as recording:
    played = json.load(recording)
play(played.get(rank, played["all"]))
