# SPDX-License-Identifier: GPL-3.0-or-later
"""Writes the reports of a run: a folder a host, in it one a run, the link ``latest``, and a page over all hosts."""

from __future__ import annotations

import json
import os
import typing as t
from contextlib import suppress
from pathlib import Path

from .. import files
from . import content, history, render, sections

Data = t.Mapping[str, t.Any]
LATEST, INDEX = "latest", "index.html"
# What the controller itself knows of a host.
ASKED = ("directory", "node", "vmid", "profile", "summary", "engine", "asked", "consents", "evidence", "expected")


def reports(gathered: t.Mapping[str, Data], run: Data) -> list[dict[str, t.Any]]:
    """Write one for each host that ``gathered`` has, and return them with ``path``, the page for the browser. Raises ``OSError``.

    ``gathered`` by host has ``directory`` beside what ``content.compose`` takes, ``run`` is described there.
    """
    written = []
    for host, known in gathered.items():
        folder = Path(known["directory"]) / host / run["began"]
        earlier = history.read(folder.parent, run["began"])
        try:
            report = content.compose(host, known, run, earlier)
            _write(folder, report)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            # What a guest keeps is the guest's. If it has lost its form, the rest is still to be told.
            told = {key: known[key] for key in ASKED if key in known}
            told["gathering"] = (
                f"what is kept on the host has a form that cannot be read ({type(error).__name__}: {error})."
            )
            report = content.compose(host, told, run, earlier)
            _write(folder, report)
        written.append({**report, "path": str(folder / "report.html")})
    for place in sorted({str(known["directory"]) for known in gathered.values()}):
        index(Path(place), run)
    return written


def index(directory: Path, run: Data) -> None:
    """Write the page over all hosts that have a report in this folder. Raises ``OSError``."""
    lines = (history.line(folder / LATEST / "report.json") for folder in sorted(directory.iterdir()) if folder.is_dir())
    hosts = [line for line in lines if line]
    page = render.html(
        "index.html.j2",
        sections=sections.index(hosts, run),
        fit=sum(host["verdict"] == content.FIT for host in hosts),
        count=len(hosts),
    )
    files.replace(directory / INDEX, page)


def _write(folder: Path, report: Data) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    values = {
        "report": report,
        "sections": sections.page(report),
        "facts": sections.facts(report),
        "tone": sections.VERDICTS[report["verdict"]],
    }
    files.replace(folder / "report.json", json.dumps(report, indent=2) + "\n")
    files.replace(folder / "report.md", render.markdown("report.md.j2", **values))
    files.replace(folder / "report.html", render.html("report.html.j2", **values))
    link = folder.parent / f".{LATEST}.{os.getpid()}"
    with suppress(FileNotFoundError):
        link.unlink()
    link.symlink_to(folder.name)
    os.replace(link, folder.parent / LATEST)
