# SPDX-License-Identifier: GPL-3.0-or-later
"""Kill ansible-playbook in the middle of a first deploy, and see whether the next run completes it and a third changes nothing.

    tools/chaos.py deploy --moments 20 --seed 1      each moment on a bare rig of its own, which goes afterwards
    tools/chaos.py kill --name molecule --moments 3  only the kills, one after another on a rig that is there

A moment is a place of the journey, not a time: so many task titles have appeared, and a part of what that task takes has passed. It is the
same on slow and fast machines. Each kill is a SIGKILL, of the main process alone (what it started goes on for a while) or of all of it.
"""

from __future__ import annotations

import argparse
import bisect
import contextlib
import itertools
import json
import os
import random
import re
import signal
import subprocess
import sys
import threading
import time
import typing as t
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "chaos"
TITLE = re.compile(r"(?:TASK|RUNNING HANDLER) \[(.*)\] \*+")
RECAP = re.compile(r"(\S+) +: ok=\d+ +changed=(\d+) +unreachable=(\d+) +failed=(\d+)")


@dataclass(frozen=True)
class Moment:
    """Where to kill: after the ``title``-th title (from 1), when ``delay_seconds`` have passed; ``whole``: all that it started too."""

    title: int
    delay_seconds: float
    whole: bool

    def __str__(self) -> str:
        victim = "with all that it started" if self.whole else "the main process alone"
        return f"title {self.title} + {self.delay_seconds:.2f} s, {victim}"


def moments(durations: t.Sequence[float], count: int, seed: int) -> list[Moment]:
    """``count`` moments, spread evenly over a journey whose tasks take ``durations``: half by their number, half by their time.

    By number alone, the long tasks would hardly be hit; by time alone, nothing but them.
    """
    chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
    total = sum(durations)
    weights = [0.5 / len(durations) + 0.5 * duration / total for duration in durations]
    ends = list(itertools.accumulate(weights))
    chosen = []
    for number in range(count):
        place = (number + chance.random()) / count * ends[-1]
        index = min(bisect.bisect_right(ends, place), len(durations) - 1)
        part = 1 - (ends[index] - place) / weights[index]
        chosen.append(Moment(index + 1, part * durations[index], chance.random() < 0.5))
    return chosen


def descendants(pid: int) -> list[tuple[int, str]]:
    """All that a process started and that still runs, each as id and start: workers have sessions of their own, so a group is not enough."""
    table: dict[int, list[tuple[int, str]]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and (found := identity(int(entry.name))):
            table.setdefault(found[0], []).append((int(entry.name), found[1]))
    below, seen = [pid], []
    while below:
        children = table.get(below.pop(), [])
        seen += children
        below += [child for child, _started in children]
    return seen


def identity(pid: int) -> tuple[int, str] | None:
    """Parent and start of a process; None where there is none, or only its entry until somebody reaps it."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else (int(fields[1]), fields[19])


def kill(processes: list[tuple[int, str]]) -> None:
    """SIGKILL what is still the process that was meant."""
    for pid, started in processes:
        found = identity(pid)
        if found and found[1] == started:
            os.kill(pid, signal.SIGKILL)


class Run:
    """One ansible-playbook: its titles as they appear, its output in a file, and its death."""

    def __init__(self, name: str, log: Path, arguments: t.Sequence[str] = ()) -> None:
        log.parent.mkdir(parents=True, exist_ok=True)
        # The stock output: it prints each title when the task begins.
        environment = {"ANSIBLE_STDOUT_CALLBACK": "default", "ANSIBLE_NOCOLOR": "1", "SLIPWAY_RIG": name}
        self.titles: list[tuple[str, float]] = []
        self.output = ""
        self.ended = 0.0
        self.left: list[tuple[int, str]] = []
        self._news = threading.Condition()
        self.process = subprocess.Popen(
            ["ansible-playbook", "-i", "inventory/rig", *arguments, "deploy.yml"],
            cwd=ROOT,
            env={**os.environ, **environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read, args=(log,), daemon=True)
        self._reader.start()

    def __enter__(self) -> Run:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing of it stays, whatever happened."""
        kill([*self.left, *descendants(self.process.pid)])
        self.process.kill()
        self.process.wait()

    def _read(self, log: Path) -> None:
        with log.open("w") as file:
            for line in self.process.stdout or ():
                file.write(line)
                file.flush()
                with self._news:
                    self.output += line
                    if found := TITLE.match(line):
                        self.titles.append((found[1], time.monotonic()))
                        self._news.notify_all()
        with self._news:
            self.ended = time.monotonic()
            self._news.notify_all()

    def finish(self) -> int:
        """Wait for the end. Returns the status."""
        status = self.process.wait()
        self._reader.join()
        return status

    def durations(self) -> list[float]:
        """The seconds that each task of a finished run took."""
        times = [at for _title, at in self.titles] + [self.ended]
        return [after - before for before, after in itertools.pairwise(times)]

    def kill_at(self, moment: Moment) -> str | None:
        """Kill it at the moment, or when the next title appears before that. Returns the task's name; None where the run ended first."""
        with self._news:
            self._news.wait_for(lambda: self.ended or len(self.titles) >= moment.title)
            if not self.ended:
                self._news.wait_for(lambda: self.ended or len(self.titles) > moment.title, moment.delay_seconds)
        self.left = descendants(self.process.pid)
        if self.process.poll() is None:
            self.process.kill()
        if moment.whole:
            kill(self.left)
        killed = self.process.wait() == -signal.SIGKILL
        return self.titles[-1][0] if killed else None

    def changed(self) -> dict[str, int]:
        """What the recap says of each host; a host that failed counts as -1."""
        recap = self.output[self.output.rfind("PLAY RECAP") :] if "PLAY RECAP" in self.output else ""
        return {
            host: -1 if int(unreachable) + int(failed) else int(changed)
            for host, changed, unreachable, failed in RECAP.findall(recap)
        }


def say(text: str) -> None:
    print(f"chaos: {text}", flush=True)


def rig(name: str, verb: str) -> None:
    subprocess.run([ROOT / "molecule/rig/rig", "--name", name, verb], check=True, stdout=subprocess.DEVNULL)


def fit(name: str, since: float) -> bool:
    """Whether each guest's latest report was written after ``since`` and says that it serves."""
    reports = list((ROOT / ".rig" / name / "reports").glob("*/latest/report.json"))
    return bool(reports) and all(
        path.stat().st_mtime >= since and json.loads(path.read_text())["fit"] is True for path in reports
    )


@dataclass(frozen=True)
class Outcome:
    """What came of one moment."""

    moment: Moment
    task: str | None  # that was cut; None where the run ended before
    second: int
    fit: bool
    third: int
    changed: dict[str, int]

    @property
    def good(self) -> bool:
        quiet = bool(self.changed) and not any(self.changed.values())
        return self.task is not None and self.second == 0 and self.fit and self.third == 0 and quiet

    def row(self) -> list[str]:
        changed = ", ".join(f"{host} {count}" for host, count in self.changed.items()) or "no recap"
        words = [str(self.moment), self.task or "ended before", str(self.second), "fit" if self.fit else "not fit"]
        return [*words, str(self.third), changed, "good" if self.good else "FAILED"]


def survive(name: str, moment: Moment, logs: Path) -> Outcome:
    """One moment on a bare rig: the killed run, the one that completes it, and the one that changes nothing."""
    rig(name, "down")
    rig(name, "up")
    with Run(name, logs / "1.log") as first:
        task = first.kill_at(moment)
        began = time.time()
        with Run(name, logs / "2.log") as second:  # while what the kill has left of the first may still be at work
            status = second.finish()
        proven = fit(name, began)
    with Run(name, logs / "3.log") as third:
        return Outcome(moment, task, status, proven, third.finish(), third.changed())


def table(rows: list[list[str]]) -> str:
    """Rows as columns of equal width."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


HEADER = ["moment", "task that was cut", "2nd", "report", "3rd", "3rd changed", ""]


def chaos_deploy(name: str, count: int, seed: int) -> int:
    """A deploy that nobody disturbs gives the tasks and their times; then each moment."""
    outcomes = []
    try:
        rig(name, "down")
        rig(name, "up")
        say("a deploy that is left alone, to know the journey")
        with Run(name, LOGS / "whole.log") as whole:
            if whole.finish():
                say(f"it failed by itself; its output is {LOGS / 'whole.log'}")
                return 1
        say(f"{len(whole.titles)} titles in {sum(whole.durations()):.0f} s; seed {seed}")
        for number, moment in enumerate(moments(whole.durations(), count, seed), 1):
            say(f"{number} of {count}: {moment} ({whole.titles[moment.title - 1][0]})")
            outcome = survive(name, moment, LOGS / f"{number:02}")
            outcomes.append(outcome)
            say(f"{number} of {count}: {'; '.join(outcome.row()[1:])}")
    finally:
        rig(name, "down")
    print(table([HEADER, *(outcome.row() for outcome in outcomes)]))
    bad = sum(not outcome.good for outcome in outcomes)
    say(f"{len(outcomes) - bad} of {count} moments survived; the output of all runs is below {LOGS}")
    return 1 if bad or len(outcomes) != count else 0


def chaos_kill(name: str, count: int, seed: int, titles: int, log: Path, arguments: list[str]) -> int:
    """Kill deploys one after another on the same rig, each further on than the one before. What follows is the caller's."""
    missed = 0
    with contextlib.ExitStack() as runs:  # what a kill has left of a run may go on until the last is dead
        for number, moment in enumerate(moments([1.0] * titles, count, seed), 1):
            run = runs.enter_context(Run(name, log.with_name(f"{log.name}.{number}"), arguments))
            task = run.kill_at(moment)
            missed += task is None
            say(f"{number} of {count}: {moment}: {task or f'the run ended before, after {len(run.titles)} titles'}")
    return 1 if missed else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=("deploy", "kill"))
    parser.add_argument("--name", default="chaos", help="the rig")
    parser.add_argument("--moments", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--titles", type=int, default=100, help="kill: how many titles the journey has at least")
    parser.add_argument("--log", type=Path, default=LOGS / "kill", help="kill: the files that get the output")
    # What comes after -- goes to ansible-playbook.
    own = sys.argv.index("--") if "--" in sys.argv else len(sys.argv)
    options = parser.parse_args(sys.argv[1:own])
    if options.verb == "deploy":
        return chaos_deploy(options.name, options.moments, options.seed)
    rest = sys.argv[own + 1 :]
    return chaos_kill(options.name, options.moments, options.seed, options.titles, options.log, rest)


if __name__ == "__main__":
    sys.exit(main())
