# SPDX-License-Identifier: GPL-3.0-or-later
"""Speed as ratios, each measured side by side with its yardstick in one run: ``make bench``.

A ratio says the same on a slow and on a busy machine, which seconds do not. Both sides take turns, and the median of the turns' ratios
is what is printed. A line is one measure; it ends with the ratio that it must have, and the exit status says whether all have theirs.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import typing as t
from pathlib import Path

import ansible.module_utils

ROOT = Path(__file__).resolve().parent.parent
ansible.module_utils.__path__.append(str(ROOT / "module_utils"))

# What is audited where no environment is named: large files and small ones, as a stack has them. It is made once.
PACKAGES = ("torch==2.9.1", "sglang==0.5.9")
AUDIT_RATIO = 0.8
AUDIT_MIB = 300
# One process of openssl for so many files: more of them would measure how fast processes start.
FILES_A_PROCESS = 500


class Measure(t.NamedTuple):
    """A measure: what it is called, the ratio, the least that it must be, and what else is told of it."""

    name: str
    ratio: float
    least: float
    told: str = ""
    good: bool = True

    @property
    def passed(self) -> bool:
        return self.ratio >= self.least and self.good

    def __str__(self) -> str:
        return f"{self.name}: {self.ratio:.2f} (at least {self.least}): {'ok' if self.passed else 'NOT ENOUGH'}; {self.told}"


def environment() -> Path:
    """An environment to audit, below build/."""
    venv = ROOT / "build" / "bench" / "venv"
    if not (venv / "complete").exists():
        print(f"Making {venv} with {' and '.join(PACKAGES)}, a download of 1 GB", flush=True)
        python = str(venv / "bin" / "python")
        subprocess.run(["uv", "venv", "-q", "--clear", "--python", sys.executable, str(venv)], check=True)
        command = ["uv", "pip", "install", "-q", "--no-deps", "--link-mode", "copy", "--python", python, *PACKAGES]
        subprocess.run(command, check=True)
        (venv / "complete").touch()
    return venv


def audit(venv: Path, turns: int) -> Measure:
    """A whole audit of an environment at ``depth: all`` against openssl on the same files, with all cores each."""
    from ansible.module_utils.slipway.python import ownership, site

    files: list[str] = []
    for folder in site.folders(venv):
        owned = ownership.owners(str(folder), site.distributions(folder))
        files += [path for path in owned.files if os.path.isfile(path)]
    if not files:
        raise SystemExit(f"Cannot measure the audit: {venv} has no installed files. Name an environment.")
    with tempfile.NamedTemporaryFile() as listing:
        listing.write("\0".join(files).encode(errors="surrogateescape"))
        listing.flush()
        cores = len(os.sched_getaffinity(0))
        yardstick = ["xargs", "-0", "-a", listing.name, "-P", str(cores), "-n", str(FILES_A_PROCESS)]
        yardstick += ["openssl", "dgst", "-sha256"]
        audited = [sys.executable, __file__, "--audit-once", str(venv)]
        _time(yardstick)  # so that both find the files in memory
        peak = _peak_mib(audited)
        ratios = []
        for turn in range(turns):
            # Who comes first changes, so that what others do on the machine hits both alike.
            first, second = (yardstick, audited) if turn % 2 else (audited, yardstick)
            taken = {one[0]: _time(one) for one in (first, second)}
            ratios.append(taken["xargs"] / taken[sys.executable])
    size = sum(os.path.getsize(path) for path in files) / 2**30
    told = f"{len(files)} files, {size:.1f} GiB, {turns} turns, at most {peak} MiB of memory (below {AUDIT_MIB})"
    return Measure("site_audit / openssl", statistics.median(ratios), AUDIT_RATIO, told, peak < AUDIT_MIB)


def audit_once(venv: Path) -> None:
    """One audit, in a process of its own."""
    from ansible.module_utils.slipway.python import survey

    options: dict[str, t.Any] = {"packages": [], "depth": "all", "lock": None, "lock_content": None, "originals": []}
    options |= {"patches": None, "record_directory": "/var/lib/slipway/environments", "environment": {}, "unit": ""}
    survey.look({"venv": str(venv), **options})


def _peak_mib(command: list[str]) -> int:
    """The most memory that a command and its children held; what they share counts once (PSS). It is looked at often, so not timed."""
    peak = 0
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as running:
        while running.poll() is None:
            peak = max(peak, sum(_pss_kib(process) for process in [running.pid, *_children(running.pid)]))
            time.sleep(0.02)
    if running.returncode:
        raise SystemExit(
            f"Cannot measure the audit: it ended with {running.returncode}. Run {' '.join(command)} to see why."
        )
    return peak // 1024


def _children(process: int) -> list[int]:
    try:
        return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
    except OSError:
        return []


def _pss_kib(process: int) -> int:
    try:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
    except OSError:  # it has ended meanwhile
        return 0
    return sum(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def _time(command: list[str]) -> float:
    begun = time.monotonic()
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    return time.monotonic() - begun


def main() -> int:
    parser = argparse.ArgumentParser(description="Speed as ratios.")
    parser.add_argument("--venv", type=Path, help="the environment to audit; not given, one is made")
    parser.add_argument("--turns", type=int, default=5, help="how often each side is measured")
    parser.add_argument("--audit-once", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.audit_once:
        audit_once(given.audit_once)
        return 0
    measures = [audit(given.venv or environment(), given.turns)]
    print("\n".join(str(measure) for measure in measures))
    return 0 if all(measure.passed for measure in measures) else 1


if __name__ == "__main__":
    sys.exit(main())
