# SPDX-License-Identifier: GPL-3.0-or-later
"""A run of the contract against a user's node: what it ran on, what came of it, and a file that says so to others."""

from __future__ import annotations

import os
import re
import subprocess
import time
import typing as t
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import pytest
from contract.settings import MARK, PLUGIN, Settings, Unusable

if t.TYPE_CHECKING:
    from contract.guard import Guard

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
MADE_OF_WHY = 600
ONLY_READS = "only reads: guests are made where 'vmids' names numbers for them"
# Addresses of all kinds are somebody's affair and nobody else's.
ADDRESSES = {
    r"\b\d{1,3}(?:\.\d{1,3}){3}\b": "<address>",
    r"\b(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}\b": "<mac>",
}


@dataclass(frozen=True)
class Outcome:
    """What came of one scenario over one way."""

    scenario: str
    outcome: str
    seconds: float
    why: str


class Run:
    """The settings of a run and what is gathered on the way; a plugin of pytest's."""

    __name__ = PLUGIN

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.mark = f"{MARK}{time.strftime('%Y%m%d%H%M%S')}-{os.urandom(2).hex()}"
        self.begun = time.time()
        self.ran_on: dict[str, str] = {}
        self.outcomes: list[Outcome] = []
        self.requests: dict[str, Counter[str]] = {"reading": Counter(), "writing": Counter()}
        self.left: list[str] = []
        self.broken_off = False

    @property
    def files(self) -> list[str]:
        """The scenarios: those that write only where the user names vmids for them."""
        names = ["test_reading.py", *(["test_writing.py"] if self.settings.vmids else [])]
        return [str(HERE / name) for name in names]

    # --- what pytest calls ---

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self) -> None:
        # Only now are Slipway's modules where they can be imported from.
        from ansible.module_utils.slipway.errors import SlipwayError
        from ansible.module_utils.slipway.pve.client import ApiError

        try:
            self._look()
        except (Unusable, SlipwayError, ApiError) as error:
            raise pytest.UsageError(str(error)) from error
        print("\n".join(self._told()), flush=True)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        writes = "stage" in t.cast("pytest.Function", item).fixturenames
        if writes and any(found.outcome == "failed" for found in self.outcomes if "reading" in found.scenario):
            pytest.skip("the part that only reads failed")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or (report.when == "setup" and not report.passed) or report.failed:
            name = report.nodeid.rpartition("/")[2].removeprefix("test_").replace(".py::test_", ": ").replace("_", " ")
            self.outcomes.append(Outcome(name, report.outcome, report.duration, _why(report)))

    def pytest_keyboard_interrupt(self) -> None:
        self.broken_off = True

    # --- what the scenarios call ---

    def note_requests(self, guard: Guard) -> None:
        part = self.requests["writing" if guard.claimed else "reading"]
        part.update("GET" if verb == "GET" else "other" for verb, path in guard.sent if path != "access/ticket")

    # --- before ---

    def _look(self) -> None:
        """Read what the run will be on, and see that the user's vmids are free. Raises Unusable, SlipwayError, ApiError."""
        from contract.guard import Guard
        from contract.stage import reach

        guard = Guard()
        with pytest.MonkeyPatch.context() as monkeypatch:
            guard.stand(monkeypatch)
            for way, options in self.settings.ways.items():
                client = reach(options, self.settings.timeout_seconds)
                self.ran_on[f"way {way}"] = "root" if client.identity == "root@pam" else "a token or a user"
                self._look_over(client)
        self.note_requests(guard)

    def _look_over(self, client: t.Any) -> None:
        from ansible.module_utils.slipway.pve import api, lookup
        from ansible.module_utils.slipway.pve.client import ApiError

        settings = self.settings
        self.ran_on["Proxmox VE"] = client.call("get", "version")["version"]
        try:
            machine = api.machine(client, settings.node)
            self.ran_on["manager"] = str(machine.get("pveversion", "unknown"))
            self.ran_on["kernel"] = str(machine.get("current-kernel", {}).get("release") or machine.get("kversion"))
        except ApiError as error:
            if error.status != 403:
                raise
        if settings.storage:
            kinds = {row["storage"]: row["type"] for row in api.storages(client, settings.node)}
            if settings.storage not in kinds:
                raise Unusable(
                    f"Cannot use storage '{settings.storage}': node '{settings.node}' has {', '.join(sorted(kinds))}. "
                    "Name one of these, or let the identity see it (Datastore.Audit)."
                )
            self.ran_on["storage"] = f"{settings.storage} ({kinds[settings.storage]})"
        vmids = settings.vmids or range(0)
        for vmid in vmids:
            if taken_by := lookup.holder(client, vmid):
                raise Unusable(
                    f"Cannot use the vmids {vmids[0]}-{vmids[-1]}: {vmid} is taken by {taken_by}. "
                    "Name a range that is free; a guest of a run before has a tag that begins with "
                    f"{MARK} and goes with 'pct destroy {vmid} --force --purge'."
                )

    # --- after ---

    @property
    def counted(self) -> str:
        counts = Counter(found.outcome for found in self.outcomes)
        return f"{counts['passed']} passed, {counts['failed']} failed, {counts['skipped']} skipped"

    @property
    def good(self) -> bool:
        counts = Counter(found.outcome for found in self.outcomes)
        return counts["passed"] > 0 and not counts["failed"] and not self.left and not self.broken_off

    def _told(self) -> list[str]:
        told = ", ".join(f"{name} {value}" for name, value in self.ran_on.items())
        vmids = self.settings.vmids
        part = f"reads, then makes guests on {vmids[0]}-{vmids[-1]}, tagged {self.mark}" if vmids else ONLY_READS
        return [f"node {self.settings.node}: {told}", part]

    def finish(self) -> None:
        """Write the file, and print what is to be known at the end, the line that counts last."""
        reading, writing = self.requests["reading"], self.requests["writing"]
        lines = [
            "",
            *self._told()[:1],
            f"the part that only reads sent {reading['GET']} GETs and {reading['other']} other requests",
            *([f"the part that writes sent {writing['GET']} GETs and {writing['other']} others"] if writing else []),
            *(["it was broken off"] if self.broken_off else []),
            *self.left,
            f"report: {self.write()}",
            self.counted,
        ]
        print("\n".join(lines), flush=True)

    def write(self) -> Path:
        """The file for others. It names no secret, and no host, address or user."""
        path = self.settings.folder / f"pve-contract-{self.mark.removeprefix(MARK)}.md"
        path.write_text(self.scrubbed(self._page()))
        return path

    def scrubbed(self, text: str) -> str:
        for private, name in sorted(self.settings.private.items(), key=lambda pair: -len(pair[0])):
            text = re.sub(rf"(?<![\w-]){re.escape(private)}(?![\w-])", f"<{name}>", text)
        for secret in self.settings.secrets:
            text = text.replace(secret, "<secret>")
        for address, name in ADDRESSES.items():
            text = re.sub(address, name, text)
        return text

    def _page(self) -> str:
        rows = [
            *self.ran_on.items(),
            ("Slipway", _commit()),
            ("begun", time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(self.begun))),
            ("seconds", f"{time.time() - self.begun:.0f}"),
            *((f"requests while {part}", f"{c['GET']} GET, {c['other']} other") for part, c in self.requests.items()),
        ]
        scenarios = [
            f"| {found.scenario} | {found.outcome} | {found.seconds:.1f} | {_in_cell(found.why)} |"
            for found in self.outcomes
        ]
        return "\n".join(
            [
                "# The contract with Proxmox VE, run on a node",
                "",
                "| | |",
                "|---|---|",
                *(f"| {name} | {_in_cell(value)} |" for name, value in rows),
                "",
                f"{self.counted}{', broken off' if self.broken_off else ''}",
                "",
                *(f"- {sentence}" for sentence in self.left),
                *([""] if self.left else []),
                "| scenario and way | outcome | seconds | why |",
                "|---|---|---|---|",
                *scenarios,
                "",
            ]
        )


def _why(report: pytest.TestReport) -> str:
    """Why a scenario failed or was skipped."""
    if report.skipped and isinstance(report.longrepr, tuple):
        return report.longrepr[2].removeprefix("Skipped: ")
    crash = getattr(report.longrepr, "reprcrash", None)
    return str(crash.message if crash else report.longrepr or "")[:MADE_OF_WHY]


def _in_cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _commit() -> str:
    done = subprocess.run(["git", "describe", "--always", "--dirty"], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() or "unknown"
