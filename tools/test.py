# SPDX-License-Identifier: GPL-3.0-or-later
"""Run the tests by part (lint, unit, molecule), show each as it goes, and end with one line that counts.

A lint command, a unit test and a step of a Molecule scenario are one test each. What could not start counts as failed.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE = ROOT / "build" / "ansible_collections" / "slipway" / "slipway"
# Scenarios by the rig that they are on; rigs run side by side. The journey comes first on one: it deploys from nothing, and the
# others then change, break and refuse on what it made; `repair` deploys before it breaks.
SCENARIOS = {
    "molecule": ["deploy", "check_mode", "secrets", "acceptance", "preflight", "proxmox", "links", "patches", "audit"],
    "repair": ["repair", "verify", "server_faults"],
}
# What takes longer than a run of CI should: all that is broken by hand, places with a proxy or no network, Secure Boot, the real stack of
# SGLang, two hosts with three guests, nodes that reboot, a guest that was there before, drivers that change or come from packages, each
# role by itself.
MORE_SCENARIOS = {
    "repair": ["repair", "places", "secure_boot"],
    "sglang": ["sglang"],
    "fleet": ["fleet"],
    "reboots": ["reboots"],
    "roles": [
        "deploy",
        "adoption",
        "driver_change",
        "pve_host",
        "model_store",
        "gpu_container",
        "gpu_userspace",
        "inference_stack",
        "inference_server",
        "driver_packages",
    ],
}
# The tools' own files stay in this checkout and in Slipway's cache folder.
ENVIRONMENT = {
    "ANSIBLE_HOME": str(Path.home() / ".cache" / "slipway" / "ansible"),
    "ANSIBLE_REMOTE_TMP": str(Path.home() / ".cache" / "slipway" / "ansible" / "tmp"),
    "UV_CACHE_DIR": str(Path.home() / ".cache" / "slipway" / "uv"),
    "UV_CREDENTIALS_DIR": str(Path.home() / ".cache" / "slipway" / "uv"),
}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


@dataclass
class Count:
    """Tests by outcome."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other: Count) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped


def run(command: list[str], cwd: Path = ROOT, label: str = "", **environment: str) -> tuple[int, str]:
    """Run a command, showing its output as it comes, each line behind ``label``. Returns status and output without colours."""
    print(f"\n{label}$ {' '.join(command)}", flush=True)
    lines = []
    with subprocess.Popen(
        command,
        cwd=cwd,
        env={**os.environ, **ENVIRONMENT, **environment},
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    ) as process:
        for line in process.stdout or ():
            print(f"{label}{line}", end="", flush=True)
            lines.append(COLOUR.sub("", line))
    return process.returncode, "".join(lines)


def stage() -> None:
    """Lay out a collection below build/, where relative imports resolve as they do in an installed one."""
    shutil.rmtree(STAGE, ignore_errors=True)
    for source, target in (
        ("library", "modules"),
        ("module_utils", "module_utils"),
        ("action_plugins", "action"),
        ("callback_plugins", "callback"),
        ("doc_fragments", "doc_fragments"),
    ):
        shutil.copytree(ROOT / source, STAGE / "plugins" / target)


def lint() -> Count:
    """Style, types and Ansible's own rules."""
    stage()
    commands: list[tuple[list[str], Path, dict[str, str]]] = [
        (["ruff", "check", "."], ROOT, {}),
        (["ruff", "format", "--check", "."], ROOT, {}),
        (
            [
                "mypy",
                "--config-file",
                str(ROOT / "pyproject.toml"),
                "--namespace-packages",
                "--explicit-package-bases",
                "ansible_collections",
            ],
            ROOT / "build",
            {},
        ),
        (
            [
                "mypy",
                "--config-file",
                str(ROOT / "pyproject.toml"),
                "--python-version",
                "3.13",
                "--explicit-package-bases",
                ".",
            ],
            ROOT / "molecule" / "rig",
            {},
        ),
        (["mypy", "tools/test.py", "tools/summary.py", "tools/findings_doc.py", "tools/breakages.py"], ROOT, {}),
        (["mypy", "tools/lock.py", "tools/wheel_metadata.py", "tools/bench.py"], ROOT, {}),
        (["ansible-lint", "--strict"], ROOT, {}),
    ]
    count = Count()
    for command, cwd, environment in commands:
        status, _output = run(command, cwd, **environment)
        count.add(Count(passed=int(status == 0), failed=int(status != 0)))
    return count


def unit() -> Count:
    """pytest over tests/."""
    return _pytest("tests")


def _pytest(folder: str, **environment: str) -> Count:
    (ROOT / "build").mkdir(exist_ok=True)  # pytest makes its folder there, but not the one above it
    # A file's tests stay together, since they share what is slow to make.
    command = [sys.executable, "-m", "pytest", "-q", "--numprocesses", "auto", "--dist", "loadfile", folder]
    status, output = run(command, ROOT, **environment)
    last = output.strip().splitlines()[-1] if output.strip() else ""
    numbers = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed|skipped|error)", last)}
    count = Count(
        numbers.get("passed", 0), numbers.get("failed", 0) + numbers.get("error", 0), numbers.get("skipped", 0)
    )
    if status and not count.failed:
        count.failed = 1
    return count


def molecule() -> Count:
    """The scenarios, on their rigs."""
    return _side_by_side(SCENARIOS)


def more() -> Count:
    """What a run of CI leaves out: tests over real wheels, which need a network, in a real browser, and further scenarios."""
    count = _pytest("tests/wheels", SLIPWAY_WHEELS="1")
    count.add(_pytest("tests/pages", SLIPWAY_BROWSER="1"))
    count.add(_side_by_side(MORE_SCENARIOS, full="1"))
    return count


def _side_by_side(by_rig: dict[str, list[str]], full: str = "") -> Count:
    count = Count()
    with ThreadPoolExecutor(max_workers=2) as pool:  # rigs share the cores
        for one in pool.map(lambda rig: _scenarios(rig, by_rig[rig], full), by_rig):
            count.add(one)
    return count


def _scenarios(rig: str, names: list[str], full: str) -> Count:
    """One run of Molecule. A scenario that it does not tell of has failed."""
    selected = [word for name in names for word in ("--scenario-name", name)]
    status, output = run(
        ["molecule", "test", "--no-command-borders", *selected],
        label=f"{rig} | ",
        ANSIBLE_FORCE_COLOR="0",
        SLIPWAY_RIG=rig,
        SLIPWAY_FULL=full,
        MOLECULE_EPHEMERAL_DIRECTORY=str(ROOT / "build" / "molecule" / rig),
    )
    details = output[output.rfind("DETAILS") :]
    steps = re.findall(r"^(\S+) (?:➜|>) (\S+): Executed: (\w+)", details, re.MULTILINE)
    missing = set(names) - {scenario for scenario, _step, _outcome in steps}
    failed = len(missing) + sum(outcome != "Successful" for _scenario, _step, outcome in steps)
    count = Count(passed=len(steps) + len(missing) - failed, failed=failed)
    if status and not failed:
        count.failed = 1
    return count


def main() -> int:
    parts = {"lint": lint, "unit": unit, "molecule": molecule, "more": more}
    total = Count()
    outcomes = []
    for name in sys.argv[1:]:
        count = parts[name]()
        outcomes.append(f"{name}: {count.passed} passed, {count.failed} failed, {count.skipped} skipped")
        total.add(count)
    print("\n" + "\n".join(outcomes))
    print(f"{total.passed} passed, {total.failed} failed, {total.skipped} skipped")
    return 1 if total.failed or not total.passed else 0


if __name__ == "__main__":
    sys.exit(main())
